package catalog

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// A HostKey is one upstream credential. However it is printed, it shows its
// name and not its value.
type HostKey struct {
	Name   string
	Host   *Host
	Value  []byte `json:"-"` // secret; never logged
	Tier   int    // lower is preferred by pool: prioritized
	Weight int    // ≥ 1
	Group  Group
}

// String is host/name.
func (k HostKey) String() string {
	if k.Host == nil {
		return k.Name
	}
	return k.Host.Name + "/" + k.Name
}

// GoString is String.
func (k HostKey) GoString() string { return k.String() }

// Format writes String, whatever the verb: %d of a struct would print bytes.
func (k HostKey) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, k.String()) }

// LogValue is String.
func (k HostKey) LogValue() slog.Value { return slog.StringValue(k.String()) }

// hostKeys compiles the pool of a host.
func (c *compiler) hostKeys(at *Place, line int32, e *HostEntry, h *Host) {
	if !sized(c, at, "keys", line, &e.Keys, true, hostKeysMax) {
		return
	}
	list := at.Field("keys")
	names := newRegistry[HostKey](&e.Keys)
	later := 0 // keys that this version has no value for
	for i := range e.Keys.Value {
		f := &e.Keys.Value[i]
		if f.State != Given {
			continue
		}
		item := list.Item(i)
		k := &HostKey{
			Host:   h,
			Tier:   int(c.number(&item, "tier", &f.Value.Tier, 0, 0, tierMax)),
			Weight: int(c.number(&item, "weight", &f.Value.Weight, 1, 1, weightMax)),
		}
		k.Name = name(c, &item, i, f.Line, &f.Value.Name, names, k)
		k.Group = c.group(&item, "host_key", h.Name+"/"+k.Name, &f.Value.Limits, h)
		if required(c, &item, "value", f.Line, &f.Value.Value) {
			if strings.HasPrefix(string(f.Value.Value.Value), storedScheme) {
				later++
				c.problems.Warn(item.Field("value"), f.Value.Value.Line, "stored: is not enforced by this version: the key is left out of the pool")
				continue
			}
			k.Value = c.secret(item.Field("value"), &f.Value.Value)
		}
		h.Keys = append(h.Keys, k)
	}
	if later > 0 && len(h.Keys) == 0 {
		c.problems.Error(list, e.Keys.Line, "no key is left in the pool: this version has no values for stored: keys")
	}
}

const (
	plainScheme  = "plain:"
	storedScheme = "stored:"
)

// secret resolves a reference and checks that its value can go into a header.
func (c *compiler) secret(at Place, f *Field[Secret]) []byte {
	ref := string(f.Value)
	scheme, rest, _ := strings.Cut(ref, ":")
	known := scheme == "env" || scheme == "file" || scheme == "plain"
	if !known || rest == "" {
		c.problems.Error(at, f.Line, "is not a reference; allowed are env:NAME, file:PATH, stored:NAME and plain:TEXT")
		return nil
	}
	shown := scheme + ":"
	if scheme == "plain" {
		c.problems.Warn(at, f.Line, "the secret stands in the file in clear; env: and file: keep it out")
	}
	value, err := c.resolve(ref)
	if err != nil {
		c.problems.Error(at, f.Line, "%v", err)
		return nil
	}
	// Editors and shells leave line ends behind; a blank at the end of a header
	// value would be taken off by the receiver anyway (RFC 9110 §5.5).
	value = bytes.TrimRight(value, " \t\r\n")
	switch {
	case len(value) == 0:
		c.problems.Error(at, f.Line, "the value of the %s reference is empty", shown)
	case len(value) > secretBytesMax:
		c.problems.Error(at, f.Line, "the value of the %s reference is %d bytes long; allowed are %d", shown, len(value), secretBytesMax)
	case !headerSafe(value):
		c.problems.Error(at, f.Line, "the value of the %s reference holds bytes that no header may hold; allowed is printable ASCII that begins without a blank", shown)
	default:
		return bytes.Clone(value)
	}
	return nil
}

// headerSafe reports whether a value can be a field value without harm.
func headerSafe(value []byte) bool {
	for _, b := range value {
		if b < ' ' || b > '~' {
			return false
		}
	}
	return value[0] != ' '
}
