//go:build integration

package main

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestWireKeysAndModels(t *testing.T) {
	g := startGateway(t)
	for _, r := range []struct{ path, body string }{{chatPath, chatBody}, {messagePath, messageBody}} {
		for _, key := range []string{"", "rk-unknown", keyExpired, keyDisabled, hostSecret + "-o", strings.ToUpper(keyWide)} {
			e := wantError(t, "key "+key, g.call("POST", r.path, key, r.body), r.path, 401)
			if key != "" && strings.Contains(e.Error.Message, key) {
				t.Errorf("the key is repeated: %s", e.Error.Message)
			}
		}
		unknown := strings.NewReplacer("gpt-mock", "gpt-unknown", "claude-mock", "claude-unknown").Replace(r.body)
		e := wantError(t, "unknown model", g.call("POST", r.path, keyWide, unknown), r.path, 404)
		if !strings.Contains(e.Error.Message, "unknown") {
			t.Errorf("the message does not name the model: %s", e.Error.Message)
		}
	}
	wantError(t, "model not allowed", g.call("POST", messagePath, keyNarrow, messageBody), messagePath, 403)
	for _, field := range []string{"Authorization: bearer " + keyWide, "x-api-key: " + keyWide, "X-WR-API-Key: " + keyWide} {
		for _, r := range []struct{ path, body string }{{chatPath, chatBody}, {messagePath, messageBody}} {
			if a := g.call("POST", r.path, "", r.body, field); a.StatusCode != 200 {
				t.Errorf("%s with %s: %d %s", r.path, field, a.StatusCode, a.body)
			}
		}
	}
	if a := g.call("GET", "/v1/models", keyNarrow, ""); !strings.Contains(a.body, "gpt-mock") || strings.Contains(a.body, "claude-mock") {
		t.Errorf("models of the narrow key: %s", a.body)
	}
}

// TestWireRequestLimit spends a bucket of three that refills in a minute: the
// next token comes after 20 s, and Retry-After says so, rounded up.
func TestWireRequestLimit(t *testing.T) {
	g := startGateway(t)
	started := time.Now()
	for i := range 3 {
		if a := g.call("POST", chatPath, keyTight, chatBody); a.StatusCode != 200 {
			t.Fatalf("request %d: %d %s", i, a.StatusCode, a.body)
		}
	}
	for _, r := range []struct{ path, body string }{{chatPath, chatBody}, {messagePath, messageBody}} {
		a := g.call("POST", r.path, keyTight, r.body)
		wantError(t, "past the limit", a, r.path, 429)
		took := int(time.Since(started).Seconds())
		var wait int
		if _, err := fmt.Sscan(a.Header.Get("Retry-After"), &wait); err != nil || wait > 20 || wait < 20-took-1 {
			t.Errorf("Retry-After is %q after %d s", a.Header.Get("Retry-After"), took)
		}
	}
	if a := g.call("POST", chatPath, keyWide, chatBody); a.StatusCode != 200 {
		t.Errorf("another key: %d", a.StatusCode)
	}
	if n := g.metrics()[`relay_limit_denials_total{meter="requests"}`]; n != 2 {
		t.Errorf("%v denials are counted", n)
	}
	if n := len(g.openai.Requests()); n != 4 {
		t.Errorf("%d requests reached the host", n)
	}
}

// TestWireRequestLimitAtOnce lets many callers go at the same moment over both
// loops: exactly the limit may pass.
func TestWireRequestLimitAtOnce(t *testing.T) {
	g := startGateway(t)
	var passed atomic.Int32
	var wait sync.WaitGroup
	for range 24 {
		wait.Go(func() {
			if g.call("POST", chatPath, keyTight, chatBody).StatusCode == 200 {
				passed.Add(1)
			}
		})
	}
	wait.Wait()
	if passed.Load() != 3 {
		t.Errorf("%d passed, want 3", passed.Load())
	}
}

