package catalog

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Problem is one thing wrong with, or doubtful in, a document.
type Problem struct {
	Line    int    // of the source; 0 = unknown
	Path    string // such as "hosts[0].base_url"; "" = the whole document
	Message string // what is wrong and what is allowed; never a secret
	Warning bool   // the document is usable all the same
}

// Text is the problem in one line, in the form that editors jump to.
func (p Problem) Text(file string) string {
	var b strings.Builder
	b.WriteString(file)
	if p.Line > 0 {
		b.WriteByte(':')
		b.WriteString(strconv.Itoa(p.Line))
	}
	b.WriteString(": ")
	if p.Warning {
		b.WriteString("warning: ")
	}
	if p.Path != "" {
		b.WriteString(p.Path)
		b.WriteString(": ")
	}
	b.WriteString(p.Message)
	return b.String()
}

// SortProblems orders problems by line; those of one line keep their order.
func SortProblems(problems []Problem) {
	slices.SortStableFunc(problems, func(a, b Problem) int { return a.Line - b.Line })
}

// Errors counts the problems that make a document unusable.
func Errors(problems []Problem) int {
	count := 0
	for i := range problems {
		if !problems[i].Warning {
			count++
		}
	}
	return count
}

// A Place is where in a document a value stands. It lives on the stack of
// whoever walks the document and becomes text only for a problem, so that a
// sound document of a million values builds no paths.
type Place struct {
	up   *Place
	name string // of a field; "" for an item
	item int    // index in a list
}

// Field is the place of a field of p.
func (p *Place) Field(name string) Place { return Place{up: p, name: name} }

// Item is the place of an item of the list p.
func (p *Place) Item(index int) Place { return Place{up: p, item: index} }

// String is the path from the root of the document.
func (p *Place) String() string {
	if p == nil || p.up == nil {
		return ""
	}
	parent := p.up.String()
	switch {
	case p.name == "":
		return parent + "[" + strconv.Itoa(p.item) + "]"
	case parent == "":
		return p.name
	}
	return parent + "." + p.name
}

// Problems gathers what is wrong with one document, within bounds.
type Problems struct {
	list             []Problem
	errors, warnings int
}

// Error adds an error. Arguments must not hold secrets.
func (l *Problems) Error(at Place, line int32, format string, args ...any) {
	l.errors++
	if l.errors <= problemsMax {
		l.list = append(l.list, Problem{Line: int(line), Path: at.String(), Message: fmt.Sprintf(format, args...)})
	}
}

// Warn adds a warning. Arguments must not hold secrets.
func (l *Problems) Warn(at Place, line int32, format string, args ...any) {
	l.warnings++
	if l.warnings <= problemsMax {
		l.list = append(l.list, Problem{Line: int(line), Path: at.String(), Message: fmt.Sprintf(format, args...), Warning: true})
	}
}

// Failed reports whether an error was added.
func (l *Problems) Failed() bool { return l.errors > 0 }

// List is everything that was added, by line. What did not fit is counted in
// a last line of its kind.
func (l *Problems) List() []Problem {
	list := l.list
	SortProblems(list)
	if more := l.errors - problemsMax; more > 0 {
		list = append(list, Problem{Message: fmt.Sprintf("%d more errors are not listed", more)})
	}
	if more := l.warnings - problemsMax; more > 0 {
		list = append(list, Problem{Message: fmt.Sprintf("%d more warnings are not listed", more), Warning: true})
	}
	return list
}

// quote repeats a value in a problem if it looks like a name. Whatever may be
// a secret that was written at the wrong place is only described.
func quote(value string) string {
	switch {
	case value == "":
		return "an empty text"
	case len(value) > quotedBytesMax:
		return fmt.Sprintf("a text of %d bytes", len(value))
	case !plainText(value) || secretLike(value):
		return "this text"
	}
	return `"` + value + `"`
}

// secretLike reports whether a part of value begins as the usual credentials
// do ("sk-…", "rk-…"), or value is one of the schemes of secrets.
func secretLike(value string) bool {
	for i := 0; i+3 <= len(value); i++ {
		if value[i+1] == 'k' && value[i+2] == '-' && (value[i] == 's' || value[i] == 'r') && (i == 0 || !alphanumeric(value[i-1])) {
			return true
		}
	}
	return strings.HasPrefix(value, "plain:") || strings.HasPrefix(value, "AIza") || strings.HasPrefix(value, "Bearer")
}

func alphanumeric(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}
