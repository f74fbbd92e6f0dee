package spool

import (
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
	bytes  int64 // length of the file when it was listed; the last one still grows
}

// holds reports whether the file may have a byte at a position.
func (w *window) holds(position int64) bool {
	return w.start <= position && position-w.start < w.bytes-headerBytes
}

// A listing is what a loop's folder holds.
type listing struct {
	windows []window // with a sound header, by number
	broken  []string // paths of segments without one: damaged, or being begun
	last    uint64   // highest number of any segment, quarantined ones too
	carry   header   // of the carry file; start 0 without one
}

// list reads a loop's folder. Windows known from an earlier listing are not
// opened again.
func list(folder string, known []window) (listing, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return listing{}, fmt.Errorf("spool: %w", err)
	}
	var l listing
	for _, e := range entries {
		if n, ok := segmentNumber(e.Name(), badSuffix); ok {
			l.last = max(l.last, n)
		}
		n, ok := segmentNumber(e.Name(), segmentSuffix)
		if !ok {
			continue
		}
		l.last = max(l.last, n)
		i := slices.IndexFunc(known, func(w window) bool { return w.number == n })
		if i >= 0 && i+1 < len(known) { // only the last one grows
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
			l.windows = append(l.windows, w)
		}
	}
	slices.SortFunc(l.windows, func(a, b window) int {
		if a.number < b.number {
			return -1
		}
		return 1
	})
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
