//go:build integration

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"relay/store/redis/redistest"
)

// onStore is the environment of a relay that shares a store.
func onStore(address string, env ...string) []string {
	return append([]string{"RELAY_STATE_BACKEND=redis", "RELAY_REDIS_ADDR=" + address}, env...)
}

// prepareSharing makes a relay, not started yet, whose tight key may make 10
// requests in a day, and the wide one 1000 in a year: so slowly do these
// buckets refill that no test sees it.
func prepareSharing(t *testing.T) *gateway {
	t.Helper()
	g := prepareGateway(t)
	text := catalogText(g.openai.URL(), g.anthropic.URL(), "")
	g.writeCatalog(strings.NewReplacer("amount: 3, window: 1m", "amount: 10, window: 24h",
		"amount: 1000000, window: 1m", "amount: 1000, window: 8760h, strategy: fixed-window").Replace(text))
	return g
}

// A standingPage is what /readyz says.
type standingPage struct {
	status      int
	Ready       bool
	Store       string
	StoreLostAt *time.Time `json:"store_lost_at"`
	StoreError  string     `json:"store_error"`
	Note        string
}

func (g *gateway) standing() (p standingPage) {
	g.t.Helper()
	answer, err := http.Get("http://" + g.control + "/readyz")
	if err != nil {
		g.t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(&p); err != nil {
		g.t.Fatal(err)
	}
	p.status = answer.StatusCode
	return p
}

// TestWireSharedLimit gives two relays twice the calls that a limit has, at the
// same time: exactly as many as the limit has pass, over both.
func TestWireSharedLimit(t *testing.T) {
	for _, tt := range []struct {
		name  string
		nodes int // 0 = a single server
		lanes string
	}{{"one lane", 0, "1"}, {"three lanes", 0, "3"}, {"cluster", 3, "2"}} {
		t.Run(tt.name, func(t *testing.T) {
			var addresses []string
			if tt.nodes == 0 {
				addresses = append(addresses, redistest.Start(t).Addr())
			} else {
				for _, s := range redistest.StartCluster(t, tt.nodes) {
					addresses = append(addresses, s.Addr())
				}
			}
			relays := []*gateway{prepareSharing(t), prepareSharing(t)}
			var passed, denied atomic.Int32
			var wait sync.WaitGroup
			for _, g := range relays {
				g.start(onStore(strings.Join(addresses, ","), "RELAY_REDIS_LANES="+tt.lanes, "RELAY_REDIS_TAGS=8")...)
			}
			for _, g := range relays {
				for range 10 {
					wait.Go(func() {
						switch a := g.call("POST", chatPath, keyTight, chatBody); {
						case a.StatusCode == 200:
							passed.Add(1)
						case a.StatusCode == 429 && a.Header.Get("Retry-After") != "":
							denied.Add(1)
						default:
							t.Errorf("status %d, Retry-After %q: %s", a.StatusCode, a.Header.Get("Retry-After"), a.body)
						}
					})
				}
			}
			wait.Wait()
			reached := len(relays[0].openai.Requests()) + len(relays[1].openai.Requests())
			if passed.Load() != 10 || denied.Load() != 10 || reached != 10 {
				t.Errorf("%d passed, %d were denied, %d reached a host; want 10 of each", passed.Load(), denied.Load(), reached)
			}
			for i, g := range relays {
				m := g.metrics()
				if m["relay_store_up"] != 1 || m["relay_store_local"] != 0 || m["relay_store_ops_total"] == 0 || m["relay_store_lost_ops_total"] != 0 {
					t.Errorf("relay %d: up %v, local %v, %v operations, %v lost", i, m["relay_store_up"], m["relay_store_local"],
						m["relay_store_ops_total"], m["relay_store_lost_ops_total"])
				}
				if p := g.standing(); p.status != 200 || p.Store != "redis" || p.StoreLostAt != nil || p.Note != "" {
					t.Errorf("relay %d: %+v", i, p)
				}
				if !eventually(patience, func() bool { return g.metrics()["relay_store_relays"] == 2 }) {
					t.Errorf("relay %d does not know of the other", i)
				}
			}
		})
	}
}

// TestWireSharedReturns: what a relay holds goes back when it ends, slots and
// units alike, and it leaves the others.
func TestWireSharedReturns(t *testing.T) {
	server := redistest.Start(t)
	a, b := prepareSharing(t), prepareSharing(t)
	a.start(onStore(server.Addr(), "RELAY_SHUTDOWN_DEADLINE_S=1")...)
	b.start(onStore(server.Addr())...)
	for range 2 {
		if s := a.stream(chatPath+"?mock=tick=50ms,events=2000", keyTwo, chatStreamBody); s.StatusCode != 200 {
			t.Fatalf("stream: %d", s.StatusCode)
		}
	}
	wantError(t, "all slots are at the other relay", b.call("POST", chatPath, keyTwo, chatBody), chatPath, 429)
	for range 100 { // by leases, since there is plenty
		if r := a.call("POST", chatPath, keyWide, chatBody); r.StatusCode != 200 {
			t.Fatalf("wide: %d", r.StatusCode)
		}
	}
	a.signal(syscall.SIGTERM)
	if code := a.wait(20 * time.Second); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for i := range 2 {
		s := b.stream(chatPath+"?mock=tick=50ms,events=2000", keyTwo, chatStreamBody)
		if s.StatusCode != 200 {
			t.Errorf("slot %d did not come back: %d", i, s.StatusCode)
		}
		defer s.abort()
	}
	if r := b.call("POST", chatPath, keyWide, chatBody); r.Header.Get("X-Ratelimit-Remaining-Requests") != "899" {
		t.Errorf("%s requests are left, want 899", r.Header.Get("X-Ratelimit-Remaining-Requests"))
	}
	if !eventually(3*time.Second, func() bool { return b.metrics()["relay_store_relays"] == 1 }) {
		t.Error("the relay that ended is still counted")
	}
}

// TestWireSharedOtherwise: a relay that would count in another way than the
// store does is not started.
func TestWireSharedOtherwise(t *testing.T) {
	server := redistest.Start(t, "--requirepass", storePassword)
	g := prepareSharing(t)
	address := "redis://:" + storePassword + "@" + server.Addr()
	g.start(onStore(address)...)
	env := append([]string{"RELAY_BIND=127.0.0.1", "RELAY_PORT=0", "RELAY_CONTROL_PORT=0", "RELAY_CATALOG=" + g.catalog,
		"RELAY_DATA_DIR=" + t.TempDir()}, onStore(address, "RELAY_REDIS_TAGS=8")...)
	out, code := runBinary(t, env, "serve")
	var complaints []string
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, "{") {
			complaints = append(complaints, line)
		}
	}
	want := fmt.Sprintf("relay: RELAY_REDIS_ADDR (--redis-addr) is %q: redis: the store holds counters of protocol and tags \"1 1\", and this relay counts by \"1 8\": give all relays the same number of tags, or empty the store (RELAY_REDIS_TAGS)\n", server.Addr())
	if code != 1 || len(complaints) != 1 || complaints[0] != want {
		t.Errorf("exit code %d, %q, want %q", code, complaints, want)
	}
	if strings.Contains(out, storePassword) {
		t.Error("the password is told")
	}
}

// storePassword opens the store of some tests.
const storePassword = "correct-horse-battery"
