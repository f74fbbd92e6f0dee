package catalog

import (
	"slices"
	"strings"
	"time"
)

// Compile checks a document and builds its tables. All problems are returned,
// by line, not only the first; tables is nil when one of them is an error.
// resolve reads secret references ("env:NAME", "file:PATH", "plain:TEXT"); its
// errors must name the reference and never hold a value.
//
// A setting that this version does not carry out yet is a warning, so that
// nobody believes that it holds; a limit of that kind is an error.
func Compile(doc *Document, resolve func(ref string) ([]byte, error)) (tables *Tables, problems []Problem) {
	c := &compiler{
		doc:      doc,
		resolve:  resolve,
		tables:   &Tables{},
		secrets:  secretsOf(doc),
		hosts:    newRegistry[Host](&doc.Hosts),
		models:   newRegistry[Model](&doc.Models),
		policies: newRegistry[Policy](&doc.Policies),
		accounts: newRegistry[Account](&doc.Accounts),
	}
	// Who is referred to comes before who refers. Models precede policies,
	// because a policy names models.
	var root Place
	c.compileHosts(&root)
	c.compileModels(&root)
	c.compilePolicies(&root)
	c.compileAccounts(&root)
	c.compileRelayKeys(&root)
	c.checkPrices()
	if c.problems.Failed() {
		return nil, c.problems.List()
	}
	return c.tables, c.problems.List()
}

// compiler is one run of Compile.
type compiler struct {
	doc      *Document
	resolve  func(ref string) ([]byte, error)
	tables   *Tables
	problems Problems
	secrets  map[string]struct{} // texts of the document that no problem may repeat

	hosts    registry[Host]
	models   registry[Model]
	policies registry[Policy]
	accounts registry[Account]
	spenders map[any]spender           // owners of limits on cost
	zones    map[string]*time.Location // by name; nil = there is none of that name
}

// secretsOf collects what the document holds in clear.
func secretsOf(doc *Document) map[string]struct{} {
	secrets := make(map[string]struct{})
	for i := range doc.Hosts.Value {
		keys := doc.Hosts.Value[i].Value.Keys.Value
		for j := range keys {
			value := string(keys[j].Value.Value.Value)
			secrets[value] = struct{}{}
			if _, text, found := strings.Cut(value, ":"); found {
				secrets[text] = struct{}{}
			}
		}
	}
	for i := range doc.RelayKeys.Value {
		if key := &doc.RelayKeys.Value[i].Value.Key; key.State == Given {
			secrets[string(key.Value)] = struct{}{}
		}
	}
	return secrets
}

// quote is the function of the same name, and hides what the document holds
// in clear elsewhere.
func (c *compiler) quote(value string) string {
	if _, secret := c.secrets[value]; secret {
		return "this text"
	}
	return quote(value)
}

// credential reports whether a name is a secret that was written at the wrong
// place. Short names may begin as credentials do.
func (c *compiler) credential(name string) bool {
	_, secret := c.secrets[name]
	return secret || len(name) >= credentialBytesMin && secretLike(name)
}

// A registry finds the entries of one section by name. It is nil when the
// section is broken: then nobody can say what is missing in it.
type registry[T any] map[string]registered[T]

type registered[T any] struct {
	entry *T
	index int // in the section
	line  int32
}

func newRegistry[T, E any](section *List[E]) registry[T] {
	if section.State == Broken {
		return nil
	}
	return make(registry[T], len(section.Value))
}

// required reports whether a field can be used, and that it must be given.
// line is that of the entry that ought to have it.
func required[T any](c *compiler, at *Place, name string, line int32, f *Field[T]) bool {
	if f.State == Absent {
		c.problems.Error(at.Field(name), line, "is missing")
	}
	return f.State == Given
}

// sized reports whether a list can be walked. need says that it must hold
// something; line is that of the entry that ought to have it.
func sized[T any](c *compiler, at *Place, name string, line int32, list *List[T], need bool, most int) bool {
	switch {
	case list.State == Broken:
		return false
	case len(list.Value) == 0 && need:
		if list.State == Given {
			line = list.Line
		}
		c.problems.Error(at.Field(name), line, "must hold at least one entry")
		return false
	case len(list.Value) > most:
		c.problems.Error(at.Field(name), list.Line, "holds %d entries; allowed are %d", len(list.Value), most)
		return false
	}
	return true
}

// name reads the name of an entry, checks its form, and puts it into taken: a
// bad name too, so that those who refer to it are not reported as well.
func name[T any](c *compiler, at *Place, index int, line int32, f *Field[string], taken registry[T], entry *T) string {
	if !required(c, at, "name", line, f) {
		return ""
	}
	c.wellNamed(at.Field("name"), f)
	if old, found := taken[f.Value]; found {
		c.problems.Error(at.Field("name"), f.Line, "%s is the name of entry [%d] on line %d already", c.quote(f.Value), old.index, old.line)
		return f.Value
	}
	taken[f.Value] = registered[T]{entry, index, f.Line}
	return f.Value
}

