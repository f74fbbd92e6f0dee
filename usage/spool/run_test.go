package spool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestTwoOwners: two spools share a folder and leave each other alone.
func TestTwoOwners(t *testing.T) {
	dir := t.TempDir()
	a := openManual(t, Options{Dir: dir, Sync: time.Second}, osDisk{})
	mustAdmit(t, a.Writer(0), 1)
	b := openManual(t, Options{Dir: dir, Sync: time.Second}, osDisk{})
	if rec := b.Recovered(); len(rec) != 0 {
		t.Fatalf("a living run was closed: %+v", rec)
	}
	if _, err := lockRun(a.run.folder); !errors.Is(err, errLocked) {
		t.Fatalf("the lock of a living run: %v", err)
	}
	mustRow(t, b.Writer(0), 2)
	die(t, a)
	done := b.keeper.recover() // as it does now and then
	if len(done) != 1 || done[0].Run != a.Run() || done[0].Interrupted != 1 {
		t.Fatalf("recovered %+v", done)
	}
	checkRows(t, first(readRun(t, a.run, 0)), 1)
	if st := b.Stats(); st.ClosedRuns != 1 || st.InterruptedRows != 1 {
		t.Errorf("stats %+v", st)
	}
	if done := b.keeper.recover(); len(done) != 0 {
		t.Errorf("closed again: %+v", done)
	}
}

func TestHalfMadeRuns(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"old", "young", "busy"} {
		if err := os.Mkdir(filepath.Join(dir, newPrefix+name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	busy, err := lockRun(filepath.Join(dir, newPrefix+"busy"))
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	past := time.Now().Add(-time.Hour)
	for _, name := range []string{"old", "busy"} {
		if err := os.Chtimes(filepath.Join(dir, newPrefix+name), past, past); err != nil {
			t.Fatal(err)
		}
	}
	if err := removeHalfMade(dir, time.Now()); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, e := range entries {
		left = append(left, strings.TrimPrefix(e.Name(), newPrefix))
	}
	if fmt.Sprint(left) != "[busy young]" {
		t.Errorf("left %v", left)
	}
	if runs, err := Runs(dir); err != nil || len(runs) != 0 {
		t.Errorf("runs %+v, %v", runs, err)
	}
}
