package redis

import (
	"bytes"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"fmt"
	"strings"
	"text/template"
	"time"

	"relay/store/catalog"
	"relay/store/state"
)

// A class is how a rule counts. Leaky buckets count as token buckets do.
type class uint8

// The classes are strategies by number, and slots.
const (
	bucket   = class(catalog.TokenBucket)
	fixed    = class(catalog.FixedWindow)
	sliding  = class(catalog.SlidingWindow)
	session  = class(catalog.SessionWindow)
	calendar = class(catalog.Calendar)
	slots    = class(6)
)

// classes are the letters of what each class keeps in a record.
var classes = [...]string{bucket: "abcly", fixed: "a", sliding: "ab", session: "ab", calendar: "abc", slots: ""}

func classOf(l *catalog.Limit) class {
	switch {
	case l.Meter == catalog.Concurrency:
		return slots
	case l.Strategy == catalog.LeakyBucket:
		return bucket
	}
	return class(l.Strategy)
}

// A script counts groups of one shape. A record of such a group begins with
// the head, which the reply repeats.
type script struct {
	text string
	sha  string
}

//go:embed tick.lua.tmpl
var tickText string

// tick is the template of all scripts.
var tick = template.Must(template.New("tick").Funcs(template.FuncMap{
	"leaseMin":   func() int64 { return state.LeaseMin },
	"leaseParts": func() int64 { return state.LeaseParts },
	"leaseUs":    func() int64 { return state.LeaseNs / 1e3 },
	"waitMaxUs":  func() int64 { return state.WaitMaxNs / 1000 },
	"ebbUs":      func() int64 { return state.EbbNs / 1e3 },
	"gaugeUs":    func() int64 { return gaugeLease.Microseconds() },
	"guardMs":    func() int64 { return guardTTL.Milliseconds() },
}).Parse(tickText))

// newScript writes the script of a shape; of no classes it is the generic one.
func newScript(shape []class) *script {
	s := &sketch{shape: shape}
	for k := range max(len(shape), 1) {
		s.names = append(s.names, s.namesOf(k))
	}
	var text bytes.Buffer
	if err := tick.ExecuteTemplate(&text, "script", s); err != nil {
		panic(fmt.Sprintf("BUG: script of %v: %v", shape, err))
	}
	sum := sha1.Sum(text.Bytes())
	return &script{text: text.String(), sha: hex.EncodeToString(sum[:])}
}

// A sketch is what the template is filled with: it knows whether variables
// have numbers or are in tables.
type sketch struct {
	shape []class
	names []map[string]string // of the variables of each rule, by their letters
}

// Generic reports whether the shape is only known when the script runs.
func (s *sketch) Generic() bool { return s.shape == nil }

// fields are the variables of a rule that are read and written together, in
// order.
func fields(section string, c class) string {
	switch section {
	case "dyn":
		return classes[c]
	case "keep":
		return "AW"
	case "grant":
		return "h"
	case "lent":
		return "e"
	case "conf":
		if c == calendar {
			return "AWFU"
		}
		return "AW"
	}
	asks := map[string]string{"one": "wnm", "all": "wnmq"}[section]
	if asks == "" {
		panic("BUG: no section " + section)
	}
	if c == slots {
		return asks
	}
	return asks + "xrg"
}

// namesOf are the names of the variables of a rule.
func (s *sketch) namesOf(k int) map[string]string {
	names := make(map[string]string)
	for _, v := range append(strings.Split("AWFUabclywnmqxrgfhe", ""), "sa", "sb", "sc", "sl", "sy") {
		if names[v] = v + "[k]"; !s.Generic() {
			names[v] = fmt.Sprint(v, k+1)
		}
	}
	if names["bit"] = "2 ^ (k - 1)"; !s.Generic() {
		names["bit"] = fmt.Sprint(1 << k)
	}
	return names
}

// Each is a block for every rule, each in the form of its class.
func (s *sketch) Each(block string) (string, error) {
	if !s.Generic() {
		var text strings.Builder
		for k, c := range s.shape {
			if err := s.block(&text, block, c, s.names[k]); err != nil {
				return "", err
			}
		}
		return text.String(), nil
	}
	var text strings.Builder
	text.WriteString("for k = 1, R do\nlocal cl = cls[k]\n")
	join := "if"
	for c := range classes {
		if classes[c] == "" && class(c) != slots {
			continue
		}
		fmt.Fprintf(&text, "%s cl == %d then\n", join, c)
		if err := s.block(&text, block, class(c), s.names[0]); err != nil {
			return "", err
		}
		join = "elseif"
	}
	text.WriteString("end\nend\n")
	return text.String(), nil
}

func (s *sketch) block(text *strings.Builder, block string, c class, names map[string]string) error {
	for _, name := range []string{fmt.Sprintf("%s.%d", block, c), block + ".*"} {
		if tick.Lookup(name) == nil {
			continue
		}
		if err := tick.ExecuteTemplate(text, name, names); err != nil {
			return err
		}
		text.WriteString("\n")
		return nil
	}
	return nil // nothing to do for this class
}

