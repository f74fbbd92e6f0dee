package lanes

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"

	"relay/admit"
)

// A request asks, and settles when it was granted.
type request struct {
	demand  admit.Demand
	policy  int
	tokens  int64 // that it will use
	askedNs int64
	dueNs   int64 // when it settles
	counts  bool  // its time of the schedule is within the hold
}

// A counter has requests decided about. Owner: the loop's goroutine.
type counter interface {
	// ask and settle may put off what they send until send.
	ask(nowNs int64, r *request)
	settle(nowNs int64, r *request)
	// answers takes in what has come, and tells the loop what was decided.
	answers(nowNs int64) error
	send() error
	tick(nowNs int64)
	// await waits for answers, at most so long.
	await(atMost time.Duration) error
	// rests reports whether everything that was taken has gone back, when the
	// loop has no open request; from then on no lease is asked for.
	rests(nowNs int64) bool
	// close is called when loops and lanes have ended. It tallies what has not
	// gone back.
	close()
}

// A loop follows a schedule. Owner: its goroutine, until the run has ended.
type loop struct {
	counter counter
	clock   func() int64 // ns
	rng     *rand.Rand
	plan    plan

	nextNs  float64 // of the schedule
	tickNs  int64
	running queue // granted, by when they settle
	free    []*request
	open    int
	holds   bool // the hold has begun and not ended

	latency *hdrhistogram.Histogram // from asked to decided
	lag     *hdrhistogram.Histogram // from the schedule to asked
	tally   tally
}

// A plan is what one loop has to offer. Times are of the clock.
type plan struct {
	policies       int
	rate           float64 // requests per second
	latencyNs      int64   // from granted to settled
	beginNs, endNs int64   // of the hold; the schedule ends with it
	startNs        int64
}

// A tally is what a hold has seen.
type tally struct {
	offered, unsent             int64 // by the schedule
	granted, denied, lost, full int64
	ops                         int64 // group operations; of the plain design: calls
	unsettled                   int64 // requests and leases that were left when the run ended
}

func (t *tally) add(o *tally) {
	t.offered += o.offered
	t.granted += o.granted
	t.denied += o.denied
	t.lost += o.lost
	t.full += o.full
	t.unsent += o.unsent
	t.unsettled += o.unsettled
	t.ops += o.ops
}

func (t *tally) decided() int64 { return t.granted + t.denied + t.lost + t.full }

func newLoop(p plan, clock func() int64, seed uint64) *loop {
	return &loop{plan: p, clock: clock, rng: rand.New(rand.NewPCG(seed, seed>>1)), latency: newTimes(), lag: newTimes()}
}

func newTimes() *hdrhistogram.Histogram { return hdrhistogram.New(1, latencyMaxNs, digits) }

func record(h *hdrhistogram.Histogram, ns int64) { h.RecordValue(min(max(ns, 0), latencyMaxNs)) }

// gap is the time to the next request: they come independently of each other.
func (l *loop) gap() float64 { return l.rng.ExpFloat64() / l.plan.rate * 1e9 }

// run follows the schedule and then waits until all has been given back. It ends
// at once when stop is set.
func (l *loop) run(stop *atomic.Bool) error {
	l.nextNs = float64(l.plan.startNs) + l.gap()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // ns; without it a wait is 50 µs late
	for !stop.Load() {
		now := l.clock()
		l.holds = now >= l.plan.beginNs && now < l.plan.endNs
		if err := l.counter.answers(now); err != nil {
			return err
		}
		for l.running.len() > 0 && l.running.first().dueNs <= now {
			l.counter.settle(now, l.running.take())
		}
		l.arrive(now)
		if now >= l.tickNs {
			l.counter.tick(now)
			l.tickNs = now + int64(tickEvery)
		}
		if now >= l.plan.endNs && (l.open == 0 && l.counter.rests(now) || now >= l.plan.endNs+int64(drainMax)) {
			l.tally.unsettled += int64(l.open)
			return nil
		}
		if err := l.counter.send(); err != nil {
			return err
		}
		if err := l.counter.await(l.pause()); err != nil {
			return err
		}
	}
	return nil
}

// pause is how long there is nothing to do, to the next look.
func (l *loop) pause() time.Duration {
	next := l.tickNs
	if int64(l.nextNs) < l.plan.endNs {
		next = min(next, int64(l.nextNs))
	}
	if l.running.len() > 0 {
		next = min(next, l.running.first().dueNs)
	}
	const look = int64(lookEvery)
	now := l.clock()
	return time.Duration((max(next, now)+look-1)/look*look - now)
}

// arrive has all ask whose time has come.
func (l *loop) arrive(now int64) {
	for l.nextNs <= float64(now) && l.nextNs < float64(l.plan.endNs) {
		dueNs := int64(l.nextNs)
		counts := dueNs >= l.plan.beginNs
		l.nextNs += l.gap()
		if counts {
			l.tally.offered++
			record(l.lag, now-dueNs)
		}
		if l.open >= openMax {
			if counts {
				l.tally.unsent++
			}
			continue
		}
		r := l.request()
		r.policy, r.tokens = l.rng.IntN(l.plan.policies), tokensLeast+l.rng.Int64N(tokensRange)
		r.askedNs, r.counts = now, counts
		l.open++
		l.counter.ask(now, r)
	}
}

func (l *loop) request() *request {
	if n := len(l.free); n > 0 {
		r := l.free[n-1]
		l.free = l.free[:n-1]
		return r
	}
	r := new(request)
	r.demand.Owner = r
	return r
}

// decided takes a verdict: what was granted runs, all else has ended.
func (l *loop) decided(now int64, r *request, v admit.Verdict) {
	if r.counts {
		record(l.latency, now-r.askedNs)
	}
	if l.holds {
		l.tally.count(v)
	}
	if v == admit.Granted {
		r.dueNs = now + l.plan.latencyNs
		l.running.put(r)
		return
	}
	l.ended(r)
}

func (t *tally) count(v admit.Verdict) {
	switch v {
	case admit.Granted:
		t.granted++
	case admit.Denied:
		t.denied++
	case admit.Lost:
		t.lost++
	case admit.Full:
		t.full++
	default:
		panic(fmt.Sprintf("BUG: verdict %d decides nothing", v))
	}
}

// ended takes a request back.
func (l *loop) ended(r *request) {
	l.open--
	l.free = append(l.free, r)
}

// A queue is first in, first out. It keeps its memory.
type queue struct {
	items []*request
	head  int
}

func (q *queue) len() int        { return len(q.items) - q.head }
func (q *queue) first() *request { return q.items[q.head] }

func (q *queue) put(r *request) {
	if q.head > len(q.items)/2 && len(q.items) == cap(q.items) {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, r)
}

func (q *queue) take() *request {
	r := q.items[q.head]
	q.items[q.head] = nil
	if q.head++; q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	}
	return r
}
