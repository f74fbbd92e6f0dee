package reactor

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"relay/loop"
	"relay/store/catalog"
)

// patience bounds every wait of these tests.
const patience = 2 * time.Minute

// A core is a Core for tests: it checks the driver's side of the contract and
// leaves the rest to the functions of the test.
type core struct {
	t     testing.TB
	r     *Reactor
	index int
	wake  func()

	accept   func(*core, loop.Socket, loop.Peer) loop.Conn
	opened   func(*core, loop.Socket, *loop.Dial) loop.Conn
	failed   func(*core, *loop.Dial)
	panicked func(*core, loop.Conn)
	batchMax int // messages per RunMail; 0 = all
	boxMax   int // 0 = no limit

	open    bool              // between Begin and End
	asked   bool              // told by the next End
	wish    func(*core) int64 // when the next tick is wanted, of End; nil = whenever
	sprung  bool              // the callback panics on purpose
	inside  int               // Socket methods on the stack
	lastNs  int64
	sockets []loop.Socket // accepted, in order
	conns   []*conn
	ticks   atomic.Int64
	mails   atomic.Int64
	mu      sync.Mutex
	box     []loop.Message
}

// A note is a message that runs a function on the loop.
type note func(*core)

func (note) Deliver(*loop.Loop) {}

func (c *core) Post(m loop.Message) bool {
	c.mu.Lock()
	if c.boxMax > 0 && len(c.box) >= c.boxMax {
		c.mu.Unlock()
		return false
	}
	c.box = append(c.box, m)
	first := len(c.box) == 1
	c.mu.Unlock()
	if first {
		c.wake()
	}
	return true
}

// spring panics, as a bug would.
func (c *core) spring() {
	c.sprung, c.inside = true, 0
	panic("BUG: planted")
}

func (c *core) Begin(monoNs, wallNs int64) {
	if c.open && !c.sprung {
		c.t.Error("Begin inside a callback")
	}
	c.sprung = false
	if c.inside != 0 {
		c.t.Error("a callback inside a Socket method")
	}
	if monoNs < c.lastNs || wallNs == 0 {
		c.t.Errorf("clock went from %d to %d, wall %d", c.lastNs, monoNs, wallNs)
	}
	c.lastNs, c.open = monoNs, true
}

func (c *core) End() (asked bool, nextNs int64) {
	if !c.open {
		c.t.Error("End without Begin")
	}
	c.open = false
	asked, c.asked = c.asked, false
	if c.wish != nil {
		nextNs = c.wish(c)
	}
	return asked, nextNs
}

func (c *core) Tick() {
	c.check()
	c.ticks.Add(1)
}

func (c *core) RunMail() (more bool) {
	c.check()
	c.mails.Add(1)
	c.mu.Lock()
	n := len(c.box)
	if c.batchMax > 0 {
		n = min(n, c.batchMax)
	}
	batch := c.box[:n:n]
	c.box = c.box[n:]
	c.mu.Unlock()
	for _, m := range batch {
		switch m := m.(type) {
		case note:
			m(c)
		case *loop.Dial:
			c.failed(c, m)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.box) > 0
}

func (c *core) Accept(s loop.Socket, p loop.Peer) loop.Conn {
	c.check()
	w := &watched{s, c}
	x := c.accept(c, w, p)
	c.sockets = append(c.sockets, w)
	if x, ok := x.(*conn); ok {
		c.conns = append(c.conns, x)
	}
	return x
}

func (c *core) Opened(s loop.Socket, d *loop.Dial) loop.Conn {
	c.check()
	return c.opened(c, &watched{s, c}, d)
}

func (c *core) Panicked(x loop.Conn) {
	c.check()
	if c.panicked != nil {
		c.panicked(c, x)
	}
}

func (c *core) check() {
	if !c.open || c.inside != 0 {
		c.t.Errorf("callback with open=%v inside %d Socket methods", c.open, c.inside)
	}
}

// watched notes that a Socket method is on the stack.
type watched struct {
	loop.Socket
	core *core
}

func (w *watched) enter() func() { w.core.inside++; return func() { w.core.inside-- } }

func (w *watched) Write(p []byte)       { defer w.enter()(); w.Socket.Write(p) }
func (w *watched) NotifyDrained(n int)  { defer w.enter()(); w.Socket.NotifyDrained(n) }
func (w *watched) PauseRead(watch bool) { defer w.enter()(); w.Socket.PauseRead(watch) }
func (w *watched) ResumeRead()          { defer w.enter()(); w.Socket.ResumeRead() }
func (w *watched) CloseWrite()          { defer w.enter()(); w.Socket.CloseWrite() }
func (w *watched) Close()               { defer w.enter()(); w.Socket.Close() }

// raw is the socket behind what a test core hands out.
func raw(s loop.Socket) *socket { return s.(*watched).Socket.(*socket) }

// A conn is a loop.Conn made of functions; nil ones do nothing.
type conn struct {
	core    *core
	bytes   func([]byte)
	drained func()
	closed  func(loop.Cause)
	over    bool // OnClosed was called
}

func (c *conn) OnBytes(p []byte) {
	c.core.check()
	if c.over {
		c.core.t.Error("OnBytes after OnClosed")
	}
	if len(p) == 0 {
		c.core.t.Error("OnBytes without bytes")
	}
	if c.bytes != nil {
		c.bytes(p)
	}
}

func (c *conn) OnDrained() {
	c.core.check()
	if c.over {
		c.core.t.Error("OnDrained after OnClosed")
	}
	if c.drained != nil {
		c.drained()
	}
}

func (c *conn) OnClosed(cause loop.Cause) {
	c.core.check()
	if c.over {
		c.core.t.Error("OnClosed twice")
	}
	c.over = true
	if c.closed != nil {
		c.closed(cause)
	}
}

// A stage is a running reactor with its listener.
type stage struct {
	t     testing.TB
	r     *Reactor
	cores []*core
	addr  string
}

// play starts a reactor with a cleartext listener; shape changes each core
// before it runs.
func play(t testing.TB, o Options, shape func(*core)) *stage {
	t.Helper()
	st := playSilent(t, o, shape)
	st.addr = st.listen(ListenOptions{})
	return st
}

// playSilent is play without a listener.
func playSilent(t testing.TB, o Options, shape func(*core)) *stage {
	t.Helper()
	if o.Loops == 0 {
		o.Loops = 2
	}
	if o.MaxConns == 0 {
		o.MaxConns = 10000
	}
	st := &stage{t: t}
	r, err := Start(o, func(r *Reactor, index int, wake func()) Core {
		c := &core{t: t, r: r, index: index, wake: wake}
		if shape != nil {
			shape(c)
		}
		st.cores = append(st.cores, c)
		return c
	})
	if err != nil {
		t.Fatal(err)
	}
	st.r = r
	t.Cleanup(r.Stop)
	return st
}

func (st *stage) listen(o ListenOptions) (addr string) {
	st.t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		st.t.Fatal(err)
	}
	if err := st.r.Listen(ln, o); err != nil {
		st.t.Fatal(err)
	}
	return ln.Addr().String()
}

