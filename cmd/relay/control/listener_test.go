package control

import (
	"errors"
	"net"
	"runtime"
	"testing"
)

// dial opens so many connections, which stay open until they are closed.
func dial(t *testing.T, l net.Listener, n int) []net.Conn {
	t.Helper()
	var list []net.Conn
	for range n {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		list = append(list, c)
	}
	return list
}

func TestBoundedListener(t *testing.T) {
	under, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := newBoundedListener(under, 2)
	dial(t, l, 3)
	accepted := make(chan net.Conn, 4)
	failed := make(chan error, 1)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				failed <- err
				return
			}
			accepted <- c
		}
	}()
	first, second := <-accepted, <-accepted
	if n := len(l.slots); n != 2 {
		t.Fatalf("%d connections count as open, want 2", n)
	}
	first.Close()
	first.Close() // gives its room back once
	third := <-accepted
	if n := len(l.slots); n > 2 {
		t.Errorf("%d connections are open, want at most 2", n)
	}
	defer second.Close()
	defer third.Close()
	// The limit is reached again: Accept waits for room, and Close ends that.
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept ended with %v", err)
	}
	l.Close()
}

// TestServerBoundsConnections wants as many connections open as the limit says
// and no more, and an answer for whoever comes once there is room.
func TestServerBoundsConnections(t *testing.T) {
	s := start(t, "", &fakeLoop{})
	if s.server.listener == nil || cap(s.server.listener.slots) != connectionsMax {
		t.Fatal("the listener is not bounded")
	}
	held := dial(t, s.server.listener, connectionsMax)
	for len(s.server.listener.slots) < connectionsMax {
		runtime.Gosched()
	}
	for _, c := range held[:8] {
		c.Close()
	}
	if status, _ := s.get("/healthz", ""); status != 200 {
		t.Errorf("healthz after some have gone: %d", status)
	}
}
