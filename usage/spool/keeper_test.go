package spool

import (
	"os"
	"testing"
	"time"

	"relay/usage"
)

// TestRetention: above KeepBytes the oldest segments go, and what they held
// open is not forgotten.
func TestRetention(t *testing.T) {
	dir := t.TempDir()
	dead := openManual(t, Options{Dir: dir, Sync: time.Second}, osDisk{})
	for n := range 100 {
		mustRow(t, dead.Writer(0), n)
	}
	die(t, dead)
	s := openManual(t, Options{Dir: dir, Sync: time.Second}, osDisk{})
	w, k := s.Writer(0), s.keeper
	w.segment = 3000
	mustAdmit(t, w, 500) // stays open over all of this
	for n := range 200 {
		mustRow(t, w, n)
		s.syncers[0].round(testTime)
	}
	k.round()
	if st := s.Stats(); st.DeletedSegments != 0 || st.Bytes < 300*200 {
		t.Fatalf("deleted below the limit: %+v", st)
	}
	k.keepBytes = 40_000
	k.round()
	st := s.Stats()
	if st.Bytes > k.keepBytes || st.DeletedRows <= 100 || st.DeletedSegments < 5 || st.DeletedBytes == 0 {
		t.Fatalf("stats %+v", st)
	}
	if exists(dead.run.folder) {
		t.Error("the dead run, the oldest, is still there")
	}
	r, err := s.Reader(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	records, gaps := readAll(t, r)
	if len(gaps) != 1 || !gaps[0].Deleted || gaps[0].From != 0 || gaps[0].To != records[0].Position {
		t.Fatalf("gaps %+v", gaps)
	}
	if int64(records[0].RowSeq) != st.DeletedRows-100+1 {
		t.Errorf("the first row that is left is %d, %d were deleted", records[0].RowSeq, st.DeletedRows-100)
	}
	k.keepBytes = 1 // all but what is being written
	k.round()
	mustRow(t, w, 200)
	die(t, s)

	again := openManual(t, Options{Dir: dir, Sync: time.Second}, osDisk{})
	rec := again.Recovered()
	if len(rec) != 1 || rec[0].Err != nil || rec[0].Interrupted != 1 || rec[0].Rows != 202 || len(rec[0].Damage) != 0 {
		t.Fatalf("recovered %+v", rec)
	}
	records, _ = readRun(t, s.run, 0)
	last := records[len(records)-2]
	if last.Event.RequestID != sample(500).RequestID || last.Event.Outcome != usage.Interrupted || last.RowSeq != 202 {
		t.Errorf("last row %+v", last)
	}
	again.keeper.keepBytes = 1
	again.keeper.round()
	if exists(s.run.folder) {
		t.Error("a run without segments is still there")
	}
}

// TestCarryCutShort: the deletion died between the carry file and the segment.
func TestCarryCutShort(t *testing.T) {
	dir := t.TempDir()
	s := openManual(t, Options{Dir: dir, Sync: time.Second}, osDisk{})
	w := s.Writer(0)
	w.segment = 2000
	mustAdmit(t, w, 100)
	for n := range 30 {
		mustRow(t, w, n)
		s.syncers[0].round(testTime)
	}
	path := segmentFiles(t, s.run, 0)[0]
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s.keeper.keepBytes = s.keeper.stats().Bytes
	_, spare, err := s.keeper.measure()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.keeper.drop(spare[0]); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil { // it comes back
		t.Fatal(err)
	}
	rows, err := s.keeper.drop(spare[0])
	if err != nil || rows != 0 || exists(path) {
		t.Errorf("deleted again: %d rows, %v", rows, err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	die(t, s)
	rec := recoverIn(t, dir)
	if len(rec) != 1 || rec[0].Err != nil || rec[0].Rows != 31 || rec[0].Interrupted != 1 || len(rec[0].Damage) != 0 {
		t.Errorf("recovered %+v", rec)
	}
}
