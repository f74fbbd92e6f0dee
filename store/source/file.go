package source

import (
	"context"
	"time"

	"relay/store/catalog"
)

// A File is a catalog in a YAML file.
type File struct {
	path string
}

// Status is what is live and what went wrong last, for /readyz and metrics.
type Status struct {
	Path        string
	Generation  uint64    // of the live tables
	Revision    string    // of the live tables
	LoadedAt    time.Time // of the live tables
	LastError   string    // of the last refused reload; "" when the last one was accepted
	LastErrorAt time.Time
	Reloads     uint64 // accepted
	Refused     uint64
}

// Check reads and checks the bytes of a catalog without making it live.
func Check(yaml []byte) (*catalog.Tables, []catalog.Problem) { panic("BUG: not built") }

// Open reads the file for the first time. Problems that are errors come back
// as one error that lists them all, with file name and line numbers.
func Open(path string) (*File, *catalog.Tables, error) { panic("BUG: not built") }

// Watch reloads on change of the file (also when it is replaced by rename or
// by a symlink swap) and when Reload is called, until ctx ends. Each accepted
// catalog is given to apply, in order. It blocks.
func (f *File) Watch(ctx context.Context, apply func(*catalog.Tables)) error { panic("BUG: not built") }

// Reload asks Watch to read the file again, as SIGHUP does.
func (f *File) Reload() { panic("BUG: not built") }

// Status is safe from any goroutine.
func (f *File) Status() Status { panic("BUG: not built") }
