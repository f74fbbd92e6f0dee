package spool

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// checkSynced fails unless the rows that this process would export are these.
func checkSynced(t *testing.T, s *Spool, want ...int) {
	t.Helper()
	r, err := s.Reader(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	records, gaps := readAll(t, r)
	checkRows(t, records, want...)
	if len(gaps) != 0 {
		t.Fatalf("gaps %v", gaps)
	}
}

// TestSyncFails: what a failed sync lost is written again, at its old
// positions, into a new segment, whatever the loop does meanwhile.
func TestSyncFails(t *testing.T) {
	for _, tt := range []struct {
		name string
		// act runs between the round whose sync fails and the next one.
		act  func(t *testing.T, s *Spool, d *faultDisk)
		rows int // in all, afterwards
	}{
		{"the loop is idle", func(*testing.T, *Spool, *faultDisk) {}, 20},
		{"the loop goes on", func(t *testing.T, s *Spool, _ *faultDisk) {
			mustRow(t, s.Writer(0), 20)
			mustAdmit(t, s.Writer(0), 21)
			mustRow(t, s.Writer(0), 21)
		}, 22},
		{"the loop was in the middle of a write", func(t *testing.T, s *Spool, _ *faultDisk) {
			w := s.Writer(0)
			m := w.moved.Swap(nil) // so that it does not see the offer
			mustRow(t, w, 20)
			w.moved.Store(m)
			s.syncers[0].round(testTime) // prolongs the offer
			if w.moved.Load() == m || w.SyncedTo() != w.Position() {
				t.Error("the offer is not prolonged")
			}
			mustRow(t, w, 21)
		}, 22},
		{"the loop catches up by itself", func(t *testing.T, s *Spool, _ *faultDisk) {
			w := s.Writer(0)
			m := w.moved.Swap(nil)
			mustRow(t, w, 20)
			w.moved.Store(m)
			mustRow(t, w, 21)
			if w.current != m.segment {
				t.Error("the loop has not followed")
			}
		}, 22},
		{"the new file takes no writes for a time", func(t *testing.T, s *Spool, d *faultDisk) {
			w := s.Writer(0)
			m := w.moved.Swap(nil)
			mustRow(t, w, 20)
			w.moved.Store(m)
			d.write = unix.EIO
			if w.Row(sample(99)) {
				t.Error("a row went to a dead disk")
			}
			if w.moved.Load() != m || w.current == m.segment {
				t.Error("the loop followed though it could not catch up")
			}
			d.write = nil
			mustRow(t, w, 21)
		}, 22},
		{"the prolonging fails", func(t *testing.T, s *Spool, d *faultDisk) {
			w := s.Writer(0)
			m := w.moved.Swap(nil)
			mustRow(t, w, 20)
			w.moved.Store(m)
			d.sync = unix.EIO
			s.syncers[0].round(testTime.Add(retryEvery))
			if w.moved.Load() != nil {
				t.Error("an offer stands that could not be prolonged")
			}
			d.sync = nil
			s.syncers[0].round(testTime.Add(3 * retryEvery))
			mustRow(t, w, 21)
		}, 22},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, dir := newFaultDisk(), t.TempDir()
			s := openManual(t, Options{Dir: dir, Sync: time.Second}, d)
			w, y := s.Writer(0), s.syncers[0]
			for n := range 10 {
				mustRow(t, w, n)
			}
			y.round(testTime)
			for n := 10; n < 20; n++ {
				mustRow(t, w, n)
			}
			d.sync = unix.EIO
			y.round(testTime)
			if w.Admitted(sample(50)) {
				t.Error("admitted while unsynced rows have no place")
			}
			if !y.failing || w.SyncedTo() >= w.Position() {
				t.Error("synced though nothing could be")
			}
			d.sync = nil
			y.round(testTime.Add(retryEvery))
			checkSynced(t, s, span(0, 20)...)
			if w.dry.Load() {
				t.Error("nothing is admitted though all is well again")
			}
			tt.act(t, s, d)
			y.round(testTime.Add(5 * retryEvery))
			y.round(testTime.Add(6 * retryEvery))
			mustRow(t, w, tt.rows)
			y.round(testTime.Add(7 * retryEvery))
			checkSynced(t, s, span(0, tt.rows+1)...)
			if st := s.Stats(); st.AtRiskBytes != 0 || st.SyncErrors == 0 {
				t.Errorf("stats %+v", st)
			}
			die(t, s)
			again := openManual(t, Options{Dir: dir, Sync: time.Second}, osDisk{})
			records, gaps := readRun(t, s.run, 0)
			checkRows(t, records, span(0, tt.rows+1)...)
			if rec := again.Recovered(); len(gaps) != 0 || len(rec) != 1 || rec[0].Err != nil || len(rec[0].Damage) != 0 {
				t.Errorf("gaps %v, recovered %+v", gaps, rec)
			}
		})
	}
}

