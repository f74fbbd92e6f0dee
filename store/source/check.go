package source

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"relay/store/catalog"
)

// Check reads and checks the bytes of a catalog without making it live.
// References of secrets are read, so the environment and the files that it
// names must be there. The tables have no Generation.
func Check(yaml []byte) (*catalog.Tables, []catalog.Problem) {
	c := check(yaml)
	return c.tables, c.problems
}

// checked is what came of one reading of a catalog.
type checked struct {
	tables   *catalog.Tables // nil = refused
	problems []catalog.Problem
	revision string   // hex SHA-256 of the bytes
	secrets  [32]byte // digest of what the references led to; never shown
}

func check(text []byte) (c checked) {
	sum := sha256.Sum256(text)
	c.revision = hex.EncodeToString(sum[:])
	var problems catalog.Problems
	doc := decode(text, &problems)
	if doc == nil {
		c.problems = problems.List()
		return c
	}
	secrets := newSecrets()
	tables, more := catalog.Compile(doc, secrets.resolve)
	c.problems = append(problems.List(), more...)
	catalog.SortProblems(c.problems)
	c.secrets = secrets.digest()
	if tables != nil && !problems.Failed() {
		c.tables = tables
		c.tables.Revision = c.revision
	}
	return c
}

// An InvalidError says why a catalog was refused.
type InvalidError struct {
	Path     string            // of the file
	Problems []catalog.Problem // warnings included
}

// Error lists the errors with file name and line.
func (e *InvalidError) Error() string {
	count := catalog.Errors(e.Problems)
	plural := "s"
	if count == 1 {
		plural = ""
	}
	return fmt.Sprintf("catalog: %s has %d error%s:\n%s", e.Path, count, plural, listing(e.Path, e.Problems, false, openLinesMax))
}

// listing is the errors, or the warnings, one a line, at most so many.
func listing(path string, problems []catalog.Problem, warnings bool, most int) string {
	var b strings.Builder
	lines, more := 0, 0
	for _, p := range problems {
		switch {
		case p.Warning != warnings:
		case lines == most:
			more++
		default:
			if lines > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(p.Text(path))
			lines++
		}
	}
	if more > 0 {
		fmt.Fprintf(&b, "\n… and %d more", more)
	}
	return b.String()
}