// Locals declares variables of every rule.
func (s *sketch) Locals(letters ...string) string {
	if s.Generic() {
		return "local " + strings.Join(letters, ", ") + " = {}" + strings.Repeat(", {}", len(letters)-1)
	}
	var names []string
	for k := range s.shape {
		for _, v := range letters {
			names = append(names, s.names[k][v])
		}
	}
	return "local " + strings.Join(names, ", ")
}

// variables are those of a section, over all rules of a known shape.
func (s *sketch) variables(section string) []string {
	var list []string
	for k, c := range s.shape {
		for _, v := range fields(section, c) {
			list = append(list, s.names[k][string(v)])
		}
	}
	return list
}

// loop is a statement for each rule of an unknown shape, by the variables of
// its section. Consecutive classes often have the same.
func (s *sketch) loop(section, statement string) string {
	var text strings.Builder
	text.WriteString("for k = 1, R do\n")
	for c := range classes {
		if classes[c] == "" && class(c) != slots {
			continue
		}
		list := fields(section, class(c))
		if list == "" {
			continue
		}
		vars := strings.Join(strings.Split(list, ""), "[k], ") + "[k]"
		fmt.Fprintf(&text, "if cls[k] == %d then\n", c)
		fmt.Fprintln(&text, strings.NewReplacer("VARS", vars, "FORMAT", strings.Repeat("d", len(list)), "COUNT", fmt.Sprint(len(list))).Replace(statement))
		text.WriteString("end\n")
	}
	text.WriteString("end\n")
	return text.String()
}

// Read takes the variables of a section from the batch, behind others of a
// given format.
func (s *sketch) Read(section, others, format string) string {
	if s.Generic() {
		before := ""
		if others != "" {
			before = fmt.Sprintf("%sat = su('<%s', batch, at)\n", others, format)
		}
		return before + s.loop(section, "VARS, at = su('<FORMAT', batch, at)")
	}
	list := s.variables(section)
	return fmt.Sprintf("%s%s, at = su('<%s%s', batch, at)", others, strings.Join(list, ", "), format, strings.Repeat("d", len(list)))
}

// Load takes what changes from a record.
func (s *sketch) Load() string {
	const head = "was, wasSig, expires, stamp, rest, total, nearest"
	if s.Generic() {
		return head + " = su('<ddddddd', st)\nlocal p = 57\n" + s.loop("dyn", "VARS, p = su('<FORMAT', st, p)")
	}
	list := s.variables("dyn")
	return fmt.Sprintf("%s = su('<ddddddd%s', st)", strings.Join(append([]string{head}, list...), ", "), strings.Repeat("d", len(list)))
}

// Unlist takes what changes from a table.
func (s *sketch) Unlist(from string) string {
	if s.Generic() {
		return "local p = 1\n" + s.loop("dyn", fmt.Sprintf("VARS = unpack(%s, p, p + COUNT - 1)\np = p + COUNT", from))
	}
	list := s.variables("dyn")
	if len(list) == 0 {
		return ""
	}
	return fmt.Sprintf("%s = unpack(%s)", strings.Join(list, ", "), from)
}

// List is a table of one variable of all rules.
func (s *sketch) List(letter string) string {
	if s.Generic() {
		return letter
	}
	var list []string
	for k := range s.shape {
		list = append(list, s.names[k][letter])
	}
	return "{" + strings.Join(list, ", ") + "}"
}

// Pack is the string of a section.
func (s *sketch) Pack(section string) string {
	if s.Generic() {
		return "pack(function(out)\n" + s.loop(section, "out[#out + 1] = sp('<FORMAT', VARS)") + "end)"
	}
	list := s.variables(section)
	if len(list) == 0 {
		return "''"
	}
	return fmt.Sprintf("sp('<%s', %s)", strings.Repeat("d", len(list)), strings.Join(list, ", "))
}

// Head is the beginning of a record.
func (s *sketch) Head() string {
	const format, list = "<ddddddd", "cfg, sig, expires, t, rest, total, nearest"
	if s.Generic() {
		return fmt.Sprintf("sp('%s', %s) .. %s", format, list, s.Pack("dyn"))
	}
	more := s.variables("dyn")
	return fmt.Sprintf("sp('%s%s', %s)", format, strings.Repeat("d", len(more)), strings.Join(append([]string{list}, more...), ", "))
}

// Size is how many bytes a section takes.
func (s *sketch) Size(section string) string {
	if s.Generic() {
		return map[string]string{"dyn": "dyn", "keep": "16 * R", "one": "entry"}[section]
	}
	n := 8 * len(s.variables(section))
	if section == "one" {
		n += 8 // the change of slots
	}
	return fmt.Sprint(n)
}

// usOf is a window in the steps of the store's clock, rounded up.
func usOf(d time.Duration) int64 { return (int64(d) + 999) / 1000 }
