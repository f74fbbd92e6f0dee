package baseline

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"relay/admit"
	"relay/store/catalog"
	"relay/store/state"
)

// TestTokenLimits wants what was not used back, and what was used charged.
func TestTokenLimits(t *testing.T) {
	const body = `{"model":"gpt-mock","max_tokens":400,"messages":[]}`
	onEngines(t, func(t *testing.T, engine string) {
		r := startRig(t, engine, nil)
		for i := range 10 { // each reserves 400 and more of 1,000, and uses 15
			if a := r.call(chatPath+"?mock=in=10,out=5", keyTok, body); a.StatusCode != 200 {
				t.Fatalf("request %d: %d %s", i, a.StatusCode, a.body)
			}
		}
		if a := r.call(chatPath+"?mock=in=800,out=400", keyTok, body); a.StatusCode != 200 {
			t.Fatalf("%d %s", a.StatusCode, a.body)
		}
		a := r.call(chatPath+"?mock=in=10,out=5", keyTok, body)
		if a.StatusCode != 429 || !strings.Contains(a.body, "limit of policy/tokens reached: 1000 tokens per 24h0m0s") {
			t.Errorf("in debt: %d %s", a.StatusCode, a.body)
		}
		a = r.call(chatPath, keyTok, strings.Replace(body, "400", "4000", 1))
		if a.StatusCode != 429 || a.Header.Get("X-Should-Retry") != "false" || a.Header.Get("Retry-After") != "" || !strings.Contains(a.body, "less than this request may use") {
			t.Errorf("too many: %d %v %s", a.StatusCode, a.Header, a.body)
		}
	})
}

// TestTogether wants no more granted than the limit, however many ask at once.
func TestTogether(t *testing.T) {
	onEngines(t, func(t *testing.T, engine string) {
		r := startRig(t, engine, nil)
		var granted, denied atomic.Int64
		var wait sync.WaitGroup
		for range 60 {
			wait.Go(func() {
				switch a := r.call(chatPath, keyMany, chatBody); a.StatusCode {
				case 200:
					granted.Add(1)
				case 429:
					denied.Add(1)
				}
			})
		}
		wait.Wait()
		if granted.Load() != 20 || denied.Load() != 40 {
			t.Errorf("%d granted and %d denied, want 20 and 40", granted.Load(), denied.Load())
		}
	})
}

// TestTick wants what a limiter has of a group that nobody uses any more to go.
func TestTick(t *testing.T) {
	r := startRig(t, "nethttp", nil)
	if a := r.call(chatPath, keyWide, chatBody); a.StatusCode != 200 {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	l := r.gateway.core.limiter
	eventually(t, "the leases are dropped", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.leases.Len() == 0
	})
}

func TestDenialText(t *testing.T) {
	group := &catalog.Group{Name: "account/team"}
	for want, d := range map[string]admit.Demand{
		"limit of account/team reached: 5.5 USD per month":         {Limit: catalog.Limit{Meter: catalog.Cost, Strategy: catalog.Calendar, Period: catalog.Month, Amount: 55e8}},
		"limit of account/team reached: 7 requests at a time":      {Limit: catalog.Limit{Meter: catalog.Concurrency, Amount: 7}},
		"limit of account/team reached: 9 tokens.input per 1h0m0s": {Limit: catalog.Limit{Meter: catalog.InputTokens, Amount: 9, Window: 3600e9}},
		"limit of account/team is less than this request may use: 9 tokens per 1s": {
			Limit: catalog.Limit{Meter: catalog.Tokens, Amount: 9, Window: 1e9}, RetryNs: state.NeverNs},
	} {
		d.Group = group
		if got := denialText(&d); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
