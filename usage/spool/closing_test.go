package spool

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"relay/usage"
)

// deadRun leaves a run whose owner is gone: rows 0 to 5, of which 3 to 5 had
// been admitted, then admissions 6 and 7 without rows, 7 twice.
func deadRun(t testing.TB, dir string) Run {
	t.Helper()
	s := openManual(t, Options{Dir: dir, Sync: time.Second, Instance: "dead"}, osDisk{})
	w := s.Writer(0)
	for n := range 6 {
		if n >= 3 {
			mustAdmit(t, w, n)
		}
		if n == 5 {
			mustAdmit(t, w, 6)
		}
		mustRow(t, w, n)
	}
	mustAdmit(t, w, 7)
	late := sample(7)
	late.Host = "second"
	if !w.Admitted(late) {
		t.Fatal("not admitted")
	}
	s.syncers[0].round(testTime)
	die(t, s)
	return s.run
}

// recoverIn opens a spool in dir and returns what it found.
func recoverIn(t testing.TB, dir string) []Recovery {
	t.Helper()
	s := openManual(t, Options{Dir: dir, Sync: time.Second}, osDisk{})
	defer finishManual(t, s)
	return s.Recovered()
}

// closeIn closes a run as recovery does, without a spool of its own.
func closeIn(t testing.TB, run Run) Recovery {
	t.Helper()
	rec := (&closer{log: quietLog()}).close(run)
	if rec.Err != nil {
		t.Fatal(rec.Err)
	}
	return rec
}

// runIn is the run of another folder's copy.
func runIn(dir string, r Run) Run {
	r.folder = filepath.Join(dir, r.ID.String())
	return r
}

func TestInterruptedRows(t *testing.T) {
	dir := t.TempDir()
	run := deadRun(t, dir)
	rec := recoverIn(t, dir)
	if len(rec) != 1 || rec[0].Err != nil || rec[0].Rows != 8 || rec[0].Interrupted != 2 || rec[0].Instance != "dead" ||
		rec[0].CutBytes != 0 || len(rec[0].Damage)+len(rec[0].Quarantined) != 0 {
		t.Fatalf("recovered %+v", rec)
	}
	records, gaps := readRun(t, run, 0)
	checkRows(t, records, span(0, 8)...)
	if len(gaps) != 0 {
		t.Fatalf("gaps %v", gaps)
	}
	rows := records[len(records)-3:]
	for i, got := range rows[:2] {
		want := *sample(6 + i)
		if i == 1 {
			want.Host = "second"
		}
		want.Outcome, want.Source, want.Status = usage.Interrupted, usage.Estimated, 0
		want.EndUnixNs = sample(7).EndUnixNs
		if got.Event != want || got.Instance != "dead" {
			t.Errorf("row %d:\ngot  %+v\nwant %+v", i, got.Event, want)
		}
	}
	if rows[2].Kind != SealedFrame || rows[2].RowSeq != 8 {
		t.Errorf("the last record is %+v", rows[2])
	}
	if rec := recoverIn(t, dir); len(rec) != 0 {
		t.Errorf("a sealed run was closed again: %+v", rec)
	}
	runs, err := Runs(dir)
	if err != nil || len(runs) != 1 || !runs[0].Sealed || runs[0].Instance != "dead" {
		t.Errorf("runs %+v, %v", runs, err)
	}
}

// TestTornTail cuts the last frame at every byte.
func TestTornTail(t *testing.T) {
	source := t.TempDir()
	run := deadRun(t, source)
	path := segmentFiles(t, run, 0)[0]
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	records, _ := readRun(t, run, 0)
	last := records[len(records)-1]
	for cut := headerBytes + last.Position + 1; cut < int64(len(whole)); cut++ {
		tails := map[string][]byte{"cut": nil}
		if cut%16 == 0 {
			tails["zeros"] = make([]byte, 5000)
		}
		for name, tail := range tails {
			dir := copyFolder(t, source)
			copied := runIn(dir, run)
			torn := append(bytes.Clone(whole[:cut]), tail...)
			if err := os.WriteFile(segmentFiles(t, copied, 0)[0], torn, 0o600); err != nil {
				t.Fatal(err)
			}
			rec := closeIn(t, copied)
			want := int64(len(torn)) - headerBytes - last.Position
			if len(rec.Damage) != 0 || rec.CutBytes != want || rec.Interrupted != 2 {
				t.Fatalf("%s at %d: recovered %+v, want %d bytes cut", name, cut, rec, want)
			}
			got, gaps := readRun(t, copied, 0)
			checkRows(t, got, span(0, 8)...)
			if len(gaps) != 0 || got[len(got)-2].Event.Host != "openai" { // the torn one was the second admission of 7
				t.Fatalf("%s at %d: gaps %v, last row %+v", name, cut, gaps, got[len(got)-2])
			}
		}
	}
}

