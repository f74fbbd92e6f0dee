package spool

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
)

// segmentOf makes the bytes of a segment with these frames.
func segmentOf(run uuid.UUID, number uint64, start int64, events ...int) []byte {
	b := make([]byte, headerBytes)
	h := header{run: run, number: number, start: start}
	h.put(b)
	for _, n := range events {
		at := len(b)
		b = appendEvent(beginFrame(b, RowFrame), sample(n), uint64(n+1), "")
		endFrame(b, at)
	}
	return b
}

// folderOf puts segments, numbered from 1, into a run's folder.
func folderOf(t testing.TB, run Run, segments ...[]byte) {
	t.Helper()
	folder := loopFolder(run.folder, 0)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for i, b := range segments {
		if err := os.WriteFile(filepath.Join(folder, segmentName(uint64(i+1))), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOverlap: where several segments hold a position the last one that has a
// whole frame there wins, and an earlier one fills in for it.
func TestOverlap(t *testing.T) {
	id := uuid.UUID{1}
	one := int64(len(segmentOf(id, 1, 0, 1)) - headerBytes) // all frames here are as long
	for _, tt := range []struct {
		name     string
		segments [][]byte
		rows     []int
		gaps     int
	}{
		{"side by side", [][]byte{segmentOf(id, 1, 0, 1, 2), segmentOf(id, 2, 2*one, 3)}, []int{1, 2, 3}, 0},
		{"rewritten", [][]byte{segmentOf(id, 1, 0, 1, 2, 3), segmentOf(id, 2, one, 2, 3, 4)}, []int{1, 2, 3, 4}, 0},
		{"the later one wins", [][]byte{segmentOf(id, 1, 0, 1, 7, 8), segmentOf(id, 2, one, 2, 3)}, []int{1, 2, 3}, 0},
		{"rewritten over two", [][]byte{segmentOf(id, 1, 0, 1, 2), segmentOf(id, 2, 2*one, 3), segmentOf(id, 3, one, 2, 3, 4)}, []int{1, 2, 3, 4}, 0},
		{
			"the rewriting was cut short",
			[][]byte{segmentOf(id, 1, 0, 1, 2, 3), segmentOf(id, 2, one, 2, 3)[:headerBytes+one+20]},
			[]int{1, 2, 3}, 0,
		},
		{"rubbish behind the end", [][]byte{append(segmentOf(id, 1, 0, 1), "rubbish"...), segmentOf(id, 2, one, 2)}, []int{1, 2}, 0},
		{"one is empty", [][]byte{segmentOf(id, 1, 0, 1), {}, segmentOf(id, 3, one, 2), {}}, []int{1, 2}, 0},
		{"one is missing", [][]byte{segmentOf(id, 1, 0, 1), segmentOf(id, 2, 3*one, 4)}, []int{1, 4}, 1},
		{"the wrong number", [][]byte{segmentOf(id, 1, 0, 1), segmentOf(id, 7, one, 2)}, []int{1}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			run := Run{ID: id, folder: t.TempDir()}
			folderOf(t, run, tt.segments...)
			records, gaps := readRun(t, run, 0)
			var rows []int
			for _, r := range records {
				rows = append(rows, int(r.RowSeq)-1)
			}
			if len(gaps) != tt.gaps || len(rows) != len(tt.rows) {
				t.Fatalf("rows %v, gaps %v", rows, gaps)
			}
			for i := range rows {
				if rows[i] != tt.rows[i] {
					t.Fatalf("rows %v, want %v", rows, tt.rows)
				}
			}
		})
	}
}

// TestHalfWritten: a reader that met a frame half written reads it when it is
// whole, though more has come behind it.
func TestHalfWritten(t *testing.T) {
	run := Run{ID: uuid.UUID{1}, folder: t.TempDir()}
	whole := segmentOf(run.ID, 1, 0, 1, 2, 3)
	one := (len(whole) - headerBytes) / 3
	folderOf(t, run, whole[:headerBytes+one+30])
	r, err := OpenReader(run, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if f, err := r.Next(); err != nil || f.End != int64(one) {
		t.Fatalf("first: %+v, %v", f, err)
	}
	if f, err := r.Next(); err != io.EOF {
		t.Fatalf("half: %+v, %v", f, err)
	}
	folderOf(t, run, whole)
	for n := range 2 {
		if f, err := r.Next(); err != nil || f.Position != int64((n+1)*one) {
			t.Fatalf("frame %d: %+v, %v", n+2, f, err)
		}
	}
	if f, err := r.Next(); err != io.EOF {
		t.Fatalf("end: %+v, %v", f, err)
	}
}

// TestReaderOfDeletedRun: the folder goes away under the reader.
func TestReaderOfDeletedRun(t *testing.T) {
	run := Run{ID: uuid.UUID{1}, folder: filepath.Join(t.TempDir(), "run")}
	folderOf(t, run, segmentOf(run.ID, 1, 0, 1))
	r, err := OpenReader(run, 0, Oldest)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := os.RemoveAll(run.folder); err != nil {
		t.Fatal(err)
	}
	if f, err := r.Next(); err != io.EOF {
		t.Errorf("got %+v, %v", f, err)
	}
	if r, err := OpenReader(run, 0, Oldest); err != nil {
		t.Errorf("opened: %v", err)
	} else if f, err := r.Next(); err != io.EOF {
		t.Errorf("got %+v, %v", f, err)
	}
}

// FuzzSegment: whatever is in a folder, a reader comes to the end of it, never
// goes back, and closing the run makes it readable without new damage.
func FuzzSegment(f *testing.F) {
	id := uuid.UUID{1}
	good := segmentOf(id, 1, 0, 1, 2, 3)
	f.Add(good, []byte{})
	f.Add(good[:len(good)-5], segmentOf(id, 2, 300, 4, 5))
	f.Add(append(bytes.Clone(good[:200]), make([]byte, 300)...), segmentOf(id, 2, 100, 3))
	f.Add([]byte("RLYSPOOL"), segmentOf(id, 2, 1<<62, 3))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		if len(a)+len(b) > 32<<10 {
			return
		}
		// Most of what the fuzzer makes has a wrong checksum: headers are put right.
		for number, s := range [][]byte{a, b} {
			if len(s) < headerBytes {
				continue
			}
			if h, err := parseHeader(s); err != nil {
				start := int64(s[40]) | int64(s[41])<<8
				h = header{run: id, number: uint64(number + 1), start: start}
				h.put(s)
			}
		}
		folder, err := os.MkdirTemp("/dev/shm", "spool")
		if err != nil {
			folder = t.TempDir()
		}
		defer os.RemoveAll(folder)
		run := Run{ID: id, folder: filepath.Join(folder, "run")}
		folderOf(t, run, a, b)
		frames, gaps := walk(t, run, len(a)+len(b))
		rec := (&closer{log: quietLog()}).close(run)
		if rec.Err != nil || !exists(run.folder) {
			return // a later version, an event of another program, or nothing at all
		}
		after, gapsAfter := walk(t, run, len(a)+len(b)+FrameBytesMax*10)
		if after < frames || gapsAfter < gaps {
			t.Fatalf("%d frames and %d gaps before closing, %d and %d after", frames, gaps, after, gapsAfter)
		}
	})
}

// walk reads a stream to its end and counts.
func walk(t *testing.T, run Run, most int) (frames, gaps int) {
	r, err := OpenReader(run, 0, Oldest)
	if err != nil {
		return 0, 0
	}
	defer r.Close()
	for step := 0; ; step++ {
		if step > most {
			t.Fatal("no end")
		}
		before := r.Position()
		f, err := r.Next()
		if err == io.EOF {
			return frames, gaps
		}
		var gap *GapError
		switch {
		case errors.As(err, &gap):
			gaps++
		case err != nil:
			return frames, gaps
		default:
			frames++
			Decode(f.Payload)
		}
		if r.Position() <= before {
			t.Fatalf("position %d after %d", r.Position(), before)
		}
	}
}
