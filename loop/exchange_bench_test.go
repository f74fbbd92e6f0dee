package loop

import (
	"bytes"
	"testing"
	"time"

	"relay/admit"
	"relay/store/catalog"
	"relay/store/source"
	"relay/store/state"
	"relay/usage"
)

// nullSocket takes everything at once and keeps the last piece.
type nullSocket struct{ last []byte }

func (s *nullSocket) Write(p []byte)    { s.last = append(s.last[:0], p...) }
func (s *nullSocket) Buffered() int     { return 0 }
func (s *nullSocket) NotifyDrained(int) {}
func (s *nullSocket) PauseRead(bool)    {}
func (s *nullSocket) ResumeRead()       {}
func (s *nullSocket) Mark()             {}
func (s *nullSocket) Reached() bool     { return false }
func (s *nullSocket) CloseWrite()       {}
func (s *nullSocket) Abort()            {}
func (s *nullSocket) Close()            {}

type nullSpool struct{ rows int }

func (s *nullSpool) Admitted(*usage.Event) bool { return true }
func (s *nullSpool) Row(*usage.Event) bool      { s.rows++; return true }
func (s *nullSpool) Pending() bool              { return false }
func (s *nullSpool) Position() int64            { return 0 }
func (s *nullSpool) SyncedTo() int64            { return 0 }

// bench is a loop with one client and one upstream connection, all at hand.
type bench struct {
	loop           *Loop
	client         Conn
	upstream       Conn
	toClient, toUp nullSocket
	dial           *Dial
	lane           []*state.Op
	store          *state.Memory
	spool          nullSpool
	nowNs          int64
}

const benchCatalog = `
hosts:
  - name: o
    shape: openai
    base_url: http://o.test/v1
    keys: [{name: k, value: "plain:host-secret"}]
models:
  - name: gpt
    aliases: [gpt-alias]
    bindings: [{host: o, upstream_model: gpt-real}]
    price: {input: 1.25, output: 10}
policies:
  - name: p
    models: ["*"]
    limits: [{meter: requests, amount: 1000000000, window: 1s}%s]
accounts: [{name: acc}]
relay_keys: [{name: k, key: rk-bench, account: acc, policy: p}]
`

func newBench(tb testing.TB, moreLimits string) *bench {
	tables, problems := source.Check(bytes.Replace([]byte(benchCatalog), []byte("%s"), []byte(moreLimits), 1))
	if tables == nil {
		tb.Fatal(problems)
	}
	return newBenchOn(tables)
}

func newBenchOn(tables *catalog.Tables) *bench {
	e := &bench{store: state.NewMemory(1), nowNs: int64(time.Hour)}
	c := Config{
		Loops: 1, RequestBytesMax: 1 << 20, BudgetBytes: 1 << 30, IdlePerHostMax: 10,
		StreamIdle: time.Minute, KeepAlive: 15 * time.Second,
	}
	p := Ports{
		Dial:     func(d *Dial) bool { e.dial = d; return true },
		Submit:   func(o *state.Op) bool { e.lane = append(e.lane, o); return true },
		Spool:    &e.spool,
		Inflight: admit.NewInflight(100),
	}
	e.loop = New(c, p, tables, func() {})
	e.do(func() { e.client = e.loop.Accept(&e.toClient, Peer{}) })
	return e
}

func (e *bench) do(f func()) {
	e.nowNs += 1000
	e.loop.Begin(e.nowNs, e.nowNs)
	f()
	e.loop.End()
}

// exchange runs one request through.
func (e *bench) exchange(request, response []byte) {
	e.nowNs += 1000
	e.loop.Begin(e.nowNs, e.nowNs)
	e.client.OnBytes(request)
	e.loop.End()
	e.runLane()
	if d := e.dial; d != nil {
		e.dial = nil
		e.do(func() { e.upstream = e.loop.Opened(&e.toUp, d) })
	}
	e.loop.Begin(e.nowNs, e.nowNs)
	e.upstream.OnBytes(response)
	e.loop.End()
	e.runLane()
}

