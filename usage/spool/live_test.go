package spool

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"relay/usage"
)

// The child of the kill test is this test binary, with these variables set.
const (
	childFolder = "SPOOL_TEST_CHILD"
	childFirst  = "SPOOL_TEST_FIRST"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childFolder); dir != "" {
		child(dir)
		return
	}
	os.Exit(m.Run())
}

// child writes exchanges on two loops and says what is acknowledged, until it
// is killed. Every seventh exchange is refused without an admission; every
// fifth stays open for some time.
func child(dir string) {
	s, err := Open(Options{Dir: dir, Loops: 2, Sync: time.Millisecond, KeepBytes: 1 << 30, Log: quietLog()})
	if err != nil {
		fmt.Println("error", err)
		return
	}
	for _, w := range s.writers {
		w.segment = 20_000 // many rotations
	}
	var n int
	fmt.Sscan(os.Getenv(childFirst), &n)
	open := [2][]int{}
	for ; ; n++ {
		loop := n % 2
		w := s.Writer(loop)
		if n%7 != 0 {
			if !w.Admitted(sample(n)) {
				continue // between two segments
			}
			fmt.Println("admitted", n)
		}
		if open[loop] = append(open[loop], n); n%5 == 0 && len(open[loop]) < 40 {
			continue
		}
		for _, m := range open[loop] {
			if w.Row(sample(m)) {
				fmt.Println("row", m)
			}
		}
		open[loop] = open[loop][:0]
	}
}

// TestKill kills a writing process again and again. Nothing acknowledged is
// lost, nothing is there twice, and every admission has one row.
func TestKill(t *testing.T) {
	const kills = 12
	dir := t.TempDir()
	admitted, rows := map[int]bool{}, map[int]bool{}
	for kill := range kills {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), childFolder+"="+dir, fmt.Sprintf("%s=%d", childFirst, (kill+1)*1_000_000))
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		lines, most := 0, 200+rand.IntN(3000)
		for in := bufio.NewScanner(out); in.Scan(); lines++ {
			var what string
			var n int
			if _, err := fmt.Sscan(in.Text(), &what, &n); err != nil {
				continue // cut by the kill
			}
			switch what {
			case "admitted":
				admitted[n] = true
			case "row":
				rows[n] = true
			}
			if lines == most {
				if err := c.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		c.Wait() // killed
		if lines < most {
			t.Fatalf("the child ended by itself after %d lines", lines)
		}
	}
	s, err := Open(Options{Dir: dir, Loops: 1, Sync: time.Second, Log: quietLog()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	runs, err := Runs(dir)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]usage.Outcome{}
	for _, run := range runs {
		if run.ID == s.Run() {
			continue
		}
		if !run.Sealed {
			t.Errorf("run %s is not sealed", run.ID)
		}
		for loop := range 2 {
			records, gaps := readRun(t, run, loop)
			if len(gaps) > 0 || len(records) == 0 || records[len(records)-1].Kind != SealedFrame {
				t.Fatalf("run %s loop %d: %d records, gaps %v", run.ID, loop, len(records), gaps)
			}
			seq := uint64(0)
			for _, r := range records {
				n := int(r.Event.Tokens.Input)
				switch r.Kind {
				case AdmittedFrame:
					admitted[n] = true // written, though its line did not get out
				case RowFrame:
					if seq++; r.RowSeq != seq {
						t.Fatalf("row_seq %d after %d", r.RowSeq, seq-1)
					}
					if _, twice := seen[n]; twice {
						t.Errorf("exchange %d has two rows", n)
					}
					seen[n] = r.Event.Outcome
				}
			}
		}
	}
	interrupted := 0
	for n := range admitted {
		if outcome, ok := seen[n]; !ok {
			t.Errorf("exchange %d was admitted and has no row", n)
		} else if outcome == usage.Interrupted {
			interrupted++
		}
	}
	for n := range rows {
		if outcome, ok := seen[n]; !ok || outcome != usage.Completed {
			t.Errorf("row %d was acknowledged: there %v, outcome %v", n, ok, outcome)
		}
	}
	if len(rows) < kills*50 || interrupted == 0 {
		t.Errorf("%d rows, %d interrupted: the test proves little", len(rows), interrupted)
	}
	t.Logf("%d kills: %d rows acknowledged, %d found, %d interrupted", kills, len(rows), len(seen), interrupted)
}

// TestGoroutines runs all of it at once: writers, syncing, readers, stats.
func TestGoroutines(t *testing.T) {
	const each = 3000
	dir := t.TempDir()
	parked := make(chan int, 1<<16)
	s, err := Open(Options{Dir: dir, Loops: 2, Synced: func(loop int) {
		if loop == 1 {
			select {
			case parked <- loop:
			default:
			}
		}
	}, Log: quietLog()})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range s.writers {
		w.segment = 100_000
	}
	var group sync.WaitGroup
	for loop := range 2 {
		group.Go(func() {
			w := s.Writer(loop)
			for n := range each {
				for !w.Admitted(sample(n)) {
					time.Sleep(time.Millisecond)
				}
				if !w.Row(sample(n)) {
					t.Errorf("row %d not taken", n)
				}
				if loop == 1 && n%500 == 0 {
					for waited := w.Position(); w.SyncedTo() < waited; {
						<-parked
					}
				}
			}
		})
		group.Go(func() {
			r, err := s.Reader(loop, 0)
			if err != nil {
				t.Error(err)
				return
			}
			defer r.Close()
			for rows := 0; rows < each; {
				f, err := r.Next()
				if err != nil && err != io.EOF {
					t.Errorf("loop %d: %v", loop, err)
					return
				}
				if err != nil {
					s.Stats()
					time.Sleep(time.Millisecond)
					continue
				}
				if f.Kind == RowFrame {
					record, err := r.Decode(f)
					if rows++; err != nil || record.RowSeq != uint64(rows) {
						t.Errorf("loop %d row %d: %+v, %v", loop, rows, record, err)
						return
					}
				}
			}
		})
	}
	group.Wait()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("closing twice: %v", err)
	}
	runs, err := Runs(dir)
	if err != nil || len(runs) != 1 || !runs[0].Sealed {
		t.Fatalf("runs %+v, %v", runs, err)
	}
	for loop := range 2 {
		checkRows(t, first(readRun(t, runs[0], loop)), span(0, each)...)
	}
}
