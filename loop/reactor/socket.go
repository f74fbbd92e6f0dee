package reactor

import (
	"errors"
	"io"
	"os"

	"github.com/panjf2000/gnet/v2"
	"golang.org/x/sys/unix"

	"relay/loop"
)

// A socketState is where a socket is in its life.
type socketState uint8

const (
	enrolling socketState = iota // not registered with its loop
	live                         // gnet has it
	ended                        // the peer has finished; what it sent is held, and told before OnClosed
	lost                         // gone; OnClosed is due
	dead                         // terminal: closed by the loop, or told
)

// A socket is one connection of a shard; it implements loop.Socket. Owner: the
// shard, once it is open.
// Invariant: gc is used only while live, because gnet writes to the descriptor
// number of a closed connection, which may be another one's by then.
type socket struct {
	shard *shard
	gc    gnet.Conn
	fd    int
	conn  loop.Conn
	tls   *secure // nil on cleartext
	way   way
	held  []byte // came while paused; bounded by heldBytesMax and one read
	cause loop.Cause
	state socketState

	reach reach

	opened       bool // set once, before the enrolling goroutine reads it
	due          bool // in shard.due
	paused       bool // the loop wants no bytes
	watchHangUp  bool // while paused: tell when the peer goes away
	slow         bool // output is flushed by the tick, not by EPOLLOUT
	finDue       bool // a FIN follows the buffered output
	attending    bool // in shard.attended
	drainWatched bool // in shard.draining
	drainLow     int  // for NotifyDrained; -1 = nothing asked
}

// A way is how a connection came to be: what Core is told at the open, and
// whose count goes down at the end.
type way interface {
	// entered makes the Conn of an open socket; on the loop's goroutine.
	entered(s *socket) loop.Conn
	// left is called once, when the socket has closed or has failed to open.
	left()
}

// Write implements loop.Socket.
func (s *socket) Write(p []byte) {
	if s.state != live || s.finDue || len(p) == 0 {
		return
	}
	if s.tls != nil {
		s.seal(p)
		return
	}
	s.push(p)
}

// push is the only writer to gnet. gnet may close the connection in here, and
// it asks for reading again when it could not write all.
func (s *socket) push(p []byte) {
	if s.state != live || len(p) == 0 {
		return
	}
	before := s.gc.OutboundBuffered()
	s.reach.written += int64(len(p))
	_, _ = s.gc.Write(p)
	if s.state == live && s.paused && before == 0 && s.gc.OutboundBuffered() > 0 {
		s.arm()
	}
}

// Buffered implements loop.Socket.
func (s *socket) Buffered() int {
	if s.state != live {
		return 0
	}
	return s.gc.OutboundBuffered()
}

// NotifyDrained implements loop.Socket.
func (s *socket) NotifyDrained(low int) {
	if s.state != live {
		return
	}
	s.drainLow = max(low, 0)
	s.watchDrain()
}

func (s *socket) watchDrain() {
	if !s.drainWatched {
		s.drainWatched = true
		s.shard.draining = append(s.shard.draining, s)
		s.shard.inHurry()
	}
}

// CloseWrite implements loop.Socket.
func (s *socket) CloseWrite() {
	if s.state != live || s.finDue {
		return
	}
	if s.tls != nil {
		s.sealEnd()
	}
	if s.state != live {
		return
	}
	s.finDue = true
	if !s.fin() {
		s.needTick()
	}
}

// fin sends the FIN if nothing is left to send before it.
func (s *socket) fin() bool {
	if s.gc.OutboundBuffered() > 0 {
		return false
	}
	_ = unix.Shutdown(s.fd, unix.SHUT_WR)
	return true
}

// Close implements loop.Socket.
func (s *socket) Close() {
	if s.state == live && s.tls != nil && !s.finDue && s.gc.OutboundBuffered() == 0 {
		s.sealEnd() // not behind lost output: a cut answer must look cut
	}
	was := s.state
	s.state = dead
	s.held = nil
	if was == live {
		_ = s.shard.el.Close(s.gc)
	}
}

// Abort implements loop.Socket.
func (s *socket) Abort() {
	if s.state == live {
		_ = unix.SetsockoptLinger(s.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
		s.finDue = true // no close_notify: the end must not look like one
	}
	s.Close()
}

// open tells the Core of a new connection.
func (s *socket) open() {
	s.reach.begin(s.fd)
	s.conn = s.way.entered(s)
	if s.tls != nil && s.state == live {
		s.later() // crypto/tls may hold bytes that came with the handshake
	}
}

// gone notes that gnet has closed the connection. The descriptor is still
// open in here, and still ours.
func (s *socket) gone(err error) {
	s.reach.end(s.fd)
	if s.state == live { // else closed by us
		s.lose(s.causeOf(err))
	}
	s.way.left()
}

// fail closes a connection that the driver finds broken.
func (s *socket) fail(c loop.Cause) {
	if s.state != live {
		return
	}
	s.lose(c)
	_ = s.shard.el.Close(s.gc)
}

// lose takes the socket from live to ended or lost; OnClosed follows.
func (s *socket) lose(c loop.Cause) {
	s.cause = c
	s.state = lost
	if c == loop.EOF && s.paused && !s.watchHangUp {
		if s.cause = s.salvage(); s.cause == loop.EOF && (len(s.held) > 0 || s.tls != nil) {
			s.state = ended
			return // until ResumeRead
		}
	}
	if c == loop.Reset && !s.paused {
		// gnet closes when a write fails, with what the peer said before its
		// reset unread: an early answer would be lost.
		if s.salvage(); len(s.held) > 0 {
			s.state = ended
		}
	}
	s.later()
}

// causeOf classifies what gnet says. A connection that breaks while it is
// paused is reported as a plain end; the kernel knows better.
func (s *socket) causeOf(err error) loop.Cause {
	if !errors.Is(err, io.EOF) {
		var failed *os.SyscallError
		s.reach.broken = errors.As(err, &failed) && failed.Syscall == "read" && failed.Err == unix.ECONNRESET
		return loop.Reset
	}
	if errno, err := unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_ERROR); err != nil || errno != 0 {
		s.reach.broken = errno == int(unix.ECONNRESET)
		return loop.Reset
	}
	if s.tls != nil && !s.paused {
		return loop.Reset // a FIN without a close_notify is a cut (RFC 8446 §6.1)
	}
	return loop.EOF
}

// later puts the socket on the list of what is settled after the callback.
func (s *socket) later() {
	if !s.due {
		s.due = true
		s.shard.due = append(s.shard.due, s)
	}
}

// needTick puts the socket on the list of those that the tick attends.
func (s *socket) needTick() {
	if !s.attending {
		s.attending = true
		s.shard.attended = append(s.shard.attended, s)
		s.shard.inHurry()
	}
}

// attend does what no event of gnet would do: it flushes the output of a slow
// socket, and sends a FIN once the output has gone. It reports whether the
// socket needs the next tick as well.
func (s *socket) attend() (more bool) {
	if s.slow && s.gc.OutboundBuffered() > 0 {
		_ = s.gc.Flush() // makes gnet read again when it empties the buffer
		if s.state != live {
			return false
		}
		s.arm()
	}
	if s.finDue && s.fin() {
		return s.slow
	}
	return s.slow || s.finDue
}
