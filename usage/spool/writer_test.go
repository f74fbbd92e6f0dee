package spool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestRowsComeBack(t *testing.T) {
	s := openManual(t, Options{Dir: t.TempDir(), Loops: 2, Sync: time.Second, Instance: "relay-1"}, osDisk{})
	for n := range 100 {
		w := s.Writer(n % 2)
		mustAdmit(t, w, n)
		mustRow(t, w, n)
	}
	for loop := range 2 {
		r, err := s.Reader(loop, 0)
		if err != nil {
			t.Fatal(err)
		}
		if records, _ := readAll(t, r); len(records) != 0 {
			t.Fatalf("loop %d: %d records are visible before the sync", loop, len(records))
		}
		s.syncers[loop].round(testTime)
		if r, err = s.Reader(loop, 0); err != nil {
			t.Fatal(err)
		}
		records, gaps := readAll(t, r)
		if len(records) != 100 || len(gaps) != 0 {
			t.Fatalf("loop %d: %d records, gaps %v", loop, len(records), gaps)
		}
		position := int64(0)
		for i, got := range records {
			n := i/2*2 + loop
			want := Record{
				Run: s.Run(), Loop: loop, Kind: AdmittedFrame, Position: position, End: got.End,
				Instance: "relay-1", Event: *sample(n),
			}
			if i%2 == 1 {
				want.Kind, want.RowSeq = RowFrame, uint64(i/2+1)
			}
			if got != want {
				t.Fatalf("loop %d record %d:\ngot  %+v\nwant %+v", loop, i, got, want)
			}
			position = got.End
		}
		if position != s.Writer(loop).Position() || position != s.Writer(loop).SyncedTo() {
			t.Errorf("loop %d: ends at %d, written %d, synced %d", loop, position, s.Writer(loop).Position(), s.Writer(loop).SyncedTo())
		}
	}
	st := s.Stats()
	if st.Rows != 100 || st.Admitted != 100 || st.Lost+st.WriteErrors+st.SyncErrors != 0 || st.Syncs != 2 || st.SyncNs < st.SyncMaxNs {
		t.Errorf("stats %+v", st)
	}
	finishManual(t, s)
	for loop := range 2 {
		records, _ := readRun(t, s.run, loop)
		if last := records[len(records)-1]; last.Kind != SealedFrame || last.RowSeq != 50 {
			t.Errorf("loop %d ends with %+v", loop, last)
		}
	}
}

// TestReadFromPositions: every frame's end is a position to go on from.
func TestReadFromPositions(t *testing.T) {
	s := openManual(t, Options{Dir: t.TempDir(), Sync: time.Second}, osDisk{})
	w := s.Writer(0)
	w.segment = 2000
	for n := range 30 {
		mustRow(t, w, n)
		s.syncers[0].round(testTime)
	}
	all, _ := readRun(t, s.run, 0)
	if len(segmentFiles(t, s.run, 0)) < 3 {
		t.Fatal("the test wants several segments")
	}
	for i, record := range all {
		r, err := s.Reader(0, record.End)
		if err != nil {
			t.Fatal(err)
		}
		if rest, gaps := readAll(t, r); len(rest) != len(all)-i-1 || len(gaps) != 0 {
			t.Fatalf("from %d: %d records, gaps %v", record.End, len(rest), gaps)
		}
	}
}