// TestBitFlips flips a bit in every byte of a frame in the middle, and of the
// last one.
func TestBitFlips(t *testing.T) {
	source := t.TempDir()
	run := deadRun(t, source)
	whole, err := os.ReadFile(segmentFiles(t, run, 0)[0])
	if err != nil {
		t.Fatal(err)
	}
	records, _ := readRun(t, run, 0)
	middle, last := records[4], records[len(records)-1] // admission 4 or the row before it
	for at := middle.Position; at < middle.End; at++ {
		dir := copyFolder(t, source)
		copied := runIn(dir, run)
		bad := bytes.Clone(whole)
		bad[headerBytes+at] ^= 1 << (at % 8)
		if err := os.WriteFile(segmentFiles(t, copied, 0)[0], bad, 0o600); err != nil {
			t.Fatal(err)
		}
		rec := closeIn(t, copied)
		want := GapError{Run: run.ID, From: middle.Position, To: middle.End}
		if len(rec.Damage) != 1 || rec.Damage[0] != want || rec.CutBytes != 0 {
			t.Fatalf("flip at %d: recovered %+v", at, rec)
		}
		got, gaps := readRun(t, copied, 0)
		if len(gaps) != 1 || gaps[0] != want || got[len(got)-1].Kind != SealedFrame {
			t.Fatalf("flip at %d: gaps %v, last %+v", at, gaps, got[len(got)-1])
		}
		if len(got) != len(records)-1+2+1 && len(got) != len(records)-1+3+1 { // its own row may be the one that is lost
			t.Fatalf("flip at %d: %d records", at, len(got))
		}
	}
	for at := last.Position; at < last.End; at++ {
		dir := copyFolder(t, source)
		copied := runIn(dir, run)
		bad := bytes.Clone(whole)
		bad[headerBytes+at] ^= 1 << (at % 8)
		if err := os.WriteFile(segmentFiles(t, copied, 0)[0], bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if rec := closeIn(t, copied); rec.CutBytes != last.End-last.Position {
			t.Fatalf("flip at %d: recovered %+v", at, rec)
		}
		checkRows(t, first(readRun(t, copied, 0)), span(0, 8)...)
	}
}

func TestDamagedHeader(t *testing.T) {
	dir := t.TempDir()
	run := deadRun(t, dir)
	path := segmentFiles(t, run, 0)[0]
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[20] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	rec := recoverIn(t, dir)
	if len(rec) != 1 || rec[0].Err != nil || len(rec[0].Quarantined) != 1 {
		t.Fatalf("recovered %+v", rec)
	}
	kept, err := os.ReadFile(rec[0].Quarantined[0])
	if err != nil || !bytes.Equal(kept, b) {
		t.Errorf("the damaged segment is not kept: %v", err)
	}
	records, _ := readRun(t, run, 0)
	if len(records) != 1 || records[0].Kind != SealedFrame {
		t.Errorf("records %+v", records)
	}
}

// TestMissingSegment: a segment in the middle is gone. What is behind it is
// read, and the gap is told.
func TestMissingSegment(t *testing.T) {
	dir := t.TempDir()
	s := openManual(t, Options{Dir: dir, Sync: time.Second}, osDisk{})
	w := s.Writer(0)
	w.segment = 2000
	for n := range 40 {
		mustRow(t, w, n)
		s.syncers[0].round(testTime)
	}
	die(t, s)
	files := segmentFiles(t, s.run, 0)
	if err := os.Remove(files[1]); err != nil {
		t.Fatal(err)
	}
	rec := recoverIn(t, dir)
	if len(rec) != 1 || rec[0].Err != nil || len(rec[0].Damage) != 1 || rec[0].Rows != 40 {
		t.Fatalf("recovered %+v", rec)
	}
	gap := rec[0].Damage[0]
	records, _ := readRun(t, s.run, 0)
	lost := 40 - (len(records) - 1)
	if lost < 1 || gap.To-gap.From < 1 || gap.Deleted {
		t.Errorf("lost %d, gap %+v", lost, gap)
	}
}

// TestRecoveryCutShort: a recovery that dies is done again, with one row for
// each exchange.
func TestRecoveryCutShort(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spoil func(t *testing.T, run Run)
	}{
		{"before anything", func(*testing.T, Run) {}},
		{"while the closing segment was written", func(t *testing.T, run Run) {
			path := filepath.Join(loopFolder(run.folder, 0), segmentName(9)+temporarySuffix)
			if err := os.WriteFile(path, []byte("half"), 0o600); err != nil {
				t.Fatal(err)
			}
		}},
		{"between two loops", func(t *testing.T, run Run) {
			c := closer{log: quietLog()}
			s, err := c.survey(run, 0, new(Recovery))
			if err != nil {
				t.Fatal(err)
			}
			if err := c.seal(run, s, new(Recovery)); err != nil {
				t.Fatal(err)
			}
		}},
		{"before the run was marked", func(t *testing.T, run Run) {
			if rec := (&closer{log: quietLog()}).close(run); rec.Err != nil {
				t.Fatal(rec.Err)
			}
			if err := os.Remove(filepath.Join(run.folder, sealedName)); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			s := openManual(t, Options{Dir: dir, Loops: 2, Sync: time.Second}, osDisk{})
			for loop := range 2 {
				mustRow(t, s.Writer(loop), 0)
				mustAdmit(t, s.Writer(loop), 1)
			}
			die(t, s)
			tt.spoil(t, s.run)
			for range 2 {
				recoverIn(t, dir)
				for loop := range 2 {
					records, gaps := readRun(t, s.run, loop)
					checkRows(t, records, 0, 1)
					if len(records) != 4 || records[3].Kind != SealedFrame || len(gaps) != 0 {
						t.Fatalf("loop %d: %d records, gaps %v", loop, len(records), gaps)
					}
				}
			}
		})
	}
}

