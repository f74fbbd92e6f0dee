package spool

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// A founder makes the folder of this process's run: in Open, or later by
// whichever syncing goroutine finds room for it first, when the disk was full
// and the spool is one that serves all the same.
type founder struct {
	run  Run
	disk disk

	mu   sync.Mutex // guards lock
	lock *os.File   // of the run; nil until it is made
}

// found makes the run unless that is done.
func (f *founder) found() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lock != nil {
		return nil
	}
	lock, err := f.disk.Found(&f.run)
	if err != nil {
		return err
	}
	f.lock = lock
	return nil
}

// isFound reports whether there is a run on the disk.
func (f *founder) isFound() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lock != nil
}

// release gives the lock back.
func (f *founder) release() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lock == nil {
		return nil
	}
	return f.lock.Close()
}

// noRoom is where a writer stands that found no room for its first segment:
// nothing can be written, and it leaves at once when there is a segment.
type noRoom struct{}

func (noRoom) WriteAt([]byte, int64) (int, error) { return 0, unix.ENOSPC }
func (noRoom) Truncate(int64) error               { return nil }
func (noRoom) Sync() error                        { return nil }
func (noRoom) Close() error                       { return nil }

// newNoRoom is a segment that is none.
func newNoRoom() *segment {
	g := &segment{file: noRoom{}}
	g.turn.Store(true)
	return g
}