// wellNamed reports whether a field has the form of a name.
func (c *compiler) wellNamed(at Place, f *Field[string]) bool {
	switch {
	case f.State != Given:
		return false
	case f.Value == "" || len(f.Value) > nameBytesMax:
		c.problems.Error(at, f.Line, "is %d bytes long; allowed are 1 to %d", len(f.Value), nameBytesMax)
	case !plainText(f.Value):
		c.problems.Error(at, f.Line, "may hold printable ASCII only, without blanks, quotes and backslashes")
	case strings.Contains(f.Value, "*"):
		c.problems.Error(at, f.Line, `may not hold "*"`)
	case c.credential(f.Value):
		c.problems.Error(at, f.Line, "looks like a credential; names are shown in logs and metrics")
	default:
		return true
	}
	return false
}

// plainText reports whether a text can stand in JSON, labels and logs as it
// is: printable ASCII without blanks, quotes and backslashes.
func plainText(text string) bool {
	for i := range len(text) {
		if b := text[i]; b <= ' ' || b > '~' || b == '"' || b == '\\' {
			return false
		}
	}
	return true
}

// find looks up what a field refers to. kind is for the problem.
func find[T any](c *compiler, at *Place, name string, line int32, f *Field[string], kind string, known registry[T]) *T {
	if !required(c, at, name, line, f) {
		return nil
	}
	r, found := known[f.Value]
	if !found && known != nil {
		c.problems.Error(at.Field(name), f.Line, "there is no %s named %s", kind, c.quote(f.Value))
	}
	return r.entry
}

// number reads a whole number between least and most, both allowed.
func (c *compiler) number(at *Place, name string, f *Field[int64], absent, least, most int64) int64 {
	if f.State != Given {
		return absent
	}
	if f.Value < least || f.Value > most {
		c.problems.Error(at.Field(name), f.Line, "is %d; allowed are %d to %d", f.Value, least, most)
		return absent
	}
	return f.Value
}

// duration reads a Go duration between least and most, both allowed.
func (c *compiler) duration(at *Place, name string, f *Field[string], absent, least, most time.Duration) time.Duration {
	if f.State != Given {
		return absent
	}
	d, err := time.ParseDuration(f.Value)
	switch {
	case err != nil:
		c.problems.Error(at.Field(name), f.Line, "is not a duration; write a number with its unit, such as 500ms, 30s, 1m or 24h")
	case d < least || d > most:
		c.problems.Error(at.Field(name), f.Line, "is %v; allowed are %v to %v", d, least, most)
	default:
		return d
	}
	return absent
}

// An option is one value of a closed set.
type option struct {
	name string
	held bool // this version does what it says
}

// choose reads one of a closed set; the first one stands for an absent field.
// instead says what is done when this version does not carry the choice out.
func (c *compiler) choose(at *Place, name string, f *Field[string], options []option, instead string) {
	if f.State != Given {
		return
	}
	i := slices.IndexFunc(options, func(o option) bool { return o.name == f.Value })
	switch {
	case i < 0:
		c.problems.Error(at.Field(name), f.Line, "is none of: %s", optionNames(options))
	case !options[i].held:
		c.problems.Warn(at.Field(name), f.Line, "%s is not enforced by this version: %s", f.Value, instead)
	}
}

func optionNames(options []option) string {
	var b strings.Builder
	for i, o := range options {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(o.name)
	}
	return b.String()
}

// flags reads a list of switches, each one of a closed set, each at most once.
func (c *compiler) flags(at *Place, list *List[string], options []option) []string {
	at2 := at.Field("flags")
	var flags []string
	for i := range list.Value {
		f := &list.Value[i]
		if f.State != Given {
			continue
		}
		item := at2.Item(i)
		known := slices.IndexFunc(options, func(o option) bool { return o.name == f.Value })
		switch {
		case known < 0:
			c.problems.Error(item, f.Line, "is none of: %s", optionNames(options))
			continue
		case slices.Contains(flags, f.Value):
			c.problems.Error(item, f.Line, "%s is listed twice", f.Value)
			continue
		case !options[known].held:
			c.problems.Warn(item, f.Line, "%s has no effect in this version", f.Value)
		}
		flags = append(flags, f.Value)
	}
	return flags
}

// headerText reads a text that goes into a header.
func (c *compiler) headerText(at *Place, name string, f *Field[string], absent string) string {
	if f.State != Given {
		return absent
	}
	if f.Value == "" || len(f.Value) > headerBytesMax || !plainText(f.Value) {
		c.problems.Error(at.Field(name), f.Line, "goes into a header: allowed are 1 to %d bytes of printable ASCII without blanks", headerBytesMax)
		return absent
	}
	return f.Value
}
