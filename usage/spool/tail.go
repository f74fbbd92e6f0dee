package spool

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"
)

// Tail calls fn with the rows of all runs and loops in a spool's folder:
// sealed runs first, oldest first, then those that live. Within a run, and
// among the living ones, rows that are there come in the order of their end.
// With follow it goes on with new rows, loops and runs until the context ends;
// that is not an error. Rows may be shown that are not synced yet. A part that
// cannot be read is logged and passed.
func Tail(ctx context.Context, dir string, follow bool, fn func(Record) error) error {
	t := tail{dir: dir, fn: fn, done: make(map[uuid.UUID]bool), open: make(map[streamID]*source)}
	defer t.close()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		if err := t.round(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		if !follow {
			return nil
		}
		timer.Reset(tailPoll)
	}
}

type streamID struct {
	run  uuid.UUID
	loop int
}

// A source is one stream with its next row.
type source struct {
	reader *Reader
	row    Record
	ready  bool // row is the next one
}

// A tail is a Tail call.
type tail struct {
	dir  string
	fn   func(Record) error
	done map[uuid.UUID]bool // sealed runs that were shown to their end
	open map[streamID]*source
}

// round shows all that is there.
func (t *tail) round(ctx context.Context) error {
	runs, err := Runs(t.dir)
	if err != nil {
		return err
	}
	if err := t.forgetDeleted(runs); err != nil {
		return err
	}
	var living []*source
	for _, r := range runs {
		if t.done[r.ID] {
			continue
		}
		sources, err := t.sources(r)
		if err != nil {
			return err
		}
		if !r.Sealed { // read above, before the streams: what is sealed is complete
			living = append(living, sources...)
			continue
		}
		if err := t.merge(ctx, sources); err != nil {
			return err
		}
		t.done[r.ID] = true
		if err := t.forget(r.ID); err != nil {
			return err
		}
	}
	return t.merge(ctx, living)
}

// sources opens the streams of a run that are not open yet.
func (t *tail) sources(r Run) ([]*source, error) {
	var sources []*source
	for loop := range r.Loops {
		id := streamID{r.ID, loop}
		if t.open[id] == nil {
			reader, err := OpenReader(r, loop, Oldest)
			if err != nil {
				return nil, err
			}
			t.open[id] = &source{reader: reader}
		}
		sources = append(sources, t.open[id])
	}
	return sources, nil
}

// merge shows the rows of several streams, the earliest end first, until each
// has come to its end once.
func (t *tail) merge(ctx context.Context, sources []*source) error {
	waiting := slices.Clone(sources)
	for ctx.Err() == nil {
		var first *source
		var failed error
		waiting = slices.DeleteFunc(waiting, func(s *source) bool {
			if err := s.advance(); err != nil {
				failed = err
			}
			if s.ready && (first == nil || s.row.Event.EndUnixNs < first.row.Event.EndUnixNs) {
				first = s
			}
			return !s.ready
		})
		if failed != nil {
			return failed
		}
		if first == nil {
			return nil
		}
		first.ready = false
		if err := t.fn(first.row); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// advance reads the next row, if there is one.
func (s *source) advance() error {
	for !s.ready {
		f, err := s.reader.Next()
		if err == io.EOF {
			return nil
		}
		var gap *GapError
		if errors.As(err, &gap) {
			slog.Error("spool: a part of the stream cannot be read", "error", gap)
			continue
		}
		if err != nil {
			return err
		}
		if f.Kind != RowFrame {
			continue
		}
		if s.row, err = s.reader.Decode(f); err != nil {
			return err
		}
		s.ready = true
	}
	return nil
}

// forget closes the streams of a run.
func (t *tail) forget(run uuid.UUID) error {
	var errs []error
	for id, s := range t.open {
		if id.run == run {
			errs = append(errs, s.reader.Close())
			delete(t.open, id)
		}
	}
	return errors.Join(errs...)
}

// forgetDeleted forgets the runs that are no longer there.
func (t *tail) forgetDeleted(runs []Run) error {
	here := make(map[uuid.UUID]bool, len(runs))
	for _, r := range runs {
		here[r.ID] = true
	}
	for id := range t.done {
		if !here[id] {
			delete(t.done, id)
		}
	}
	var errs []error
	for id := range t.open {
		if !here[id.run] {
			errs = append(errs, t.forget(id.run))
		}
	}
	return errors.Join(errs...)
}

func (t *tail) close() {
	for _, s := range t.open {
		s.reader.Close() // was only read
	}
}
