package spool

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// A file is a segment that is being written. Tests put faults under it.
type file interface {
	// WriteAt makes one system call and may write less than all.
	WriteAt(b []byte, offset int64) (int, error)
	Truncate(bytes int64) error
	// Sync makes what was written durable, and the length with it.
	Sync() error
	Close() error
}

// A disk makes runs and segments.
type disk interface {
	// Found makes the folder of a run and returns its lock, held.
	Found(r *Run) (lock *os.File, err error)
	// Create makes an empty file with reserve bytes allocated behind its end,
	// and makes its name durable.
	Create(path string, reserve int64) (file, error)
	Remove(path string) error
}

// osDisk is the disk of the operating system.
type osDisk struct{}

func (osDisk) Found(r *Run) (*os.File, error) { return r.found() }

func (osDisk) Create(path string, reserve int64) (file, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	g := &osFile{f: f, fd: int(f.Fd())}
	if err := g.reserve(reserve); err != nil {
		err = fmt.Errorf("reserve %d bytes for %s: %w", reserve, path, err)
		return nil, errors.Join(err, f.Close(), os.Remove(path))
	}
	if err := syncFolderOf(path); err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(path))
	}
	return g, nil
}

func (osDisk) Remove(path string) error { return os.Remove(path) }

// osFile calls the system itself: os.File would repeat a short write, and the
// writer wants to know of it.
type osFile struct {
	f  *os.File // keeps the descriptor open
	fd int
}

func (f *osFile) WriteAt(b []byte, offset int64) (int, error) {
	for {
		n, err := unix.Pwrite(f.fd, b, offset)
		if err != unix.EINTR {
			return n, err
		}
	}
}

func (f *osFile) Truncate(bytes int64) error {
	for {
		err := unix.Ftruncate(f.fd, bytes)
		if err != unix.EINTR {
			return err
		}
	}
}

func (f *osFile) Sync() error {
	for {
		err := unix.Fdatasync(f.fd)
		if err != unix.EINTR {
			return err
		}
	}
}

func (f *osFile) Close() error { return f.f.Close() }

// reserve allocates blocks and leaves the length 0. A file system that cannot
// is used without: its full disk then loses rows, which are counted.
func (f *osFile) reserve(bytes int64) error {
	for {
		err := unix.Fallocate(f.fd, unix.FALLOC_FL_KEEP_SIZE, 0, bytes)
		switch err {
		case unix.EINTR:
			continue
		case unix.EOPNOTSUPP, unix.ENOSYS:
			return nil
		}
		return err
	}
}

// full reports whether an error says that the disk, or a quota, has no room.
// A short write comes from the same cause.
func full(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, errShort)
}

var errShort = errors.New("short write")
