//go:build integration

package shared

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"relay/store/catalog"
)

// Bounds of an outage. The deadline of the store is 250 ms; these are generous.
const (
	answerSoon   = 2 * time.Second  // an answer while the store is gone
	recoverySoon = 10 * time.Second // from the end of an outage until limits are shared again
	outageTime   = 3 * time.Second
	noticeTime   = time.Second // from its beginning until it is noticed for sure
)

// An outage takes the store away and gives it back.
type outage struct {
	name  string
	begin func(*fleet)
	end   func(*fleet)
}

var outages = []outage{
	{"stopped", func(f *fleet) { f.store.Stop() }, func(f *fleet) { f.store.Restart() }},
	{"paused", func(f *fleet) { f.store.Pause() }, func(f *fleet) { f.store.Resume() }},
	{"slow", func(f *fleet) { f.proxy.set(open, 500*time.Millisecond) }, func(f *fleet) { f.proxy.set(open, 0) }},
	{"unreachable", func(f *fleet) { f.proxy.set(swallows, 0) }, func(f *fleet) { f.proxy.set(open, 0) }},
}

// localAmount is the limit of the keys that are asked during an outage only.
const localAmount = 20

// trialsMax is how many keys there are to see whether limits are shared.
const trialsMax = 600

// outageTenants: of each outage the callers who ask all the time, a limit that
// is used during it only, and slots. The trials have 2 requests a day each.
func outageTenants() []tenant {
	tenants := []tenant{
		{name: "unlimited"},
		{name: "busy", limits: []string{"meter: requests, amount: 100000, window: 24h, strategy: fixed-window"}},
		{name: "reader", limits: []string{"meter: concurrency, amount: 1000", "meter: requests, amount: 100000, window: 24h"}},
	}
	for _, o := range outages {
		tenants = append(tenants,
			tenant{name: "local-" + o.name, limits: []string{fmt.Sprintf("meter: requests, amount: %d, window: 24h, strategy: fixed-window", localAmount)}},
			tenant{name: "paced-" + o.name, limits: []string{
				"meter: requests, amount: 40, window: 1s, strategy: fixed-window", "meter: requests, amount: 60, window: 2s"}},
			tenant{name: "slots-" + o.name, limits: []string{"meter: concurrency, amount: 6"}})
	}
	for i := range trialsMax {
		tenants = append(tenants, tenant{name: trialName(i), limits: []string{"meter: requests, amount: 2, window: 24h, strategy: fixed-window"}})
	}
	return tenants
}

func trialName(i int) string { return fmt.Sprintf("trial-%d", i) }

// A siege is a fleet that goes through outages, in one mode.
type siege struct {
	*fleet
	local  bool // relays go on with their part of each limit
	trials int  // keys used up
}

func TestOutages(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"refuse", "local"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			s := &siege{startFleet(t, onRedis, 2, outageTenants(), "RELAY_STORE_OUTAGE="+mode), mode == "local", 0}
			if _, ok := eventually(recoverySoon, s.shares); !ok {
				t.Fatal("limits are not shared at the start")
			}
			for i := range outages {
				s.endure(t, &outages[i])
			}
			s.startWithout(t)
			for _, r := range s.relays {
				r.awaitQuiet()
			}
		})
	}
}

// shares reports whether both relays count together now: a key with two
// requests is let through twice at one relay, and then refused at the other.
func (s *siege) shares() bool {
	if s.trials == trialsMax {
		s.t.Fatal("all keys of trials are used up")
	}
	q := question{name: trialName(s.trials)}
	s.trials++
	return s.ask(0, q).status == http.StatusOK && s.ask(0, q).status == http.StatusOK &&
		s.ask(1, q).status == http.StatusTooManyRequests
}

// endure has callers ask before, during and behind one outage.
func (s *siege) endure(t *testing.T, o *outage) {
	s.awaitLive(t)
	slots := question{name: "slots-" + o.name, words: "hold=100ms"}
	var streams []*stream
	for i := range s.relays {
		streams = append(streams, s.open(i, question{name: "reader", words: fmt.Sprintf("hold=%v", outageTime+3*time.Second)}))
	}
	load, going := newTraffic()
	load.send(going, s.fleet, question{name: "busy"}, 4, 10*time.Millisecond, s.addresses)
	load.send(going, s.fleet, slots, 12, 20*time.Millisecond, s.addresses)
	load.send(going, s.fleet, question{name: "paced-" + o.name}, 6, 20*time.Millisecond, s.addresses)
	rest(going, 300*time.Millisecond)

	o.begin(s.fleet)
	began := time.Now()
	if s.local {
		s.askLocal(t, o)
	} else {
		s.askRefused(t, o)
	}
	rest(going, time.Until(began.Add(outageTime)))
	s.awaitReady(t, o.name+": in the outage", s.local)
	o.end(s.fleet)

	took, ok := eventually(recoverySoon, s.shares)
	if !ok {
		t.Errorf("%s: limits are not shared %v after the outage", o.name, took)
	}
	s.awaitReady(t, o.name+": after the outage", true)
	load.stop()
	t.Logf("%s: limits are shared %v after the outage\n%v", o.name, took.Round(time.Millisecond), load)
	s.fills("after the outage", 5*time.Second, 6, question{name: "slots-" + o.name})
	if s.local {
		s.counted(t, o, began)
	} else if o.name != "stopped" { // which begins anew with an empty store
		s.exact(t, o)
	}
	for i, r := range streams {
		<-r.done
		if r.status != http.StatusOK || !r.whole {
			t.Errorf("%s: stream %d, status %d, is cut after %d events", o.name, i, r.status, r.events)
		}
	}
}

