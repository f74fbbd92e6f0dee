package loop

import (
	"fmt"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"relay/admit"
	"relay/store/catalog"
	"relay/store/source"
	"relay/store/state"
	"relay/usage"
)

// rigCatalog has a host of each shape, and relay keys under policies without
// limits, with limits, and for one model only.
const rigCatalog = `
hosts:
  - name: o
    shape: openai
    base_url: http://o.test/v1
    keys: [{name: main, value: "plain:host-secret-o"}]
    timeouts: {connect: 3s, first_byte: 30s, first_token: 20s, idle: 10s}
  - name: a
    shape: anthropic
    base_url: http://a.test
    keys: [{name: main, value: "plain:host-secret-a"}]
    timeouts: {connect: 3s, first_byte: 30s, first_token: 20s, idle: 10s}
  - name: plain
    shape: openai
    base_url: http://plain.test/v1
    keys: [{name: main, value: "plain:host-secret-p"}]
    flags: [no_stream_options]
models:
  - name: gpt
    aliases: ["gpt-alias*"]
    bindings: [{host: o, upstream_model: gpt-real-with-a-long-name}]
    price: {input: 1.25, cached_input: 0.125, output: 10}
  - {name: claude, bindings: [{host: a, upstream_model: claude-real}], price: {input: 3, cached_input: 0.3, cache_write_5m: 3.75, output: 15}}
  - {name: bare, bindings: [{host: plain, upstream_model: bare}], price: {input: 1, output: 1}}
  - {name: omni-moderation-latest, bindings: [{host: o, upstream_model: omni-moderation-latest}]}
policies:
  - {name: free, models: ["*"]}
  - {name: few, models: [claude]}
  - {name: rated, models: ["*"], limits: [{meter: requests, amount: 2, window: 1m}]}
  - {name: narrow, models: ["*"], limits: [{meter: concurrency, amount: 2}]}
accounts: [{name: acc}]
relay_keys:
  - {name: free, key: rk-free, account: acc, policy: free}
  - {name: few, key: rk-few, account: acc, policy: few}
  - {name: rated, key: rk-rated, account: acc, policy: rated}
  - {name: narrow, key: rk-narrow, account: acc, policy: narrow}
  - {name: off, key: rk-off, account: acc, policy: free, enabled: false}
  - {name: old, key: rk-old, account: acc, policy: free, expires: "2020-01-01T00:00:00Z"}
`

// rigConfig is what a rig's loop is told unless the test wants it otherwise.
var rigConfig = Config{
	Loops: 1, RequestBytesMax: 2 << 20, BudgetBytes: 16 << 20, IdlePerHostMax: 4,
	StreamIdle: 60 * time.Second, KeepAlive: 5 * time.Second, Seed: 1,
}

// planted is what a panic carries that a test has planted.
const planted = "planted"

// rig is a loop whose whole surroundings a test plays: sockets, dialer, lane,
// spool, inflaters, and a clock that moves when the test says so.
type rig struct {
	t        *testing.T
	loop     *Loop
	nowNs    int64
	inflight *admit.Inflight
	store    *state.Memory
	spool    *scriptSpool

	sockets   []*scriptSocket
	dials     []*Dial     // asked for, not answered yet
	lane      []*state.Op // submitted, not worked off yet
	inflaters []*scriptInflater

	holdLane   bool // the lane works off nothing
	laneFull   bool // takes nothing
	dialFull   bool
	noInflater bool
	storeLost  bool                // the lane answers that the store is lost
	lent       map[*state.Op]int64 // slots, by the last answer
	panics     int                 // planted ones that came
}

var rigTables = func() *catalog.Tables {
	tables, problems := source.Check([]byte(rigCatalog))
	if tables == nil {
		panic(fmt.Sprint("BUG: ", problems))
	}
	return tables
}()

func newRig(t *testing.T) *rig { return newRigOn(t, rigConfig, rigTables) }

func newRigWith(t *testing.T, change func(*Config)) *rig {
	c := rigConfig
	change(&c)
	return newRigOn(t, c, rigTables)
}

func newRigOn(t *testing.T, c Config, tables *catalog.Tables) *rig {
	r := &rig{
		t: t, nowNs: int64(time.Hour), store: state.NewMemory(c.Loops),
		inflight: admit.NewInflight(100), lent: map[*state.Op]int64{},
	}
	r.spool = &scriptSpool{rig: r}
	lane := func(o *state.Op) bool {
		if !r.laneFull {
			r.lane = append(r.lane, o)
		}
		return !r.laneFull
	}
	r.loop = New(c, Ports{
		Dial: func(d *Dial) bool {
			if !r.dialFull {
				r.dials = append(r.dials, d)
			}
			return !r.dialFull
		},
		Submit: lane, Spool: r.spool, Inflight: r.inflight, Inflate: r.inflate,
	}, tables, func() {})
	r.loop.wheel.init(r.nowNs)
	return r
}

