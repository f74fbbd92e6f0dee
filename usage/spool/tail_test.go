package spool

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"
)

func TestTail(t *testing.T) {
	dir := t.TempDir()
	dead := openManual(t, Options{Dir: dir, Loops: 2, Sync: time.Second}, osDisk{})
	for n := range 10 {
		mustRow(t, dead.Writer(n/2%2), n) // pairs, so that a merge is needed
	}
	mustAdmit(t, dead.Writer(0), 10)
	die(t, dead)
	s := openManual(t, Options{Dir: dir, Loops: 2, Sync: time.Second}, osDisk{})
	for n := 11; n < 20; n++ {
		mustRow(t, s.Writer(n%2), n)
	}
	var got []int
	collect := func(r Record) error {
		got = append(got, int(r.Event.Tokens.Input))
		return nil
	}
	if err := Tail(t.Context(), dir, false, collect); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(got) != fmt.Sprint(span(0, 20)) {
		t.Fatalf("rows %v", got)
	}
	stop := errors.New("enough")
	if err := Tail(t.Context(), dir, true, func(Record) error { return stop }); err != stop {
		t.Errorf("the function's error: %v", err)
	}
	if err := Tail(t.Context(), filepath.Join(dir, "none"), false, collect); err != nil {
		t.Errorf("no folder: %v", err)
	}
}

func TestTailFollows(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	rows := make(chan int, 100)
	ended := make(chan error, 1)
	go func() {
		ended <- Tail(ctx, dir, true, func(r Record) error {
			rows <- int(r.Event.Tokens.Input)
			return nil
		})
	}()
	want := 0
	expect := func() {
		t.Helper()
		select {
		case got := <-rows:
			if got != want {
				t.Fatalf("row %d, want %d", got, want)
			}
			want++
		case <-time.After(20 * time.Second):
			t.Fatalf("row %d does not come", want)
		}
	}
	for range 3 { // new runs, loops and segments
		s := openManual(t, Options{Dir: dir, Loops: 2, Sync: time.Second}, osDisk{})
		s.Writer(0).segment = 300
		for range 3 {
			mustRow(t, s.Writer(0), want)
			expect()
			s.syncers[0].round(testTime)
		}
		mustRow(t, s.Writer(1), want)
		expect()
		mustAdmit(t, s.Writer(1), want)
		finishManual(t, s)
		expect() // the interrupted one
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("ended with %v", err)
	}
}
