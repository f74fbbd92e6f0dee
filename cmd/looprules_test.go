package cmd

import (
	"go/ast"
	"go/token"
	"strconv"
	"strings"
)

// allowMark excuses the line that it stands on or above. A reason must follow.
const allowMark = "//loop:allow "

// lockPackages and ioPackages must not be imported by code that runs on a
// loop.
var (
	lockPackages = []string{"sync", "sync/atomic"}
	ioPackages   = []string{"net", "os", "os/exec", "os/signal", "io/ioutil", "syscall", "crypto/tls", "log", "log/slog", "database/sql"}
)

// clockCalls are the functions of package time that read a clock or start a
// timer of the runtime.
var clockCalls = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"}

// checkLoopRules looks for what code on a loop must not do.
func (t *sourceTree) checkLoopRules(f *sourceFile) {
	excused := t.excusedLines(f)
	refuse := func(pos token.Pos, format string, args ...any) {
		if !excused[t.fset.Position(pos).Line] {
			t.add(pos, format, args...)
		}
	}
	local := map[string]string{} // local name: path of the import
	for _, spec := range f.ast.Imports {
		name, _ := strconv.Unquote(spec.Path.Value)
		as := name[strings.LastIndexByte(name, '/')+1:]
		if spec.Name != nil {
			as = spec.Name.Name
		}
		local[as] = name
		if matches(name, lockPackages) {
			refuse(spec.Pos(), "import of %s in code of a loop", name)
		}
		if matches(name, ioPackages) {
			refuse(spec.Pos(), "%s does I/O: not in code of a loop", name)
		}
	}
	var stack []ast.Node
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if n == nil {
			stack = stack[:len(stack)-1]
			return true
		}
		stack = append(stack, n)
		if what := forbidden(n); what != "" {
			refuse(n.Pos(), "%s in code of a loop", what)
		}
		if s, ok := n.(*ast.SelectorExpr); ok {
			checkSelector(s, local, stack, refuse)
		}
		return true
	})
}

// forbidden names a construct that hands work or waits.
func forbidden(n ast.Node) string {
	switch n := n.(type) {
	case *ast.GoStmt:
		return "go statement"
	case *ast.ChanType:
		return "channel type"
	case *ast.SendStmt:
		return "channel send"
	case *ast.SelectStmt:
		return "select statement"
	case *ast.UnaryExpr:
		if n.Op == token.ARROW {
			return "channel receive"
		}
	}
	return ""
}

// checkSelector refuses clocks, and fmt where no bug is told.
func checkSelector(s *ast.SelectorExpr, local map[string]string, stack []ast.Node,
	refuse func(token.Pos, string, ...any)) {
	x, ok := s.X.(*ast.Ident)
	if !ok {
		return
	}
	switch local[x.Name] {
	case "time":
		if matches(s.Sel.Name, clockCalls) {
			refuse(s.Pos(), "time.%s in code of a loop", s.Sel.Name)
		}
	case "fmt":
		if !inBugPanic(stack) {
			refuse(s.Pos(), "fmt.%s outside a panic that tells a bug", s.Sel.Name)
		}
	}
}

// inBugPanic reports whether the innermost node lies in panic(... "BUG: ...").
func inBugPanic(stack []ast.Node) bool {
	for _, n := range stack {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			continue
		}
		if name, ok := call.Fun.(*ast.Ident); !ok || name.Name != "panic" {
			continue
		}
		told := false
		ast.Inspect(call, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && strings.HasPrefix(lit.Value, `"BUG: `) {
				told = true
			}
			return true
		})
		if told {
			return true
		}
	}
	return false
}

// excusedLines are the lines with a mark on them or above them.
func (t *sourceTree) excusedLines(f *sourceFile) map[int]bool {
	lines := map[int]bool{}
	for _, group := range f.ast.Comments {
		for _, c := range group.List {
			if reason, ok := strings.CutPrefix(c.Text, allowMark); ok && strings.TrimSpace(reason) != "" {
				line := t.fset.Position(c.Pos()).Line
				lines[line], lines[line+1] = true, true
			}
		}
	}
	return lines
}
