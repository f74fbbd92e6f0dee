package spool

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"
)

// A FullMode says what happens to new work on a full disk.
type FullMode uint8

// The modes.
const (
	Refuse FullMode = iota // Admitted is false: no attempt without a record of it
	Serve                  // Admitted is true, and what is not recorded is counted; Open does not need room either
)

// String is the mode as the setting spells it.
func (m FullMode) String() string {
	if m == Serve {
		return "serve"
	}
	return "refuse"
}

// Options of a spool.
type Options struct {
	Dir      string        // RELAY_DATA_DIR/spool
	Loops    int           // writers
	Sync     time.Duration // between fsyncs; 0 = fsync after every write
	Instance string        // RELAY_INSTANCE_ID, for people
	Full     FullMode
	// ReserveBytes are kept allocated for each loop: on a full disk the rows of
	// the exchanges that run there go into them, at 300 to 500 bytes each.
	// 0 = ReserveBytesDefault.
	ReserveBytes int64
	// KeepBytes bounds the folder, all runs together; 0 = KeepBytesDefault.
	// Above it the oldest closed segments are deleted, with rows that no sink
	// has seen; each one is logged and counted. What is being written is never
	// deleted, so a moment's excess of a segment per loop is possible.
	KeepBytes int64
	Log       *slog.Logger // nil = slog.Default()
	// Synced is called after an fsync, when Sync is 0, for each loop that has
	// waiting events; now and then for one that has none. It is called by the
	// syncing goroutine of that loop, so for several loops at a time.
	Synced func(loop int)
}

// A Spool is this process's run: spool/<run-uuid>/<loop>, locked.
type Spool struct {
	options   Options
	run       Run
	founder   *founder
	writers   []*Writer
	syncers   []*syncer
	keeper    *keeper
	recovered []Recovery
	closing   sync.Once
	closed    error
}

// Open locks a new run and prepares its writers. Runs whose owner is gone are
// closed with `interrupted` rows for their open admissions. One that cannot be
// closed does not keep this one from starting: it is logged, counted, and
// tried again.
func Open(o Options) (*Spool, error) {
	s, err := open(o, osDisk{})
	if err != nil {
		return nil, err
	}
	s.start()
	return s, nil
}