// TestSyncFailsAfterRotation: the failed file is one that the loop has left,
// so the rewritten frames reach over two segments.
func TestSyncFailsAfterRotation(t *testing.T) {
	d := newFaultDisk()
	s := openManual(t, Options{Dir: t.TempDir(), Sync: time.Second}, d)
	w, y := s.Writer(0), s.syncers[0]
	w.segment = 2000
	for n := range 10 { // leaves the first segment; there is no third one
		mustRow(t, w, n)
	}
	if w.current.number != 2 {
		t.Fatalf("the loop is in segment %d", w.current.number)
	}
	d.sync = unix.EIO
	y.round(testTime)
	d.sync = nil
	y.round(testTime.Add(retryEvery))
	checkSynced(t, s, span(0, 10)...)
	for n := 10; n < 40; n++ {
		mustRow(t, w, n)
		y.round(testTime.Add(2 * retryEvery))
	}
	checkSynced(t, s, span(0, 40)...)
	if d.files[segmentName(1)].closed == false || d.files[segmentName(2)].closed == false {
		t.Error("failed files are still open")
	}
}

// TestSyncFailsBeyondTheRing: more is unsynced than is kept. It is counted,
// nobody waits for it, and all goes on.
func TestSyncFailsBeyondTheRing(t *testing.T) {
	d, told := newFaultDisk(), 0
	s := openManual(t, Options{Dir: t.TempDir(), Synced: func(int) { told++ }}, d)
	w, y := s.Writer(0), s.syncers[0]
	n := 0
	for w.Position() < ringBytes+1000 {
		mustRow(t, w, n)
		n++
	}
	d.sync = unix.EIO
	y.round(testTime)
	if st := s.Stats(); st.AtRiskBytes != w.Position() || w.Pending() || told != 1 {
		t.Fatalf("at risk %d of %d, pending %v, told %d", st.AtRiskBytes, w.Position(), w.Pending(), told)
	}
	d.sync = nil
	start := w.Position()
	for i := range 10 {
		mustAdmit(t, w, n+i)
		mustRow(t, w, n+i)
	}
	if w.current.start != start {
		t.Errorf("the new segment starts at %d, want %d", w.current.start, start)
	}
	y.round(testTime.Add(retryEvery))
	if w.Pending() || w.SyncedTo() != w.Position() {
		t.Error("new rows are not synced")
	}
	d.sync = unix.EIO // the ring is good again
	for i := range 10 {
		mustRow(t, w, n+10+i)
	}
	y.round(testTime.Add(2 * retryEvery))
	d.sync = nil
	y.round(testTime.Add(4 * retryEvery))
	r, err := s.Reader(0, start)
	if err != nil {
		t.Fatal(err)
	}
	records, gaps := readAll(t, r)
	if len(records) != 30 || len(gaps) != 0 {
		t.Errorf("%d records, gaps %v", len(records), gaps)
	}
	if st := s.Stats(); st.AtRiskBytes != start {
		t.Errorf("at risk %d, want %d", st.AtRiskBytes, start)
	}
}

func TestRing(t *testing.T) {
	r := ring{bytes: make([]byte, ringBytes)}
	frame := make([]byte, 1000)
	position, synced := int64(0), int64(0)
	for i := range 5000 {
		for j := range frame {
			frame[j] = byte(i + j)
		}
		r.push(position, frame, synced)
		position += int64(len(frame))
		if !r.holds(synced, position) {
			t.Fatalf("step %d: %d to %d is not held", i, synced, position)
		}
		a, b := r.spans(position-1000, position)
		if got := append(append([]byte{}, a...), b...); string(got) != string(frame) {
			t.Fatalf("step %d: the frame does not come back", i)
		}
		if i%100 == 99 {
			synced = position
		}
	}
	for position-synced <= ringBytes {
		r.push(position, frame, synced)
		position += 1000
	}
	if r.holds(synced, position) {
		t.Error("held though it did not fit")
	}
	r.push(position, frame, synced)
	if held := r.to.Load(); held >= position {
		t.Error("a hole was made")
	}
	position += 1000
	r.push(position, frame, position)
	if !r.holds(position, position+1000) {
		t.Error("not used again after everything was safe")
	}
	if a, b := r.spans(position, position); a != nil || b != nil {
		t.Error("an empty range has bytes")
	}
}