// runLane works off what the loop submitted, as the lane goroutine does.
func (e *bench) runLane() {
	if len(e.lane) == 0 {
		return
	}
	e.store.Apply(e.nowNs, e.lane)
	for _, o := range e.lane {
		e.loop.Post(Answer{o})
	}
	e.lane = e.lane[:0]
	e.loop.Begin(e.nowNs, e.nowNs)
	e.loop.RunMail()
	e.loop.End()
}

var (
	benchRequest = []byte("POST /v1/chat/completions HTTP/1.1\r\nHost: relay.test\r\nAuthorization: Bearer rk-bench\r\n" +
		"Content-Type: application/json\r\nAccept: application/json\r\nUser-Agent: OpenAI/Go 3.98.0\r\n" +
		"X-Stainless-Lang: go\r\nX-Stainless-Os: Linux\r\nX-Stainless-Arch: x64\r\nContent-Length: 2048\r\n\r\n" +
		string(chatBody(2048)))
	benchResponse = []byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nDate: Mon, 30 Nov 2026 10:00:00 GMT\r\n" +
		"X-Request-Id: req_0123456789\r\nServer: host\r\nContent-Length: 1024\r\n\r\n" + string(chatAnswer(1024)))
)

func chatBody(n int) []byte {
	head, tail := `{"messages":[{"role":"user","content":"`, `"}],"model":"gpt-alias"}`
	return append(append([]byte(head), bytes.Repeat([]byte("a"), n-len(head)-len(tail))...), tail...)
}

func chatAnswer(n int) []byte {
	head := `{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"`
	tail := `"},"finish_reason":"stop"}],"usage":{"prompt_tokens":500,"completion_tokens":200,"total_tokens":700}}`
	return append(append([]byte(head), bytes.Repeat([]byte("b"), n-len(head)-len(tail))...), tail...)
}

// TestExchangeAllocs holds the budget of a same-shape exchange on the loop: 2
// allocations, and none without a concurrency limit.
func TestExchangeAllocs(t *testing.T) {
	for _, tt := range []struct {
		name, limits string
		budget       float64
	}{
		{"requests limited", "", 0},
		{"concurrency limited", ", {meter: concurrency, amount: 10}", 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := newBench(t, tt.limits)
			run := func() { e.exchange(benchRequest, benchResponse) }
			for range 100 {
				run()
			}
			rows := e.spool.rows
			if n := testing.AllocsPerRun(500, run); n > tt.budget {
				t.Errorf("%v allocations per exchange, budget %v", n, tt.budget)
			}
			if e.spool.rows-rows != 501 || !bytes.HasPrefix(e.toClient.last, []byte("HTTP/1.1 200")) {
				t.Errorf("%d rows for 501 exchanges, last answer %.40q", e.spool.rows-rows, e.toClient.last)
			}
			if !bytes.Contains(e.toUp.last, []byte(`"model":"gpt-real"`)) {
				t.Errorf("the upstream got %.300q", e.toUp.last)
			}
		})
	}
}

// TestAsked: a callback that ends with a question to the lane says so, once.
func TestAsked(t *testing.T) {
	for _, tt := range []struct {
		name, request string
		want          bool
	}{
		{"limited", string(benchRequest), true},
		{"refused", "GET /none HTTP/1.1\r\nHost: h\r\n\r\n", false},
		{"half a request", string(benchRequest[:len(benchRequest)-1]), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := newBench(t, "")
			e.loop.Begin(e.nowNs, e.nowNs)
			e.client.OnBytes([]byte(tt.request))
			if asked, _ := e.loop.End(); asked != tt.want || asked != (len(e.lane) == 1) {
				t.Errorf("asked is %t, the lane has %d operations", asked, len(e.lane))
			}
			e.loop.Begin(e.nowNs, e.nowNs)
			if asked, _ := e.loop.End(); asked {
				t.Error("asked again")
			}
		})
	}
}

// BenchmarkExchange is the whole work of the loop for one request: 2 KB in,
// 1 KB out, alias replaced, limit checked, usage read and charged.
func BenchmarkExchange(b *testing.B) {
	e := newBench(b, "")
	b.ReportAllocs() // budget 0, enforced by TestExchangeAllocs
	for b.Loop() {
		e.exchange(benchRequest, benchResponse)
	}
}
