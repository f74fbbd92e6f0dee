//go:build integration

package shared

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"
)

// cases are the tenants of TestCases.
var cases = []tenant{
	{name: "debt-bucket", limits: []string{"meter: tokens, amount: 111, window: 1h"}},
	{name: "debt-fixed", limits: []string{"meter: tokens, amount: 111, window: 24h, strategy: fixed-window"}},
	{name: "debt-session", limits: []string{"meter: tokens, amount: 111, window: 1h, strategy: session-window, reserve: posthoc"}},
	{name: "ten-bucket", limits: []string{"meter: requests, amount: 10, window: 1h"}},
	{name: "ten-leaky", limits: []string{"meter: requests, amount: 10, window: 1h, strategy: leaky-bucket"}},
	{name: "ten-fixed", limits: []string{"meter: requests, amount: 10, window: 24h, strategy: fixed-window"}},
	{name: "ten-sliding", limits: []string{"meter: requests, amount: 10, window: 24h, strategy: sliding-window"}},
	{name: "ten-session", limits: []string{"meter: requests, amount: 10, window: 1m, strategy: session-window"}},
	{name: "ten-calendar", limits: []string{"meter: requests, amount: 10, strategy: calendar, period: day"}},
	{name: "ten-host"},
	{name: "ten-own", own: []string{"meter: requests, amount: 10, window: 24h, strategy: fixed-window"}},
	{name: "ten-plain", limits: []string{"meter: requests, amount: 10, window: 24h, strategy: fixed-window", "meter: concurrency, amount: 100"}},
	{name: "late", limits: []string{"meter: concurrency, amount: 3"}},
	{name: "gone", limits: []string{"meter: concurrency, amount: 3"}},
	{name: "broken", limits: []string{"meter: concurrency, amount: 3"}},
	{name: "once-strict", budget: "usd: 0.0011, period: month, reserve: strict"},
	{name: "once-expected", budget: "usd: 0.0011, period: month"},
	{name: "pass", budget: "usd: 0.04, period: month"},
	{name: "pass-debt", budget: "usd: 0.04, period: month"},
	{name: "asleep", limits: []string{"meter: requests, amount: 1, window: 24h, strategy: fixed-window"}},
}

// TestCases are small cases that went wrong in other gateways, each on one
// relay that counts in its memory and on two that share a store.
func TestCases(t *testing.T) {
	t.Parallel()
	eachBackend(t, cases, func(t *testing.T, f *fleet) {
		awayFrom(24 * time.Hour)
		for _, c := range []struct {
			name string
			test func(*testing.T, *fleet)
		}{
			{"debt", testDebt},
			{"ten", testTen},
			{"slots", testSlots},
			{"budget", testBudget},
			{"pass-through", testPassThrough},
			{"answers", testAnswers},
		} {
			t.Run(c.name, func(t *testing.T) { c.test(t, f) })
		}
		for _, r := range f.relays {
			r.awaitQuiet()
		}
	})
}

// awayFrom waits when a window of the grid is about to end: counts that are to
// be exact must not be split.
func awayFrom(window time.Duration) {
	const margin = 20 * time.Second // more than the test takes
	if left := window - time.Duration(time.Now().UnixNano()%int64(window)); left < margin {
		time.Sleep(left)
	}
}

// testDebt has one request use far more than its limit: it is let through, the
// debt counts in full and for all relays, and the wait that is told is true.
func testDebt(t *testing.T, f *fleet) {
	last := len(f.relays) - 1
	for _, tt := range []struct {
		name        string
		least, most time.Duration // of the wait
	}{
		// The bucket is back at 0 after (10000 − 111) / 111 hours, and has room for
		// what a request is taken to need at most an hour later.
		{"debt-bucket", 9889 * time.Hour / 111, 10000*time.Hour/111 + time.Second},
		{"debt-fixed", 0, 24 * time.Hour},
		{"debt-session", 59 * time.Minute, time.Hour},
	} {
		q := question{name: tt.name, words: "in=7000&out=3000"}
		if a := f.ask(0, q); a.status != http.StatusOK {
			t.Errorf("%s: the first call: %d %s", tt.name, a.status, a.body)
		}
		for _, relay := range []int{0, last} {
			began := time.Now()
			a := f.ask(relay, q)
			shaped(t, q, a, http.StatusTooManyRequests)
			wait := time.Duration(a.retryAfter()) * time.Second
			least, most := tt.least, tt.most
			if tt.name == "debt-fixed" { // to the end of the day
				least = 24*time.Hour - time.Duration(began.UnixNano()%int64(24*time.Hour)) - time.Minute
				most = least + time.Minute + time.Second
			}
			if wait < least || wait > most {
				t.Errorf("%s: the wait is %v, want %v to %v", tt.name, wait, least, most)
			}
		}
		if n := f.provider.of(tt.name).arrived; n != 1 {
			t.Errorf("%s: %d calls reached the provider", tt.name, n)
		}
	}
}

// testTen makes twenty calls where ten are allowed, to all relays alike: first
// at once, by the others one after the other.
func testTen(t *testing.T, f *fleet) {
	for _, name := range []string{"ten-bucket", "ten-leaky", "ten-fixed", "ten-sliding", "ten-session", "ten-calendar", "ten-host", "ten-own", "ten-plain"} {
		q := question{name: name}
		if name == "ten-host" {
			q.model = cappedModel
		}
		if counts := f.together(20, q); counts[200] != 10 || counts[429] != 10 {
			t.Errorf("%s: twenty at once: %v", name, counts)
		}
		for i := range f.relays {
			shaped(t, q, f.ask(i, q), http.StatusTooManyRequests)
		}
		if n := f.provider.of(name).arrived; n != 10 {
			t.Errorf("%s: %d calls reached the provider", name, n)
		}
	}
}

