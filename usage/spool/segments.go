package spool

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// A window is a segment as a reader sees it.
type window struct {
	path   string
	number uint64
	start  int64 // position of the first frame
	bytes  int64 // length of the file when it was listed
	final  bool  // a later segment was begun before that: the file has stopped growing
}

// holds reports whether the file may have a byte at a position.
func (w *window) holds(position int64) bool {
	return w.start <= position && (!w.final || position-w.start < w.bytes-headerBytes)
}

// A listing is what a loop's folder holds.
type listing struct {
	windows []window // with a sound header, by number
	broken  []string // paths of segments without one: damaged, or being begun
	last    uint64   // highest number of any segment, quarantined ones too
	carry   header   // of the carry file; start 0 without one
}

// list reads a loop's folder, the highest number first, so that a segment is
// measured after the one that ended it was seen. Final windows known from an
// earlier listing are not opened again.
func list(folder string, known []window) (listing, error) {
	entries, err := os.ReadDir(folder) // by name: by number
	if err != nil {
		return listing{}, fmt.Errorf("spool: %w", err)
	}
	var l listing
	for _, e := range slices.Backward(entries) {
		if n, ok := segmentNumber(e.Name(), badSuffix); ok {
			l.last = max(l.last, n)
		}
		n, ok := segmentNumber(e.Name(), segmentSuffix)
		if !ok {
			continue
		}
		l.last = max(l.last, n)
		i, ok := slices.BinarySearchFunc(known, n, func(w window, n uint64) int { return cmp.Compare(w.number, n) })
		if ok && known[i].final {
			l.windows = append(l.windows, known[i])
			continue
		}
		path := filepath.Join(folder, e.Name())
		w, err := openWindow(path, n)
		switch {
		case errors.Is(err, fs.ErrNotExist): // deleted just now
		case errors.Is(err, errHeader):
			l.broken = append(l.broken, path)
		case err != nil:
			return listing{}, fmt.Errorf("spool: %s: %w", path, err)
		default:
			w.final = len(l.windows) > 0
			l.windows = append(l.windows, w)
		}
	}
	slices.Reverse(l.windows)
	if l.carry, err = readCarryHeader(folder); err != nil {
		return listing{}, err
	}
	return l, nil
}

// openWindow reads the header of a segment.
func openWindow(path string, number uint64) (window, error) {
	f, err := os.Open(path)
	if err != nil {
		return window{}, err
	}
	defer f.Close()
	b := make([]byte, headerBytes)
	if _, err := io.ReadFull(f, b); err != nil {
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return window{}, errHeader
		}
		return window{}, err
	}
	h, err := parseHeader(b)
	if err != nil {
		return window{}, err
	}
	if h.kind != segmentHeader || h.number != number {
		return window{}, errHeader
	}
	about, err := f.Stat()
	if err != nil {
		return window{}, err
	}
	return window{path: path, number: number, start: h.start, bytes: about.Size()}, nil
}