// on runs f on a loop and waits for it.
func (st *stage) on(index int, f func(*core)) {
	st.t.Helper()
	done := make(chan struct{})
	st.cores[index].Post(note(func(c *core) { defer close(done); f(c) }))
	receive(st.t, done)
}

// dialClient connects a client of the test.
func (st *stage) dialClient() *net.TCPConn {
	st.t.Helper()
	return dialTCP(st.t, st.addr)
}

func dialTCP(t testing.TB, addr string) *net.TCPConn {
	t.Helper()
	c, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	return c.(*net.TCPConn)
}

// receive takes from ch, or fails the test after a while.
func receive[T any](t testing.TB, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		t.Fatal("nothing came")
		panic("unreached")
	}
}

// eventually polls a condition that another thread makes true.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	end := time.Now().Add(patience)
	for !cond() {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// echo answers every byte with itself.
func echo(c *core, s loop.Socket, _ loop.Peer) loop.Conn {
	return &conn{core: c, bytes: s.Write}
}

// roundTrip sends p to an echo and wants it back.
func roundTrip(t testing.TB, c io.ReadWriter, p string) {
	t.Helper()
	if _, err := io.WriteString(c, p); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(p))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != p {
		t.Fatalf("echo of %q is %q, %v", p, got, err)
	}
}

// pattern is bytes of a stream in which a lost or doubled piece shows.
func pattern(off int64, p []byte) {
	for i := range p {
		x := uint64(off+int64(i)) * 0x9e3779b97f4a7c15
		p[i] = byte(x >> 56)
	}
}

// A patternReader yields n bytes of the pattern.
type patternReader struct{ off, n int64 }

func (r *patternReader) Read(p []byte) (int, error) {
	if r.off == r.n {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), r.n-r.off)]
	pattern(r.off, p)
	r.off += int64(len(p))
	return len(p), nil
}

// A patternCheck is a writer that compares with the pattern.
type patternCheck struct {
	off   int64
	wrong bool
}

func (w *patternCheck) Write(p []byte) (int, error) {
	want := make([]byte, len(p))
	pattern(w.off, want)
	w.wrong = w.wrong || !bytes.Equal(p, want)
	w.off += int64(len(p))
	return len(p), nil
}

// hostAt is a catalog host at a TCP address.
func hostAt(t testing.TB, addr string) *catalog.Host {
	t.Helper()
	a, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return &catalog.Host{
		Name: "h-" + addr, Hostname: a.IP.String(), Port: uint16(a.Port), HostPort: addr,
		Endpoint: uint64(a.Port), Timeouts: catalog.Timeouts{Connect: patience},
	}
}

// inChild runs the test named by t again in a process of its own with the
// variable name set, and reports whether this is that process.
func inChild(t *testing.T, name string) bool {
	t.Helper()
	if os.Getenv(name) != "" {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	out, err := childCommand(ctx, t.Name(), name).CombinedOutput()
	if err != nil {
		t.Fatalf("child: %v\n%s", err, out)
	}
	return false
}
