package baseline

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"relay/perf/mockhost"
	"relay/usage"
	"relay/usage/spool"
)

// A rig is a gateway before a mock provider.
type rig struct {
	t       testing.TB
	mock    *mockhost.Server
	gateway *Gateway
	url     string
	control string
	dir     string
}

const (
	keyWide  = "rk-wide-000"
	keyTight = "rk-tight-00"
	keyOne   = "rk-one-0000"
	keyMany  = "rk-many-000"
	keyTok   = "rk-tokens-0"
)

const catalogFormat = `hosts:
  - {name: chat-host, shape: openai, base_url: "http://%[1]s/v1", keys: [{name: main, value: "plain:sk-upstream"}]}
  - {name: message-host, shape: anthropic, base_url: "http://%[1]s", keys: [{name: main, value: "plain:sk-upstream"}]}
  - {name: dead-host, shape: openai, base_url: "http://%[2]s/v1", keys: [{name: main, value: "plain:sk-upstream"}]}
models:
  - {name: gpt-mock, aliases: ["gpt-alias"], bindings: [{host: chat-host, upstream_model: gpt-mock}], price: {input: 2, cached_input: 0.5, output: 10}}
  - {name: claude-mock, bindings: [{host: message-host, upstream_model: claude-mock}], price: {input: 3, cached_input: 0.3, cache_write_5m: 3.75, output: 15}}
  - {name: gpt-dead, bindings: [{host: dead-host, upstream_model: gpt-mock}]}
  - {name: gpt-secret, bindings: [{host: chat-host, upstream_model: gpt-mock}]}
policies:
  - {name: wide, models: [gpt-mock, claude-mock, gpt-dead], limits: [{meter: requests, amount: 1000000, window: 1m}, {meter: concurrency, amount: 1000}]}
  - {name: tight, models: ["*"], limits: [{meter: requests, amount: 1, window: 1h}]}
  - {name: one, models: ["*"], limits: [{meter: concurrency, amount: 1}]}
  - {name: many, models: ["*"], limits: [{meter: requests, amount: 20, window: 24h}]}
  - {name: tokens, models: ["*"], limits: [{meter: tokens, amount: 1000, window: 24h, reserve: strict}]}
accounts:
  - {name: team}
relay_keys:
  - {name: wide, key: ` + keyWide + `, account: team, policy: wide}
  - {name: tight, key: ` + keyTight + `, account: team, policy: tight}
  - {name: one, key: ` + keyOne + `, account: team, policy: one}
  - {name: many, key: ` + keyMany + `, account: team, policy: many}
  - {name: tokens, key: ` + keyTok + `, account: team, policy: tokens}
`

// startRig starts a gateway; set may change its options.
func startRig(t testing.TB, engine string, set func(*Options)) *rig {
	t.Helper()
	mock, err := mockhost.Start(mockhost.Options{Scenario: "instant", Record: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mock.Close() })
	dead := listen(t)
	dead.Close()
	r := &rig{t: t, mock: mock, dir: t.TempDir()}
	catalog := filepath.Join(r.dir, "relay.yaml")
	if err := os.WriteFile(catalog, fmt.Appendf(nil, catalogFormat, mock.Addr(), dead.Addr()), 0o600); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	slog.SetDefault(log) // the catalog warns of its keys in clear
	o := Options{
		Engine: engine, Inference: listen(t), Control: listen(t), Catalog: catalog, DataDir: r.dir,
		SpoolSync: time.Millisecond, RequestBytesMax: 64 << 10, Instance: "rig", Log: log,
	}
	if set != nil {
		set(&o)
	}
	r.url, r.control = "http://"+o.Inference.Addr().String(), "http://"+o.Control.Addr().String()
	if r.gateway, err = Start(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.close)
	return r
}

func (r *rig) close() {
	if r.gateway == nil {
		return
	}
	http.DefaultClient.CloseIdleConnections()
	if err := r.gateway.Close(time.Second); err != nil {
		r.t.Error(err)
	}
	r.gateway = nil
}

// A reply is an answer as the caller got it.
type reply struct {
	*http.Response
	body string
	err  error // of the body
}

// request makes a POST with a relay key. Fields are "Name: value".
func (r *rig) request(ctx context.Context, path, key, body string, fields ...string) *http.Request {
	r.t.Helper()
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Authorization", "Bearer "+key)
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		q.Header.Add(name, value)
	}
	return q
}

// call posts and reads the whole answer.
func (r *rig) call(path, key, body string, fields ...string) reply {
	r.t.Helper()
	answer, err := http.DefaultClient.Do(r.request(r.t.Context(), path, key, body, fields...))
	if err != nil {
		r.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return reply{answer, string(text), err}
}

// rows are the rows of a request by the id that its caller gave.
func (r *rig) rows(id string) (rows []usage.Event) {
	r.t.Helper()
	err := spool.Tail(r.t.Context(), filepath.Join(r.dir, "spool"), false, func(rec spool.Record) error {
		if rec.Event.CallerID == id {
			rows = append(rows, rec.Event)
		}
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return rows
}

// eventually waits for what happens soon.
func eventually(t *testing.T, what string, happened func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !happened(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("did not happen: %s", what)
		}
	}
}

// onEngines runs a test with each engine.
func onEngines(t *testing.T, test func(t *testing.T, engine string)) {
	for _, engine := range Engines() {
		t.Run(engine, func(t *testing.T) { test(t, engine) })
	}
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}
