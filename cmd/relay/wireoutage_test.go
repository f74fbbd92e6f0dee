//go:build integration

package main

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"relay/store/redis/redistest"
)

// outages are what a relay does while its store is lost, by RELAY_STORE_OUTAGE.
var outages = []struct {
	mode   string
	status int     // of a request with a limit
	ready  int     // status of /readyz
	local  float64 // relay_store_local
	line   string
}{
	{"refuse", 503, 503, 0, "the store is lost: requests with limits are refused"},
	{"local", 200, 200, 1, "the store is lost: this relay counts its share of the limits by itself"},
}

// TestWireStoreLost kills the store under a relay and brings it back, empty.
func TestWireStoreLost(t *testing.T) {
	for _, tt := range outages {
		t.Run(tt.mode, func(t *testing.T) {
			server := redistest.Start(t, "--requirepass", storePassword)
			g := prepareSharing(t)
			g.start(onStore("redis://:"+storePassword+"@"+server.Addr(), "RELAY_STORE_OUTAGE="+tt.mode)...)
			if a := g.call("POST", chatPath, keyTight, chatBody); a.StatusCode != 200 {
				t.Fatalf("before: %d %s", a.StatusCode, a.body)
			}
			server.Stop()
			a := g.call("POST", chatPath, keyTight, chatBody)
			if tt.status != 200 {
				wantError(t, "while it is lost", a, chatPath, tt.status)
			}
			if a.StatusCode != tt.status || a.StatusCode == 503 && a.Header.Get("Retry-After") == "" {
				t.Errorf("while it is lost: %d, Retry-After %q: %s", a.StatusCode, a.Header.Get("Retry-After"), a.body)
			}
			if a := g.call("POST", chatPath, keyNarrow, chatBody); a.StatusCode != 200 {
				t.Errorf("without limits: %d %s", a.StatusCode, a.body)
			}
			var p standingPage
			if !eventually(patience, func() bool { p = g.standing(); return p.status == tt.ready && p.Note == tt.line }) {
				t.Errorf("while it is lost /readyz is %+v", p)
			}
			if p.Ready != (tt.ready == 200) || p.StoreLostAt == nil || !strings.Contains(p.StoreError, "refused") {
				t.Errorf("while it is lost /readyz is %+v", p)
			}
			m := g.metrics()
			if m["relay_store_up"] != 0 || m["relay_store_local"] != tt.local || m["relay_store_failures_total"] == 0 ||
				m["relay_store_lost_ops_total"]+m["relay_store_local_ops_total"] == 0 ||
				(m["relay_store_local_ops_total"] > 0) != (tt.mode == "local") {
				t.Errorf("up %v, local %v, failures %v, lost %v, answered here %v", m["relay_store_up"], m["relay_store_local"],
					m["relay_store_failures_total"], m["relay_store_lost_ops_total"], m["relay_store_local_ops_total"])
			}
			server.Restart()
			if !eventually(patience, func() bool { p = g.standing(); return p.status == 200 && p.Note == "" && p.StoreLostAt == nil }) {
				t.Errorf("afterwards /readyz is %+v", p)
			}
			if a := g.call("POST", chatPath, keyTight, chatBody); a.StatusCode != 200 || g.metrics()["relay_store_up"] != 1 {
				t.Errorf("afterwards: %d %s, up %v", a.StatusCode, a.body, g.metrics()["relay_store_up"])
			}
			log := g.log.text()
			if strings.Count(log, tt.line) != 1 || strings.Count(log, "the store is back") != 1 || !strings.Contains(log, `"lost_for":"`) {
				t.Error("the log does not tell of it once")
			}
			if strings.Contains(log+g.page("/readyz")+g.page("/metrics"), storePassword) {
				t.Error("the password is told")
			}
		})
	}
}

