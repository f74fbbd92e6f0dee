package reactor

import (
	"errors"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"relay/loop"
)

// TestEcho is the plain path: open, bytes, close by the peer.
func TestEcho(t *testing.T) {
	closed := make(chan loop.Cause, 1)
	st := play(t, Options{}, func(c *core) {
		c.accept = func(c *core, s loop.Socket, p loop.Peer) loop.Conn {
			if !p.Addr.IsValid() || p.TLS || p.ProxyHeader {
				t.Errorf("peer is %+v", p)
			}
			return &conn{core: c, bytes: s.Write, closed: func(cause loop.Cause) { closed <- cause }}
		}
	})
	c := st.dialClient()
	roundTrip(t, c, "hello")
	roundTrip(t, c, "hello again")
	_ = c.Close()
	if got := receive(t, closed); got != loop.EOF {
		t.Errorf("cause is %d, want EOF", got)
	}
	eventually(t, "no client is counted", func() bool { return clients(st.r) == 0 })
}

func clients(r *Reactor) (n int) {
	for _, l := range r.Stats().Loops {
		n += l.Clients
	}
	return n
}

// TestFinEndsConnection: gnet closes at a FIN; the loop learns it as EOF while
// nothing is paused.
func TestFinEndsConnection(t *testing.T) {
	closed := make(chan loop.Cause, 1)
	st := play(t, Options{}, func(c *core) {
		c.accept = func(c *core, s loop.Socket, _ loop.Peer) loop.Conn {
			return &conn{core: c, closed: func(cause loop.Cause) { closed <- cause }}
		}
	})
	c := st.dialClient()
	_ = c.CloseWrite()
	if got := receive(t, closed); got != loop.EOF {
		t.Errorf("cause is %d, want EOF", got)
	}
}

// TestFinWhilePaused: a client that shuts its side down while it is paused
// without a watch still gets its answer.
func TestFinWhilePaused(t *testing.T) {
	asked := make(chan loop.Socket, 1)
	closed := make(chan loop.Cause, 1)
	st := play(t, Options{Loops: 1}, func(c *core) {
		c.accept = func(c *core, s loop.Socket, _ loop.Peer) loop.Conn {
			return &conn{core: c, closed: func(cause loop.Cause) { closed <- cause }, bytes: func([]byte) {
				s.PauseRead(false)
				asked <- s
			}}
		}
	})
	c := st.dialClient()
	if _, err := io.WriteString(c, "question"); err != nil {
		t.Fatal(err)
	}
	_ = c.CloseWrite()
	s := receive(t, asked)
	for range 3 {
		st.on(0, func(*core) {}) // looks at the sockets in between
	}
	st.on(0, func(*core) { s.Write([]byte("answer")); s.ResumeRead() })
	got, err := io.ReadAll(c)
	if string(got) != "answer" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if got := receive(t, closed); got != loop.EOF {
		t.Errorf("cause is %d, want EOF", got)
	}
}

// TestHangUpWhilePaused: with the watch, a peer that goes away while paused is
// reported; without, only when reading goes on.
func TestHangUpWhilePaused(t *testing.T) {
	for _, tt := range []struct {
		name  string
		reset bool
		want  loop.Cause
	}{{"fin", false, loop.EOF}, {"reset", true, loop.Reset}} {
		t.Run(tt.name, func(t *testing.T) {
			paused := make(chan struct{}, 1)
			closed := make(chan loop.Cause, 1)
			st := play(t, Options{}, func(c *core) {
				c.accept = func(c *core, s loop.Socket, _ loop.Peer) loop.Conn {
					s.PauseRead(true)
					paused <- struct{}{}
					return &conn{core: c, closed: func(cause loop.Cause) { closed <- cause }}
				}
			})
			c := st.dialClient()
			receive(t, paused)
			if tt.reset {
				_ = c.SetLinger(0)
			}
			_ = c.Close()
			if got := receive(t, closed); got != tt.want {
				t.Errorf("cause is %d, want %d", got, tt.want)
			}
		})
	}
}

// TestResetEndsConnection: a reset is not an end.
func TestResetEndsConnection(t *testing.T) {
	for _, paused := range []bool{false, true} {
		opened := make(chan struct{}, 1)
		closed := make(chan loop.Cause, 1)
		st := play(t, Options{}, func(c *core) {
			c.accept = func(c *core, s loop.Socket, _ loop.Peer) loop.Conn {
				if paused {
					s.PauseRead(false)
				}
				opened <- struct{}{}
				return &conn{core: c, closed: func(cause loop.Cause) { closed <- cause }}
			}
		})
		c := st.dialClient()
		receive(t, opened)
		_ = c.SetLinger(0)
		_ = c.Close()
		if got := receive(t, closed); got != loop.Reset {
			t.Errorf("paused %v: cause is %d, want Reset", paused, got)
		}
	}
}

// TestClosedByLoop: Close is silent to the Conn, and what is done afterwards
// does nothing, in whatever state.
func TestClosedByLoop(t *testing.T) {
	var told atomic.Int64
	done := make(chan struct{}, 1)
	st := play(t, Options{Loops: 1}, func(c *core) {
		c.accept = func(c *core, s loop.Socket, _ loop.Peer) loop.Conn {
			return &conn{core: c, closed: func(loop.Cause) { told.Add(1) }, bytes: func([]byte) {
				s.Close()
				s.Write([]byte("late"))
				s.PauseRead(true)
				s.ResumeRead()
				s.NotifyDrained(0)
				s.CloseWrite()
				s.Close()
				if s.Buffered() != 0 {
					t.Error("a closed socket has output")
				}
				done <- struct{}{}
			}}
		}
	})
	c := st.dialClient()
	if _, err := io.WriteString(c, "x"); err != nil {
		t.Fatal(err)
	}
	receive(t, done)
	if got, err := io.ReadAll(c); len(got) != 0 || err != nil {
		t.Errorf("client got %q, %v", got, err)
	}
	st.on(0, func(*core) {})
	if told.Load() != 0 {
		t.Error("OnClosed after Close")
	}
}

