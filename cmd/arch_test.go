package cmd

import (
	"strings"
	"testing"
)

// arrows says which folders of ours a folder may import, tests aside. An entry
// ending in "/..." stands for everything below. A folder without a row is a
// violation: whoever adds one says here where it stands.
var arrows = map[string][]string{
	"cmd":                   {},
	"cmd/relay":             {"cmd/relay/control", "loop/...", "admit", "upstream/...", "httpparse", "usage/...", "store/...", "perf/mockhost", "perf/hostcheck"},
	"cmd/relay/conformance": {"perf/mockhost"},
	"cmd/relay/shared":      {},
	"cmd/relay/control":     {"loop", "loop/reactor", "admit", "upstream", "upstream/wire", "usage", "usage/spool", "store/catalog", "store/source"},
	"cmd/relay-perf":        {"perf/...", "loop/...", "admit", "upstream/...", "httpparse", "usage/...", "store/..."},
	"loop":                  {"admit", "upstream", "upstream/wire", "httpparse", "usage", "store/catalog", "store/state"},
	"loop/reactor":          {"loop", "store/catalog", "store/state"},
	"loop/sim":              {"loop", "admit", "upstream", "upstream/wire", "httpparse", "usage", "store/catalog", "store/state"},
	"admit":                 {"httpparse", "store/catalog", "store/state", "upstream/wire"},
	"upstream":              {"httpparse", "store/catalog", "upstream/wire"},
	"upstream/wire":         {"store/catalog"},
	"usage":                 {"store/catalog"},
	"usage/spool":           {"usage", "store/catalog"},
	"store/source":          {"store/catalog"},
	"store/redis":           {"store/catalog", "store/state"},
	"store/redis/redistest": {},
	"store/state":           {"store/catalog"},
	"store/state/statetest": {"store/catalog", "store/state"},
	"store/catalog":         {},
	"httpparse":             {},
	"perf/...":              {"perf/...", "admit", "upstream", "upstream/wire", "httpparse", "usage", "usage/spool", "store/..."},
}

// drivers says who may import what is not ours, tests aside: modules by the
// start of their path, and the parts of the standard library that do I/O. A
// module without a row is a violation.
var drivers = map[string][]string{
	"github.com/panjf2000/gnet":           {"loop/reactor"},
	"go.uber.org/zap":                     {"loop/reactor"},
	"net/http":                            {"cmd/...", "perf/..."},
	"github.com/valyala/fasthttp":         {"perf/..."},
	"github.com/HdrHistogram":             {"perf/..."},
	"gonum.org/v1/plot":                   {"perf/..."},
	"github.com/redis/rueidis":            {"store/redis"},
	"github.com/jackc/pgx":                {"usage/ledger", "store/source"},
	"modernc.org/sqlite":                  {"usage/ledger"},
	"github.com/ClickHouse/ch-go":         {"usage/export"},
	"go.yaml.in/yaml":                     {"store/source", "store/catalog"},
	"github.com/fsnotify/fsnotify":        {"store/source", "loop/reactor"},
	"github.com/alecthomas/kong":          {"cmd/..."},
	"github.com/prometheus":               {"cmd/...", "perf/..."},
	"github.com/google/uuid":              {"usage/spool", "cmd/..."},
	"golang.org/x/sys":                    {"loop/reactor", "usage/spool", "cmd/...", "perf/..."},
	"github.com/openai/openai-go":         {},
	"github.com/anthropics/anthropic-sdk": {},
}

// deciding are the folders whose code runs on a loop and does no I/O.
var deciding = []string{"loop", "admit", "httpparse", "upstream", "upstream/wire"}

// topFolders are the folders of the root; what is listed last is made by
// builds and not kept.
var topFolders = []string{
	"cmd", "loop", "httpparse", "admit", "store", "upstream", "usage", "perf", "docs", ".ci",
	".git", "bin", "relay-data",
}

// Limits of size, in lines.
const (
	funcLinesMax     = 70
	testFuncLinesMax = 120
	fileLinesMax     = 600
)

func TestArchitecture(t *testing.T) {
	tree, err := loadTree("..")
	if err != nil {
		t.Fatal(err)
	}
	if len(tree.files) < 50 {
		t.Fatalf("only %d files found: the test looks at the wrong place", len(tree.files))
	}
	for _, p := range tree.problems() {
		t.Error(p)
	}
}