// open does all of Open but for starting the goroutines.
func open(o Options, d disk) (*Spool, error) {
	if o.Loops < 1 || o.Loops > LoopsMax {
		return nil, fmt.Errorf("spool: %d loops, allowed are 1 to %d", o.Loops, LoopsMax)
	}
	if o.Sync < 0 || o.KeepBytes < 0 || o.ReserveBytes < 0 || o.Full > Serve {
		return nil, errors.New("spool: negative Sync, ReserveBytes or KeepBytes, or unknown Full")
	}
	if o.ReserveBytes == 0 {
		o.ReserveBytes = ReserveBytesDefault
	}
	if o.KeepBytes == 0 {
		o.KeepBytes = KeepBytesDefault
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	run, err := newRun(o.Dir, o.Instance, o.Loops)
	if err != nil {
		return nil, err
	}
	s := &Spool{options: o, run: run, founder: &founder{run: run, disk: d}}
	missing := s.founder.found()
	if missing != nil && !s.bears(missing) {
		return nil, missing
	}
	if err := removeHalfMade(o.Dir, time.Now()); err != nil {
		o.Log.Error("spool: remove half-made runs", "error", err)
	}
	for loop := range o.Loops {
		err := s.addWriter(loop, d)
		if err != nil && !s.bears(err) {
			return nil, errors.Join(err, s.abandon())
		}
		missing = cmp.Or(missing, err)
	}
	if missing != nil {
		o.Log.Error("spool: THE DISK IS FULL: requests are served and NOT RECORDED until there is room; relay_records_lost_total counts them",
			"folder", o.Dir, "full", o.Full.String(), "error", missing)
	}
	s.keeper = &keeper{
		dir: o.Dir, own: run.ID, keepBytes: o.KeepBytes, log: o.Log,
		floor:  func(loop int) uint64 { return s.writers[loop].counters.floor.Load() },
		closer: &closer{by: run.ID, log: o.Log},
		stop:   make(chan struct{}), done: make(chan struct{}),
	}
	s.recovered = s.keeper.recover()
	s.keeper.round()
	return s, nil
}

// bears reports whether a spool opens in spite of an error.
func (s *Spool) bears(err error) bool { return s.options.Full == Serve && full(err) }

// addWriter makes the writer of a loop, with its first segment and a next one.
// An error that the spool bears leaves a writer that waits for room.
func (s *Spool) addWriter(loop int, d disk) error {
	w := &Writer{
		loop: loop, run: s.run, options: &s.options, counters: new(counters),
		segment: min(SegmentBytesMax, max(segmentBytesMin, s.options.KeepBytes/int64(keepShare*s.options.Loops))),
		buffer:  make([]byte, headerBytes, headerBytes+frameHeadBytes+FrameBytesMax),
		ring:    ring{bytes: make([]byte, ringBytes)},
		wake:    make(chan struct{}, 1),
	}
	y := &syncer{
		writer: w, disk: d, founder: s.founder, folder: loopFolder(s.run.folder, loop), log: s.options.Log,
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	s.writers, s.syncers = append(s.writers, w), append(s.syncers, y)
	first, err := y.make()
	if err != nil {
		w.current = newNoRoom()
		w.dry.Store(true)
		y.retry, y.quiet = time.Now().Add(retryEvery), true
		return fmt.Errorf("spool: first segment of loop %d: %w", loop, err)
	}
	first.entered.Store(true)
	w.current = first
	y.live = []*segment{first}
	y.prepare(time.Now())
	w.counters.floor.Store(first.number)
	return nil
}

// abandon undoes an Open that has failed.
func (s *Spool) abandon() error {
	for _, y := range s.syncers {
		y.closeAll()
	}
	return errors.Join(os.RemoveAll(s.run.folder), s.founder.release())
}

func (s *Spool) start() {
	for _, y := range s.syncers {
		go y.run()
	}
	go s.keeper.run()
}

// Writer is the writer of one loop.
func (s *Spool) Writer(loop int) *Writer { return s.writers[loop] }

// Run is the id of this process's run.
func (s *Spool) Run() uuid.UUID { return s.run.ID }

// Recovered is what Open found of runs whose owner was gone.
func (s *Spool) Recovered() []Recovery { return s.recovered }

// Reader reads the stream of one loop of this process's run, as far as it is
// synced. from is as for OpenReader.
func (s *Spool) Reader(loop int, from int64) (*Reader, error) {
	r, err := OpenReader(s.run, loop, from)
	if err != nil {
		return nil, err
	}
	r.limit = s.writers[loop].synced.Load
	return r, nil
}

// Close syncs and seals all. Writers are not used afterwards. Admissions that
// are still open get their interrupted rows, so all of the run is read once
// more: about a second per GiB.
func (s *Spool) Close() error {
	s.closing.Do(func() {
		for _, y := range s.syncers {
			close(y.stop)
		}
		close(s.keeper.stop)
		for _, y := range s.syncers {
			<-y.done
		}
		<-s.keeper.done
		s.closed = s.finish()
	})
	return s.closed
}

// finish closes the run once its goroutines have ended.
func (s *Spool) finish() error {
	var errs []error
	for _, y := range s.syncers {
		if behind := y.writer.position - y.writer.synced.Load(); behind > 0 {
			errs = append(errs, fmt.Errorf("spool: loop %d: %d bytes could not be synced", y.writer.loop, behind))
		}
		y.closeAll()
	}
	if s.founder.isFound() { // else there never was room for a record
		errs = append(errs, s.keeper.closer.close(s.run).Err)
	}
	errs = append(errs, s.founder.release())
	return errors.Join(errs...)
}
