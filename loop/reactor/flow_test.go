package reactor

import (
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"relay/loop"
)

// residentBytes is the resident memory of this process.
func residentBytes(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// TestPauseBoundsMemory relays a body from a fast sender to a slow reader
// through sockets that pause above a high-water mark: memory stays near the
// mark, and every byte arrives. It runs in a process of its own, so that the
// memory is its own.
func TestPauseBoundsMemory(t *testing.T) {
	if !inChild(t, "REACTOR_PAUSE_CHILD") {
		return
	}
	const body, high, low = 128 << 20, 512 << 10, 128 << 10
	var pauses, peak atomic.Int64
	var paused atomic.Bool // the sender, now
	var sink loop.Socket   // touched on the loop only
	st := play(t, Options{Loops: 1}, func(c *core) {
		c.accept = func(c *core, s loop.Socket, _ loop.Peer) loop.Conn {
			if sink == nil {
				sink = s // the reader connects first
				return &conn{core: c}
			}
			return &conn{core: c, bytes: func(p []byte) {
				sink.Write(p)
				peak.Store(max(peak.Load(), int64(sink.Buffered())))
				if sink.Buffered() > high {
					pauses.Add(1)
					paused.Store(true)
					s.PauseRead(false)
					sink.NotifyDrained(low)
				}
			}, closed: func(loop.Cause) {
				sink.NotifyDrained(0)
			}}
		}
	})
	// The drained answer must resume the sender, whose socket the sink does not
	// know: it is found through the core.
	reader := st.dialClient()
	eventually(t, "reader is in", func() bool { return clients(st.r) == 1 })
	relayPaused(t, st, reader, body, &paused)
	if pauses.Load() < 3 {
		t.Errorf("%d pauses: the reader was not slow", pauses.Load())
	}
	if peak.Load() > high+4*readBytesMax {
		t.Errorf("output grew to %d", peak.Load())
	}
}

func relayPaused(t *testing.T, st *stage, reader *net.TCPConn, body int64, paused *atomic.Bool) {
	t.Helper()
	_ = reader.SetDeadline(time.Now().Add(2 * patience))
	sender := st.dialClient()
	_ = sender.SetDeadline(time.Now().Add(2 * patience))
	st.on(0, func(c *core) { bridge(c, paused) })
	runtime.GC()
	before := residentBytes(t)
	sent := make(chan error, 1)
	go func() {
		_, err := io.Copy(struct{ io.Writer }{sender}, &patternReader{n: body})
		sent <- err
		_ = sender.CloseWrite()
	}()
	var check patternCheck
	var most int64
	buf := make([]byte, 256<<10)
	for check.off < body {
		if check.off == 8<<20 {
			eventually(t, "a stopped reader pauses the sender", paused.Load)
		}
		n, err := reader.Read(buf[:min(int64(len(buf)), 8<<20-check.off%(8<<20))])
		if err != nil {
			t.Fatalf("after %d bytes: %v", check.off, err)
		}
		_, _ = check.Write(buf[:n])
		if check.off%(8<<20) == 0 {
			most = max(most, residentBytes(t))
		}
	}
	if err := receive(t, sent); err != nil || check.wrong {
		t.Errorf("sent with %v, bytes wrong: %v", err, check.wrong)
	}
	if grown := most - before; grown > 48<<20 {
		t.Errorf("resident memory grew by %d bytes", grown)
	}
}

// bridge makes the drained reader resume all others of its loop.
func bridge(c *core, paused *atomic.Bool) {
	first := c.sockets[0]
	c.conns[0].drained = func() {
		paused.Store(false)
		for _, s := range c.sockets {
			if s != first {
				s.ResumeRead()
			}
		}
	}
}

// TestPausedWhileWriting: writing to a paused connection makes gnet read it
// again and again; what comes stays bounded, nothing is lost, and OnBytes
// waits for ResumeRead.
func TestPausedWhileWriting(t *testing.T) {
	const back, forth = 24 << 20, 64 << 20
	var early atomic.Bool
	var held atomic.Int64
	var check patternCheck
	paused := true
	all := make(chan struct{})
	st := play(t, Options{Loops: 1}, func(c *core) {
		c.accept = func(c *core, s loop.Socket, _ loop.Peer) loop.Conn {
			s.PauseRead(false)
			left := &patternReader{n: forth}
			buf := make([]byte, 300<<10)
			more := func() {
				for s.Buffered() < 1<<20 {
					n, _ := left.Read(buf)
					if n == 0 {
						return
					}
					s.Write(buf[:n])
				}
				held.Store(max(held.Load(), int64(len(raw(s).held))))
				s.NotifyDrained(64 << 10)
			}
			more()
			return &conn{core: c, drained: more, bytes: func(p []byte) {
				early.Store(early.Load() || paused)
				_, _ = check.Write(p)
				if check.off == back {
					close(all)
				}
			}}
		}
	})
	c := st.dialClient()
	sent := make(chan error, 1)
	go func() {
		_, err := io.Copy(struct{ io.Writer }{c}, &patternReader{n: back})
		sent <- err
	}()
	var got patternCheck
	if _, err := io.CopyN(&got, c, forth); err != nil || got.wrong {
		t.Fatalf("got %d bytes, wrong %v, %v", got.off, got.wrong, err)
	}
	if early.Load() {
		t.Error("OnBytes while paused")
	}
	if held.Load() > heldBytesMax+readBytesMax {
		t.Errorf("%d bytes were held", held.Load())
	}
	st.on(0, func(c *core) {
		if held := len(raw(c.sockets[0]).held); held < heldBytesMax {
			t.Errorf("only %d bytes were held: gnet has not read while paused, the test proves nothing", held)
		}
		paused = false
		c.sockets[0].ResumeRead()
	})
	receive(t, all)
	if err := receive(t, sent); err != nil || check.wrong {
		t.Errorf("sent with %v, bytes wrong: %v", err, check.wrong)
	}
}

// TestPauseFlips pauses and resumes at random, also inside OnBytes, while
// bytes flow both ways.
func TestPauseFlips(t *testing.T) {
	const size = 8 << 20
	st := play(t, Options{}, func(c *core) {
		random := rand.New(rand.NewPCG(1, uint64(c.index)))
		c.accept = func(c *core, s loop.Socket, _ loop.Peer) loop.Conn {
			inside := false
			return &conn{core: c, bytes: func(p []byte) {
				if inside {
					t.Error("OnBytes inside OnBytes")
				}
				inside = true
				s.Write(p)
				switch random.IntN(4) {
				case 0:
					s.PauseRead(random.IntN(2) == 0)
					s.NotifyDrained(random.IntN(1 << 16))
				case 1:
					s.PauseRead(false)
					s.ResumeRead()
				}
				inside = false
			}, drained: s.ResumeRead}
		}
	})
	for range 4 {
		c := st.dialClient()
		go func() { _, _ = io.Copy(struct{ io.Writer }{c}, &patternReader{n: size}) }()
		var got patternCheck
		if _, err := io.CopyN(&got, c, size); err != nil || got.wrong {
			t.Errorf("got %d bytes, wrong %v, %v", got.off, got.wrong, err)
		}
	}
}

// TestCloseBehindOutput: a connection that is closed once its output has
// drained has sent all of it. gnet's own Close would cut it with a clean FIN.
func TestCloseBehindOutput(t *testing.T) {
	const size = 33 << 20
	st := play(t, Options{}, func(c *core) {
		c.accept = func(c *core, s loop.Socket, _ loop.Peer) loop.Conn {
			p := make([]byte, size)
			pattern(0, p)
			s.Write(p)
			clear(p) // it is ours again
			if s.Buffered() == 0 {
				t.Error("all was taken at once: the test proves nothing")
			}
			s.NotifyDrained(1 << 20)
			s.NotifyDrained(0) // replaces
			return &conn{core: c, drained: func() {
				if s.Buffered() != 0 {
					t.Errorf("drained with %d bytes", s.Buffered())
				}
				s.Close()
			}}
		}
	})
	var got patternCheck
	if _, err := io.Copy(&got, st.dialClient()); err != nil || got.wrong || got.off != size {
		t.Errorf("got %d bytes, wrong %v, %v", got.off, got.wrong, err)
	}
}

// TestCloseWrite: a FIN behind the answer, reading goes on.
func TestCloseWrite(t *testing.T) {
	closed := make(chan loop.Cause, 1)
	rest := make(chan string, 1)
	st := play(t, Options{}, func(c *core) {
		c.accept = func(c *core, s loop.Socket, _ loop.Peer) loop.Conn {
			text := ""
			s.Write([]byte("answer"))
			s.CloseWrite()
			s.CloseWrite()
			s.Write([]byte("nothing after a FIN"))
			return &conn{core: c, bytes: func(p []byte) { text += string(p) },
				closed: func(cause loop.Cause) { rest <- text; closed <- cause }}
		}
	})
	c := st.dialClient()
	if got, err := io.ReadAll(c); string(got) != "answer" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := io.WriteString(c, "the rest"); err != nil {
		t.Fatal(err)
	}
	_ = c.CloseWrite()
	if got := receive(t, rest); got != "the rest" {
		t.Errorf("loop got %q", got)
	}
	if got := receive(t, closed); got != loop.EOF {
		t.Errorf("cause is %d, want EOF", got)
	}
}

// TestEndWhilePaused: with both directions shut, epoll reports the end even to
// a socket with no interest; what the peer had sent is delivered all the same,
// after ResumeRead, before OnClosed.
func TestEndWhilePaused(t *testing.T) {
	for _, tt := range []struct {
		name string
		size int
		want loop.Cause
	}{{"nothing", 0, loop.EOF}, {"some", 50 << 10, loop.EOF}, {"too much", heldBytesMax + 32<<10, loop.Reset}} {
		t.Run(tt.name, func(t *testing.T) {
			closed := make(chan loop.Cause, 1)
			in := make(chan struct{})
			var got patternCheck
			st := play(t, Options{Loops: 1}, func(c *core) {
				c.accept = func(c *core, s loop.Socket, _ loop.Peer) loop.Conn {
					s.PauseRead(false)
					if err := unix.SetsockoptInt(raw(s).fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 4*heldBytesMax); err != nil {
						t.Error(err)
					}
					close(in)
					return &conn{core: c, bytes: func(p []byte) { _, _ = got.Write(p) },
						closed: func(cause loop.Cause) { closed <- cause }}
				}
			})
			c := st.dialClient()
			receive(t, in)
			if _, err := io.Copy(c, &patternReader{n: int64(tt.size)}); err != nil {
				t.Fatal(err)
			}
			_ = c.CloseWrite()
			st.on(0, func(c *core) { c.sockets[0].CloseWrite() })
			eventually(t, "the end is seen", func() bool {
				state := live
				st.on(0, func(c *core) { state = raw(c.sockets[0]).state })
				return state != live
			})
			st.on(0, func(c *core) { c.sockets[0].ResumeRead() })
			if cause := receive(t, closed); cause != tt.want {
				t.Errorf("cause is %d, want %d", cause, tt.want)
			}
			if tt.want == loop.EOF && (got.off != int64(tt.size) || got.wrong) {
				t.Errorf("got %d bytes, wrong %v", got.off, got.wrong)
			}
		})
	}
}

// TestDrainedComesByTick: asked with nothing buffered, the answer comes, once.
func TestDrainedComesByTick(t *testing.T) {
	drained := make(chan struct{}, 10)
	var inside bool
	st := play(t, Options{Loops: 1}, func(c *core) {
		c.accept = func(c *core, s loop.Socket, _ loop.Peer) loop.Conn {
			inside = true
			s.NotifyDrained(0)
			inside = false
			return &conn{core: c, drained: func() {
				if inside {
					t.Error("drained inside NotifyDrained")
				}
				drained <- struct{}{}
			}}
		}
	})
	st.dialClient()
	receive(t, drained)
	seen := st.cores[0].ticks.Load()
	eventually(t, "ticks go on", func() bool { return st.cores[0].ticks.Load() > seen+3 })
	if len(drained) != 0 {
		t.Error("drained twice")
	}
}
