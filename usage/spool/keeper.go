package spool

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
)

// A keeper is the goroutine that looks after the whole folder: it closes runs
// whose owner died, and deletes the oldest segments above Options.KeepBytes.
type keeper struct {
	dir       string
	own       uuid.UUID
	keepBytes int64
	floor     func(loop int) uint64 // of the own run: segments below are closed
	closer    *closer
	log       *slog.Logger

	stop, done chan struct{}
	mu         sync.Mutex
	counts     Stats // the fields that are not of a writer; under mu
}

func (k *keeper) run() {
	defer close(k.done)
	ticker := time.NewTicker(keepEvery)
	defer ticker.Stop()
	recovered := time.Now()
	for {
		select {
		case <-k.stop:
			return
		case now := <-ticker.C:
			if now.Sub(recovered) >= recoverEvery {
				recovered = now
				k.recover()
			}
			k.round()
		}
	}
}

// recover closes the runs of the dead.
func (k *keeper) recover() []Recovery {
	done, err := k.closer.recoverAll(k.dir)
	if err != nil {
		k.log.Error("spool: look for runs to close", "error", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range done {
		if r.Err != nil {
			k.counts.RecoveryFailures++
			continue
		}
		k.counts.ClosedRuns++
		k.counts.InterruptedRows += int64(r.Interrupted)
		k.counts.DamagedParts += int64(len(r.Damage) + len(r.Quarantined))
	}
	return done
}

// round measures the folder and deletes what is too much.
func (k *keeper) round() {
	total, spare, err := k.measure()
	if err != nil {
		k.log.Error("spool: measure", "error", err)
		return
	}
	for _, s := range spare {
		if total <= k.keepBytes {
			break
		}
		rows, err := k.drop(s)
		if errors.Is(err, errLocked) || errors.Is(err, fs.ErrNotExist) {
			continue // another process is at it
		}
		if err != nil {
			k.log.Error("spool: delete segment", "run", s.run.ID, "loop", s.loop, "segment", s.number, "error", err)
			break
		}
		total -= s.bytes
		k.log.Warn("spool: segment deleted, no sink has seen its rows", "run", s.run.ID, "loop", s.loop,
			"segment", s.number, "rows", rows, "bytes", s.bytes, "keep_bytes", k.keepBytes)
		k.mu.Lock()
		k.counts.DeletedSegments++
		k.counts.DeletedBytes += s.bytes
		k.counts.DeletedRows += int64(rows)
		k.mu.Unlock()
	}
	k.mu.Lock()
	k.counts.Bytes = total
	k.mu.Unlock()
}

// A spareSegment is one that nobody writes to any more.
type spareSegment struct {
	run    Run
	loop   int
	number uint64
	bytes  int64
	age    time.Time // when it was last written
}

// measure adds up the folder and lists what may be deleted, oldest first: the
// segments of sealed runs, then those that this process has left.
func (k *keeper) measure() (total int64, spare []spareSegment, err error) {
	runs, err := Runs(k.dir)
	if err != nil {
		return 0, nil, err
	}
	var own []spareSegment
	for _, r := range runs {
		var found []spareSegment
		for loop := range r.Loops {
			entries, err := os.ReadDir(loopFolder(r.folder, loop)) // by name: by number
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return 0, nil, fmt.Errorf("spool: %w", err)
			}
			var age time.Time // never falls within a loop, so that its order stays that of the stream
			for _, e := range entries {
				about, err := e.Info()
				if err != nil {
					continue // deleted meanwhile
				}
				total += about.Size()
				number, ok := segmentNumber(e.Name(), segmentSuffix)
				if !ok || !r.Sealed && (r.ID != k.own || number >= k.floor(loop)) {
					continue
				}
				if about.ModTime().After(age) {
					age = about.ModTime()
				}
				found = append(found, spareSegment{r, loop, number, about.Size(), age})
			}
		}
		slices.SortStableFunc(found, func(a, b spareSegment) int { return a.age.Compare(b.age) })
		if r.ID == k.own {
			own = found
		} else {
			spare = append(spare, found...)
		}
	}
	return total, append(spare, own...), nil
}

// drop deletes the oldest segment of a stream and returns how many rows it
// held. What closing the run has to know of it goes into the carry file first.
// The last segment of a sealed run takes the run's folder with it.
func (k *keeper) drop(s spareSegment) (rows uint64, err error) {
	if s.run.ID != k.own {
		lock, err := lockRun(s.run.folder)
		if err != nil {
			return 0, err
		}
		defer lock.Close() // nothing was written to it
	}
	folder := loopFolder(s.run.folder, s.loop)
	l, err := list(folder, nil)
	if err != nil {
		return 0, err
	}
	end := noEnd // where the segments that stay begin
	for _, w := range l.windows {
		if w.number > s.number && (end == noEnd || w.start < end) {
			end = w.start
		}
	}
	a, err := loadAccount(folder)
	if err != nil {
		return 0, err
	}
	before := a.rows
	if err := k.pass(s, a, end); err != nil {
		return 0, err
	}
	if err := a.save(folder, s.run, s.loop, s.number); err != nil {
		return 0, err
	}
	if err := removeGone(filepath.Join(folder, segmentName(s.number))); err != nil {
		return 0, fmt.Errorf("spool: %w", err)
	}
	if s.run.Sealed && end == noEnd {
		err = k.removeEmpty(s.run)
	}
	return a.rows - before, err
}

// pass takes the stream up to end, or all of it, into the account.
func (k *keeper) pass(s spareSegment, a *account, end int64) error {
	r, err := OpenReader(s.run, s.loop, a.position)
	if err != nil {
		return err
	}
	defer r.Close()
	if end != noEnd {
		r.limit = func() int64 { return end }
	}
	for {
		f, err := r.Next()
		if err == io.EOF {
			a.position = max(a.position, r.Position())
			return nil
		}
		var gap *GapError
		if errors.As(err, &gap) {
			k.log.Error("spool: a part of the stream cannot be read", "error", gap)
			continue
		}
		if err != nil {
			return err
		}
		if err := a.add(f); err != nil {
			k.log.Error("spool: frame without an event", "run", s.run.ID, "loop", s.loop, "error", err)
		}
	}
}

// removeEmpty removes a sealed run that has no segment left.
func (k *keeper) removeEmpty(r Run) error {
	for loop := range r.Loops {
		folder := loopFolder(r.folder, loop)
		l, err := list(folder, nil)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if len(l.windows)+len(l.broken) > 0 {
			return nil
		}
	}
	if err := os.RemoveAll(r.folder); err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	return syncFolderOf(r.folder)
}

// stats returns the counts that belong to no writer.
func (k *keeper) stats() Stats {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.counts
}
