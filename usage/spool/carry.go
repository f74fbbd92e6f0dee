package spool

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// An account is what has happened on a stream up to a position: what closing
// a run has to know, and what deleting a segment must not forget.
type account struct {
	position int64
	rows     uint64                // row_seq of the last row
	lastNs   int64                 // latest time seen in an event
	open     map[[16]byte]openItem // admitted, without a row
}

// An openItem is the last admission of an exchange.
type openItem struct {
	position int64
	payload  []byte
}

// add takes note of one frame.
func (a *account) add(f Frame) error {
	if f.Kind != AdmittedFrame && f.Kind != RowFrame {
		return nil
	}
	g, err := glanceEvent(f.Payload)
	if err != nil {
		return fmt.Errorf("spool: position %d: %w", f.Position, err)
	}
	a.lastNs = max(a.lastNs, g.lastNs)
	if f.Kind == RowFrame {
		a.rows = max(a.rows, g.rowSeq)
		delete(a.open, g.id)
		return nil
	}
	a.open[g.id] = openItem{position: f.Position, payload: bytes.Clone(f.Payload)}
	return nil
}

// items lists the open admissions in the order of the stream.
func (a *account) items() []openItem {
	items := make([]openItem, 0, len(a.open))
	for _, item := range a.open {
		items = append(items, item)
	}
	slices.SortFunc(items, func(x, y openItem) int { return int(min(max(x.position-y.position, -1), 1)) })
	return items
}

// save writes the account as the carry file of a loop, in place of the
// segments up to number.
func (a *account) save(folder string, run Run, loop int, number uint64) error {
	b := make([]byte, headerBytes)
	h := header{kind: carryHeader, loop: uint32(loop), run: run.ID, number: number, start: a.position, rows: a.rows}
	h.put(b)
	for _, item := range a.items() {
		at := len(b)
		b = append(beginFrame(b, AdmittedFrame), item.payload...)
		endFrame(b, at)
	}
	if err := writeWhole(filepath.Join(folder, carryName), b); err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	return nil
}

// loadAccount reads the carry file of a loop; without one the account is that
// of the beginning.
func loadAccount(folder string) (*account, error) {
	a := &account{open: make(map[[16]byte]openItem)}
	path := filepath.Join(folder, carryName)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return a, nil
	}
	if err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	h, err := parseHeader(b)
	if err != nil {
		return nil, fmt.Errorf("spool: %s: %w", path, err)
	}
	a.position, a.rows = h.start, h.rows
	for b = b[headerBytes:]; len(b) > 0; {
		f, ok := parseFrame(b)
		if !ok {
			return nil, fmt.Errorf("spool: %s: damaged", path)
		}
		b = b[frameBytesMin+len(f.Payload):]
		f.Position = h.start - int64(len(b)) - 1 // before all others, in this order
		if err := a.add(f); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// readCarryHeader reads the header of a loop's carry file, zero without one.
func readCarryHeader(folder string) (header, error) {
	path := filepath.Join(folder, carryName)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return header{}, nil
	}
	if err != nil {
		return header{}, fmt.Errorf("spool: %w", err)
	}
	defer f.Close()
	b := make([]byte, headerBytes)
	if _, err := io.ReadFull(f, b); err != nil {
		return header{}, fmt.Errorf("spool: %s: %w", path, err)
	}
	h, err := parseHeader(b)
	if err != nil {
		return header{}, fmt.Errorf("spool: %s: %w", path, err)
	}
	return h, nil
}
