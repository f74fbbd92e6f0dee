package source

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"relay/store/catalog"
)

// A File is a catalog in a YAML file. Secrets that it refers to are read when
// it is read: a changed secret is noticed by the next Reload.
type File struct {
	path string
	poll time.Duration
	wake chan struct{} // asks Watch to read; holds one

	mu     sync.Mutex // guards status
	status Status

	// Owned by Open, then by Watch.
	generation uint64
	seen       fs.FileInfo // of the last reading; nil = the file was not there
	live       identity
	refused    identity // of the last refusal; zero when the file was good after it
}

// identity tells whether a reading differs from another one. It is zero for a
// reading that never was.
type identity struct {
	revision string
	secrets  [32]byte
	failure  string // of reading itself
}

// Status is what is live and what went wrong last, for /readyz and metrics.
type Status struct {
	Path        string
	Generation  uint64    // of the live tables
	Revision    string    // of the live tables
	LoadedAt    time.Time // of the live tables
	LastError   string    // of the last refused reload, at most 20 problems; "" when the file was good since
	LastErrorAt time.Time // zero when LastError is ""
	Reloads     uint64    // accepted
	Refused     uint64
}

// Open reads the file for the first time. Problems that are errors come back
// as one error that lists them all, with file name and line numbers: an
// *InvalidError. Warnings are logged.
func Open(path string) (*File, *catalog.Tables, error) {
	f := &File{path: path, poll: pollEvery, wake: make(chan struct{}, 1), generation: 1}
	text, seen, err := f.read()
	if err != nil {
		return nil, nil, fmt.Errorf("catalog: read %s: %w", path, cause(err))
	}
	c := check(text)
	if c.tables == nil {
		return nil, nil, &InvalidError{Path: path, Problems: c.problems}
	}
	f.seen = seen
	f.accept(c, func(*catalog.Tables) {})
	return f, c.tables, nil
}

// Reload asks Watch to read the file again, as SIGHUP does.
func (f *File) Reload() {
	select {
	case f.wake <- struct{}{}:
	default: // asked already
	}
}

// Status is safe from any goroutine.
func (f *File) Status() Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.status
}

// read returns the bytes of the file, and what the file was before they were
// read: a change in between shows up as another change.
func (f *File) read() (text []byte, seen fs.FileInfo, err error) {
	seen, err = os.Stat(f.path)
	if err != nil {
		return nil, nil, err
	}
	if !seen.Mode().IsRegular() {
		return nil, seen, errors.New("is not a regular file")
	}
	if seen.Size() > fileBytesMax {
		return nil, seen, fmt.Errorf("is %d bytes long; allowed are %d", seen.Size(), fileBytesMax)
	}
	text, err = ReadFile(f.path)
	return text, seen, err
}

// ReadFile returns the bytes of a catalog, from a file or a pipe. Of one that
// is too long it returns no more than Check needs to refuse it.
func ReadFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // nothing was written
	return io.ReadAll(io.LimitReader(file, fileBytesMax+1))
}

// A reason is why the file is read again.
type reason uint8

const (
	noticed reason = iota // its directory changed: read if the file looks different
	polled                // time has passed: read if the file looks different, and a missing file is a failure
	touched               // an event named it: read, whatever it looks like
	asked                 // somebody waits for an answer: read, and a refusal is told again
)

// reload reads the file if there is reason to, and gives what is new and good
// to apply. What is refused changes nothing but the status.
func (f *File) reload(why reason, apply func(*catalog.Tables)) {
	if why <= polled && !f.changed() {
		return
	}
	text, seen, err := f.read()
	if errors.Is(err, fs.ErrNotExist) && (why == noticed || why == touched) {
		return // between the two steps of a replacement; polling finds out if not
	}
	f.seen = seen
	if err != nil {
		failure := fmt.Sprintf("read %s: %v", f.path, cause(err))
		f.refuse(why, identity{failure: failure}, failure, 1)
		return
	}
	c := check(text)
	id := identity{revision: c.revision, secrets: c.secrets}
	switch {
	case c.tables == nil:
		f.refuse(why, id, listing(f.path, c.problems, false, statusLinesMax), catalog.Errors(c.problems))
	case id == f.live:
		if f.refused != (identity{}) {
			slog.Info("catalog is again what is live", "path", f.path, "generation", f.generation, "revision", c.revision)
		}
		f.refused = identity{}
		f.mu.Lock()
		f.status.LastError, f.status.LastErrorAt = "", time.Time{}
		f.mu.Unlock()
	default:
		f.generation++
		f.accept(c, apply)
	}
}

// changed reports whether the file looks different from what was read last.
func (f *File) changed() bool {
	now, err := os.Stat(f.path)
	if err != nil || f.seen == nil {
		return (err == nil) != (f.seen != nil)
	}
	return !os.SameFile(f.seen, now) || f.seen.Mode() != now.Mode() ||
		f.seen.Size() != now.Size() || !f.seen.ModTime().Equal(now.ModTime())
}

// accept makes tables live. The status follows apply, so that it never shows
// as live what is not.
func (f *File) accept(c checked, apply func(*catalog.Tables)) {
	now := time.Now()
	f.live = identity{revision: c.revision, secrets: c.secrets}
	f.refused = identity{}
	c.tables.Accept(f.generation)
	c.tables.LoadedUnix = now.Unix()
	apply(c.tables)
	f.mu.Lock()
	f.status = Status{
		Path:       f.path,
		Generation: f.generation,
		Revision:   c.revision,
		LoadedAt:   now,
		Reloads:    f.generation - 1,
		Refused:    f.status.Refused,
	}
	f.mu.Unlock()
	slog.Info("catalog live", "path", f.path, "generation", f.generation, "revision", c.revision)
	if warnings := len(c.problems) - catalog.Errors(c.problems); warnings > 0 {
		slog.Warn("catalog has warnings", "path", f.path, "warnings", warnings, "problems", listing(f.path, c.problems, true, statusLinesMax))
	}
}

// refuse notes why the file is not live. The same refusal is noted once,
// unless somebody asked.
func (f *File) refuse(why reason, id identity, problems string, count int) {
	if why != asked && id == f.refused {
		return
	}
	f.refused = id
	f.mu.Lock()
	f.status.LastError = problems
	f.status.LastErrorAt = time.Now()
	f.status.Refused++
	live := f.status.Revision
	f.mu.Unlock()
	slog.Error("catalog refused; the former one stays live", "path", f.path, "errors", count, "problems", problems, "live", live)
}
