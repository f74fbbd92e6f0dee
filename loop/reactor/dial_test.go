package reactor

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"relay/loop"
	"relay/store/catalog"
)

// A caller is a core's side of dialing: what came of each dial.
type caller struct {
	opened chan loop.Socket
	failed chan *loop.Dial
	texts  chan string
	closed chan loop.Cause
}

func newCaller() *caller {
	return &caller{
		opened: make(chan loop.Socket, 10000), failed: make(chan *loop.Dial, 10000),
		texts: make(chan string, 10000), closed: make(chan loop.Cause, 10000),
	}
}

func (x *caller) shape(c *core) {
	c.opened = func(c *core, s loop.Socket, d *loop.Dial) loop.Conn {
		if d.Fault != loop.DialOK || d.Loop != c.index {
			c.t.Errorf("opened with %+v on loop %d", d, c.index)
		}
		x.opened <- s
		return &conn{core: c, bytes: func(p []byte) { x.texts <- string(p) }, closed: func(cause loop.Cause) { x.closed <- cause }}
	}
	c.failed = func(c *core, d *loop.Dial) {
		if d.Loop != c.index {
			c.t.Errorf("dial of loop %d came to loop %d", d.Loop, c.index)
		}
		x.failed <- d
	}
	c.accept = echo
}

// TestDial: a dialed connection opens on the loop that asked, over IPv4 and
// IPv6, and both ways carry bytes.
func TestDial(t *testing.T) {
	for _, network := range []string{"127.0.0.1:0", "[::1]:0"} {
		t.Run(network, func(t *testing.T) {
			ln, err := net.Listen("tcp", network)
			if err != nil {
				t.Fatal(err)
			}
			defer ln.Close()
			x := newCaller()
			st := playSilent(t, Options{Loops: 3}, x.shape)
			for i := range 3 {
				if !st.r.Dial(&loop.Dial{Loop: i, Host: hostAt(t, ln.Addr().String())}) {
					t.Fatal("dial refused")
				}
				c, err := ln.Accept()
				if err != nil {
					t.Fatal(err)
				}
				s := receive(t, x.opened)
				_, _ = io.WriteString(c, "from there")
				if got := receive(t, x.texts); got != "from there" {
					t.Errorf("got %q", got)
				}
				st.on(i, func(*core) { s.Write([]byte("from here")) })
				got := make([]byte, 9)
				if _, err := io.ReadFull(c, got); err != nil || string(got) != "from here" {
					t.Errorf("got %q, %v", got, err)
				}
				if n := st.r.Stats().Loops[i].Upstreams; n != 1 {
					t.Errorf("%d upstream connections are counted", n)
				}
				_ = c.Close()
				if cause := receive(t, x.closed); cause != loop.EOF {
					t.Errorf("cause is %d, want EOF", cause)
				}
			}
			eventually(t, "nothing is left", func() bool {
				s := st.r.Stats()
				return s.Dialing == 0 && s.Dials[loop.DialOK] == 3 && s.Loops[0].Upstreams+s.Loops[1].Upstreams+s.Loops[2].Upstreams == 0
			})
			st.r.dialer.mu.Lock()
			defer st.r.dialer.mu.Unlock()
			if len(st.r.dialer.lines) != 0 {
				t.Errorf("%d hosts are remembered", len(st.r.dialer.lines))
			}
		})
	}
}

// silentAddr is an address at which connecting takes for ever: its backlog is
// full.
func silentAddr(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	sa, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	addr := fmt.Sprintf("127.0.0.1:%d", sa.(*syscall.SockaddrInet4).Port)
	for range 10 {
		c, err := net.DialTimeout("tcp", addr, 200*time.Millisecond)
		if err != nil {
			return addr
		}
		t.Cleanup(func() { _ = c.Close() })
	}
	t.Fatal("the backlog does not fill")
	return ""
}

// closedAddr is an address at which nobody listens.
func closedAddr(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// TestDialFaults: every failure comes back once, with its kind.
func TestDialFaults(t *testing.T) {
	silent, plain := silentAddr(t), closedAddr(t)
	greeting, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer greeting.Close()
	go func() {
		for {
			c, err := greeting.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "220 this is not TLS\r\n")
			defer c.Close()
		}
	}()
	for _, tt := range []struct {
		name string
		host func() *catalog.Host
		want loop.DialFault
	}{
		{"refused", func() *catalog.Host { return hostAt(t, plain) }, loop.DialRefused},
		{"no such name", func() *catalog.Host {
			h := hostAt(t, plain)
			h.Hostname = "no-such-host.invalid"
			return h
		}, loop.DialRefused},
		{"timeout", func() *catalog.Host {
			h := hostAt(t, silent)
			h.Timeouts.Connect = 50 * time.Millisecond
			return h
		}, loop.DialTimeout},
		{"not TLS", func() *catalog.Host {
			h := hostAt(t, greeting.Addr().String())
			h.TLS = true
			return h
		}, loop.DialTLS},
	} {
		t.Run(tt.name, func(t *testing.T) {
			x := newCaller()
			st := playSilent(t, Options{}, x.shape)
			st.r.Dial(&loop.Dial{Loop: 1, Host: tt.host()})
			d := receive(t, x.failed)
			if d.Fault != tt.want || d.Text == "" {
				t.Errorf("fault %d (%s), want %d", d.Fault, d.Text, tt.want)
			}
			if n := st.r.Stats().Dials[tt.want]; n != 1 {
				t.Errorf("%d are counted", n)
			}
			st.on(1, func(*core) {})
			if len(x.failed)+len(x.opened) != 0 {
				t.Error("it came back twice")
			}
		})
	}
}