// startWithout starts a relay while the store is away: it listens all the same,
// answers as in any outage, and shares limits when the store is there.
func (s *siege) startWithout(t *testing.T) {
	s.relays[1].stop()
	s.store.Stop()
	s.relays[1].start()
	s.awaitReady(t, "started without the store", s.local)
	if a := s.ask(1, question{name: "unlimited"}); a.status != http.StatusOK {
		t.Errorf("without the store and a limit: %d %s", a.status, a.body)
	}
	q, status := question{name: "busy"}, http.StatusServiceUnavailable
	if s.local {
		status = http.StatusOK
	}
	if a := s.ask(1, q); a.status != status {
		t.Errorf("without the store: status %d, want %d: %s", a.status, status, a.body)
	}
	s.store.Restart()
	if took, ok := eventually(recoverySoon, s.shares); !ok {
		t.Errorf("limits are not shared %v after the store has come", took)
	}
	s.awaitReady(t, "the store has come", true)
}

// awaitLive waits until each relay knows of the other: it is by their number
// that limits are parted.
func (s *siege) awaitLive(t *testing.T) {
	for _, r := range s.relays {
		if _, ok := eventually(soon, func() bool { return r.metrics()["relay_store_relays"] == float64(len(s.relays)) }); !ok {
			t.Errorf("%s knows of %v relays", r.name, r.metrics()["relay_store_relays"])
		}
	}
}

// awaitReady waits until all relays say that they are ready, or that they are
// not. One that goes on with its part of the limits is ready all the time.
func (s *siege) awaitReady(t *testing.T, when string, want bool) {
	for _, r := range s.relays {
		var status int
		if _, ok := eventually(recoverySoon, func() bool {
			status, _ = r.page("/readyz")
			return (status == http.StatusOK) == want
		}); !ok {
			t.Errorf("%s %s answers %d to /readyz, want ready: %t", when, r.name, status, want)
		}
	}
}

// exact wants that the outage let nothing more through than there is allowed.
func (s *siege) exact(t *testing.T, o *outage) {
	if n := s.provider.of("slots-" + o.name).most; n > 6 {
		t.Errorf("%s: %d ran at once, allowed are 6", o.name, n)
	}
	grants := s.books().grants(catalog.Requests, "paced-"+o.name)
	for _, err := range []error{countFixed(grants, 40, time.Second), countBucket(grants, 60, 2*time.Second)} {
		if err != nil {
			t.Errorf("%s: %v", o.name, err)
		}
	}
	if len(grants) < 30 {
		t.Errorf("%s: %d paced calls pass", o.name, len(grants))
	}
}

// counted wants that what relays let through by themselves was within the limit
// in each window of the outage, at most one limit more around it, and is counted
// by the store in the end.
func (s *siege) counted(t *testing.T, o *outage, began time.Time) {
	grants := s.books().grants(catalog.Requests, "paced-"+o.name)
	if err := countFixed(grants, 2*40, time.Second); err != nil {
		t.Errorf("%s: %v", o.name, err)
	}
	inner := slices.DeleteFunc(slices.Clone(grants), func(g grant) bool {
		first := began.Add(noticeTime).Truncate(time.Second).Add(time.Second)
		return g.ns < first.UnixNano() || g.ns >= began.Add(outageTime).Truncate(time.Second).UnixNano()
	})
	if err := countFixed(inner, 40, time.Second); err != nil || len(inner) == 0 {
		t.Errorf("%s: of %d calls in the outage: %v", o.name, len(inner), err)
	}
	for i := range s.relays {
		q := question{name: "local-" + o.name}
		shaped(t, q, s.ask(i, q), http.StatusTooManyRequests)
	}
}

// askRefused wants that who has a limit is refused soon and in the right shape,
// and that who has none is served.
func (s *siege) askRefused(t *testing.T, o *outage) {
	time.Sleep(noticeTime)
	var took []time.Duration
	for i := range 40 {
		relay := i % len(s.relays)
		q, status := question{name: "busy"}, http.StatusServiceUnavailable
		if i/2%2 == 1 {
			q.path, q.most, status = messagePath, 10, 529
		}
		a := s.ask(relay, q)
		shaped(t, q, a, status)
		took = append(took, a.took)
	}
	if a := s.ask(0, question{name: "unlimited"}); a.status != http.StatusOK {
		t.Errorf("%s: without a limit: %d %s", o.name, a.status, a.body)
	}
	s.timely(t, o, took)
}

// askLocal wants that each relay goes on with its part of a limit, and that all
// together stay within it.
func (s *siege) askLocal(t *testing.T, o *outage) {
	time.Sleep(noticeTime)
	part := localAmount / len(s.relays)
	q := question{name: "local-" + o.name}
	passed := make([]int, len(s.relays))
	var took []time.Duration
	for range localAmount {
		for i := range s.relays {
			a := s.ask(i, q)
			took = append(took, a.took)
			switch a.status {
			case http.StatusOK:
				passed[i]++
			case http.StatusTooManyRequests:
				shaped(t, q, a, a.status)
			default:
				t.Errorf("%s: %d %s", o.name, a.status, a.body)
			}
		}
	}
	t.Logf("%s: of %d, the relays let %v through", o.name, localAmount, passed)
	for i, n := range passed {
		if n > part || n < part-1 {
			t.Errorf("%s: relay %d lets %d of a limit of %d through", o.name, i, n, localAmount)
		}
	}
	s.timely(t, o, took)
}

// timely wants that nobody waited long.
func (s *siege) timely(t *testing.T, o *outage, took []time.Duration) {
	t.Helper()
	slices.Sort(took)
	worst := took[len(took)-1]
	t.Logf("%s: answers during the outage after %v at the median, %v at most", o.name, middle(took), worst.Round(time.Millisecond))
	if worst > answerSoon {
		t.Errorf("%s: an answer took %v", o.name, worst)
	}
}
