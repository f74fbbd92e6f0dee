package spool

import (
	"testing"
	"time"
)

// TestRest: a syncing goroutine that has nothing to do sleeps, and the next
// record wakes it: it is durable long before the goroutine would have looked
// by itself.
func TestRest(t *testing.T) {
	s, err := Open(Options{Dir: t.TempDir(), Loops: 1, Sync: time.Millisecond, Log: quietLog()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	w := s.Writer(0)
	await := func(what string, ok func() bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("never: %s", what)
			}
		}
	}
	for i := range 3 {
		await("it rests", w.resting.Load)
		mustRow(t, w, i)
		if w.resting.Load() {
			t.Error("the record left it at rest")
		}
		await("the record is durable", func() bool { return w.SyncedTo() == w.Position() })
	}
}
