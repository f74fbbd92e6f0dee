package reactor

import (
	"io"
	"testing"

	"relay/loop"
)

// TestReached: what the peer's kernel has acknowledged since the mark is seen,
// while the connection is open and in OnClosed; what was written into a
// connection that the peer had reset is not.
func TestReached(t *testing.T) {
	closed := make(chan bool, 1)
	sockets := make(chan loop.Socket, 1)
	st := play(t, Options{Loops: 1}, func(c *core) {
		c.accept = func(c *core, s loop.Socket, _ loop.Peer) loop.Conn {
			if s.Mark(); s.Reached() {
				t.Error("reached before anything was written")
			}
			sockets <- s
			return &conn{core: c, closed: func(loop.Cause) { closed <- s.Reached() }}
		}
	})
	reached := func(s loop.Socket) (yes bool) {
		st.on(0, func(*core) { yes = s.Reached() })
		return yes
	}
	c := st.dialClient()
	s := receive(t, sockets)
	st.on(0, func(*core) { s.Write([]byte("one")) })
	got := make([]byte, 3)
	if _, err := io.ReadFull(c, got); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the write is acknowledged", func() bool { return reached(s) })
	st.on(0, func(*core) { s.Mark() })
	if reached(s) {
		t.Error("reached after a new mark")
	}
	_ = c.Close()
	if receive(t, closed) {
		t.Error("reached at the end, with nothing written after the mark")
	}

	c = st.dialClient()
	s = receive(t, sockets)
	st.on(0, func(*core) { s.Write([]byte("two")) })
	eventually(t, "the write is acknowledged", func() bool { return reached(s) })
	_ = c.Close()
	if !receive(t, closed) {
		t.Error("what was reached is forgotten at the end")
	}

	c = st.dialClient()
	s = receive(t, sockets)
	st.on(0, func(*core) {
		s.Mark()
		_ = c.SetLinger(0)
		_ = c.Close()
		s.Write([]byte("three"))
	})
	if receive(t, closed) {
		t.Error("a reset connection is taken for one that was reached")
	}
}