// TestFaultOf: running out of something of our own is told apart, so that it
// trips no breaker.
func TestFaultOf(t *testing.T) {
	wrap := func(e error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", e)}
	}
	for _, tt := range []struct {
		err  error
		want loop.DialFault
	}{
		{wrap(syscall.ECONNREFUSED), loop.DialRefused},
		{wrap(syscall.EHOSTUNREACH), loop.DialRefused},
		{wrap(syscall.ENETUNREACH), loop.DialRefused},
		{wrap(syscall.ECONNRESET), loop.DialRefused},
		{wrap(syscall.ETIMEDOUT), loop.DialTimeout},
		{wrap(os.ErrDeadlineExceeded), loop.DialTimeout},
		{&net.DNSError{Err: "no such host", IsNotFound: true}, loop.DialRefused},
		{&net.DNSError{Err: "timed out", IsTimeout: true}, loop.DialTimeout},
		{wrap(syscall.EMFILE), loop.DialExhausted},
		{wrap(syscall.ENFILE), loop.DialExhausted},
		{wrap(syscall.EADDRNOTAVAIL), loop.DialExhausted},
		{errors.New("odd"), loop.DialRefused},
	} {
		if got := faultOf(tt.err); got != tt.want {
			t.Errorf("%v is %d, want %d", tt.err, got, tt.want)
		}
	}
}

// TestMaxConnections: dials past the limit of a host wait in order, ask for an
// idle connection to be closed, and get the place of one that closes, or come
// back when the connect timeout has passed.
func TestMaxConnections(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	var yields atomic.Int64
	x := newCaller()
	st := playSilent(t, Options{Yield: func(h *catalog.Host) {
		if h.MaxConnections != 2 {
			t.Errorf("yield of %+v", h)
		}
		yields.Add(1)
	}}, x.shape)
	host := func(timeout time.Duration) *catalog.Host {
		h := hostAt(t, ln.Addr().String())
		h.MaxConnections, h.Timeouts.Connect = 2, timeout
		return h
	}
	for i := range 3 {
		st.r.Dial(&loop.Dial{Loop: i % 2, Host: host(patience)})
	}
	first := receive(t, x.opened)
	receive(t, x.opened)
	eventually(t, "the third asks for a place", func() bool { return yields.Load() >= 2 })
	if len(x.opened) != 0 {
		t.Fatal("three connections are open")
	}
	st.on(raw(first).shard.index, func(*core) { first.Close() })
	third := receive(t, x.opened)
	st.r.Dial(&loop.Dial{Loop: 1, Host: host(30 * time.Millisecond)})
	if d := receive(t, x.failed); d.Fault != loop.DialFull || d.Loop != 1 {
		t.Errorf("fault %d (%s), want full", d.Fault, d.Text)
	}
	st.on(raw(third).shard.index, func(*core) { third.Close() })
	st.r.Dial(&loop.Dial{Loop: 0, Host: host(patience)})
	receive(t, x.opened)
}

// TestSilentHostLeavesRoom: a host that swallows connections takes its share
// of dials only; what cannot get a turn comes back as our own exhaustion.
func TestSilentHostLeavesRoom(t *testing.T) {
	silent := hostAt(t, silentAddr(t))
	silent.Timeouts.Connect = 2 * time.Second
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	x := newCaller()
	st := playSilent(t, Options{}, x.shape)
	const n = dialsPerHostMax + 50
	for i := range n {
		st.r.Dial(&loop.Dial{Loop: i % 2, Host: silent})
	}
	eventually(t, "the silent host has its share", func() bool { return st.r.Stats().Dialing == dialsPerHostMax })
	st.r.Dial(&loop.Dial{Loop: 0, Host: hostAt(t, ln.Addr().String())})
	receive(t, x.opened)
	faults := map[loop.DialFault]int{}
	for range n {
		faults[receive(t, x.failed).Fault]++
	}
	if faults[loop.DialTimeout] < dialsPerHostMax || faults[loop.DialTimeout]+faults[loop.DialExhausted] != n {
		t.Errorf("faults are %v", faults)
	}
}

// TestDialWaitsAreBounded: past dialWaitMax a dial comes back at once.
func TestDialWaitsAreBounded(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	x := newCaller()
	st := playSilent(t, Options{}, x.shape)
	h := hostAt(t, ln.Addr().String())
	h.MaxConnections = 1
	st.r.Dial(&loop.Dial{Host: h})
	receive(t, x.opened)
	for range dialWaitMax + 3 {
		if !st.r.Dial(&loop.Dial{Host: h}) {
			t.Fatal("the mailbox is full")
		}
	}
	for range 3 {
		if d := receive(t, x.failed); d.Fault != loop.DialFull {
			t.Errorf("fault %d (%s), want full", d.Fault, d.Text)
		}
	}
}

// TestFailedDialWaitsForRoom: a loop whose mailbox is full gets its dial back
// all the same.
func TestFailedDialWaitsForRoom(t *testing.T) {
	x := newCaller()
	st := playSilent(t, Options{Loops: 1}, func(c *core) {
		x.shape(c)
		c.boxMax = 1
	})
	stuck, release := make(chan struct{}), make(chan struct{})
	st.cores[0].Post(note(func(*core) { close(stuck); <-release }))
	receive(t, stuck)
	for !st.cores[0].Post(note(func(*core) {})) {
	}
	host := hostAt(t, closedAddr(t))
	full := hostAt(t, closedAddr(t))
	full.MaxConnections = 1
	for range 3 {
		st.r.Dial(&loop.Dial{Host: host})
	}
	eventually(t, "they have failed", func() bool { return st.r.Stats().Dials[loop.DialRefused] == 3 })
	close(release)
	for range 3 {
		receive(t, x.failed)
	}
}