// TestCloseInterrupts: exchanges still open when the process stops get their
// rows at once, and the run is sealed.
func TestCloseInterrupts(t *testing.T) {
	dir := t.TempDir()
	s := openManual(t, Options{Dir: dir, Sync: time.Second}, osDisk{})
	mustAdmit(t, s.Writer(0), 0)
	mustRow(t, s.Writer(0), 1)
	finishManual(t, s)
	records, _ := readRun(t, s.run, 0)
	checkRows(t, records, 1, 0)
	if got := records[2].Event.Outcome; got != usage.Interrupted {
		t.Errorf("outcome %v", got)
	}
	if rec := recoverIn(t, dir); len(rec) != 0 {
		t.Errorf("recovered %+v", rec)
	}
}

// TestEmptyRunsLeaveNothing: starts without traffic do not pile up.
func TestEmptyRunsLeaveNothing(t *testing.T) {
	dir := t.TempDir()
	dead := openManual(t, Options{Dir: dir, Loops: 3}, osDisk{})
	die(t, dead)
	if rec := recoverIn(t, dir); len(rec) != 1 || rec[0].Err != nil {
		t.Fatalf("recovered %+v", rec)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 0 {
		t.Errorf("left over: %v, %v", entries, err)
	}
}

// TestLaterFormat: a run of a later version is not touched.
func TestLaterFormat(t *testing.T) {
	dir := t.TempDir()
	run := deadRun(t, dir)
	path := segmentFiles(t, run, 0)[0]
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[8] = 2
	sum := checksum(b[:60])
	b[60], b[61], b[62], b[63] = byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if rec := recoverIn(t, dir); len(rec) != 1 || rec[0].Err == nil {
		t.Fatalf("recovered %+v", rec)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, b) {
		t.Errorf("the segment was changed: %v", err)
	}
}
