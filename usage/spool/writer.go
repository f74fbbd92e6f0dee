package spool

import (
	"sync/atomic"

	"relay/usage"
)

// A Writer appends to one loop's spool. Owner: that loop's goroutine, but for
// what is atomic: there the loop and the syncing goroutine of this writer meet
// without a lock. The loop alone decides when it leaves a segment; the syncing
// goroutine alone makes segments, and offers them.
type Writer struct {
	loop     int
	run      Run
	options  *Options
	segment  int64 // length at which a segment ends
	counters *counters

	buffer   []byte   // headerBytes, then the frame being made
	current  *segment // being written
	position int64    // after the last frame written
	rowEnd   int64    // after the last row written
	rowSeq   uint64   // of the last row written
	ring     ring

	// The meeting points.
	synced  atomic.Int64             //loop:allow position up to which all is durable; stored by the syncing goroutine
	next    atomic.Pointer[segment]  //loop:allow an empty segment with a reserve, for whoever takes it first
	moved   atomic.Pointer[handover] //loop:allow where to go on after a failed sync
	resting atomic.Bool              //loop:allow the syncing goroutine sleeps until it is called
	dry     atomic.Bool              //loop:allow no reserve stands behind the current segment: admit nothing
	wake    chan struct{}            // one token; the syncing goroutine waits on it
}

// A segment is one file of a stream while it is written.
type segment struct {
	file   file
	path   string
	number uint64

	start  int64 // position of the first frame; set by whoever enters it
	offset int64 // length of the file; 0 = not even the header is written

	end     atomic.Int64 //loop:allow position after the last whole frame; 0 = none
	entered atomic.Bool  //loop:allow the loop writes here, or did
	left    atomic.Bool  //loop:allow the loop will not write here again
	turn    atomic.Bool  //loop:allow the loop is to leave at its next write

	// Owner: the syncing goroutine.
	syncedEnd int64
	quietNs   int64 // when it last grew, unix
	bad       bool  // a sync has failed: never again on this file
}

// A handover is a segment to which the syncing goroutine has rewritten the
// frames that a failed sync left in doubt.
type handover struct {
	segment *segment
	to      int64 // the stream up to here is in it
	fresh   bool  // nothing could be rewritten: the segment is empty
}

// Admitted records that a billable attempt starts: the row that recovery
// writes as `interrupted` if nothing follows. It reports false when the spool
// cannot take it (disk full): the attempt must not be made. With Options.Full
// set to Serve it is true even then, and the missing record is counted.
func (w *Writer) Admitted(e *usage.Event) bool {
	if !w.dry.Load() && w.put(AdmittedFrame, w.encode(AdmittedFrame, e, 0)) {
		w.counters.admitted.Add(1)
		return true
	}
	if w.options.Full == Serve {
		w.counters.unwritten.Add(1)
		return true
	}
	w.counters.refused.Add(1)
	return false
}

// Row records how the exchange ended. It is called once per exchange, before
// the last response bytes are sent. It reports false when the event could not
// be written; it is then counted in Lost.
func (w *Writer) Row(e *usage.Event) bool {
	if !w.put(RowFrame, w.encode(RowFrame, e, w.rowSeq+1)) {
		w.counters.lost.Add(1)
		return false
	}
	w.rowSeq++
	w.rowEnd = w.position
	w.counters.rows.Add(1)
	if w.options.Sync == 0 {
		w.call()
	}
	return true
}

// Pending reports whether rows wait for an fsync that the caller must await
// before it answers: always false unless Options.Sync is 0. Synced tells when
// all rows written so far are safe.
//
// Under load there is always a newer row that waits. An exchange therefore
// notes Position after its own row and may answer once SyncedTo has reached it.
func (w *Writer) Pending() bool {
	return w.options.Sync == 0 && w.rowEnd > w.synced.Load()
}

// Position is the end of the last record written.
func (w *Writer) Position() int64 { return w.position }

// SyncedTo is the position up to which every record is durable.
func (w *Writer) SyncedTo() int64 { return w.synced.Load() }

// Lost is how many rows could not be written. Any goroutine may ask.
func (w *Writer) Lost() uint64 { return uint64(w.counters.lost.Load()) }

