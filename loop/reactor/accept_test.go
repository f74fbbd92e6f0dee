package reactor

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/panjf2000/gnet/v2"
	"golang.org/x/sys/unix"

	"relay/loop"
)

// TestExactPlacement: 4,000 clients are spread evenly, also after some have
// left.
func TestExactPlacement(t *testing.T) {
	st := play(t, Options{Loops: 4}, func(c *core) { c.accept = echo })
	var all []*net.TCPConn
	for range 4000 {
		all = append(all, st.dialClient())
	}
	even := func(want int) func() bool {
		return func() bool {
			for _, l := range st.r.Stats().Loops {
				if l.Clients != want {
					return false
				}
			}
			return true
		}
	}
	eventually(t, "1,000 on each loop", even(1000))
	eventually(t, "all are told to the loops", func() bool {
		opened := 0
		for i := range st.cores {
			st.on(i, func(c *core) { opened += len(c.sockets) })
		}
		return opened == 4000
	})
	for _, c := range all[:400] {
		_ = c.Close()
	}
	eventually(t, "some have left", func() bool { return clients(st.r) == 3600 })
	for range 400 {
		st.dialClient()
	}
	eventually(t, "1,000 on each loop again", even(1000))
}

// TestNoDelay: small writes are not held back.
func TestNoDelay(t *testing.T) {
	got := make(chan int, 1)
	st := play(t, Options{Loops: 1}, func(c *core) {
		c.accept = func(c *core, s loop.Socket, _ loop.Peer) loop.Conn {
			v, err := unix.GetsockoptInt(raw(s).fd, unix.IPPROTO_TCP, unix.TCP_NODELAY)
			if err != nil {
				t.Error(err)
			}
			got <- v
			return &conn{core: c}
		}
	})
	st.dialClient()
	if v := receive(t, got); v == 0 {
		t.Error("TCP_NODELAY is off")
	}
}

// TestAcceptExhausted: without descriptors accepting backs off, and open
// connections go on; with descriptors it goes on too. It runs in a process of
// its own, which lowers its limit.
func TestAcceptExhausted(t *testing.T) {
	if !inChild(t, "REACTOR_EMFILE_CHILD") {
		return
	}
	x := newCaller()
	st := play(t, Options{}, x.shape)
	good := st.dialClient()
	roundTrip(t, good, "good")
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	low := was
	low.Cur = 100
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &low); err != nil {
		t.Fatal(err)
	}
	var plugs []int
	var all []net.Conn
	for st.r.Stats().AcceptExhausted == 0 {
		plugs = plugAll(plugs)
		if len(plugs) == 0 {
			t.Fatal("the connections have taken all descriptors")
		}
		_ = unix.Close(plugs[0]) // one for the client, none for us
		plugs = plugs[1:]
		c, err := net.DialTimeout("tcp", st.addr, patience)
		if err != nil && !errors.Is(err, syscall.EMFILE) {
			t.Fatal(err)
		}
		if err == nil {
			defer c.Close()
			all = append(all, c)
		}
		seen := st.cores[0].ticks.Load()
		eventually(t, "time passes", func() bool { return st.cores[0].ticks.Load() > seen+1 })
	}
	roundTrip(t, good, "still good")
	plugs = dialExhausted(t, st, x, plugs)
	for _, fd := range plugs {
		_ = unix.Close(fd)
	}
	for _, c := range all {
		_ = c.Close()
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	roundTrip(t, st.dialClient(), "new")
	roundTrip(t, good, "good to the end")
	eventually(t, "nothing is counted that has gone", func() bool { return clients(st.r) == 2 })
}

// plugAll takes all descriptors that are free.
func plugAll(plugs []int) []int {
	for {
		fd, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return plugs
		}
		plugs = append(plugs, fd)
	}
}

// dialExhausted dials with all descriptors taken. Clients that accepting gives
// up may free some, so it tries again.
func dialExhausted(t *testing.T, st *stage, x *caller, plugs []int) []int {
	t.Helper()
	host := hostAt(t, "127.0.0.1:1")
	for range 100 {
		plugs = plugAll(plugs)
		st.r.Dial(&loop.Dial{Loop: 1, Host: host})
		if receive(t, x.failed).Fault == loop.DialExhausted {
			return plugs
		}
	}
	t.Error("a dial without descriptors is not told from a refused one")
	return plugs
}

