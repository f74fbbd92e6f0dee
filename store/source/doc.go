// Package source brings catalogs in: it reads and watches the file that an
// operator edits, and hands compiled tables on. A bad file changes nothing and
// is reported.
package source