// encode makes the frame in the buffer, behind room for a header, and returns
// its length.
func (w *Writer) encode(k Kind, e *usage.Event, rowSeq uint64) int {
	b := beginFrame(w.buffer[:headerBytes], k)
	b = appendEvent(b, e, rowSeq, w.options.Instance)
	endFrame(b, headerBytes)
	return len(b) - headerBytes
}

// put writes the frame of n bytes in the buffer. After a failure it goes on in
// the next segment, if there is one, and tries once more. On a full disk that
// segment is the reserve, which only rows may use.
func (w *Writer) put(k Kind, n int) bool {
	if w.moved.Load() != nil {
		w.follow()
	}
	if w.current.offset >= w.segment || w.current.turn.Load() {
		w.enterNext()
	}
	err := w.write(n)
	if err == nil {
		return true
	}
	w.dry.Store(true) // before next is taken: making another one ends it
	if !w.enterNext() {
		w.call()
		return false
	}
	if k == AdmittedFrame && full(err) {
		return false
	}
	return w.write(n) == nil
}

// write appends the frame in the buffer by one system call, the segment's
// header before it if it is the first. A failed write leaves no trace.
func (w *Writer) write(n int) error {
	s := w.current
	from := headerBytes
	if s.offset == 0 {
		h := header{loop: uint32(w.loop), run: w.run.ID, number: s.number, start: s.start}
		h.put(w.buffer)
		from = 0
	}
	b := w.buffer[from : headerBytes+n]
	m, err := s.file.WriteAt(b, s.offset)
	if err == nil && m < len(b) {
		err = errShort
	}
	if err != nil {
		w.counters.writeErrors.Add(1)
		if s.file.Truncate(s.offset) != nil { // the next segment starts at position: what is behind it is void
			w.counters.writeErrors.Add(1)
		}
		return err
	}
	s.offset += int64(len(b))
	w.ring.push(w.position, w.buffer[headerBytes:headerBytes+n], w.synced.Load())
	w.position += int64(n)
	s.end.Store(w.position)
	if w.resting.Load() { // behind end: see syncer.rest
		w.rouse()
	}
	return nil
}

// rouse wakes a syncing goroutine that rests.
func (w *Writer) rouse() {
	if w.resting.Swap(false) {
		w.call()
	}
}

// enterNext leaves the current segment for the next one, and reports false if
// there is none. While a handover waits it is refused: segments are entered in
// the order of their numbers.
func (w *Writer) enterNext() bool {
	if w.moved.Load() != nil {
		return false
	}
	s := w.next.Swap(nil)
	if s == nil {
		return false
	}
	s.start = w.position
	w.enter(s)
	w.call() // a next one is wanted
	return true
}

func (w *Writer) enter(s *segment) {
	w.current.left.Store(true)
	w.current = s
	s.entered.Store(true)
}

// follow goes on where the syncing goroutine has rewritten what a failed sync
// left in doubt. What this loop wrote meanwhile is written again first; if
// that fails, the offer stays and this loop where it was.
func (w *Writer) follow() {
	m := w.moved.Swap(nil)
	if m == nil { // taken back to be prolonged
		return
	}
	s := m.segment
	switch {
	case m.fresh:
		s.start = w.position
		w.ring.start(w.position)
	case !w.ring.holds(m.to, w.position) || rewrite(s, &w.ring, m.to, w.position) != nil:
		w.moved.Store(m)
		w.call()
		return
	default:
		s.end.Store(w.position)
	}
	w.enter(s)
}

// rewrite appends the bytes between two positions, from the ring, to a segment
// that has its header. A failure leaves no trace.
func rewrite(s *segment, r *ring, from, to int64) error {
	first, second := r.spans(from, to)
	offset := s.offset
	for _, b := range [...][]byte{first, second} {
		if len(b) == 0 {
			continue
		}
		n, err := s.file.WriteAt(b, offset)
		if err == nil && n < len(b) {
			err = errShort
		}
		if err != nil {
			if cut := s.file.Truncate(s.offset); cut != nil {
				return cut
			}
			return err
		}
		offset += int64(len(b))
	}
	s.offset = offset
	return nil
}

// call wakes the syncing goroutine. It never waits: a token that is there
// already does as well.
func (w *Writer) call() {
	select { //loop:allow never blocks
	case w.wake <- struct{}{}: //loop:allow one token, taken by the syncing goroutine
	default:
	}
}
