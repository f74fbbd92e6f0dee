package catalog

// A Document is the catalog as an operator writes it; store/source decodes
// YAML into it. Its types are in document.go.

// Compile checks a document and builds its tables. All problems are returned,
// not only the first; tables is nil when one of them is an error. resolve
// reads secret references ("env:NAME", "file:PATH", "plain:TEXT").
func Compile(doc *Document, resolve func(ref string) ([]byte, error)) (tables *Tables, problems []Problem) {
	panic("BUG: not built")
}

// A Problem is one thing wrong with, or doubtful in, a document.
type Problem struct {
	Line    int    // of the source; 0 = unknown
	Path    string // such as "hosts[0].base_url"
	Message string // what is wrong and what is allowed; never a secret
	Warning bool   // the document is usable all the same
}
