package spool

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"relay/store/catalog"
	"relay/usage"
)

// A faultDisk is the real disk with a bounded room and switches for errors.
// It is used by one goroutine at a time.
type faultDisk struct {
	room     int64 // bytes that can still be written or reserved; reserves included
	found    error // of Found
	create   error // of Create
	write    error // of WriteAt, nothing written
	sync     error // of Sync; what was not synced before is then zeroed, as after a loss of power
	truncate error
	files    map[string]*faultFile
}

func newFaultDisk() *faultDisk {
	return &faultDisk{room: 1 << 40, files: make(map[string]*faultFile)}
}

func (d *faultDisk) Found(r *Run) (*os.File, error) {
	if d.found != nil {
		return nil, d.found
	}
	return osDisk{}.Found(r)
}

func (d *faultDisk) Create(path string, reserve int64) (file, error) {
	if d.create != nil {
		return nil, d.create
	}
	if d.room < reserve {
		return nil, unix.ENOSPC
	}
	f, err := osDisk{}.Create(path, reserve)
	if err != nil {
		return nil, err
	}
	d.room -= reserve
	g := &faultFile{file: f, disk: d, path: path, reserved: reserve}
	d.files[filepath.Base(path)] = g
	return g, nil
}

func (d *faultDisk) Remove(path string) error {
	d.room += d.files[filepath.Base(path)].reserved
	return os.Remove(path)
}

type faultFile struct {
	file
	disk     *faultDisk
	path     string
	reserved int64
	length   int64
	synced   int64
	closed   bool
	writes   int
}

func (f *faultFile) WriteAt(b []byte, offset int64) (int, error) {
	if f.closed {
		panic("write to a closed file")
	}
	f.writes++
	if f.disk.write != nil {
		return 0, f.disk.write
	}
	grow := max(offset+int64(len(b))-f.length, 0)
	fromReserve := min(grow, f.reserved)
	if left := grow - fromReserve; left > f.disk.room {
		n := max(int64(len(b))-(left-f.disk.room), 0)
		f.disk.room, f.reserved = 0, f.reserved-fromReserve
		f.length = max(f.length, offset+n)
		if n == 0 {
			return 0, unix.ENOSPC
		}
		return f.file.WriteAt(b[:n], offset)
	}
	f.disk.room -= grow - fromReserve
	f.reserved -= fromReserve
	f.length += grow
	return f.file.WriteAt(b, offset)
}

func (f *faultFile) Truncate(n int64) error {
	if f.disk.truncate != nil {
		return f.disk.truncate
	}
	if n < f.length {
		f.disk.room += f.length - n
		f.length = n
	}
	return f.file.Truncate(n)
}

func (f *faultFile) Sync() error {
	if f.closed {
		panic("sync of a closed file")
	}
	if f.disk.sync != nil {
		if _, err := f.file.WriteAt(make([]byte, f.length-f.synced), f.synced); err != nil {
			return err
		}
		return f.disk.sync
	}
	f.synced = f.length
	return f.file.Sync()
}

func (f *faultFile) Close() error {
	f.disk.room += f.reserved
	f.reserved, f.closed = 0, true
	return f.file.Close()
}

// quietLog is for tests whose faults are meant.
func quietLog() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// openManual opens a spool whose goroutines do not run: tests call round.
func openManual(t testing.TB, o Options, d disk) *Spool {
	t.Helper()
	if o.Loops == 0 {
		o.Loops = 1
	}
	o.Log = quietLog()
	s, err := open(o, d)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if s.founder.release() == nil { // not closed by the test
			for _, y := range s.syncers {
				y.closeAll()
			}
		}
	})
	return s
}

// die ends a spool as a kill does: nothing is sealed, the lock is free.
func die(t testing.TB, s *Spool) {
	t.Helper()
	for _, y := range s.syncers {
		for _, g := range y.live {
			g.file.Close()
		}
		y.live = nil
	}
	if err := s.founder.release(); err != nil {
		t.Fatal(err)
	}
}

// finishManual closes a spool whose goroutines do not run.
func finishManual(t testing.TB, s *Spool) {
	t.Helper()
	for _, y := range s.syncers {
		y.last()
	}
	if err := s.finish(); err != nil {
		t.Fatal(err)
	}
}

