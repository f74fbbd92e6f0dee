package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"relay/store/catalog"
)

// decode reads YAML into a document. It goes on after a problem, so that all
// of them are found; doc is nil when there is nothing to go on with.
func decode(text []byte, problems *catalog.Problems) (doc *catalog.Document) {
	var root catalog.Place
	if len(text) > fileBytesMax {
		problems.Error(root, 0, "is longer than %d bytes", fileBytesMax)
		return nil
	}
	node, line, wrong := parse(text)
	if wrong != "" {
		problems.Error(root, line, "%s", wrong)
		return nil
	}
	return decodeTree(node, problems)
}

// decodeTree turns the root node of a file into a document.
func decodeTree(node *yaml.Node, problems *catalog.Problems) *catalog.Document {
	var root catalog.Place
	d := decoder{problems: problems, structs: make(map[reflect.Type]*fieldSet)}
	var whole catalog.Field[catalog.Document]
	d.value(&root, node, reflect.ValueOf(&whole).Elem())
	if whole.State != catalog.Given {
		return nil
	}
	return &whole.Value
}

// parse reads the one YAML document of a file. wrong is the first problem: a
// parser of YAML cannot go on after one.
func parse(text []byte) (root *yaml.Node, line int32, wrong string) {
	// The parser is not ours and its input is whatever an operator saved: a
	// panic in it must not end a process that serves.
	defer func() {
		if recover() != nil {
			root, line, wrong = nil, 0, "is not YAML: the parser failed"
		}
	}()
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var first, second yaml.Node
	if err := decoder.Decode(&first); errors.Is(err, io.EOF) {
		return nil, 0, "is empty"
	} else if err != nil {
		line, wrong = syntax(err)
		return nil, line, wrong
	}
	if len(first.Content) != 1 || first.Content[0].Tag == "!!null" {
		return nil, int32(first.Line), "is empty"
	}
	if err := decoder.Decode(&second); err == nil {
		return nil, int32(second.Line), "holds a second document (---); allowed is one"
	} else if !errors.Is(err, io.EOF) {
		line, wrong = syntax(err)
		return nil, line, wrong
	}
	return first.Content[0], 0, ""
}

// syntax takes the line out of an error of the parser. The only text of the
// file that the parser repeats is the name of an anchor; it is left out.
func syntax(err error) (line int32, wrong string) {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, found := strings.CutPrefix(text, "line "); found {
		if number, message, found := strings.Cut(rest, ": "); found {
			if n, err := strconv.ParseInt(number, 10, 32); err == nil {
				line, text = int32(n), message
			}
		}
	}
	if strings.HasPrefix(text, "unknown anchor") {
		text = "an alias (*name) refers to an anchor (&name) that is not there"
	}
	return line, "is not YAML: " + text
}

// decoder turns nodes into fields of a document.
type decoder struct {
	problems *catalog.Problems
	structs  map[reflect.Type]*fieldSet
	aliases  int // depth of aliases being followed
	aliased  int // values reached through aliases
}

// A fieldSet is what a mapping may hold.
type fieldSet struct {
	index   map[string]int // of the struct field
	allowed string         // all names, for problems
}

// Positions in catalog.Field, whatever its type parameter; a test holds them.
const (
	valueField = iota
	lineField
	stateField
)

// value decodes a node into out, which is some catalog.Field.
func (d *decoder) value(at *catalog.Place, n *yaml.Node, out reflect.Value) {
	line := int32(n.Line)
	if n.Kind == yaml.AliasNode {
		d.aliases++
		d.node(at, n.Alias, line, out)
		d.aliases--
		return
	}
	d.node(at, n, line, out)
}

// node decodes a node that is no alias. line is where it is used.
func (d *decoder) node(at *catalog.Place, n *yaml.Node, line int32, out reflect.Value) {
	if d.aliases > 0 {
		if d.aliased++; d.aliased >= aliasNodesMax {
			if d.aliased == aliasNodesMax {
				d.problems.Error(*at, line, "aliases stand for more than %d values", aliasNodesMax)
			}
			return
		}
	}
	wrong := ""
	switch field := out.Addr().Interface().(type) {
	case *catalog.Field[string]:
		field.Line = line
		field.Value, wrong = text(n)
		field.State = state(wrong)
	case *catalog.Field[catalog.Secret]:
		field.Line = line
		var secret string
		secret, wrong = text(n)
		field.Value, field.State = catalog.Secret(secret), state(wrong)
	case *catalog.Field[int64]:
		field.Line = line
		field.Value, wrong = number(n)
		field.State = state(wrong)
	case *catalog.Field[bool]:
		field.Line = line
		field.Value, wrong = boolean(n)
		field.State = state(wrong)
	default:
		value := out.Field(valueField)
		if value.Kind() == reflect.Slice {
			wrong = d.list(at, n, value)
		} else {
			wrong = d.mapping(at, n, value)
		}
		out.Field(lineField).SetInt(int64(line))
		out.Field(stateField).SetUint(uint64(state(wrong)))
	}
	if wrong != "" {
		d.problems.Error(*at, line, "%s", wrong)
	}
}

