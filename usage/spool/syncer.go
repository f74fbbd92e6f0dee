package spool

import (
	"log/slog"
	"path/filepath"
	"slices"
	"time"
)

// A syncer is the syncing goroutine of one writer. It makes what was written
// durable, keeps a next segment ready, and finds a new place for what a failed
// sync left in doubt.
type syncer struct {
	writer  *Writer
	disk    disk
	founder *founder
	folder  string // of the loop
	log     *slog.Logger
	number  uint64 // of the last segment made

	live    []*segment // made and not closed, in the order of their numbers
	offer   *handover  // in the writer's moved, or with the loop, until it is entered
	failing bool       // a sync has failed, and what it left is not rewritten yet
	retry   time.Time  // no segment is made before
	quiet   bool       // the failure to make one is in the log

	stop, done chan struct{}
}

// run is the goroutine. It ends after one more round once stop is closed.
func (s *syncer) run() {
	defer close(s.done)
	every := s.writer.options.Sync
	if every == 0 {
		every = choreEvery
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	active := time.Now() // when there was something to sync, last
	resting := false
	for {
		select {
		case <-s.stop:
			s.last()
			return
		case <-ticker.C:
		case <-s.writer.wake:
		}
		now, before := time.Now(), s.writer.synced.Load()
		s.round(now)
		if s.writer.synced.Load() > before || s.failing {
			active = now
		}
		if rest := now.Sub(active) > restAfter && s.rest(); rest != resting {
			resting = rest
			if rest {
				ticker.Reset(max(every, choreEvery))
			} else {
				ticker.Reset(every)
			}
		}
	}
}

// rest asks the writer to wake this goroutine with its next record, and reports
// false when there is one already: an idle process is not woken every few
// milliseconds to find nothing to sync.
func (s *syncer) rest() bool {
	s.writer.resting.Store(true)
	if s.written() > s.writer.synced.Load() {
		s.writer.resting.Store(false)
		return false
	}
	return true
}

// last is the round after the loop has stopped.
func (s *syncer) last() {
	s.retry = time.Time{} // now or never
	s.round(time.Now())
}

// round does everything that is due.
func (s *syncer) round(now time.Time) {
	before := s.writer.synced.Load()
	s.watchOffer()
	s.syncLive(now)
	if s.failing && !now.Before(s.retry) {
		s.rescue(now)
	}
	s.prepare(now)
	if s.writer.options.Sync == 0 && s.writer.synced.Load() > before && s.writer.options.Synced != nil {
		s.writer.options.Synced(s.writer.loop)
	}
}

// syncLive syncs the segments that have grown, in order, and closes those that
// the loop has left.
func (s *syncer) syncLive(now time.Time) {
	for _, g := range s.live {
		end := g.end.Load()
		if end > g.syncedEnd && !g.bad && !s.failing {
			if err := s.sync(g); err != nil {
				s.fail(g, err)
				continue
			}
			g.syncedEnd, g.quietNs = end, now.UnixNano()
			s.publish(end)
		}
		if end != 0 && g.entered.Load() && now.UnixNano()-g.quietNs > int64(idleRotate) {
			g.turn.Store(true)
		}
	}
	s.live = slices.DeleteFunc(s.live, func(g *segment) bool {
		left := g.left.Load() // before end: nothing is written after it
		over := left && (g.bad || g.end.Load() <= g.syncedEnd)
		if over {
			s.retire(g)
		}
		return over
	})
	if len(s.live) > 0 {
		s.writer.counters.floor.Store(s.live[0].number)
	}
}

// sync makes one file durable and measures it.
func (s *syncer) sync(g *segment) error {
	start := time.Now()
	err := g.file.Sync()
	s.writer.counters.synced(time.Since(start), err)
	return err
}

// publish tells everybody that the stream is durable up to a position.
func (s *syncer) publish(position int64) {
	if position > s.writer.synced.Load() {
		s.writer.synced.Store(position)
	}
}

// fail gives up the file: after a failed sync the system may take its dirty
// pages for clean, so that a second one succeeds and says nothing. All that is
// not durable yet goes to a new file.
func (s *syncer) fail(g *segment, err error) {
	s.log.Error("spool: sync failed, going on in a new segment", "segment", g.path, "error", err)
	s.failing = true
	s.writer.dry.Store(true)
	for _, other := range s.live {
		other.bad = other.bad || other.entered.Load()
	}
	g.bad = true
}

// written is the end of the stream, as far as this goroutine can see.
func (s *syncer) written() int64 {
	var end int64
	for _, g := range s.live {
		end = max(end, g.end.Load())
	}
	return end
}

// rescue writes the frames that are not durable into a new segment, syncs it
// and offers it to the loop. If the ring no longer has them all they are left
// where they are, and counted.
func (s *syncer) rescue(now time.Time) {
	w := s.writer
	g := w.next.Swap(nil)
	if g == nil {
		if g = s.create(now); g == nil {
			return
		}
		s.live = append(s.live, g)
	}
	from := w.synced.Load()
	to := w.ring.to.Load()
	if !w.ring.holds(from, s.written()) {
		s.giveUp()
		s.hand(&handover{segment: g, fresh: true})
		return
	}
	g.start = from
	if err := s.fill(g, from, to); err != nil {
		s.log.Error("spool: rewriting unsynced frames failed", "segment", g.path, "error", err)
		s.discard(g)
		s.retry = now.Add(retryEvery)
		return
	}
	s.hand(&handover{segment: g, to: to})
}

// giveUp counts what is not durable as at risk, and as durable from here: it
// was written to a file whose sync failed, and nothing more can be done.
func (s *syncer) giveUp() {
	w := s.writer
	if end := s.written(); end > w.synced.Load() {
		w.counters.atRisk.Add(end - w.synced.Load())
		s.publish(end)
	}
}

// fill appends the bytes between two positions to a segment and syncs it.
func (s *syncer) fill(g *segment, from, to int64) error {
	w := s.writer
	if g.offset == 0 {
		h := header{loop: uint32(w.loop), run: w.run.ID, number: g.number, start: g.start}
		b := make([]byte, headerBytes)
		h.put(b)
		if n, err := g.file.WriteAt(b, 0); err != nil || n < len(b) {
			if err == nil {
				err = errShort
			}
			return err
		}
		g.offset = headerBytes
	}
	if err := rewrite(g, &w.ring, from, to); err != nil {
		return err
	}
	if err := s.sync(g); err != nil {
		return err
	}
	g.syncedEnd, g.quietNs = to, time.Now().UnixNano()
	g.end.Store(to)
	s.publish(to)
	return nil
}

// hand offers a segment to the loop, which takes it at its next write.
func (s *syncer) hand(m *handover) {
	s.failing = false
	s.offer = m
	s.writer.moved.Store(m)
}

// watchOffer looks whether the loop has taken the offer. Until then what the
// loop still wrote to the old file is added to it.
func (s *syncer) watchOffer() {
	m, w := s.offer, s.writer
	if m == nil {
		return
	}
	if m.segment.entered.Load() {
		s.offer = nil
		return
	}
	end := s.written()
	if m.fresh {
		s.giveUp()
		return
	}
	if end <= m.to || !w.moved.CompareAndSwap(m, nil) { // nothing new, or the loop has it in hand
		return
	}
	to := w.ring.to.Load()
	if w.ring.holds(m.to, end) && s.fill(m.segment, m.to, to) == nil {
		s.hand(&handover{segment: m.segment, to: to})
		return
	}
	// What it holds up to m.to is durable and stays; the rest needs another one.
	s.offer = nil
	s.failing = true
	m.segment.bad = true
	m.segment.left.Store(true)
}

// prepare keeps a next segment ready. While it cannot, no reserve stands
// behind the loop, and nothing is admitted.
func (s *syncer) prepare(now time.Time) {
	w := s.writer
	if s.failing || now.Before(s.retry) {
		return
	}
	if w.next.Load() == nil {
		g := s.create(now)
		if g == nil {
			return
		}
		s.live = append(s.live, g)
		w.next.Store(g)
	}
	if w.dry.Load() {
		s.retry = now.Add(retryEvery)
		w.dry.Store(false)
		s.log.Info("spool: taking records again", "loop", w.loop)
	}
}

// create makes a segment with its reserve, or returns nil and sees to it that
// the next try comes later.
func (s *syncer) create(now time.Time) *segment {
	g, err := s.make()
	if err == nil {
		s.quiet = false
		return g
	}
	s.writer.dry.Store(true)
	s.writer.counters.writeErrors.Add(1)
	s.retry = now.Add(retryEvery)
	if !s.quiet {
		s.log.Error("spool: no room for a reserve, no admission is recorded until there is",
			"loop", s.writer.loop, "full", s.writer.options.Full.String(), "error", err)
		s.quiet = true
	}
	return nil
}

// make makes an empty segment with its reserve, and the run first if that is
// still to be done.
func (s *syncer) make() (*segment, error) {
	if err := s.founder.found(); err != nil {
		return nil, err
	}
	s.number++
	path := filepath.Join(s.folder, segmentName(s.number))
	f, err := s.disk.Create(path, s.writer.options.ReserveBytes)
	if err != nil {
		return nil, err
	}
	return &segment{file: f, path: path, number: s.number}, nil
}

// retire closes a segment that the loop has left, and gives back what is
// allocated behind its end. An empty one is removed.
func (s *syncer) retire(g *segment) {
	if g.offset <= headerBytes {
		s.discardFile(g)
		return
	}
	if !g.bad {
		if err := g.file.Truncate(g.offset); err != nil {
			s.log.Error("spool: cut segment", "segment", g.path, "error", err)
		}
	}
	if err := g.file.Close(); err != nil {
		s.log.Error("spool: close segment", "segment", g.path, "error", err)
	}
}

// discard removes a segment that holds nothing of use.
func (s *syncer) discard(g *segment) {
	s.live = slices.DeleteFunc(s.live, func(other *segment) bool { return other == g })
	s.discardFile(g)
}

func (s *syncer) discardFile(g *segment) {
	if err := g.file.Close(); err != nil {
		s.log.Error("spool: close segment", "segment", g.path, "error", err)
	}
	if err := s.disk.Remove(g.path); err != nil {
		s.log.Error("spool: remove segment", "segment", g.path, "error", err)
	}
}

// closeAll closes the files of a writer that is not used any more.
func (s *syncer) closeAll() {
	for _, g := range s.live {
		s.retire(g)
	}
	s.live = nil
}