// TestReaderFollows: a reader at its end goes on when there is more, over the
// change of segments too.
func TestReaderFollows(t *testing.T) {
	s := openManual(t, Options{Dir: t.TempDir(), Sync: time.Second}, osDisk{})
	w := s.Writer(0)
	w.segment = 1500
	own, err := s.Reader(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	other, err := OpenReader(s.run, 0, Oldest)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for n := range 40 {
		mustRow(t, w, n)
		if _, err := own.Next(); err == nil {
			t.Fatalf("row %d is visible before the sync", n)
		}
		s.syncers[0].round(testTime)
		for name, r := range map[string]*Reader{"own": own, "other": other} {
			f, err := r.Next()
			if err != nil {
				t.Fatalf("%s: row %d: %v", name, n, err)
			}
			record, err := r.Decode(f)
			if err != nil || int(record.Event.Tokens.Input) != n {
				t.Fatalf("%s: row %d: %+v, %v", name, n, record, err)
			}
		}
	}
}

func TestRotation(t *testing.T) {
	d := newFaultDisk()
	s := openManual(t, Options{Dir: t.TempDir(), Sync: time.Second}, d)
	w := s.Writer(0)
	w.segment = 1000
	for n := range 20 {
		mustRow(t, w, n)
		if n%2 == 1 { // otherwise no next segment is ready, and the current one grows
			s.syncers[0].round(testTime)
		}
	}
	checkRows(t, first(readRun(t, s.run, 0)), span(0, 20)...)
	files := segmentFiles(t, s.run, 0)
	if len(files) < 4 {
		t.Fatalf("%d segments", len(files))
	}
	for _, path := range files[:len(files)-1] {
		if f := d.files[filepath.Base(path)]; !f.closed || f.synced != f.length {
			t.Errorf("%s: closed %v, synced %d of %d", path, f.closed, f.synced, f.length)
		}
	}
	// One write per event, one file per segment, and nothing else.
	writes := 0
	for _, f := range d.files {
		writes += f.writes
	}
	if writes != 20 {
		t.Errorf("%d writes for 20 events", writes)
	}
}

func first[A, B any](a A, _ B) A { return a }

func TestIdleRotation(t *testing.T) {
	s := openManual(t, Options{Dir: t.TempDir(), Sync: time.Second}, osDisk{})
	w, y := s.Writer(0), s.syncers[0]
	mustRow(t, w, 0)
	y.round(testTime)
	y.round(testTime.Add(idleRotate))
	mustRow(t, w, 1)
	y.round(testTime.Add(idleRotate))
	if n := len(segmentFiles(t, s.run, 0)); n != 1 {
		t.Fatalf("%d segments before it has been idle", n)
	}
	y.round(testTime.Add(2*idleRotate + 1))
	mustRow(t, w, 2)
	y.round(testTime.Add(2*idleRotate + 2))
	if n := len(segmentFiles(t, s.run, 0)); n != 2 {
		t.Fatalf("%d segments after it has been idle", n)
	}
	checkRows(t, first(readRun(t, s.run, 0)), 0, 1, 2)
}

func TestSyncEveryWrite(t *testing.T) {
	var told []int
	s := openManual(t, Options{Dir: t.TempDir(), Loops: 2, Synced: func(loop int) { told = append(told, loop) }}, osDisk{})
	w, y := s.Writer(1), s.syncers[1]
	mustAdmit(t, w, 0)
	if w.Pending() || len(w.wake) != 0 {
		t.Fatal("an admission waits for a sync")
	}
	mustRow(t, w, 0)
	waited := w.Position()
	if !w.Pending() || len(w.wake) != 1 || w.SyncedTo() >= waited {
		t.Fatalf("pending %v, wakes %d, synced to %d of %d", w.Pending(), len(w.wake), w.SyncedTo(), waited)
	}
	y.round(testTime)
	if w.Pending() || fmt.Sprint(told) != "[1]" {
		t.Fatalf("pending %v, told %v", w.Pending(), told)
	}
	mustRow(t, w, 1)
	if !w.Pending() || w.SyncedTo() < waited {
		t.Error("a later row takes the earlier one back")
	}
	y.round(testTime)
	y.round(testTime)
	if w.Pending() || len(told) != 2 {
		t.Errorf("pending %v, told %v", w.Pending(), told)
	}
}

func TestGroupedSyncIsNotAwaited(t *testing.T) {
	s := openManual(t, Options{Dir: t.TempDir(), Sync: time.Millisecond, Synced: func(int) { t.Error("told") }}, osDisk{})
	mustRow(t, s.Writer(0), 0)
	if s.Writer(0).Pending() || len(s.Writer(0).wake) != 0 {
		t.Error("a row waits")
	}
	s.syncers[0].round(testTime)
}

func TestDiskFull(t *testing.T) {
	for _, mode := range []FullMode{Refuse, Serve} {
		t.Run(mode.String(), func(t *testing.T) {
			d := newFaultDisk()
			s := openManual(t, Options{Dir: t.TempDir(), Sync: time.Second, Full: mode}, d)
			w, y := s.Writer(0), s.syncers[0]
			n := 0
			row := func() bool {
				n++
				return w.Row(sample(n - 1))
			}
			row()
			d.files[segmentName(1)].reserved = 0 // as if used up
			d.room = 1000                        // two rows, and a part of one
			for range 50 {
				mustRow(t, w, n)
				n++
			}
			if got := w.Admitted(sample(1000)); got != (mode == Serve) {
				t.Fatalf("Admitted = %v", got)
			}
			y.round(testTime)
			if got := w.Admitted(sample(1001)); got != (mode == Serve) {
				t.Fatalf("Admitted = %v with nothing in reserve", got)
			}
			took := 0
			for row() {
				took++
			}
			n--
			if took < 2000 || w.Lost() != 1 {
				t.Fatalf("the reserve took %d rows, %d lost", took, w.Lost())
			}
			st := s.Stats()
			if st.FullLoops != 1 || st.Refused+st.Unwritten != 2 || (st.Refused == 2) != (mode == Refuse) || st.WriteErrors == 0 {
				t.Errorf("stats %+v", st)
			}
			d.room = 100 << 20
			y.round(testTime.Add(retryEvery / 2))
			if !w.dry.Load() {
				t.Error("tried again too early")
			}
			y.round(testTime.Add(retryEvery))
			mustAdmit(t, w, 1002)
			mustRow(t, w, n)
			n++
			y.round(testTime.Add(2 * retryEvery))
			records, gaps := readRun(t, s.run, 0)
			checkRows(t, records, span(0, n)...)
			if len(gaps) != 0 {
				t.Errorf("gaps %v", gaps)
			}
			admitted := 0
			for _, r := range records {
				if r.Kind == AdmittedFrame {
					admitted++
				}
			}
			if admitted != 1 {
				t.Errorf("%d admissions were written", admitted)
			}
		})
	}
}

// TestFullAtAdmission: the first to meet the full disk is an admission. It is
// refused, and the reserve is whole for rows.
func TestFullAtAdmission(t *testing.T) {
	d := newFaultDisk()
	s := openManual(t, Options{Dir: t.TempDir(), Sync: time.Second}, d)
	w := s.Writer(0)
	mustRow(t, w, 0)
	d.files[segmentName(1)].reserved, d.room = 0, 100 // a short write
	if w.Admitted(sample(1)) {
		t.Fatal("admitted on a full disk")
	}
	mustRow(t, w, 1)
	s.syncers[0].round(testTime)
	checkRows(t, first(readRun(t, s.run, 0)), 0, 1)
	if f := d.files[segmentName(1)]; !f.closed {
		t.Error("the full segment is open")
	}
}

func TestWriteErrorMovesOn(t *testing.T) {
	d := newFaultDisk()
	s := openManual(t, Options{Dir: t.TempDir(), Sync: time.Second}, d)
	w, y := s.Writer(0), s.syncers[0]
	mustRow(t, w, 0)
	d.files[segmentName(1)].file.Close() // EBADF from here on
	mustAdmit(t, w, 1)
	mustRow(t, w, 1)
	if len(w.wake) == 0 {
		t.Error("nobody is woken to make the next segment")
	}
	y.round(testTime)
	mustAdmit(t, w, 2)
	checkRows(t, first(readRun(t, s.run, 0)), 0, 1)

	d.write = unix.EIO
	if w.Row(sample(2)) || w.Row(sample(3)) || w.Lost() != 2 {
		t.Fatalf("rows are taken by a dead disk, %d lost", w.Lost())
	}
	d.write = nil
	mustRow(t, w, 4)
	if w.Admitted(sample(5)) {
		t.Error("admitted while no next segment is ready")
	}
	y.round(testTime.Add(retryEvery))
	mustAdmit(t, w, 6)
	y.round(testTime.Add(2 * retryEvery))
	records, gaps := readRun(t, s.run, 0)
	checkRows(t, records, 0, 1, 4)
	if len(gaps) != 0 {
		t.Errorf("gaps %v", gaps)
	}
}

// TestFailedTruncate: what a short write left is covered by the next segment.
func TestFailedTruncate(t *testing.T) {
	d := newFaultDisk()
	dir := t.TempDir()
	s := openManual(t, Options{Dir: dir, Sync: time.Second}, d)
	w := s.Writer(0)
	mustRow(t, w, 0)
	d.files[segmentName(1)].reserved, d.room = 0, 100
	d.truncate = unix.EIO
	mustRow(t, w, 1)
	d.truncate, d.room = nil, 1<<40
	mustRow(t, w, 2)
	records, gaps := readRun(t, s.run, 0)
	checkRows(t, records, 0, 1, 2)
	if len(gaps) != 0 {
		t.Errorf("gaps %v", gaps)
	}
	die(t, s)
	again := openManual(t, Options{Dir: dir, Sync: time.Second}, osDisk{})
	if rec := again.Recovered(); len(rec) != 1 || rec[0].Err != nil || len(rec[0].Damage) != 0 {
		t.Errorf("recovered %+v", rec)
	}
}

func TestNoReserveAtStart(t *testing.T) {
	d := newFaultDisk()
	d.room = ReserveBytesDefault + 10 // the first segment, not the next one
	s := openManual(t, Options{Dir: t.TempDir(), Sync: time.Second}, d)
	w := s.Writer(0)
	if w.Admitted(sample(0)) {
		t.Error("admitted without a reserve")
	}
	mustRow(t, w, 0)
	d.room = 1 << 30
	s.syncers[0].round(time.Now().Add(retryEvery))
	mustAdmit(t, w, 1)

	d.room = 0
	if _, err := open(Options{Dir: t.TempDir(), Loops: 1, Log: quietLog()}, d); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("opened on a full disk: %v", err)
	}
}