// rigEpochNs is the time of day when the rig's clock was at zero.
var rigEpochNs = time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC).UnixNano()

// do is one callback of c, as the driver makes it, and what follows from it.
func (r *rig) do(c Conn, f func()) {
	r.nowNs += 1000
	r.callback(c, f)
	r.settle()
}

func (r *rig) callback(c Conn, f func()) {
	defer r.boundary(c)
	r.loop.Begin(r.nowNs, rigEpochNs+r.nowNs)
	f()
	r.loop.End()
}

// boundary is the panic boundary of the driver: what the loop does not close
// of c, the driver does.
func (r *rig) boundary(c Conn) {
	p := recover()
	if p == nil {
		return
	}
	if p != planted {
		r.t.Errorf("panic: %v\n%s", p, debug.Stack())
	}
	r.panics++
	r.loop.Begin(r.nowNs, rigEpochNs+r.nowNs)
	r.loop.Panicked(c)
	r.loop.End()
	for _, s := range r.sockets {
		if c != nil && s.conn == c {
			s.Close()
		}
	}
	r.callback(nil, func() { r.loop.RunMail() })
}

// settle lets happen what happens by itself: messages are delivered, the lane
// works, bytes that waited for ResumeRead come.
func (r *rig) settle() {
	for again := true; again; {
		again = r.loop.mail.Len() > 0
		if again {
			r.callback(nil, func() { r.loop.RunMail() })
		}
		if len(r.lane) > 0 && !r.holdLane {
			r.runLane()
			again = true
		}
		for _, s := range r.sockets {
			if len(s.unread) > 0 && !s.paused && !s.closed {
				p := s.unread
				s.unread = nil
				s.deliver(p)
				again = true
			}
		}
	}
}

// runLane works off what was submitted and posts the answers.
func (r *rig) runLane() {
	batch := r.lane
	r.lane = nil
	for _, o := range batch {
		if r.storeLost {
			o.Lose()
		} else {
			r.store.Apply(rigEpochNs+r.nowNs, []*state.Op{o})
			r.lent[o] = o.Lent()
		}
		r.loop.Post(Answer{o})
	}
}

// slots is how many slots the store has lent.
func (r *rig) slots() (n int64) {
	for _, lent := range r.lent {
		n += lent
	}
	return n
}

// post gives the loop a message and lets it arrive.
func (r *rig) post(m Message) {
	r.loop.Post(m)
	r.settle()
}

// pass moves the clock, tick by tick.
func (r *rig) pass(d time.Duration) {
	for end := r.nowNs + int64(d); r.nowNs < end; {
		r.nowNs = min(end, r.nowNs+int64(TickEvery))
		r.callback(nil, r.loop.Tick)
		for _, s := range r.sockets {
			s.tellDrained()
		}
		r.settle()
	}
}

// accept connects a client.
func (r *rig) accept() *scriptSocket { return r.acceptFrom(Peer{}) }

func (r *rig) acceptFrom(p Peer) *scriptSocket {
	s := r.newSocket()
	r.do(nil, func() { s.conn = r.loop.Accept(s, p) })
	return s
}

// open lets the oldest dial succeed.
func (r *rig) open() *scriptSocket {
	r.t.Helper()
	return r.openStuck(false)
}

// openStuck is open of a connection whose kernel takes nothing, if stuck.
func (r *rig) openStuck(stuck bool) *scriptSocket {
	r.t.Helper()
	d := r.nextDial()
	s := r.newSocket()
	s.stuck = stuck
	r.do(nil, func() { s.conn = r.loop.Opened(s, d) })
	return s
}

// failDial lets the oldest dial fail.
func (r *rig) failDial(f DialFault) {
	r.t.Helper()
	d := r.nextDial()
	d.Fault, d.Text = f, "dial failed"
	r.post(d)
}

func (r *rig) nextDial() *Dial {
	r.t.Helper()
	if len(r.dials) == 0 {
		r.t.Fatal("no dial was asked for")
	}
	d := r.dials[0]
	r.dials = r.dials[1:]
	return d
}

// exchange sends a request on a new client connection and hands both ends.
func (r *rig) exchange(request string) (client, upstream *scriptSocket) {
	r.t.Helper()
	client = r.accept()
	client.send(request)
	return client, r.open()
}

func (r *rig) newSocket() *scriptSocket {
	s := &scriptSocket{rig: r}
	r.sockets = append(r.sockets, s)
	return s
}

// row is the n-th usage row.
func (r *rig) row(n int) usage.Event {
	r.t.Helper()
	if n >= len(r.spool.rows) {
		r.t.Fatalf("%d usage rows, row %d is wanted", len(r.spool.rows), n)
	}
	return r.spool.rows[n]
}