// TestWireStoreHangs stops the store without closing its connections: callers
// wait for its deadline and no longer, and what was counted by a share is in the
// store afterwards.
func TestWireStoreHangs(t *testing.T) {
	server := redistest.Start(t)
	g := prepareSharing(t)
	g.start(onStore(server.Addr(), "RELAY_STORE_OUTAGE=local")...)
	for i := range 4 {
		if a := g.call("POST", chatPath, keyTight, chatBody); a.StatusCode != 200 {
			t.Fatalf("request %d: %d %s", i, a.StatusCode, a.body)
		}
	}
	server.Pause()
	resumed := false
	defer func() {
		if !resumed {
			server.Resume()
		}
	}()
	passed := 0
	for range 15 {
		began := time.Now()
		a := g.call("POST", chatPath, keyTight, chatBody)
		if took := time.Since(began); took > 5*time.Second { // the deadline of the store is 250 ms
			t.Errorf("a caller waited for %v", took)
		}
		switch a.StatusCode {
		case 200:
			passed++
		case 429:
		default:
			t.Errorf("status %d: %s", a.StatusCode, a.body)
		}
	}
	if passed != 10 { // the share of the only relay
		t.Errorf("%d passed while the store was lost, want 10", passed)
	}
	server.Resume()
	resumed = true
	if !eventually(patience, func() bool { return g.standing().Note == "" }) {
		t.Errorf("afterwards: %+v", g.standing())
	}
	wantError(t, "afterwards", g.call("POST", chatPath, keyTight, chatBody), chatPath, 429)
}

// TestWireStoreShares: two relays that lose their store hold half of the limit
// each.
func TestWireStoreShares(t *testing.T) {
	server := redistest.Start(t)
	relays := []*gateway{prepareSharing(t), prepareSharing(t)}
	for _, g := range relays {
		g.start(onStore(server.Addr(), "RELAY_STORE_OUTAGE=local")...)
	}
	for i, g := range relays {
		if !eventually(patience, func() bool { return g.metrics()["relay_store_relays"] == 2 }) {
			t.Fatalf("relay %d does not know of the other", i)
		}
	}
	server.Stop()
	for i, g := range relays {
		passed := 0
		for range 10 {
			if a := g.call("POST", chatPath, keyTight, chatBody); a.StatusCode == 200 {
				passed++
			} else if a.StatusCode != 429 {
				t.Errorf("relay %d: %d %s", i, a.StatusCode, a.body)
			}
		}
		if passed != 5 {
			t.Errorf("relay %d: %d passed, want 5", i, passed)
		}
	}
}

// TestWireStoreDownAtStart starts a relay before its store.
func TestWireStoreDownAtStart(t *testing.T) {
	for _, tt := range outages {
		t.Run(tt.mode, func(t *testing.T) {
			server := redistest.Start(t)
			server.Stop()
			g := prepareSharing(t)
			g.start(onStore(server.Addr(), "RELAY_STORE_OUTAGE="+tt.mode)...)
			if p := g.standing(); p.status != tt.ready || p.Note != tt.line {
				t.Errorf("at the start /readyz is %+v", p)
			}
			if a := g.call("POST", chatPath, keyTight, chatBody); a.StatusCode != tt.status {
				t.Errorf("at the start: %d %s", a.StatusCode, a.body)
			}
			server.Restart()
			if !eventually(patience, func() bool { p := g.standing(); return p.status == 200 && p.Note == "" }) {
				t.Errorf("afterwards /readyz is %+v", g.standing())
			}
			if a := g.call("POST", chatPath, keyTight, chatBody); a.StatusCode != 200 {
				t.Errorf("afterwards: %d %s", a.StatusCode, a.body)
			}
		})
	}
}

// TestWireStoreLostAtEnd: a relay ends in time when its store does not answer,
// with slots to give back.
func TestWireStoreLostAtEnd(t *testing.T) {
	for _, tt := range outages {
		t.Run(tt.mode, func(t *testing.T) {
			server := redistest.Start(t)
			g := prepareSharing(t)
			g.start(onStore(server.Addr(), "RELAY_STORE_OUTAGE="+tt.mode, "RELAY_SHUTDOWN_DEADLINE_S=1")...)
			s := g.stream(chatPath+"?mock=tick=50ms,events=2000", keyTwo, chatStreamBody)
			if s.StatusCode != 200 || s.event() == "" {
				t.Fatalf("stream: %d", s.StatusCode)
			}
			server.Pause()
			defer server.Resume()
			g.signal(syscall.SIGTERM)
			if code := g.wait(12 * time.Second); code != 0 {
				t.Errorf("exit code %d", code)
			}
		})
	}
}