// TestStaleWrite: what is written to a connection that has gone must not reach
// the connection that has got its descriptor number.
func TestStaleWrite(t *testing.T) {
	sockets := make(chan loop.Socket, 2)
	closed := make(chan struct{}, 1)
	st := play(t, Options{Loops: 1}, func(c *core) {
		c.accept = func(c *core, s loop.Socket, _ loop.Peer) loop.Conn {
			sockets <- s
			return &conn{core: c, closed: func(loop.Cause) { closed <- struct{}{} }}
		}
	})
	first := st.dialClient()
	old := receive(t, sockets)
	ours, second := tcpPair(t)
	_ = first.Close()
	receive(t, closed)
	st.on(0, func(*core) {}) // the descriptor is closed behind OnClosed
	plugBelow(t, raw(old).fd)
	a := &listener{r: st.r}
	a.enter(ours, 0) // the descriptor that gnet makes is the lowest free one
	s := receive(t, sockets)
	if raw(s).fd != raw(old).fd {
		t.Fatalf("descriptor %d was not used again, but %d", raw(old).fd, raw(s).fd)
	}
	st.on(0, func(*core) {
		old.Write([]byte("ANSWER FOR THE OLD CLIENT"))
		old.CloseWrite()
		old.Close()
	})
	st.on(0, func(*core) {})
	if n, err := syscallPeek(second); n != 0 {
		t.Errorf("another client got %d bytes, %v", n, err)
	}
}

// tcpPair is a connection of which nobody knows.
func tcpPair(t *testing.T) (server, client *net.TCPConn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	client = dialTCP(t, ln.Addr().String())
	c, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c.(*net.TCPConn), client
}

// plugBelow takes all free descriptors below fd until the test ends.
func plugBelow(t *testing.T, fd int) {
	t.Helper()
	for {
		plug, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		if plug >= fd {
			_ = unix.Close(plug)
			return
		}
		t.Cleanup(func() { _ = unix.Close(plug) })
	}
}

// syscallPeek reports how many bytes wait at c, without waiting for any.
func syscallPeek(c *net.TCPConn) (n int, err error) {
	rc, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	buf := make([]byte, 64)
	ctl := rc.Read(func(fd uintptr) bool {
		n, _, err = syscall.Recvfrom(int(fd), buf, syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		return true
	})
	return max(n, 0), errors.Join(ctl, err)
}

// TestReadAfterClose: a connection that the loop closes in the middle of its
// input hears nothing more, even when its descriptor is in use again. The
// edge-triggered mode of gnet fails this; the options must not have it.
func TestReadAfterClose(t *testing.T) {
	after := make(chan struct{}, 1)
	hits := make(chan struct{}, 100)
	st := play(t, Options{Loops: 1}, func(c *core) {
		c.accept = func(c *core, s loop.Socket, _ loop.Peer) loop.Conn {
			gone := false
			return &conn{core: c, bytes: func(p []byte) {
				if gone {
					after <- struct{}{}
				}
				if p[0] == 'c' {
					gone = true
					s.Close()
				}
				hits <- struct{}{}
			}}
		}
	})
	if o := st.r.gnetOptions(); o.EdgeTriggeredIO || o.EdgeTriggeredIOChunk != 0 || o.ReusePort || o.LockOSThread {
		t.Errorf("options are %+v", o)
	}
	for range 50 {
		a, b := st.dialClient(), st.dialClient()
		big := make([]byte, 200<<10)
		big[0] = 'c'
		go func() { _, _ = a.Write(big) }() // ends in a reset
		if _, err := io.WriteString(b, "OTHER TENANT'S DATA"); err != nil {
			t.Fatal(err)
		}
		receive(t, hits)
		receive(t, hits)
		_ = b.Close()
	}
	st.on(0, func(*core) {})
	select {
	case <-after:
		t.Error("OnBytes after Close")
	default:
	}
}

// TestFailedWriteIsTold: gnet closes a connection inside a write that fails;
// the Conn hears of it after the callback, once, and other writes of the same
// callback go nowhere. The checks of core see to it that it is not inside.
func TestFailedWriteIsTold(t *testing.T) {
	closed := make(chan loop.Cause, 1)
	sockets := make(chan loop.Socket, 1)
	st := play(t, Options{Loops: 1}, func(c *core) {
		c.accept = func(c *core, s loop.Socket, _ loop.Peer) loop.Conn {
			s.PauseRead(false)
			sockets <- s
			return &conn{core: c, closed: func(cause loop.Cause) { closed <- cause }}
		}
	})
	c := st.dialClient()
	s := receive(t, sockets)
	st.on(0, func(*core) {
		_ = c.SetLinger(0)
		_ = c.Close() // the loop cannot see the reset before it writes
		for range 100 {
			s.Write([]byte("more and more"))
		}
		select {
		case <-closed:
			t.Error("told inside the callback")
		default:
		}
	})
	if got := receive(t, closed); got != loop.Reset {
		t.Errorf("cause is %d, want Reset", got)
	}
}
