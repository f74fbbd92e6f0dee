package catalog

// Document is one catalog file.
type Document struct{}
