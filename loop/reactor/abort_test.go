package reactor

import (
	"errors"
	"io"
	"syscall"
	"testing"

	"relay/loop"
)

// TestAbort: the peer reads what was sent, and then a reset, not an end.
func TestAbort(t *testing.T) {
	st := play(t, Options{}, func(c *core) {
		c.accept = func(c *core, s loop.Socket, _ loop.Peer) loop.Conn {
			return &conn{core: c, bytes: func(p []byte) {
				if string(p) == "abort" {
					s.Abort()
					return
				}
				s.Write(p)
			}}
		}
	})
	c := st.dialClient()
	roundTrip(t, c, "half of it")
	if _, err := c.Write([]byte("abort")); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(c); len(rest) != 0 || !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("read %q, %v, want a reset", rest, err)
	}
	eventually(t, "nothing is left", func() bool { return clients(st.r) == 0 })
}
