package sim

import (
	"relay/loop"
)

// kernelBytes is what the fake kernel takes of a socket's output before the
// peer reads it.
const kernelBytes = 32 << 10

// peer is the other end of a socket.
type peer interface {
	got(p []byte)     // bytes came; the peer copies what it keeps
	gone(reset bool)  // the loop's side closed or half-closed
	attach(s *socket) // told once
	stalled() bool    // does not read at the moment
}

// socket is one fake connection: a loop.Socket on one end, a peer on the
// other.
type socket struct {
	w    *World
	conn loop.Conn
	peer peer

	out     []byte // with the kernel, on its way to the peer
	pending []byte // Buffered
	in      []byte // from the peer, not read by the loop
	low     int

	written, given, mark int64 // bytes: by the loop, to the peer, at the mark

	open, broken         bool // loop's side is open; peer has reset
	peerFIN, finOut      bool
	paused, watch        bool
	notify               bool
	moving, reading      bool // events are queued
	closedOut, closeTold bool
	aborted              bool
}

func newSocket(w *World, p peer) *socket {
	s := &socket{w: w, peer: p, open: true}
	w.sockets = append(w.sockets, s)
	p.attach(s)
	return s
}

// Write implements loop.Socket.
func (s *socket) Write(p []byte) {
	if !s.open {
		return
	}
	if s.finOut {
		s.w.fault("write after CloseWrite")
	}
	if s.w.chance(s.w.trouble.panic) && !s.w.quiet {
		panic(injected)
	}
	s.written += int64(len(p))
	if s.broken {
		return // the close is on its way
	}
	if len(s.pending) == 0 {
		n := min(len(p), kernelBytes-len(s.out))
		s.out = append(s.out, p[:n]...)
		p = p[n:]
	}
	s.pending = append(s.pending, p...)
	s.move()
}

// Buffered implements loop.Socket.
func (s *socket) Buffered() int { return len(s.pending) }

// NotifyDrained implements loop.Socket.
func (s *socket) NotifyDrained(low int) {
	if s.open {
		s.notify, s.low = true, low
		s.w.after(int64(loop.TickEvery), s.checkDrained)
	}
}

func (s *socket) checkDrained() {
	if s.open && s.notify && len(s.pending) <= s.low {
		s.notify = false
		s.w.callback(s.conn, s.conn.OnDrained)
	}
}

// PauseRead implements loop.Socket.
func (s *socket) PauseRead(watchHangUp bool) {
	s.paused, s.watch = true, watchHangUp
	if watchHangUp && s.peerFIN {
		s.read()
	}
}

// ResumeRead implements loop.Socket.
func (s *socket) ResumeRead() {
	if s.paused {
		s.paused = false
		s.read()
	}
}

// Mark implements loop.Socket.
func (s *socket) Mark() { s.mark = s.written }

// Reached implements loop.Socket. The peer's program has read whatever the
// fake kernel has given to it.
func (s *socket) Reached() bool { return s.given > s.mark }

// CloseWrite implements loop.Socket.
func (s *socket) CloseWrite() {
	if !s.open {
		return
	}
	if len(s.pending) > 0 {
		s.w.fault("CloseWrite with %d bytes buffered", len(s.pending))
	}
	s.finOut = true
	s.move()
}

// Close implements loop.Socket.
func (s *socket) Close() {
	if s.open {
		s.open = false
		s.pending = nil
		s.closedOut = true
		s.move()
	}
}

// Abort implements loop.Socket.
func (s *socket) Abort() {
	if s.open {
		s.open, s.aborted = false, true
		s.pending = nil
		s.closedOut = true
		s.move()
	}
}

// move queues the transfer of output to the peer.
func (s *socket) move() {
	if !s.moving {
		s.moving = true
		s.w.after(s.w.delay(), s.transfer)
	}
}

// transfer gives a random part of what the kernel holds to the peer.
func (s *socket) transfer() {
	s.moving = false
	if s.broken || s.closeTold {
		return
	}
	if s.peer.stalled() && !s.w.quiet {
		s.moving = true
		s.w.after(int64(200e6), s.transfer)
		return
	}
	if len(s.out) > 0 {
		n := 1 + s.w.rng.IntN(len(s.out))
		if s.w.chance(700) {
			n = len(s.out)
		}
		got := append([]byte(nil), s.out[:n]...)
		s.out = s.out[n:]
		s.given += int64(n)
		s.peer.got(got)
		if s.broken {
			return
		}
	}
	if n := min(len(s.pending), kernelBytes-len(s.out)); n > 0 {
		s.out = append(s.out, s.pending[:n]...)
		s.pending = s.pending[n:]
		s.checkDrained()
	}
	switch {
	case len(s.out) > 0:
		s.move()
	case (s.closedOut || s.finOut) && !s.closeTold:
		s.closeTold = true
		s.peer.gone(s.aborted || s.closedOut && len(s.in) > 0)
	}
}

// send is the peer's way to the loop.
func (s *socket) send(p []byte) {
	if s.open && !s.broken && !s.peerFIN {
		s.in = append(s.in, p...)
		s.read()
	}
}

// fin is the peer's FIN; reset is its RST.
func (s *socket) fin() {
	s.peerFIN = true
	s.read()
}

func (s *socket) reset() {
	if s.broken {
		return
	}
	s.broken = true
	s.out, s.in, s.pending = nil, nil, nil
	s.w.after(s.w.delay(), func() { s.closed(loop.Reset) })
}

func (s *socket) read() {
	if !s.reading {
		s.reading = true
		s.w.after(s.w.delay(), s.deliver)
	}
}

// deliver gives a random part of the peer's bytes to the loop, or the news of
// its FIN.
func (s *socket) deliver() {
	s.reading = false
	if !s.open || s.broken || s.conn == nil {
		if s.conn == nil && s.open && !s.broken {
			s.read()
		}
		return
	}
	if s.paused {
		if s.watch && s.peerFIN {
			s.closed(loop.EOF)
		}
		return
	}
	if len(s.in) == 0 {
		if s.peerFIN {
			s.closed(loop.EOF)
		}
		return
	}
	n := len(s.in)
	switch {
	case s.w.chance(100):
		n = 1
	case s.w.chance(300):
		n = 1 + s.w.rng.IntN(n)
	}
	n = min(n, 64<<10)
	p := append([]byte(nil), s.in[:n]...)
	s.in = s.in[n:]
	s.w.callback(s.conn, func() { s.conn.OnBytes(p) })
	for i := range p { // a view kept beyond the callback shows
		p[i] = 0xdd
	}
	if len(s.in) > 0 || s.peerFIN {
		s.read()
	}
}

func (s *socket) closed(c loop.Cause) {
	if s.open {
		s.open = false
		s.pending = nil
		s.w.callback(s.conn, func() { s.conn.OnClosed(c) })
	}
}
