package cmd

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"
)

// A sourceFile is one parsed Go file.
type sourceFile struct {
	folder string // relative to the root, with slashes
	name   string // relative to the root
	test   bool
	lines  int
	ast    *ast.File
}

// A sourceTree is all Go files below a root.
type sourceTree struct {
	root   string
	module string
	fset   *token.FileSet
	files  []*sourceFile
	found  []string
}

// loadTree parses every Go file, whatever its build tags.
func loadTree(root string) (*sourceTree, error) {
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return nil, err
	}
	first, _, _ := strings.Cut(string(mod), "\n")
	tree := &sourceTree{root: root, module: strings.TrimPrefix(first, "module "), fset: token.NewFileSet()}
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if rel == ".git" || rel == "bin" || rel == "relay-data" || d.Name() == "testdata" {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(rel, ".go") {
			return nil
		}
		return tree.load(filepath.ToSlash(rel))
	})
	return tree, err
}

func (t *sourceTree) load(rel string) error {
	text, err := os.ReadFile(filepath.Join(t.root, rel))
	if err != nil {
		return err
	}
	parsed, err := parser.ParseFile(t.fset, rel, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	t.files = append(t.files, &sourceFile{
		folder: path.Dir(rel), name: rel, test: strings.HasSuffix(rel, "_test.go"),
		lines: bytes.Count(text, []byte("\n")), ast: parsed,
	})
	return nil
}

// problems are all violations, one line each.
func (t *sourceTree) problems() []string {
	t.found = nil
	t.checkTop()
	t.checkPackages()
	for _, f := range t.files {
		t.checkSize(f)
		if f.test {
			continue
		}
		t.checkImports(f)
		t.checkDocs(f)
		for _, folder := range deciding {
			if f.folder == folder {
				t.checkLoopRules(f)
			}
		}
	}
	t.checkCircles()
	sort.Strings(t.found)
	return t.found
}

func (t *sourceTree) add(pos token.Pos, format string, args ...any) {
	t.found = append(t.found, fmt.Sprintf("%s: ", t.fset.Position(pos))+fmt.Sprintf(format, args...))
}

func (t *sourceTree) checkTop() {
	entries, err := os.ReadDir(t.root)
	if err != nil {
		t.found = append(t.found, err.Error())
	}
	for _, e := range entries {
		if e.IsDir() && !matches(e.Name(), topFolders) {
			t.found = append(t.found, "top-level folder "+e.Name()+": not one of "+strings.Join(topFolders, " "))
		}
	}
}

// checkPackages wants a row in arrows and a package comment in doc.go for
// every folder with code.
func (t *sourceTree) checkPackages() {
	folders := map[string]bool{} // folder: has its comment
	for _, f := range t.files {
		if !f.test {
			folders[f.folder] = folders[f.folder] || path.Base(f.name) == "doc.go" && f.ast.Doc != nil
		}
	}
	for folder, commented := range folders {
		if !commented {
			t.found = append(t.found, folder+" has no package comment in doc.go")
		}
		if _, ok := row(folder); !ok {
			t.found = append(t.found, folder+" has no row in the table of arrows")
		}
	}
}

// row finds the row of a folder in arrows.
func row(folder string) ([]string, bool) {
	if allowed, ok := arrows[folder]; ok {
		return allowed, true
	}
	for pattern, allowed := range arrows {
		if matches(folder, []string{pattern}) {
			return allowed, true
		}
	}
	return nil, false
}

// matches reports whether one of the patterns covers the folder.
func matches(folder string, patterns []string) bool {
	for _, p := range patterns {
		if below, ok := strings.CutSuffix(p, "/..."); ok {
			if folder == below || strings.HasPrefix(folder, below+"/") {
				return true
			}
		} else if folder == p {
			return true
		}
	}
	return false
}

func (t *sourceTree) checkImports(f *sourceFile) {
	allowed, _ := row(f.folder)
	for _, spec := range f.ast.Imports {
		name, _ := strconv.Unquote(spec.Path.Value)
		if ours, ok := strings.CutPrefix(name, t.module+"/"); ok {
			if !matches(ours, allowed) {
				t.add(spec.Pos(), "%s may not import %s", f.folder, ours)
			}
			continue
		}
		t.checkDriver(f, spec, name)
	}
}

func (t *sourceTree) checkDriver(f *sourceFile, spec *ast.ImportSpec, name string) {
	for driver, folders := range drivers {
		if name != driver && !strings.HasPrefix(name, driver+"/") && !strings.HasPrefix(name, driver+"-") {
			continue
		}
		if !matches(f.folder, folders) {
			t.add(spec.Pos(), "only %s may import %s", strings.Join(folders, ", "), name)
		}
		return
	}
	first, _, _ := strings.Cut(name, "/")
	if strings.Contains(first, ".") {
		t.add(spec.Pos(), "%s has no row in the table of drivers", name)
	}
}

// checkCircles looks at the top-level folders: Go itself forbids a circle of
// packages, but not one of folders. An arrow that is refused already is left
// out, so that one fault is told once.
func (t *sourceTree) checkCircles() {
	next := map[string]map[string]bool{}
	for _, f := range t.files {
		allowed, _ := row(f.folder)
		source, _, _ := strings.Cut(f.folder, "/")
		for _, spec := range f.ast.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			ours, ok := strings.CutPrefix(name, t.module+"/")
			target, _, _ := strings.Cut(ours, "/")
			if !ok || f.test || source == target || !matches(ours, allowed) {
				continue
			}
			if next[source] == nil {
				next[source] = map[string]bool{}
			}
			next[source][target] = true
		}
	}
	for start := range next {
		if reaches(next, start, start, map[string]bool{}) {
			t.found = append(t.found, "circle of top-level folders through "+start)
		}
	}
}