// TestArchitectureCatches plants one violation at a time in a small sound tree
// and wants it named.
func TestArchitectureCatches(t *testing.T) {
	sound := map[string]string{
		"go.mod":                "module relay\n",
		"httpparse/doc.go":      "// Package httpparse parses.\npackage httpparse\n",
		"store/catalog/doc.go":  "// Package catalog holds.\npackage catalog\n",
		"upstream/wire/doc.go":  "// Package wire knows.\npackage wire\n\nimport _ \"relay/store/catalog\"\n",
		"loop/doc.go":           "// Package loop moves.\npackage loop\n\nimport _ \"relay/httpparse\"\n",
		"loop/reactor/doc.go":   "// Package reactor drives.\npackage reactor\n\nimport _ \"github.com/panjf2000/gnet/v2\"\n",
		"loop/mailbox.go":       "package loop\n\nimport \"sync\" //loop:allow one queue\n\nvar mu sync.Mutex //loop:allow it\n",
		"loop/bug.go":           "package loop\n\nimport \"fmt\"\n\nfunc f() { panic(fmt.Sprintf(\"BUG: %d\", 1)) }\n",
		"loop/free_test.go":     "package loop\n\nimport \"sync\"\n\nvar free sync.Mutex\n",
		"docs/architecture.md":  "# x\n",
		"perf/mockhost/doc.go":  "// Package mockhost answers.\npackage mockhost\n\nimport _ \"net/http\"\n",
		"cmd/relay/doc.go":      "// Command relay.\npackage main\n\nimport _ \"relay/perf/mockhost\"\n",
		"store/catalog/many.go": "package catalog\n\n// The sides.\nconst (\n\tLeft = iota\n\tRight\n)\n",
	}
	for _, tt := range violations {
		t.Run(tt.name, func(t *testing.T) {
			root := t.TempDir()
			plant(t, root, sound)
			plant(t, root, map[string]string{tt.file: tt.text})
			tree, err := loadTree(root)
			if err != nil {
				t.Fatal(err)
			}
			got := tree.problems()
			if tt.want == "" {
				if len(got) != 0 {
					t.Fatalf("a sound tree has problems: %q", got)
				}
				return
			}
			if len(got) != 1 || !strings.Contains(got[0], tt.want) {
				t.Fatalf("problems are %q, want one with %q", got, tt.want)
			}
		})
	}
}

// violations are files that make the sound tree unsound.
var violations = []struct{ name, file, text, want string }{
	{"sound", "loop/x.go", "package loop\n", ""},
	{"arrow up", "httpparse/x.go", "package httpparse\n\nimport _ \"relay/upstream/wire\"\n", "httpparse may not import upstream/wire"},
	{"folder without a row", "store/new/doc.go", "// Package new is.\npackage new\n", "store/new has no row"},
	{"circle of top folders", "store/catalog/x.go", "package catalog\n\nimport _ \"relay/upstream\"\n", "store/catalog may not import upstream"},
	{"driver", "upstream/wire/x.go", "package wire\n\nimport _ \"github.com/panjf2000/gnet/v2\"\n", "only loop/reactor may"},
	{"unknown module", "cmd/relay/x.go", "package main\n\nimport _ \"example.com/x\"\n", "example.com/x has no row"},
	{"net/http below", "store/catalog/x.go", "package catalog\n\nimport _ \"net/http\"\n", "may import net/http"},
	{"I/O in deciding code", "httpparse/x.go", "package httpparse\n\nimport _ \"os\"\n", "os does I/O"},
	{"lock", "loop/x.go", "package loop\n\nimport _ \"sync\"\n", "import of sync"},
	{"atomic", "loop/x.go", "package loop\n\nimport _ \"sync/atomic\"\n", "import of sync/atomic"},
	{"allow without a reason", "loop/x.go", "package loop\n\nimport _ \"sync\" //loop:allow\n", "import of sync"},
	{"allow above", "loop/x.go", "package loop\n\n//loop:allow a reason\nimport _ \"sync\"\n", ""},
	{"go statement", "loop/x.go", "package loop\n\nfunc g() { go g() }\n", "go statement"},
	{"channel type", "loop/x.go", "package loop\n\nvar c chan int\n", "channel type"},
	{"receive", "loop/x.go", "package loop\n\nfunc g(c x) { <-c }\n\ntype x int\n", "channel receive"},
	{"send", "loop/x.go", "package loop\n\nfunc g(c x) { c <- 1 }\n\ntype x int\n", "channel send"},
	{"select", "loop/x.go", "package loop\n\nfunc g() { select {} }\n", "select statement"},
	{"clock", "loop/x.go", "package loop\n\nimport \"time\"\n\nvar t = time.Now()\n", "time.Now"},
	{"renamed clock", "loop/x.go", "package loop\n\nimport z \"time\"\n\nvar t = z.Now()\n", "time.Now"},
	{"fmt", "loop/x.go", "package loop\n\nimport \"fmt\"\n\nvar s = fmt.Sprint(1)\n", "fmt.Sprint outside"},
	{"fmt in a plain panic", "loop/x.go", "package loop\n\nimport \"fmt\"\n\nfunc g() { panic(fmt.Sprint(\"oops\")) }\n", "fmt.Sprint outside"},
	{"no package comment", "loop/doc.go", "package loop\n", "loop has no package comment"},
	{"no doc.go", "upstream/x.go", "package upstream\n", "upstream has no package comment"},
	{"undocumented func", "loop/x.go", "package loop\n\nfunc Do() {}\n", "Do has no doc comment"},
	{"undocumented method", "loop/x.go", "package loop\n\n// T is.\ntype T[P any] struct{}\n\nfunc (t *T[P]) Do() {}\n", "T.Do has no doc comment"},
	{"undocumented type", "loop/x.go", "package loop\n\ntype T struct{}\n", "T has no doc comment"},
	{"undocumented constant", "loop/x.go", "package loop\n\nconst C = 1\n", "C has no doc comment"},
	{"long function", "loop/x.go", "package loop\n\nfunc g() {\n" + strings.Repeat("\t_ = 1\n", 69) + "}\n", "g has 71 lines"},
	{"just short enough", "loop/x.go", "package loop\n\nfunc g() {\n" + strings.Repeat("\t_ = 1\n", 68) + "}\n", ""},
	{"long test", "loop/x_test.go", "package loop\n\nfunc g() {\n" + strings.Repeat("\t_ = 1\n", 119) + "}\n", "g has 121 lines"},
	{"long file", "loop/x.go", "package loop\n" + strings.Repeat("\n", 600), "601 lines"},
	{"top folder", "pkg/x.md", "x\n", "top-level folder pkg"},
}