// idle wants that nothing runs: no exchange, no slot, no body.
func (r *rig) idle() {
	r.t.Helper()
	inflight, _ := r.inflight.Load()
	m := &r.loop.metrics
	if m.Exchanges != 0 || m.Streams != 0 || inflight != 0 || r.slots() != 0 {
		r.t.Errorf("%d exchanges, %d streams, %d in flight, %d slots are left", m.Exchanges, m.Streams, inflight, r.slots())
	}
}

// end ends the test: nothing may run, everybody leaves, and nothing may be
// left behind.
func (r *rig) end() {
	r.t.Helper()
	r.idle()
	for _, s := range r.sockets {
		s.close(EOF)
	}
	for len(r.dials) > 0 {
		r.failDial(DialRefused)
	}
	l := r.loop
	r.rest()
	l.wheel.disarm(&l.quiet.timer)
	l.wheel.disarm(&l.deadline.timer)
	m := &l.metrics
	if m.Clients != 0 || m.Upstreams != 0 || m.IdleUpstreams != 0 || m.Exchanges != 0 {
		r.t.Errorf("%d clients, %d upstreams, %d idle ones, %d exchanges are left", m.Clients, m.Upstreams, m.IdleUpstreams, m.Exchanges)
	}
	if l.buffers.used != 0 || l.wheel.armed != 0 || len(l.pools) != 0 || l.leases.Len() != 0 || r.slots() != 0 {
		r.t.Errorf("left are %d bytes, %d timers, %d pools, %d leases, %d slots", l.buffers.used, l.wheel.armed, len(l.pools), l.leases.Len(), r.slots())
	}
	if len(l.freed)+len(l.resume)+len(l.dirty)+len(l.ending) != 0 {
		r.t.Error("a list of the callback is not empty")
	}
	if m.Events != uint64(len(r.spool.rows)+r.spool.lost) || m.Panics != uint64(r.panics) {
		r.t.Errorf("%d events of %d rows, %d panics of %d", m.Events, len(r.spool.rows), m.Panics, r.panics)
	}
	if n, _ := r.inflight.Load(); n != 0 {
		r.t.Errorf("%d slots of the in-flight cap are left", n)
	}
}

// rest has everything go back to the store.
func (r *rig) rest() {
	r.storeLost = false
	r.do(nil, func() { r.loop.leases.Close(r.nowNs) })
	for range 100 {
		r.do(nil, func() {})
	}
}

// post is a request with a body.
func post(path, body string, fields ...string) string {
	return head("POST", path, append(fields, fmt.Sprintf("Content-Length: %d", len(body)))...) + body
}

// head is a request head of the key without limits, unless fields say another.
func head(method, path string, fields ...string) string {
	text := strings.Join(fields, "\r\n")
	if !strings.Contains(strings.ToLower(text), "authorization:") {
		fields = append(fields, "Authorization: Bearer rk-free")
	}
	return method + " " + path + " HTTP/1.1\r\nHost: relay.test\r\n" + strings.Join(fields, "\r\n") + "\r\n\r\n"
}

// given is a whole answer of a host, by length.
func given(status int, contentType, body string, fields ...string) string {
	fields = append(fields, "Content-Type: "+contentType, fmt.Sprintf("Content-Length: %d", len(body)))
	return fmt.Sprintf("HTTP/1.1 %d Text\r\n%s\r\n\r\n%s", status, strings.Join(fields, "\r\n"), body)
}

// chunk is one chunk of a body.
func chunk(text string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(text), text) }

const (
	chatPath    = "/v1/chat/completions"
	messagePath = "/v1/messages"
	asJSON      = "application/json"
	asEvents    = "text/event-stream"

	chatAsk      = `{"model":"gpt","messages":[{"role":"user","content":"hi"}]}`
	messageAsk   = `{"model":"claude","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`
	chatReply    = `{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"ho"},"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120}}`
	messageReply = `{"id":"m","type":"message","role":"assistant","content":[{"type":"text","text":"ho"}],"stop_reason":"end_turn","usage":{"input_tokens":100,"output_tokens":20}}`

	streamAsk        = `{"model":"gpt","stream":true,"messages":[{"role":"user","content":"hi"}]}`
	messageStreamAsk = `{"model":"claude","stream":true,"max_tokens":9,"messages":[]}`
	eventsHead       = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
	token            = `data: {"id":"c","choices":[{"index":0,"delta":{"content":"tok"},"finish_reason":null}]}` + "\n\n"
	stopEvent        = `data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	usageEvent       = `data: {"id":"c","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120}}` + "\n\n"
	doneEvent        = "data: [DONE]\n\n"
	lastChunk        = "0\r\n\r\n"
)