func reaches(next map[string]map[string]bool, from, goal string, seen map[string]bool) bool {
	for step := range next[from] {
		if step == goal {
			return true
		}
		if !seen[step] {
			seen[step] = true
			if reaches(next, step, goal, seen) {
				return true
			}
		}
	}
	return false
}

func (t *sourceTree) checkSize(f *sourceFile) {
	if f.lines > fileLinesMax {
		t.add(f.ast.Pos(), "%d lines: at most %d are allowed in a file", f.lines, fileLinesMax)
	}
	limit := funcLinesMax
	if f.test {
		limit = testFuncLinesMax
	}
	for _, d := range f.ast.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok {
			n := t.fset.Position(fn.End()).Line - t.fset.Position(fn.Pos()).Line + 1
			if n > limit {
				t.add(fn.Pos(), "%s has %d lines: at most %d are allowed", fn.Name.Name, n, limit)
			}
		}
	}
}

func (t *sourceTree) checkDocs(f *sourceFile) {
	for _, d := range f.ast.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name, exported := d.Name.Name, d.Name.IsExported()
			if d.Recv != nil {
				receiver := receiverName(d.Recv.List[0].Type)
				exported = exported && ast.IsExported(receiver)
				name = receiver + "." + name
			}
			if exported && d.Doc == nil {
				t.add(d.Pos(), "%s has no doc comment", name)
			}
		case *ast.GenDecl:
			t.checkGenDocs(d)
		}
	}
}

func (t *sourceTree) checkGenDocs(d *ast.GenDecl) {
	for _, s := range d.Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() && d.Doc == nil && s.Doc == nil {
				t.add(s.Pos(), "%s has no doc comment", s.Name.Name)
			}
		case *ast.ValueSpec:
			for _, n := range s.Names {
				if n.IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
					t.add(n.Pos(), "%s has no doc comment", n.Name)
				}
			}
		}
	}
}

// receiverName is the type name of a receiver: *T[P] is T.
func receiverName(e ast.Expr) string {
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// plant writes files below root.
func plant(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