// sample is event number n: a whole one, with n in its id and its tokens.
func sample(n int) *usage.Event {
	e := &usage.Event{
		Generation: 7, StartUnixNs: 1_800_000_000_000_000_000 + int64(n)*1000,
		Key: "app-1", Account: "team-a", Policy: "default", ModelAsked: "gpt-5-mini", Model: "gpt-5",
		UpstreamModel: "gpt-5", Host: "openai", HostKey: "main", UpstreamRequestID: "req_0123456789",
		Route: "chat.completions", ShapeIn: "openai", ShapeOut: "openai", Status: 200, UpstreamStatus: 200,
		Stream: true, Attempts: 1, Tokens: usage.Tokens{Input: int64(n), Output: 10}, Source: usage.Reported,
		Price: catalog.Price{Input: 1_250_000, Output: 10_000_000}, GrantUnixNs: 1_800_000_000_000_000_900, OverheadNs: 60_000, FirstTokenNs: 300_000_000,
		UpstreamNs: 900_000_000, BytesIn: 2000, BytesOut: 8000,
	}
	e.EndUnixNs = e.StartUnixNs + 500
	copy(e.RequestID[:], fmt.Sprintf("request %08d", n))
	e.Cost = usage.Charge(&e.Tokens, &e.Price)
	return e
}

// readAll reads a stream to its end. Gaps are returned apart.
func readAll(t testing.TB, r *Reader) (records []Record, gaps []GapError) {
	t.Helper()
	defer r.Close()
	for {
		f, err := r.Next()
		if err == io.EOF {
			return records, gaps
		}
		var gap *GapError
		if errors.As(err, &gap) {
			gaps = append(gaps, *gap)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if f.Kind == SealedFrame {
			seal, err := DecodeSeal(f.Payload)
			if err != nil {
				t.Fatal(err)
			}
			records = append(records, Record{Kind: f.Kind, RowSeq: seal.Rows, Position: f.Position, End: f.End})
			continue
		}
		record, err := r.Decode(f)
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, record)
	}
}

// readRun reads a stream of a run that is not this process's.
func readRun(t testing.TB, run Run, loop int) ([]Record, []GapError) {
	t.Helper()
	r, err := OpenReader(run, loop, Oldest)
	if err != nil {
		t.Fatal(err)
	}
	return readAll(t, r)
}

// checkRows fails unless the rows among records are those numbers, in order,
// with a dense row_seq from 1.
func checkRows(t testing.TB, records []Record, want ...int) {
	t.Helper()
	var got []int
	for _, r := range records {
		if r.Kind != RowFrame {
			continue
		}
		got = append(got, int(r.Event.Tokens.Input))
		if r.RowSeq != uint64(len(got)) {
			t.Fatalf("row %d has row_seq %d", len(got), r.RowSeq)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("rows %v\nwant %v", got, want)
	}
}

// copyFolder copies a spool, so that a test can damage it again and again.
func copyFolder(t testing.TB, from string) string {
	t.Helper()
	to, err := os.MkdirTemp("/dev/shm", "spool") // many fsyncs follow: memory where there is one
	if err != nil {
		to = t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(to) })
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

func span(from, to int) []int {
	var n []int
	for i := from; i < to; i++ {
		n = append(n, i)
	}
	return n
}

var testTime = time.Unix(1_800_000_000, 0)

func mustRow(t testing.TB, w *Writer, n int) {
	t.Helper()
	if !w.Row(sample(n)) {
		t.Fatalf("row %d was not taken", n)
	}
}

func mustAdmit(t testing.TB, w *Writer, n int) {
	t.Helper()
	if !w.Admitted(sample(n)) {
		t.Fatalf("admission %d was not taken", n)
	}
}

// segmentFiles lists the segments of a loop of a run that have content.
func segmentFiles(t testing.TB, run Run, loop int) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(loopFolder(run.folder, loop), "*"+segmentSuffix))
	if err != nil {
		t.Fatal(err)
	}
	var full []string
	for _, p := range paths {
		if b, err := os.ReadFile(p); err == nil && len(bytes.TrimRight(b, "\x00")) > 0 {
			full = append(full, p)
		}
	}
	return full
}