// testSlots ends requests in every way that leaves no answer, over and over: no
// slot stays behind.
func testSlots(t *testing.T, f *fleet) {
	const slots = 3
	late := question{name: "late", model: hastyModel, words: "hang&sure=200ms"}
	for range 2 {
		if counts := f.together(slots, late); counts[http.StatusGatewayTimeout] != slots {
			t.Errorf("calls to a host that never answers: %v", counts)
		}
		f.fills("after timeouts", 5*time.Second, slots, question{name: "late"})
	}
	for range 2 {
		f.abandon(slots, question{name: "gone", words: "hang"}, 150*time.Millisecond)
		f.fills("after callers have left", 5*time.Second, slots, question{name: "gone"})
		f.abandonStreams(slots, question{name: "gone", words: "hold=30s"})
		f.fills("after readers of streams have left", 5*time.Second, slots, question{name: "gone"})
	}
	// A body that is refused, a model that is not there: nothing is taken.
	for range 2 * slots {
		for i := range f.relays {
			if a := f.ask(i, question{name: "broken", model: "nothing"}); a.status != http.StatusNotFound {
				t.Errorf("a model that is not there: %d", a.status)
			}
		}
	}
	f.fills("after refusals", 5*time.Second, slots, question{name: "broken"})
	for _, name := range []string{"late", "gone", "broken"} {
		if n := f.provider.of(name); n.most > slots && name != "gone" { // whose end is seen late
			t.Errorf("%s: %d ran at once", name, n.most)
		}
	}
}

// abandon makes requests whose callers leave after a time.
func (f *fleet) abandon(n int, q question, patience time.Duration) {
	var wait sync.WaitGroup
	for i := range n {
		wait.Go(func() {
			impatient, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			f.callers.do(impatient, f.relays[i%len(f.relays)].inference, q)
		})
	}
	wait.Wait()
}

// abandonStreams opens streams, reads some events, and leaves.
func (f *fleet) abandonStreams(n int, q question) {
	f.t.Helper()
	for i := range n {
		s := f.open(i%len(f.relays), q)
		if s.status != http.StatusOK {
			f.t.Errorf("stream %d of %s: %d", i, q.name, s.status)
		}
		defer func() {
			s.leave()
			<-s.done
		}()
	}
	time.Sleep(3 * streamPause)
}

// testBudget releases eight calls at once against a budget for one.
func testBudget(t *testing.T, f *fleet) {
	strict := question{name: "once-strict", most: 10}
	if counts := f.together(8, strict); counts[200] != 1 || counts[429] != 7 {
		t.Errorf("a budget for one call, strict: %v", counts)
	}
	shaped(t, strict, f.ask(0, strict), http.StatusTooManyRequests)
	// What is only expected is reserved too: at most the whole budget by one.
	expected := question{name: "once-expected"}
	if counts := f.together(8, expected); counts[200] != 1 || counts[429] != 7 {
		t.Errorf("a budget for one call, expected: %v", counts)
	}
	// The first one has used 0.001 of it and given the rest back: one more may go,
	// if it is expected to fit, and none behind it.
	more := 0
	for range 4 {
		for i := range f.relays {
			if f.ask(i, expected).status == http.StatusOK {
				more++
			}
		}
	}
	if n := f.provider.of("once-expected").arrived; more > 1 || n != 1+more {
		t.Errorf("%d more calls pass a budget that is spent; %d reached the provider", more, n)
	}
}

// testPassThrough spends budgets on a route that is passed through: 0.01 USD
// for ten tokens, of 0.04.
func testPassThrough(t *testing.T, f *fleet) {
	q := question{name: "pass", path: embedPath}
	if n := f.passes(q); n < 3 || n > 4 { // the last one fits if it is not taken to need a token more
		t.Errorf("%d calls of 0.01 USD pass a budget of 0.04", n)
	}
	// One call that costs more than the budget: nothing goes behind it, on any
	// route.
	q = question{name: "pass-debt", path: embedPath, words: "in=100"}
	if a := f.ask(0, q); a.status != http.StatusOK {
		t.Errorf("the first call: %d %s", a.status, a.body)
	}
	for i := range f.relays {
		for _, path := range []string{embedPath, chatPath, messagePath} {
			q := question{name: "pass-debt", path: path, most: 1}
			shaped(t, q, f.ask(i, q), http.StatusTooManyRequests)
		}
	}
	if n := f.provider.of("pass-debt").arrived; n != 1 {
		t.Errorf("%d calls reached the provider", n)
	}
}

// testAnswers looks at how callers are told: in the shape of their route. A
// limit on requests does not ask for max_tokens.
func testAnswers(t *testing.T, f *fleet) {
	if a := f.ask(0, question{name: "asleep"}); a.status != http.StatusOK {
		t.Errorf("without max_tokens: %d %s", a.status, a.body)
	}
	for i := range f.relays {
		for _, path := range []string{chatPath, messagePath, embedPath} {
			q := question{name: "asleep", path: path, most: 10}
			shaped(t, q, f.ask(i, q), http.StatusTooManyRequests)
		}
	}
	if n := f.provider.of("asleep").arrived; n != 1 {
		t.Errorf("%d calls reached the provider", n)
	}
}
