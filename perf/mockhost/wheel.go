package mockhost

import (
	"errors"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A wheel writes the events of all tick streams of one interval. Its goroutine
// walks one slot at a time and never blocks on a socket: a peer that does not
// read is retried when its slot comes round again, and its stream is late.
type wheel struct {
	server  *Server
	slots   [tickSlots]slot
	next    atomic.Uint32 // slot of the next stream
	scratch []byte
	out     []byte
}

type slot struct {
	mu      sync.Mutex
	streams []*ticked
}

// A ticked is one stream on a wheel. Owner: the wheel, from join until done is
// set; the connection's goroutine meanwhile only watches the peer.
type ticked struct {
	conn *conn
	slot *slot
	raw  syscall.RawConn
	sent int    // events
	rest []byte // of a write that the socket did not take whole

	gone atomic.Bool // set by the connection: the peer has left
	done atomic.Bool // set by the wheel: all is written, or the socket is dead
	bad  bool        // set before done

	pending []byte // argument and result of put
	n       int
	err     error
	put     func(fd uintptr) bool
}

// streamPattern sends a tick stream or a pour, whose opening is in c.out.
func (c *conn) streamPattern(f *feed) bool {
	if !f.plain {
		return false // refused by plan
	}
	if c.reply.sc.pour > 0 {
		return c.pour()
	}
	w := c.server.wheel(c.reply.sc.tick)
	raw, err := c.tcp.SyscallConn()
	if w == nil || err != nil || !c.flush() {
		return false
	}
	t := &ticked{conn: c, raw: raw}
	t.put = func(fd uintptr) bool {
		t.n, t.err = syscall.Write(int(fd), t.pending)
		return true
	}
	c.clearTimer()
	c.readTimer = true // the wheel sets one to wake this goroutine
	w.join(t)
	for !t.done.Load() {
		c.room(c.end - c.start + 1)
		n, err := c.tcp.Read(c.in[c.end:])
		c.end += n
		if errors.Is(err, os.ErrDeadlineExceeded) {
			runtime.Gosched() // done is about to be set
			continue
		}
		if err != nil || c.end-c.start > len(c.req.head)+len(c.req.body)+bufferBytesKept {
			if !t.leave() {
				break // it left behind the last event
			}
			c.server.tally.peersGone.Add(1)
			return false
		}
	}
	if t.bad {
		c.server.tally.peersGone.Add(1)
		return false
	}
	c.server.tally.streamsWhole.Add(1)
	return !c.req.close
}

// leave says that the peer has gone, unless the stream is over already. The
// wheel holds the slot while it writes, so it is not in the middle of that.
func (t *ticked) leave() bool {
	t.slot.mu.Lock()
	defer t.slot.mu.Unlock()
	if t.done.Load() {
		return false
	}
	t.gone.Store(true)
	return true
}

// wheel finds or starts the wheel of an interval; nil when there are too many.
func (s *Server) wheel(tick time.Duration) *wheel {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.wheels[tick]
	if w == nil && len(s.wheels) < wheelsMax && !s.closed {
		w = &wheel{server: s}
		s.wheels[tick] = w
		s.wait.Go(func() { w.turn(tick) })
	}
	return w
}

func (w *wheel) join(t *ticked) {
	s := &w.slots[w.next.Add(1)%tickSlots]
	t.slot = s
	s.mu.Lock()
	s.streams = append(s.streams, t)
	s.mu.Unlock()
}

func (w *wheel) turn(tick time.Duration) {
	period := tick / tickSlots
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	last := time.Now()
	for i := 0; ; i++ {
		select {
		case <-w.server.done:
			return
		case <-ticker.C:
			now := time.Now()
			w.server.tally.ticks.Add(1)
			if missed := now.Sub(last)/period - 1; missed > 0 { // the ticker drops what a slow walk or machine misses
				w.server.tally.ticksMissed.Add(uint64(missed))
			}
			last = now
			w.walk(&w.slots[i%tickSlots])
		}
	}
}

func (w *wheel) walk(s *slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := s.streams[:0]
	for _, t := range s.streams {
		if !t.gone.Load() && !w.step(t) {
			kept = append(kept, t)
			continue
		}
		t.conn.tcp.SetReadDeadline(time.Unix(1, 0)) // wakes its goroutine
		t.done.Store(true)                          // last: from here on the goroutine may clear the deadline
	}
	clear(s.streams[len(kept):])
	s.streams = kept
}

// step sends the next event of a stream and says whether the stream is over.
func (w *wheel) step(t *ticked) bool {
	r := &t.conn.reply
	if len(t.rest) > 0 {
		t.rest = t.write(w, t.rest)
		return t.bad || len(t.rest) == 0 && t.sent == r.sc.events
	}
	var content [64]byte
	text := appendPattern(content[:0], r.bytesBefore, r.sc.eventBytes)
	r.bytesBefore += int64(r.sc.eventBytes)
	v := &voices[r.endpoint]
	w.scratch = v.piece(w.scratch[:0], r, string(text), time.Now().UnixMicro())
	w.out = appendChunkOf(w.out[:0], w.scratch, "")
	w.server.tally.events.Add(1)
	if t.sent++; t.sent == r.sc.events {
		w.scratch = v.done(v.end(w.scratch[:0], r), r)
		w.out = append(appendChunkOf(w.out, w.scratch, ""), "0\r\n\r\n"...)
	}
	if rest := t.write(w, w.out); len(rest) > 0 {
		t.rest = append([]byte(nil), rest...)
	}
	return t.bad || len(t.rest) == 0 && t.sent == r.sc.events
}

// write offers bytes to the socket once and returns what it did not take.
func (t *ticked) write(w *wheel, b []byte) []byte {
	t.pending, t.n, t.err = b, 0, nil
	err := t.raw.Write(t.put)
	if err == nil && t.err != syscall.EAGAIN {
		err = t.err
	}
	if err != nil {
		t.bad = true
		return nil
	}
	n := max(t.n, 0)
	w.server.tally.bytesOut.Add(uint64(n))
	return b[n:]
}

// pour sends the pattern as fast as the socket takes it. Its events repeat
// with the length of the alphabet, so they are made once.
func (c *conn) pour() bool {
	r := &c.reply
	v := &voices[r.endpoint]
	events := (r.sc.pour + pourEventBytes - 1) / pourEventBytes
	cycle := make([][]byte, min(int64(len(patternAlphabet)), events))
	for k := range cycle {
		text := appendPattern(nil, int64(k)*pourEventBytes, pourEventBytes)
		cycle[k] = appendChunkOf(nil, v.piece(nil, r, string(text), 0), "")
	}
	for k := range events {
		c.out = append(c.out, cycle[k%int64(len(cycle))]...)
		if len(c.out) > bufferBytesKept && !c.flush() {
			return false
		}
	}
	c.server.tally.events.Add(uint64(events))
	frames := v.done(v.end(nil, r), r)
	c.out = append(appendChunkOf(c.out, frames, ""), "0\r\n\r\n"...)
	if !c.flush() {
		return false
	}
	c.server.tally.streamsWhole.Add(1)
	return !c.req.close
}
