package main

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"relay/store/redis"
)

// The kinds of a setting's value. Tags of the field bound them: min and max,
// unit (of a plain number), off (a word that means no), choices.
type (
	number  int64         // a count; 0 when unset and without default
	size    int64         // bytes
	span    time.Duration // a length of time
	port    int           // a TCP port; portOff when switched off
	choice  string        // one of a few words
	address string        // an IP address; "" = all addresses
	subnets []netip.Prefix
	label   string // a short printable name
	path    string // of a file or folder
	secret  string // never quoted

	// storeAddrs are where a shared store is. They may hold a password, so they
	// are quoted by String and nothing else.
	storeAddrs []string
)

// portOff is a port that is not listened on.
const portOff port = -1

// Limits of values.
const (
	labelBytesMax  = 64   // a label
	pathBytesMax   = 4095 // a path
	secretBytesMin = 8    // a secret: a shorter one could be guessed
	secretBytesMax = 4096
	subnetsMax     = 64 // networks in a list, which is walked for each connection
	storeAddrsMax  = 64 // nodes of a cluster to begin with
)

// A wrongValue says that a setting has a value that is not allowed. It is one
// line: the setting by its variable and flag, the value, what is allowed.
type wrongValue struct {
	setting, value, allowed string
}

// Error is the line.
func (w *wrongValue) Error() string {
	return fmt.Sprintf("%s is %q: allowed is %s", w.setting, w.value, w.allowed)
}

// A valueReader reads the values of settings, from flags and from variables
// alike, and keeps the first that is wrong.
type valueReader struct {
	wrong error
}

// mappers tells kong which types the reader reads.
func (r *valueReader) mappers() []kong.Option {
	readers := []struct {
		sample any
		read   func(text string, tag *kong.Tag) (value any, allowed string)
	}{
		{number(0), readNumber},
		{size(0), readSize},
		{span(0), readSpan},
		{port(0), readPort},
		{choice(""), readChoice},
		{address(""), readAddress},
		{subnets(nil), readSubnets},
		{label(""), readLabel},
		{path(""), readPath},
		{secret(""), readSecret},
		{storeAddrs(nil), readStoreAddrs},
	}
	options := make([]kong.Option, 0, len(readers))
	for _, x := range readers {
		read := func(ctx *kong.DecodeContext, target reflect.Value) error {
			return r.decode(ctx, target, x.read)
		}
		options = append(options, kong.TypeMapper(reflect.TypeOf(x.sample), kong.MapperFunc(read)))
	}
	return options
}

// decode reads one value. An empty one counts as unset.
func (r *valueReader) decode(ctx *kong.DecodeContext, target reflect.Value,
	read func(string, *kong.Tag) (any, string)) error {
	var text string
	if err := ctx.Scan.PopValueInto("value", &text); err != nil {
		return err
	}
	text = strings.TrimSpace(text)
	if text == "" {
		text = ctx.Value.Default
	}
	if text == "" {
		return nil
	}
	value, allowed := read(text, ctx.Value.Tag)
	if value == nil {
		switch target.Interface().(type) {
		case secret, storeAddrs:
			text = "***"
		}
		wrong := &wrongValue{settingName(ctx.Value), text, allowed}
		if r.wrong == nil {
			r.wrong = wrong
		}
		return wrong
	}
	target.Set(reflect.ValueOf(value))
	return nil
}

// settingName is how a setting is called in complaints.
func settingName(v *kong.Value) string {
	if len(v.Tag.Envs) == 0 {
		return "--" + v.Name
	}
	return fmt.Sprintf("%s (--%s)", v.Tag.Envs[0], v.Name)
}

// bounds are the min and max of a tag.
func bounds(tag *kong.Tag, parse func(string) (int64, error)) (low, high int64) {
	low, high = 0, math.MaxInt64
	for name, bound := range map[string]*int64{"min": &low, "max": &high} {
		if !tag.Has(name) {
			continue
		}
		n, err := parse(tag.Get(name))
		if err != nil {
			panic("BUG: tag " + name + ": " + err.Error())
		}
		*bound = n
	}
	return low, high
}

func parseInt(text string) (int64, error) { return strconv.ParseInt(text, 10, 64) }

func readNumber(text string, tag *kong.Tag) (any, string) {
	low, high := bounds(tag, parseInt)
	n, err := parseInt(text)
	if err == nil && n >= low && n <= high {
		return number(n), ""
	}
	if high == math.MaxInt64 {
		return nil, fmt.Sprintf("a whole number, %d or more", low)
	}
	return nil, fmt.Sprintf("a whole number from %d to %d", low, high)
}

func readPort(text string, tag *kong.Tag) (any, string) {
	off := tag.Get("off")
	if off != "" && text == off {
		return portOff, ""
	}
	if n, err := strconv.ParseUint(text, 10, 16); err == nil {
		return port(n), ""
	}
	allowed := "a port from 0 to 65535 (0 = a free one)"
	if off != "" {
		allowed += fmt.Sprintf(", or %q", off)
	}
	return nil, allowed
}

// sizeUnits are what a size may end in.
var sizeUnits = []struct {
	suffix string
	bytes  int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}, {"B", 1}}

