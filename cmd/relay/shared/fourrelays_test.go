//go:build integration

package shared

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"relay/store/catalog"
)

// A promise is one limit that is kept, of the tenants whose keys are named.
type promise struct {
	keys   []string
	meter  catalog.Meter
	count  counter
	amount int64
	window time.Duration
	grid   bool // windows of a grid, in which enough is let through too
}

// contract are the tenants of TestFourRelays.
var contract = []tenant{
	{name: "fixed", limits: []string{"meter: requests, amount: 100, window: 2s, strategy: fixed-window"}},
	{name: "sliding", limits: []string{"meter: requests, amount: 100, window: 2s, strategy: sliding-window"}},
	{name: "bucket", limits: []string{"meter: requests, amount: 60, window: 2s"}},
	{name: "leaky", limits: []string{"meter: requests, amount: 500, window: 10s, strategy: leaky-bucket"}},
	{name: "session", limits: []string{"meter: requests, amount: 80, window: 2s, strategy: session-window"}},
	{name: "output", limits: []string{"meter: tokens.output, amount: 1000, window: 2s, strategy: fixed-window, reserve: strict"}},
	{name: "tokens", limits: []string{"meter: tokens, amount: 900, window: 2s, reserve: strict"}},
	{name: "mixed", limits: []string{
		"meter: requests, amount: 150, window: 3s, strategy: sliding-window", "meter: tokens.output, amount: 3000, window: 5s, strategy: fixed-window, reserve: strict",
		"meter: concurrency, amount: 5"}},
	{name: "pair-a", limits: []string{"meter: requests, amount: 400, window: 24h, strategy: fixed-window"},
		own: []string{"meter: requests, amount: 250, window: 24h, strategy: fixed-window"}},
	{name: "pair-b", policy: "pair-a", own: []string{"meter: requests, amount: 250, window: 24h, strategy: fixed-window"}},
	{name: "daily", limits: []string{"meter: requests, amount: 400, strategy: calendar, period: day"}},
	{name: "budget", budget: "usd: 0.4, period: hour, reserve: strict"},
	{name: "slots", limits: []string{"meter: concurrency, amount: 6"}},
	{name: "calm", limits: []string{"meter: concurrency, amount: 6"}},
	{name: "leavers", limits: []string{"meter: concurrency, amount: 4"}},
	{name: "hasty", limits: []string{"meter: concurrency, amount: 4"}},
}

var promises = []promise{
	{[]string{"fixed"}, catalog.Requests, countFixed, 100, 2 * time.Second, true},
	{[]string{"sliding"}, catalog.Requests, countSliding, 100, 2 * time.Second, false},
	{[]string{"bucket"}, catalog.Requests, countBucket, 60, 2 * time.Second, false},
	{[]string{"leaky"}, catalog.Requests, countBucket, 500, 10 * time.Second, false},
	{[]string{"session"}, catalog.Requests, countSession, 80, 2 * time.Second, false},
	{[]string{"output"}, catalog.OutputTokens, countFixed, 1000, 2 * time.Second, true},
	{[]string{"tokens"}, catalog.Tokens, countBucket, 900, 2 * time.Second, false},
	{[]string{"mixed"}, catalog.Requests, countSliding, 150, 3 * time.Second, false},
	{[]string{"mixed"}, catalog.OutputTokens, countFixed, 3000, 5 * time.Second, false},
	{[]string{"pair-a", "pair-b"}, catalog.Requests, countFixed, 400, 24 * time.Hour, false},
	{[]string{"pair-a"}, catalog.Requests, countFixed, 250, 24 * time.Hour, false},
	{[]string{"pair-b"}, catalog.Requests, countFixed, 250, 24 * time.Hour, false},
	{[]string{"daily"}, catalog.Requests, countFixed, 400, 24 * time.Hour, false},
	{[]string{"budget"}, catalog.Cost, countFixed, 400e6, time.Hour, false},
}

// slotsOf are the limits on what runs at once.
var slotsOf = map[string]int{"mixed": 5, "slots": 6, "calm": 6, "leavers": 4, "hasty": 4}

// useLeast is the share of a limit that is let through at least in windows in
// which callers are denied, whatever happens to connections and relays.
const useLeast = 0.7