func state(wrong string) catalog.FieldState {
	if wrong != "" {
		return catalog.Broken
	}
	return catalog.Given
}

// list decodes a sequence into a slice of fields.
func (d *decoder) list(at *catalog.Place, n *yaml.Node, out reflect.Value) (wrong string) {
	if n.Kind != yaml.SequenceNode || n.Tag != "!!seq" {
		return "must be a list; an empty one is []"
	}
	if len(n.Content) > entriesMax {
		return fmt.Sprintf("holds %d entries; allowed are at most %d", len(n.Content), entriesMax)
	}
	out.Set(reflect.MakeSlice(out.Type(), len(n.Content), len(n.Content)))
	texts := out.Type().Elem() == reflect.TypeFor[catalog.Field[string]]()
	for i, item := range n.Content {
		if texts {
			item = pairText(item)
		}
		place := at.Item(i)
		d.value(&place, item, out.Index(i))
	}
	return ""
}

// mapping decodes a mapping into a struct of fields.
func (d *decoder) mapping(at *catalog.Place, n *yaml.Node, out reflect.Value) (wrong string) {
	if n.Kind != yaml.MappingNode || n.Tag != "!!map" {
		return "must be a mapping of fields to values"
	}
	fields := d.fieldsOf(out.Type())
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		line := int32(key.Line)
		index, known := fields.index[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode:
			d.problems.Error(*at, line, "has a field whose name is not a text; allowed: %s", fields.allowed)
		case key.Tag == "!!merge":
			d.problems.Error(*at, line, "holds a merge key (<<); repeat the fields instead")
		case !known:
			d.problems.Error(*at, line, "has an unknown field%s; allowed: %s", shownField(key.Value), fields.allowed)
		default:
			place := at.Field(key.Value)
			field := out.Field(index)
			if first := field.Field(lineField).Int(); field.Field(stateField).Uint() != uint64(catalog.Absent) {
				d.problems.Error(place, line, "is given twice, first on line %d", first)
				continue
			}
			d.value(&place, value, field)
		}
	}
	return ""
}

// fieldsOf looks a struct's fields up once per run.
func (d *decoder) fieldsOf(t reflect.Type) *fieldSet {
	if known := d.structs[t]; known != nil {
		return known
	}
	set := &fieldSet{index: make(map[string]int, t.NumField())}
	names := make([]string, 0, t.NumField())
	for i := range t.NumField() {
		tag := t.Field(i).Tag.Get("field")
		set.index[tag] = i
		names = append(names, tag)
	}
	set.allowed = strings.Join(names, ", ")
	d.structs[t] = set
	return set
}

// shownField repeats the name of an unknown field if it has the form of one:
// a credential at the wrong place has not.
func shownField(name string) string {
	if name == "" || len(name) > fieldBytesMax {
		return ""
	}
	for i := range len(name) {
		if b := name[i]; b != '_' && (b < 'a' || b > 'z') {
			return ""
		}
	}
	return fmt.Sprintf(" %q", name)
}

// pairText turns a mapping of one pair back into the text that was meant: in a
// list of texts, YAML takes "reasoning: budget" for a mapping.
func pairText(n *yaml.Node) *yaml.Node {
	if n.Kind != yaml.MappingNode || len(n.Content) != 2 {
		return n
	}
	key, word := n.Content[0], n.Content[1]
	if key.Kind != yaml.ScalarNode || word.Kind != yaml.ScalarNode {
		return n
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key.Value + ": " + word.Value, Line: n.Line}
}

// text reads any scalar as it was written, so that neither 4.10 nor
// 2023-06-01 changes.
func text(n *yaml.Node) (value, wrong string) {
	if n.Kind != yaml.ScalarNode {
		return "", "must be a single value"
	}
	switch n.Tag {
	case "!!str", "!!int", "!!float", "!!bool", "!!timestamp", "!!merge":
		return n.Value, ""
	case "!!null":
		return "", "has no value; give one or leave the field out"
	}
	return "", "has a YAML tag; allowed are plain values"
}

// number reads a whole decimal number. Other notations are refused: who writes
// 0600 or 1e6 may mean something else than a parser does.
func number(n *yaml.Node) (value int64, wrong string) {
	const message = "must be a whole number in plain decimal digits, without quotes"
	if n.Kind != yaml.ScalarNode || n.Tag != "!!int" {
		return 0, message
	}
	value, err := strconv.ParseInt(n.Value, 10, 64)
	if err != nil || strconv.FormatInt(value, 10) != n.Value {
		return 0, message
	}
	return value, ""
}

// boolean reads true or false.
func boolean(n *yaml.Node) (value bool, wrong string) {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" {
		return false, "must be true or false"
	}
	return strings.EqualFold(n.Value, "true"), ""
}
