package spool

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// fullDisks are two ways of a full disk to meet a start: no room for the run,
// and none for the reserve of a segment.
var fullDisks = []struct {
	name  string
	spoil func(*faultDisk)
	free  func(*faultDisk)
}{
	{"no room for the run",
		func(d *faultDisk) { d.found = &os.PathError{Op: "mkdir", Path: "x", Err: unix.ENOSPC} },
		func(d *faultDisk) { d.found = nil }},
	{"no room for a segment",
		func(d *faultDisk) { d.room = 0 },
		func(d *faultDisk) { d.room = 1 << 40 }},
	{"no quota for either",
		func(d *faultDisk) { d.found, d.create = unix.EDQUOT, unix.EDQUOT },
		func(d *faultDisk) { d.found, d.create = nil, nil }},
}

// TestOpenOnFullDiskServes opens a spool without room for anything, lets it
// count what it loses, and record again once there is room.
func TestOpenOnFullDiskServes(t *testing.T) {
	for _, tt := range fullDisks {
		t.Run(tt.name, func(t *testing.T) {
			d := newFaultDisk()
			tt.spoil(d)
			s := openManual(t, Options{Dir: filepath.Join(t.TempDir(), "spool"), Loops: 2, Full: Serve}, d)
			w := s.Writer(0)
			if !w.Admitted(sample(1)) || w.Row(sample(1)) || !w.Admitted(sample(2)) || w.Row(sample(2)) {
				t.Error("without room admissions must pass, and rows must be lost")
			}
			if w.Pending() || w.Position() != 0 {
				t.Errorf("something is said to wait for an fsync: position %d", w.Position())
			}
			s.syncers[0].round(time.Now().Add(2 * retryEvery)) // still no room
			if st := s.Stats(); st.FullLoops != 2 || st.Unwritten != 2 || st.Lost != 2 || st.Rows+st.Admitted+st.Refused != 0 {
				t.Errorf("counted %+v", st)
			}
			tt.free(d)
			for _, y := range s.syncers {
				y.round(time.Now().Add(4 * retryEvery))
			}
			if _, err := lockRun(s.run.folder); !errors.Is(err, errLocked) {
				t.Errorf("the run is not locked: %v", err)
			}
			mustAdmit(t, w, 3)
			mustRow(t, w, 3)
			mustRow(t, s.Writer(1), 4)
			if st := s.Stats(); st.FullLoops != 0 || st.Rows != 2 || st.Admitted != 1 || st.Lost != 2 {
				t.Errorf("counted %+v", st)
			}
			finishManual(t, s)
			for loop, want := range [][]int{{3}, {4}} {
				records, gaps := readRun(t, s.run, loop)
				checkRows(t, records, want...)
				if len(gaps) != 0 {
					t.Errorf("gaps %v", gaps)
				}
			}
		})
	}
}

// TestFullDiskForever ends a spool that never had room.
func TestFullDiskForever(t *testing.T) {
	for _, tt := range fullDisks {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "spool")
			d := newFaultDisk()
			tt.spoil(d)
			s := openManual(t, Options{Dir: dir, Full: Serve}, d)
			s.Writer(0).Row(sample(1))
			finishManual(t, s)
			if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) != 0 {
				t.Errorf("left behind: %q, %v", left, err)
			}
		})
	}
}

// TestOpenRefusesFullDisk wants no start without room in the other mode, and
// none in either on a disk that fails in another way.
func TestOpenRefusesFullDisk(t *testing.T) {
	type fault struct {
		spoil func(*faultDisk)
		mode  FullMode
		want  error
	}
	faults := []fault{
		{func(d *faultDisk) { d.found = unix.EROFS }, Serve, unix.EROFS},
		{func(d *faultDisk) { d.create = unix.EACCES }, Serve, unix.EACCES},
	}
	for _, tt := range fullDisks {
		faults = append(faults, fault{tt.spoil, Refuse, nil})
	}
	for i, f := range faults {
		dir := filepath.Join(t.TempDir(), "spool")
		d := newFaultDisk()
		f.spoil(d)
		s, err := open(Options{Dir: dir, Loops: 1, Full: f.mode, Log: quietLog()}, d)
		if err == nil || f.want != nil && !errors.Is(err, f.want) {
			t.Errorf("fault %d: opened: %t, %v", i, s != nil, err)
		}
		if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) != 0 {
			t.Errorf("fault %d: left behind: %q, %v", i, left, err)
		}
	}
}

// TestFullDiskIsTold wants one loud line for all loops, and one for each that
// records again.
func TestFullDiskIsTold(t *testing.T) {
	var log bytes.Buffer
	d := newFaultDisk()
	d.create = unix.ENOSPC
	s, err := open(Options{Dir: t.TempDir(), Loops: 3, Full: Serve, Log: slog.New(slog.NewTextHandler(io.Writer(&log), nil))}, d)
	if err != nil {
		t.Fatal(err)
	}
	for _, y := range s.syncers {
		y.round(time.Now().Add(2 * retryEvery))
	}
	if n := strings.Count(log.String(), "level=ERROR"); n != 1 || !strings.Contains(log.String(), "NOT RECORDED") {
		t.Errorf("%d errors are told, want 1: %s", n, log.String())
	}
	d.create = nil
	for _, y := range s.syncers {
		y.round(time.Now().Add(4 * retryEvery))
	}
	if n := strings.Count(log.String(), "taking records again"); n != 3 {
		t.Errorf("the end is told %d times, want 3: %s", n, log.String())
	}
	finishManual(t, s)
}
