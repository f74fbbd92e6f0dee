package reactor

import (
	"crypto/tls"
	"io"
	"net"
	"time"

	"relay/loop"
)

// A secure is the TLS of one socket. Owner: the goroutine of the handshake,
// then the shard.
//
// crypto/tls does blocking I/O only. It forgives a read error that says
// Temporary and goes on with partial records, but a handshake that met one is
// lost: so the handshake runs on a goroutine over the real connection, and the
// same tls.Conn then lives on memory.
type secure struct {
	conn *tls.Conn
	wire *wire
	// ended says that the peer sent its close_notify.
	ended bool
}

// A wire is the net.Conn under a tls.Conn.
type wire struct {
	real          net.Conn // nil once the loop has it
	guest         *guest   // while an inbound handshake runs
	early         []byte   // read from real before the handshake began
	in            []byte   // borrowed: encrypted bytes of the current event
	out           []byte   // encrypted bytes not given to the socket yet
	local, remote net.Addr
}

func newWire(c net.Conn, early []byte) *wire {
	return &wire{real: c, early: early, local: c.LocalAddr(), remote: c.RemoteAddr()}
}

// dry is what a read finds when the event's bytes are used up.
type dry struct{}

func (dry) Error() string   { return "no bytes now" }
func (dry) Timeout() bool   { return true }
func (dry) Temporary() bool { return true }

// Read implements net.Conn.
func (w *wire) Read(p []byte) (int, error) {
	switch {
	case w.real == nil && len(w.in) == 0:
		return 0, dry{}
	case w.real == nil:
		n := copy(p, w.in)
		w.in = w.in[n:]
		return n, nil
	case len(w.early) > 0:
		n := copy(p, w.early)
		w.early = w.early[n:]
		return n, nil
	}
	return w.real.Read(p)
}

// Write implements net.Conn. It never reaches the socket from inside
// crypto/tls: a failing write closes the connection, and that under the locks
// of tls.Conn.
func (w *wire) Write(p []byte) (int, error) {
	if w.real != nil {
		return w.real.Write(p)
	}
	w.out = append(w.out, p...)
	return len(p), nil
}

// Close implements net.Conn.
func (w *wire) Close() error {
	if w.real != nil {
		return w.real.Close()
	}
	return nil
}

func (w *wire) LocalAddr() net.Addr  { return w.local }
func (w *wire) RemoteAddr() net.Addr { return w.remote }

// The deadline of the handshake is set on the real connection; crypto/tls sets
// its own for close_notify, which means nothing here.
func (w *wire) SetDeadline(time.Time) error      { return nil }
func (w *wire) SetReadDeadline(time.Time) error  { return nil }
func (w *wire) SetWriteDeadline(time.Time) error { return nil }

// secured takes c over for the loop after its handshake.
func (s *socket) secured(c *tls.Conn, w *wire) {
	s.tls = &secure{conn: c, wire: w}
	s.held, w.early, w.real, w.guest = w.early, nil, nil, nil
}

// takeCipher gives the wire the shard's buffer for one call of crypto/tls, and
// flushCipher sends what the call wrote.
func (s *socket) takeCipher() {
	s.tls.wire.out, s.shard.cipher = s.shard.cipher[:0], nil
}

func (s *socket) flushCipher() {
	out := s.tls.wire.out
	s.tls.wire.out = nil
	s.push(out)
	if cap(out) <= cipherBytesKeep {
		s.shard.cipher = out[:0]
	}
}

// seal encrypts and sends p.
func (s *socket) seal(p []byte) {
	for len(p) > 0 && s.state == live {
		n := min(len(p), sealBytesMax)
		s.takeCipher()
		_, err := s.tls.conn.Write(p[:n])
		s.flushCipher()
		if err != nil {
			s.fail(loop.Reset)
		}
		p = p[n:]
	}
}

// sealEnd sends close_notify.
func (s *socket) sealEnd() {
	s.takeCipher()
	_ = s.tls.conn.CloseWrite()
	s.flushCipher()
}

// unseal decrypts in, behind what crypto/tls holds already, until there is no
// whole record left or the loop pauses; the rest of in is then held.
func (s *socket) unseal(in []byte) {
	t := s.tls
	t.wire.in = in
	for (s.state == live || s.state == ended) && !s.paused && !t.ended {
		s.takeCipher()
		n, err := t.conn.Read(s.shard.plain)
		s.flushCipher()
		if n > 0 {
			s.conn.OnBytes(s.shard.plain[:n])
			poison(s.shard.plain[:n])
			continue // what err says is said again by the next read
		}
		if _, isDry := err.(dry); isDry {
			break
		}
		if t.ended = err == io.EOF; t.ended {
			s.fail(loop.EOF)
		} else {
			s.fail(loop.Reset)
			break
		}
	}
	if len(t.wire.in) > 0 && s.paused {
		s.held = append(s.held, t.wire.in...)
	}
	t.wire.in = nil
}