// TestFourRelays loads four relays over one store with several times what every
// kind of limit allows. Meanwhile all connections to the store are cut every
// 50 ms, one relay crashes, and another is stopped and started again.
func TestFourRelays(t *testing.T) {
	t.Parallel()
	f := startFleet(t, onRedis, 4, contract)
	load, going := newTraffic()
	// What the callers go to. The relay that crashes is never asked by the calm.
	var all, calm atomic.Pointer[[]string]
	route := func(crashed, restarting bool) {
		var every, safe []string
		for i, r := range f.relays {
			if i == 1 && crashed || i == 2 && restarting {
				continue
			}
			if every = append(every, r.inference); i != 1 {
				safe = append(safe, r.inference)
			}
		}
		all.Store(&every)
		calm.Store(&safe)
	}
	route(false, false)
	f.loadAll(load, going, func() []string { return *all.Load() }, func() []string { return *calm.Load() })
	began := f.now()
	cutting := f.cutConnections(going)

	time.Sleep(*loadTime / 4)
	f.relays[1].kill()
	killed := time.Now()
	route(true, false)
	time.Sleep(*loadTime / 4)
	route(true, true)
	f.relays[2].stop()
	f.relays[2].start()
	route(true, false)
	time.Sleep(*loadTime / 2)
	ended := f.now()
	load.stop()
	t.Logf("connections cut %d times; answers:\n%v", cutting(), load)

	// What ran on relays that live, and on one that ended in good order, is free
	// at once; what the crashed one had, when the store has not heard of it for
	// 30 s.
	took := f.fills("after the load", 10*time.Second, slotsOf["calm"], question{name: "calm"})
	t.Logf("the slots that the crashed relay had none of were free after %v", took)
	for _, name := range []string{"slots", "leavers", "hasty", "mixed"} {
		f.fills("after the crash", 40*time.Second, slotsOf[name], question{name: name, most: 10})
		t.Logf("all slots of %s were free %v after the crash", name, time.Since(killed).Round(100*time.Millisecond))
	}
	f.relays[1].start() // closes the books of the crashed one
	for _, r := range f.relays {
		r.awaitQuiet()
	}
	f.judge(load, began, ended)
}

// loadAll starts the traffic of all tenants.
func (f *fleet) loadAll(l *traffic, going context.Context, all, calm func() []string) {
	const pause = 40 * time.Millisecond
	for _, q := range []struct {
		question
		workers int
		pause   time.Duration
	}{
		{question{name: "fixed"}, 8, pause},
		{question{name: "sliding"}, 8, pause},
		{question{name: "bucket"}, 6, pause},
		{question{name: "leaky"}, 8, pause},
		{question{name: "session"}, 8, pause},
		{question{name: "output", most: 10}, 8, pause},
		{question{name: "tokens", most: 10, words: "in=8"}, 8, pause},
		{question{name: "mixed", most: 30, words: "out=30&hold=20ms"}, 10, pause},
		{question{name: "pair-a"}, 3, pause},
		{question{name: "pair-b"}, 3, pause},
		{question{name: "daily"}, 4, pause},
		{question{name: "budget", most: 10}, 5, pause},
		{question{name: "slots", words: "hold=100ms"}, 18, pause},
		{question{name: "slots", words: "hold=700ms", stream: true}, 3, pause},
	} {
		l.send(going, f, q.question, q.workers, q.pause, all)
	}
	l.send(going, f, question{name: "calm", words: "hold=100ms"}, 18, pause, calm)
	l.leave(going, f, question{name: "leavers", words: "hang&sure=50ms"}, 8, 150*time.Millisecond, all)
	l.send(going, f, question{name: "hasty", words: "hang&sure=200ms", model: hastyModel}, 8, pause, all)
}

// cutConnections ends all connections to the store every 50 ms, in turn at the
// store and on the way, and returns how often it did when the load has ended.
func (f *fleet) cutConnections(going context.Context) (times func() int) {
	done, n := make(chan struct{}), 0
	go func() {
		defer close(done)
		for ; rest(going, 50*time.Millisecond); n++ {
			if n%2 == 0 {
				_, _ = f.store.Try("CLIENT", "KILL", "TYPE", "normal")
			} else {
				f.proxy.cut()
			}
		}
	}()
	return func() int {
		<-done
		return n
	}
}

// now is the time of the store, which is this machine's.
func (f *fleet) now() int64 { return time.Now().UnixNano() }

// judge holds the rows of all relays against the promises.
func (f *fleet) judge(load *traffic, began, ended int64) {
	b := f.books()
	for _, p := range promises {
		grants := b.grants(p.meter, p.keys...)
		if len(grants) == 0 {
			f.t.Errorf("%v: nothing was let through", p.keys)
			continue
		}
		if err := p.count(grants, p.amount, p.window); err != nil {
			f.t.Errorf("%v, %v: %v", p.keys, p.meter, err)
		}
		if !p.grid {
			b.fresh(f.t, 0, p.keys...)
			continue
		}
		b.fresh(f.t, p.window, p.keys...)
		s := shareOf(grants, b.denials(p.keys...), p.window, began, ended)
		used := float64(s.units) / float64(p.amount*int64(max(s.windows, 1)))
		f.t.Logf("%v, %v: %.1f %% of %d windows", p.keys, p.meter, 100*used, s.windows)
		if s.windows == 0 || used < useLeast {
			f.t.Errorf("%v, %v: %.1f %% of %d windows were let through, want %.0f %%", p.keys, p.meter, 100*used, s.windows, 100*useLeast)
		}
	}
	for name, most := range slotsOf {
		if n := f.provider.of(name); n.most > most || n.running != 0 {
			f.t.Errorf("%s: %d ran at once, allowed are %d; %d still run", name, n.most, most, n.running)
		}
		if err := countOverlap(b.spans(name), most); err != nil && name != "mixed" { // which has grants of units, maybe earlier ones
			f.t.Errorf("%s by the rows: %v", name, err)
		}
	}
	for _, n := range contract {
		b.complete(f.t, f.provider, n.name, load.of(n.name)[http.StatusOK])
	}
}
