package ladder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// A shelf keeps every file of a data folder, by links. A gateway deletes the
// oldest of its records when it has many of them, and a ladder makes many: the
// links are there until all has been counted.
type shelf struct {
	source, target string
	stop           context.CancelFunc
	ended          chan struct{}
	linking        sync.Mutex
}

// newShelf begins to keep a folder that may not be there yet.
func newShelf(source string) (*shelf, error) {
	// In the same folder, since links do not reach from one file system to another.
	target, err := os.MkdirTemp(filepath.Dir(source), "kept-")
	if err != nil {
		return nil, fmt.Errorf("ladder: folder for records: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &shelf{source: source, target: target, stop: stop, ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		for {
			s.link() // what cannot be linked now is linked, or missed and told, at the end
			select {
			case <-ctx.Done():
				return
			case <-time.After(linkEvery):
			}
		}
	}()
	return s, nil
}

// close takes the last state and returns the folder that holds everything. The
// owner of the source has to have ended.
func (s *shelf) close() (string, error) {
	s.stop()
	<-s.ended
	return s.target, s.link()
}

// remove ends the shelf.
func (s *shelf) remove() {
	s.stop()
	<-s.ended
	os.RemoveAll(s.target)
}

// link links what is new, and anew what was replaced.
func (s *shelf) link() error {
	s.linking.Lock()
	defer s.linking.Unlock()
	var failed []error
	err := filepath.WalkDir(s.source, func(path string, d fs.DirEntry, err error) error {
		if err == nil {
			err = s.keep(path, d)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // files come and go
			failed = append(failed, err)
		}
		return nil
	})
	if err := errors.Join(append(failed, err)...); err != nil {
		return fmt.Errorf("ladder: keep the records of %s: %w", s.source, err)
	}
	return nil
}

func (s *shelf) keep(path string, d fs.DirEntry) error {
	name, err := filepath.Rel(s.source, path)
	if err != nil {
		return err
	}
	kept := filepath.Join(s.target, name)
	if d.IsDir() {
		return os.MkdirAll(kept, 0o700)
	}
	now, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if before, err := os.Lstat(kept); err == nil {
		if os.SameFile(now, before) {
			return nil
		}
		if err := os.Remove(kept); err != nil {
			return err
		}
	}
	return os.Link(path, kept)
}