func parseSize(text string) (int64, error) {
	unit := int64(1)
	for _, u := range sizeUnits {
		if digits, ok := strings.CutSuffix(text, u.suffix); ok {
			text, unit = strings.TrimSpace(digits), u.bytes
			break
		}
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, err
	}
	if int64(n) > math.MaxInt64/unit {
		return 0, errors.New("too large")
	}
	return int64(n) * unit, nil
}

// sizeText writes a size in the largest unit that divides it.
func sizeText(n int64) string {
	for i := len(sizeUnits) - 2; i >= 0; i-- {
		if u := sizeUnits[i]; n >= u.bytes && n%u.bytes == 0 {
			return fmt.Sprintf("%d%s", n/u.bytes, u.suffix)
		}
	}
	return fmt.Sprintf("%d", n)
}

func readSize(text string, tag *kong.Tag) (any, string) {
	low, high := bounds(tag, parseSize)
	n, err := parseSize(text)
	if err == nil && n >= low && n <= high {
		return size(n), ""
	}
	return nil, fmt.Sprintf("a size from %s to %s, in bytes or with KiB, MiB, GiB",
		sizeText(low), sizeText(high))
}

// readSpan takes a Go duration, or a plain number in the unit of the tag.
func readSpan(text string, tag *kong.Tag) (any, string) {
	parse := func(text string) (int64, error) {
		if n, err := parseInt(text); err == nil {
			unit, err := time.ParseDuration("1" + tag.Get("unit"))
			if err != nil {
				panic("BUG: tag unit: " + err.Error())
			}
			if n > math.MaxInt64/int64(unit) || n < 0 {
				return 0, errors.New("out of range")
			}
			return n * int64(unit), nil
		}
		d, err := time.ParseDuration(text)
		return int64(d), err
	}
	low, high := bounds(tag, parse)
	n, err := parse(text)
	if err == nil && n >= low && n <= high {
		return span(n), ""
	}
	return nil, fmt.Sprintf("a time from %s to %s, such as %s; a plain number is in %s",
		time.Duration(low), time.Duration(high), tag.Default, tag.Get("unit"))
}

func readChoice(text string, tag *kong.Tag) (any, string) {
	words := strings.Split(tag.Get("choices"), ",")
	for _, w := range words {
		if text == w {
			return choice(text), ""
		}
	}
	return nil, strings.Join(words, " or ")
}

func readAddress(text string, _ *kong.Tag) (any, string) {
	if ip, err := netip.ParseAddr(text); err == nil {
		return address(ip.String()), ""
	}
	return nil, "an IP address of this machine, such as 127.0.0.1 or ::1"
}

func readSubnets(text string, _ *kong.Tag) (any, string) {
	allowed := fmt.Sprintf("a comma list of at most %d addresses or networks, such as 10.0.0.0/8,::1", subnetsMax)
	var list subnets
	for _, part := range strings.Split(text, ",") {
		part = strings.TrimSpace(part)
		p, err := netip.ParsePrefix(part)
		if err != nil {
			ip, err := netip.ParseAddr(part)
			if err != nil {
				return nil, allowed
			}
			p = netip.PrefixFrom(ip, ip.BitLen())
		}
		list = append(list, p.Masked())
	}
	if len(list) > subnetsMax {
		return nil, allowed
	}
	return list, ""
}

// String is the list as it may be written.
func (s subnets) String() string {
	parts := make([]string, len(s))
	for i, p := range s {
		parts[i] = p.String()
	}
	return strings.Join(parts, ",")
}

func readLabel(text string, _ *kong.Tag) (any, string) {
	allowed := fmt.Sprintf("1 to %d letters, digits and -_.", labelBytesMax)
	if len(text) > labelBytesMax {
		return nil, allowed
	}
	for _, c := range text {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && !strings.ContainsRune("-_.", c) {
			return nil, allowed
		}
	}
	return label(text), ""
}

func readPath(text string, _ *kong.Tag) (any, string) {
	if len(text) > pathBytesMax || strings.ContainsRune(text, 0) {
		return nil, fmt.Sprintf("a path of at most %d bytes", pathBytesMax)
	}
	return path(text), ""
}

func readSecret(text string, _ *kong.Tag) (any, string) {
	allowed := fmt.Sprintf("%d to %d printable ASCII characters without blank", secretBytesMin, secretBytesMax)
	if len(text) < secretBytesMin || len(text) > secretBytesMax {
		return nil, allowed
	}
	for _, c := range []byte(text) {
		if c <= ' ' || c > '~' {
			return nil, allowed
		}
	}
	return secret(text), ""
}

func readStoreAddrs(text string, _ *kong.Tag) (any, string) {
	var list storeAddrs
	for _, part := range strings.Split(text, ",") {
		list = append(list, strings.TrimSpace(part))
	}
	allowed := fmt.Sprintf("host:port or redis://user:password@host:port/db, or a comma list of at most %d of them for a cluster", storeAddrsMax)
	if len(list) > storeAddrsMax {
		return nil, allowed
	}
	if err := redis.CheckAddrs(list); err != nil {
		return nil, fmt.Sprintf("%s (%s)", allowed, strings.TrimPrefix(err.Error(), "redis: "))
	}
	return list, ""
}

// String is the list without what is secret: host:port of each.
func (s storeAddrs) String() string {
	parts := make([]string, len(s))
	for i, addr := range s {
		parts[i] = addr
		if u, err := url.Parse(addr); err == nil && strings.Contains(addr, "://") {
			parts[i] = u.Host
		}
	}
	return strings.Join(parts, ",")
}