// TestWireConcurrency fills two slots and frees them in every way a request
// can end: a slot that leaked would refuse the last round.
func TestWireConcurrency(t *testing.T) {
	g := startGateway(t)
	two := func(mock, body string) [2]*openStream {
		return [2]*openStream{
			g.stream(chatPath+"?mock="+mock, keyTwo, body), g.stream(chatPath+"?mock="+mock, keyTwo, body),
		}
	}
	held := two("tick=50ms,events=2000", chatStreamBody)
	for _, s := range held {
		if s.StatusCode != 200 || s.event() == "" {
			t.Fatalf("status %d", s.StatusCode)
		}
	}
	a := g.call("POST", chatPath, keyTwo, chatBody)
	wantError(t, "third at once", a, chatPath, 429)
	if a.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	for _, s := range held {
		s.abort() // the callers leave
	}
	ends := []struct{ name, mock, body string }{
		{"whole answer", "", chatBody},
		{"whole stream", "tokens=5", chatStreamBody},
		{"host times out", "silent", chatBody},
		{"host resets", "reset", chatBody},
		{"host breaks off", "cut=2,tokens=9,per=1", chatStreamBody},
		{"host refuses", "status=500", chatBody},
		{"host is wrong", "head=garbage", chatBody},
		{"bad body", "", `{"model":`},
		{"unknown model", "", strings.Replace(chatBody, "gpt-mock", "nothing", 1)},
	}
	for _, end := range ends {
		if !eventually(3*time.Second, func() bool { return g.metrics()["relay_exchanges"] == 0 }) {
			t.Fatalf("before %q something still runs", end.name)
		}
		var wait sync.WaitGroup
		for range 2 {
			wait.Go(func() {
				a := g.call("POST", chatPath+"?mock="+end.mock, keyTwo, end.body)
				if a.StatusCode == 429 {
					t.Errorf("before %q a slot has leaked", end.name)
				}
			})
		}
		wait.Wait()
	}
	w := g.dial()
	w.send(post(chatPath+"?mock=silent", keyTwo, chatBody))
	if !eventually(patience, func() bool { return g.metrics()["relay_exchanges"] == 1 }) {
		t.Fatal("the request does not run")
	}
	w.conn.Close() // the caller leaves before the answer
	if !eventually(3*time.Second, func() bool { return g.metrics()["relay_exchanges"] == 0 }) {
		t.Error("it still runs")
	}
	for _, s := range two("tokens=3", chatStreamBody) {
		if s.StatusCode != 200 {
			t.Errorf("at the end: %d", s.StatusCode)
		}
	}
}

func TestWireInflightCap(t *testing.T) {
	g := startGateway(t, "RELAY_MAX_INFLIGHT=2")
	var held []*openStream
	for range 2 {
		s := g.stream(chatPath+"?mock=tick=50ms,events=2000", keyWide, chatStreamBody)
		s.event()
		held = append(held, s)
	}
	big := post(chatPath, keyWide, strings.Repeat("x", 1<<20))
	for path, want := range map[string]int{chatPath: 503, messagePath: 529} {
		w := g.dial()
		w.send(strings.Replace(big, chatPath, path, 1)[:500]) // before the body has come
		a := w.answer("POST")
		wantError(t, "past the cap", a, path, want)
		if a.Header.Get("Retry-After") == "" || !a.Close {
			t.Errorf("Retry-After %q, close %v", a.Header.Get("Retry-After"), a.Close)
		}
	}
	m := g.metrics()
	if m[`relay_requests_shed_total{reason="inflight"}`] != 2 || m["relay_inflight_limit"] != 2 || m["relay_inflight_requests"] != 2 {
		t.Errorf("shed %v, limit %v, in flight %v", m[`relay_requests_shed_total{reason="inflight"}`], m["relay_inflight_limit"], m["relay_inflight_requests"])
	}
	for _, s := range held {
		s.abort()
	}
	if !eventually(3*time.Second, func() bool {
		return g.call("POST", chatPath, keyWide, chatBody).StatusCode == 200
	}) {
		t.Error("the cap does not open again")
	}
}
