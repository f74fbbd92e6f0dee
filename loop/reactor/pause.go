package reactor

import (
	"slices"

	"golang.org/x/sys/unix"

	"relay/loop"
)

// PauseRead implements loop.Socket.
func (s *socket) PauseRead(watchHangUp bool) {
	if s.paused && s.watchHangUp == watchHangUp {
		return
	}
	if !s.paused {
		s.shard.counts.pauses.Add(1)
	}
	s.paused, s.watchHangUp = true, watchHangUp
	switch {
	case s.state == live:
		s.arm()
	case s.state == ended && watchHangUp:
		s.later()
	}
}

// ResumeRead implements loop.Socket.
func (s *socket) ResumeRead() {
	if !s.paused {
		return
	}
	s.paused, s.slow = false, false
	switch {
	case s.state == live:
		s.arm()
		if len(s.held) > 0 || s.tls != nil {
			s.later()
		}
	case s.state == ended:
		s.later()
	}
}

// arm sets what epoll reports. gnet asks for reading by itself when a write
// finds the socket full and when it has drained, so a paused socket is armed
// again after both.
func (s *socket) arm() {
	events := uint32(unix.EPOLLIN | unix.EPOLLPRI)
	if s.paused {
		events = 0
		if s.watchHangUp {
			events = unix.EPOLLRDHUP
		}
	}
	if !s.slow && s.gc.OutboundBuffered() > 0 {
		events |= unix.EPOLLOUT
	}
	ev := unix.EpollEvent{Fd: int32(s.fd), Events: events}
	if err := unix.EpollCtl(s.shard.epfd, unix.EPOLL_CTL_MOD, s.fd, &ev); err != nil {
		s.fail(loop.Broken)
	}
}

// read takes what gnet has read. gnet's buffer is emptied first: p stays valid
// until the event ends.
func (s *socket) read() {
	p, _ := s.gc.Peek(-1)
	_, _ = s.gc.Discard(-1)
	switch {
	case len(p) == 0:
	case s.paused:
		s.hold(p)
		s.arm()
	case s.tls != nil:
		s.unseal(p)
	default:
		s.conn.OnBytes(p)
		poison(p)
	}
}

// hold keeps bytes that came while paused. gnet reads once each time it has
// drained the output; when that has brought too much, it is kept from draining
// by itself.
func (s *socket) hold(p []byte) {
	s.held = append(s.held, p...)
	if len(s.held) >= heldBytesMax && !s.slow {
		s.slow = true
		s.needTick()
	}
}

// again goes on with what was held when reading was resumed, and with the end
// of a connection that ended meanwhile.
func (s *socket) again() {
	if !s.paused {
		p := s.held
		s.held = nil
		switch {
		case s.tls != nil:
			s.unseal(p)
		case len(p) > 0:
			s.conn.OnBytes(p)
			poison(p)
		}
	}
	if s.state == ended && (!s.paused || s.watchHangUp) {
		s.state = dead
		if s.tls != nil && !s.tls.ended {
			s.cause = loop.Reset
		}
		s.conn.OnClosed(s.cause)
	}
}

// salvage reads what the kernel still has of a paused connection that gnet
// closes: with both directions shut, epoll reports the end even to those who
// do not read. More than may be held is a cut.
func (s *socket) salvage() loop.Cause {
	for len(s.held) < heldBytesMax {
		s.held = slices.Grow(s.held, salvageBytes)
		n := len(s.held)
		switch got, err := unix.Read(s.fd, s.held[n:n+salvageBytes]); {
		case err != nil:
			return loop.Reset
		case got == 0:
			return loop.EOF
		default:
			s.held = s.held[:n+got]
		}
	}
	return loop.Reset
}