func TestOpenRefusesOptions(t *testing.T) {
	for name, o := range map[string]Options{
		"no loops": {}, "many loops": {Loops: LoopsMax + 1}, "negative sync": {Loops: 1, Sync: -1},
		"negative reserve": {Loops: 1, ReserveBytes: -1},
		"negative keep":    {Loops: 1, KeepBytes: -1}, "unknown mode": {Loops: 1, Full: 2},
	} {
		o.Dir = filepath.Join(t.TempDir(), "spool")
		if _, err := Open(o); err == nil {
			t.Errorf("%s: opened", name)
		}
		if _, err := os.Stat(o.Dir); err == nil {
			t.Errorf("%s: a folder was made", name)
		}
	}
}

func TestRowAllocs(t *testing.T) {
	s := openManual(t, Options{Dir: t.TempDir()}, osDisk{})
	w, e := s.Writer(0), sample(1)
	e.CallerID = "bad \xff id"
	for name, f := range map[string]func(){
		"Admitted": func() { w.Admitted(e) },
		"Row":      func() { w.Row(e) },
		"Pending":  func() { w.Pending() },
	} {
		if n := testing.AllocsPerRun(1000, f); n != 0 {
			t.Errorf("%s: %v allocations, want 0", name, n)
		}
	}
}

func BenchmarkRow(b *testing.B) {
	for _, every := range []time.Duration{20 * time.Millisecond, time.Hour} {
		b.Run("sync="+every.String(), func(b *testing.B) {
			s, err := Open(Options{Dir: b.TempDir(), Loops: 1, Sync: every, Log: quietLog()})
			if err != nil {
				b.Fatal(err)
			}
			w, e := s.Writer(0), sample(1)
			b.ReportAllocs() // budget 0, enforced by TestRowAllocs
			for b.Loop() {
				if !w.Row(e) {
					b.Fatal("not taken")
				}
			}
			b.SetBytes(w.Position() / int64(max(w.rowSeq, 1)))
			b.StopTimer()
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

func BenchmarkEncode(b *testing.B) {
	e := sample(1)
	buffer := make([]byte, 0, FrameBytesMax)
	b.ReportAllocs()
	for b.Loop() {
		out := appendEvent(beginFrame(buffer, RowFrame), e, 1, "relay-1")
		endFrame(out, 0)
	}
}

func BenchmarkDecode(b *testing.B) {
	payload := appendEvent(nil, sample(1), 1, "relay-1")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Decode(payload); err != nil {
			b.Fatal(err)
		}
	}
}
