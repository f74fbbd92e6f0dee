package reactor

import (
	"io"
	"net"
	"syscall"
	"testing"
	"time"
)

// TestReach tells a request that the peer's program may have read from one
// that met a closed connection.
func TestReach(t *testing.T) {
	for _, tt := range []struct {
		name  string
		first int // bytes of an exchange before the mark
		peer  func(net.Conn, chan struct{})
		want  bool
	}{
		{"read, then closed", 100, func(c net.Conn, sent chan struct{}) { readFull(c, 100); readFull(c, 50); c.Close() }, true},
		{"open, not read by the program", 100, func(c net.Conn, sent chan struct{}) { readFull(c, 100); <-sent; <-sent }, true},
		{"closed before the request", 100, func(c net.Conn, sent chan struct{}) { readFull(c, 100); c.Close() }, false},
		{"first request of a connection", 0, func(c net.Conn, sent chan struct{}) { readFull(c, 50); c.Close() }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			sent, done := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(done)
				if c, err := l.Accept(); err == nil {
					tt.peer(c, sent)
					c.Close()
				}
			}()
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			fd := descriptor(t, c)
			var r reach
			r.begin(fd)
			write := func(n int) {
				_, _ = c.Write(make([]byte, n))
				r.written += int64(n)
			}
			write(tt.first)
			if !tt.want {
				_, _ = io.ReadAll(c) // the peer's FIN
			} else if tt.first > 0 {
				await(t, func() bool { return ackedBytes(fd) >= r.before+r.written })
			}
			r.mark = r.written
			write(50)
			if tt.want {
				await(t, func() bool { return ackedBytes(fd) > r.before+r.mark })
			} else {
				_, _ = io.ReadAll(c) // the reset
			}
			r.end(fd)
			if got := r.acked > r.before+r.mark; got != tt.want {
				t.Errorf("reached = %v, want %v: %+v", got, tt.want, r)
			}
			close(sent)
			<-done
		})
	}
}

func readFull(c net.Conn, n int) { _, _ = io.ReadFull(c, make([]byte, n)) }

func await(t *testing.T, ok func() bool) {
	t.Helper()
	for range 1000 {
		if ok() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("the peer's kernel acknowledges nothing")
}

func descriptor(t *testing.T, c net.Conn) (fd int) {
	t.Helper()
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(d uintptr) { fd = int(d) }); err != nil {
		t.Fatal(err)
	}
	return fd
}