// TestConnQueue: past MaxConns clients wait, in order; past the queue they are
// answered 503.
func TestConnQueue(t *testing.T) {
	st := play(t, Options{MaxConns: 2, ConnQueue: 2, ConnQueueTimeout: patience}, func(c *core) { c.accept = echo })
	first, second := st.dialClient(), st.dialClient()
	roundTrip(t, first, "1")
	roundTrip(t, second, "2")
	third := st.dialClient()
	eventually(t, "the third waits", func() bool { return st.r.Stats().Waiting == 1 })
	fourth := st.dialClient()
	eventually(t, "the fourth waits", func() bool { return st.r.Stats().Waiting == 2 })
	wantRefusal(t, st.dialClient())
	_, _ = io.WriteString(fourth, "4")
	_ = first.Close()
	roundTrip(t, third, "3")
	if s := st.r.Stats(); s.Waiting != 1 || clients(st.r) != 2 || s.Queued != 2 || s.Refused != 1 || s.Accepted != 3 {
		t.Errorf("stats are %+v", s)
	}
	_ = second.Close()
	got := make([]byte, 1)
	if _, err := io.ReadFull(fourth, got); err != nil || string(got) != "4" {
		t.Errorf("fourth got %q, %v", got, err)
	}
}

// TestConnQueueTimeout: a client that has waited for too long is answered.
func TestConnQueueTimeout(t *testing.T) {
	st := play(t, Options{MaxConns: 1, ConnQueue: 10, ConnQueueTimeout: 50 * time.Millisecond}, func(c *core) { c.accept = echo })
	roundTrip(t, st.dialClient(), "1")
	for range 3 {
		wantRefusal(t, st.dialClient())
	}
}

// TestStopAccept: listeners are closed, queued clients refused, open
// connections go on.
func TestStopAccept(t *testing.T) {
	st := play(t, Options{MaxConns: 1, ConnQueue: 10, ConnQueueTimeout: patience}, func(c *core) { c.accept = echo })
	good := st.dialClient()
	roundTrip(t, good, "1")
	waits := st.dialClient()
	eventually(t, "one waits", func() bool { return st.r.Stats().Waiting == 1 })
	st.r.StopAccept()
	wantRefusal(t, waits)
	eventually(t, "nobody listens", func() bool {
		c, err := net.DialTimeout("tcp", st.addr, patience)
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	})
	roundTrip(t, good, "2")
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := st.r.Listen(ln, ListenOptions{}); err == nil {
		t.Error("a listener was taken after StopAccept")
	}
	_ = ln.Close()
}

// wantRefusal sends a request and wants the 503, whole and followed by a FIN.
func wantRefusal(t *testing.T, c net.Conn) {
	t.Helper()
	if _, err := io.WriteString(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n"+strings.Repeat("x", 50000)); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(c)
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != 503 || res.Header.Get("Retry-After") != "1" || !res.Close || res.Header.Get("Content-Type") != "application/json" {
		t.Errorf("refused with %+v", res)
	}
	var body struct {
		Error struct {
			Message, Type, Code string
		}
	}
	if err := json.NewDecoder(res.Body).Decode(&body); err != nil || body.Error.Type != "service_unavailable_error" ||
		body.Error.Code != "server_is_overloaded" || body.Error.Message == "" {
		t.Errorf("body is %+v, %v", body, err)
	}
	if _, err := r.ReadByte(); err != io.EOF {
		t.Errorf("behind the answer: %v", err)
	}
}

// TestNotRegistered: gnet reports success when its epoll set did not take the
// descriptor; that no OnOpen came tells.
func TestNotRegistered(t *testing.T) {
	s := &socket{}
	if err := s.registered(gnet.RegisteredResult{}); err != errNotOpened {
		t.Errorf("got %v", err)
	}
	s.opened = true
	if err := s.registered(gnet.RegisteredResult{}); err != nil {
		t.Errorf("got %v", err)
	}
	if err := s.registered(gnet.RegisteredResult{Err: io.EOF}); err != io.EOF {
		t.Errorf("got %v", err)
	}
}

// TestScrub: zones leave the addresses before gnet sees them.
func TestScrub(t *testing.T) {
	c := zoned{&net.TCPAddr{IP: net.IPv6loopback, Zone: "lo"}, &net.TCPAddr{IP: net.IPv6loopback, Zone: "eth0"}}
	scrub(c)
	if c.local.Zone != "" || c.remote.Zone != "" {
		t.Errorf("zones are %q and %q", c.local.Zone, c.remote.Zone)
	}
}

type zoned struct{ local, remote *net.TCPAddr }

func (z zoned) LocalAddr() net.Addr            { return z.local }
func (z zoned) RemoteAddr() net.Addr           { return z.remote }
func (zoned) Read([]byte) (int, error)         { return 0, io.EOF }
func (zoned) Write([]byte) (int, error)        { return 0, io.EOF }
func (zoned) Close() error                     { return nil }
func (zoned) SetDeadline(time.Time) error      { return nil }
func (zoned) SetReadDeadline(time.Time) error  { return nil }
func (zoned) SetWriteDeadline(time.Time) error { return nil }
