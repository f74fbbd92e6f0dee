package admit

import (
	"container/heap"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"relay/store/catalog"
	"relay/store/state"
)

var (
	simSeed  = flag.Uint64("admit.seed", 0, "run this seed of the simulation only")
	simSeeds = flag.Uint64("admit.seeds", 20, "how many seeds to run, per kind")
)

// The simulation runs the leases of several loops over one memory, with a
// clock of its own: random demands, delays, lost answers, full lanes, callers
// who leave, and new catalogs. A checker that knows nothing of leases but what
// was granted when holds the limits to their definition.
func TestSimulation(t *testing.T) {
	for _, kind := range []simKind{
		{name: "plain"},
		{name: "overage", overage: true},
		{name: "faults", overage: true, faults: true},
		{name: "amounts", overage: true, faults: true, amounts: true},
		{name: "catalogs", overage: true, faults: true, amounts: true, shapes: true},
		{name: "closing", overage: true, faults: true, closing: true},
	} {
		t.Run(kind.name, func(t *testing.T) {
			first, last := uint64(1), *simSeeds
			if *simSeed != 0 {
				first, last = *simSeed, *simSeed
			}
			var total tally
			for seed := first; seed <= last; seed++ {
				s := newSim(t, kind, seed)
				s.run()
				total.add(&s.tally)
				if t.Failed() {
					t.Fatalf("seed %d: go test ./admit -run 'TestSimulation/%s' -admit.seed %d", seed, kind.name, seed)
				}
			}
			t.Logf("%+v", total)
			if total.granted == 0 || total.denied == 0 || total.hot == 0 || total.parked == 0 {
				t.Error("the simulation does not reach what it is for")
			}
		})
	}
}

type simKind struct {
	name            string
	overage, faults bool
	amounts, shapes bool // new catalogs change amounts, and limits altogether
	closing         bool // loops close while requests come and run
}

// A tally counts what happened.
type tally struct{ asked, granted, hot, denied, parked, lost, full, cancelled, ops int }

func (a *tally) add(b *tally) {
	a.asked += b.asked
	a.granted += b.granted
	a.hot += b.hot
	a.denied += b.denied
	a.parked += b.parked
	a.lost += b.lost
	a.full += b.full
	a.cancelled += b.cancelled
	a.ops += b.ops
}

type sim struct {
	*testing.T
	kind   simKind
	seed   uint64
	rnd    *rand.Rand
	nowNs  int64 // of the store, Unix
	endNs  int64 // of new demands
	memory *state.Memory
	loops  []*simLoop
	groups [][]*catalog.Group // by generation
	events eventQueue
	seq    int
	check  *checker
	tally  tally
}

type simLoop struct {
	*sim
	leases     *Leases
	clockNs    int64 // its clock is behind the store's by so much
	lateNs     int64 // and its wall clock by so much, or ahead
	live       int   // demands that are parked or run
	idleNs     int64 // since when there are none
	generation int
	parked     map[*simDemand]bool
	order      []*simDemand // of parked, so that a seed is one run
	nowAndThen int64        // mean time between demands
}

type simDemand struct {
	Demand
	loop    *simLoop
	spent   [state.GroupsMax]*spend
	packets [state.GroupsMax][2]packet // of the leases, before it asked
}

func newSim(t *testing.T, kind simKind, seed uint64) *sim {
	s := &sim{T: t, kind: kind, seed: seed, rnd: rand.New(rand.NewPCG(seed, 77))}
	s.nowNs = epochNs/(3600*second)*3600*second + 3597*second // soon a new hour
	s.endNs = s.nowNs + 6*second
	count := 2 + s.rnd.IntN(7)
	s.memory = state.NewMemory(count)
	s.groups = [][]*catalog.Group{s.catalog()}
	s.check = newChecker(s)
	for i := range count {
		l := &simLoop{sim: s, clockNs: s.nowNs - s.rnd.Int64N(1000*second) - second, lateNs: s.rnd.Int64N(40*milli) - 20*milli, parked: map[*simDemand]bool{}}
		l.leases = NewLeases(i, l.submit, func(limit *catalog.Limit) state.Bounds { return Bounds(limit, s.nowNs-l.lateNs) })
		l.pace()
		s.loops = append(s.loops, l)
		s.after(s.rnd.Int64N(second), l.demand)
		s.after(5*milli, l.tick)
	}
	return s
}

func (s *sim) run() {
	if s.kind.amounts {
		for range 5 {
			s.after(s.rnd.Int64N(6*second), s.newCatalog)
		}
	}
	if s.kind.closing {
		for _, l := range s.loops {
			s.after(s.rnd.Int64N(8*second), l.close)
		}
	}
	for len(s.events) > 0 && !s.Failed() {
		e := heap.Pop(&s.events).(event)
		s.nowNs = e.ns
		e.act()
	}
	for _, l := range s.loops {
		if len(l.parked) > 0 {
			s.Errorf("%d demands of loop %p are parked for ever", len(l.parked), l)
		}
		if n := l.leases.Len(); n > 0 {
			s.Errorf("%d leases are left", n)
		}
	}
	for _, g := range s.groups[len(s.groups)-1] {
		o := &state.Op{Group: g}
		s.memory.Apply(s.nowNs, []*state.Op{o})
		for k := range g.Limits {
			l := &g.Limits[k]
			if l.Meter == catalog.Concurrency && o.Left[k] != l.Amount {
				s.Errorf("group %d: %d of %d slots are free at the end", g.ID, o.Left[k], l.Amount)
			}
			// With new amounts what the older lent is given up, and may be missing.
			more := o.Left[k] - max(0, l.Amount-s.check.used[ruleOf{g.ID, k}])
			if l.Window == longWindow && !s.kind.shapes && (more > 0 || more < 0 && !s.kind.amounts) {
				s.Errorf("group %d, rule %d %+v: %d are left at the end, %d too many", g.ID, k, *l, o.Left[k], more)
			}
		}
	}
	s.check.finish()
}

// delayNs is how long a message takes, at times longer than a lease is good.
func (s *sim) delayNs() int64 {
	if s.rnd.IntN(50) == 0 {
		return s.rnd.Int64N(300 * milli)
	}
	return s.rnd.Int64N(3 * milli)
}

func (l *simLoop) loopNs() int64 { return l.nowNs - l.clockNs }

// pace changes how many demands there are, from few to a storm.
func (l *simLoop) pace() {
	l.nowAndThen = []int64{100 * milli, 10 * milli, milli, milli / 2}[l.rnd.IntN(4)]
	l.after(l.rnd.Int64N(2*second), func() {
		if l.nowNs < l.endNs {
			l.pace()
		}
	})
}

// close has everything go back, with the next answers once nothing runs.
func (l *simLoop) close() {
	l.leases.Close(l.loopNs())
	l.callbackEnds()
	var wait func()
	wait = func() {
		switch {
		case l.nowNs < l.endNs || l.live > 0 || l.nowNs-l.idleNs < 2*second:
			l.after(100*milli, wait)
		case l.leases.Len() > 0:
			l.Errorf("%d leases are left of a loop that was closed, 2 s after its last demand", l.leases.Len())
		}
	}
	wait()
}

// callbackEnds is what a loop does at the end of each callback.
func (l *simLoop) callbackEnds() {
	if ns := l.leases.DueNs(); ns != 0 && ns <= l.loopNs() {
		l.leases.Tick(l.loopNs())
	}
}

func (l *simLoop) lives(n int) {
	if l.live += n; l.live == 0 {
		l.idleNs = l.nowNs
	}
}

func (l *simLoop) tick() {
	l.leases.Tick(l.loopNs())
	if l.nowNs < l.endNs+15*second {
		l.after(5*milli+l.rnd.Int64N(3*milli), l.tick)
	}
	for _, lease := range l.leases.due {
		if lease.firstWaits != nil && !lease.under && lease.againNs == 0 {
			l.Errorf("somebody waits for group %d and nothing is under way", lease.group.ID)
		}
	}
}

// demand asks for something, and for the next one later.
func (l *simLoop) demand() {
	if l.nowNs >= l.endNs {
		return
	}
	l.after(1+int64(l.rnd.ExpFloat64()*float64(l.nowAndThen)), l.demand)
	d := &simDemand{loop: l}
	d.Demand.Owner = d
	d.Estimate.Expected = Use{Input: l.rnd.Int64N(60), Output: l.rnd.Int64N(100), Cost: l.rnd.Int64N(200)}
	d.Estimate.Strict = d.Estimate.Expected
	d.Estimate.Strict.Output += l.rnd.Int64N(100)
	d.Estimate.Strict.Cost += l.rnd.Int64N(100)
	groups := l.groups[l.generation]
	if l.rnd.IntN(10) == 0 {
		groups = l.groups[l.rnd.IntN(l.generation+1)] // began before
	}
	at := l.rnd.IntN(len(groups))
	for i := range 1 + l.rnd.IntN(3) {
		d.add(groups[(at+i)%len(groups)])
	}
	l.tally.asked++
	l.lives(1)
	defer l.callbackEnds()
	l.check.asks(d)
	switch v := l.leases.Ask(l.loopNs(), &d.Demand); v {
	case Granted:
		l.tally.hot++
		l.check.looks(d, l.nowNs, true)
		l.granted(d)
	case Parked:
		l.tally.parked++
		l.check.looks(d, l.nowNs, true)
		l.parked[d] = true
		l.order = append(l.order, d)
		if l.kind.faults && l.rnd.IntN(20) == 0 {
			l.after(l.delayNs(), func() { l.cancel(d) })
		}
	default:
		l.decided(d, v)
	}
}

func (l *simLoop) cancel(d *simDemand) {
	if !l.parked[d] {
		return
	}
	l.check.undoes(d)
	delete(l.parked, d)
	l.leases.Cancel(l.loopNs(), &d.Demand)
	l.callbackEnds()
	l.lives(-1)
	l.tally.cancelled++
}

func (l *simLoop) decided(d *simDemand, v Verdict) {
	if v != Granted {
		l.lives(-1)
	}
	switch v {
	case Granted:
		l.granted(d)
	case Denied:
		l.tally.denied++
		if d.RetryNs <= 0 {
			l.Errorf("denied by %+v with a wait of %d", d.Limit, d.RetryNs)
		}
	case Lost:
		l.tally.lost++
		if !l.kind.faults {
			l.Error("lost without a fault")
		}
	case Full:
		l.tally.full++
		if !l.kind.faults {
			l.Error("full without a fault")
		}
	default:
		l.Errorf("decided %d", v)
	}
}

// granted has the demand run for a while.
func (l *simLoop) granted(d *simDemand) {
	l.tally.granted++
	if !d.Holds() {
		l.Error("a granted demand holds nothing")
	}
	e := &d.Estimate.Expected
	used := Use{Input: l.rnd.Int64N(e.Input + 1), Output: l.rnd.Int64N(e.Output + 1), Cost: l.rnd.Int64N(e.Cost + 1)}
	if l.kind.overage && l.rnd.IntN(4) == 0 {
		used = Use{Input: e.Input, Output: e.Output + l.rnd.Int64N(200), Cost: e.Cost + l.rnd.Int64N(200)}
	}
	ns := l.rnd.Int64N(20 * milli)
	if l.rnd.IntN(10) == 0 {
		ns = l.rnd.Int64N(500*milli) * (1 + l.rnd.Int64N(2)*9)
	}
	counted := l.rnd.IntN(20) > 0
	if l.kind.overage && l.rnd.IntN(10) == 0 {
		l.after(ns/2, func() {
			l.leases.Charge(l.loopNs(), &d.Demand, Use{Input: used.Input, Output: used.Output / 2, Cost: used.Cost / 2})
			l.callbackEnds()
		})
	}
	l.after(ns, func() {
		l.check.settles(d, used, counted)
		l.leases.Settle(l.loopNs(), &d.Demand, used, counted)
		l.callbackEnds()
		l.lives(-1)
	})
}

// submit is the lane: after a while the memory answers, and after another the
// answer is there; or one of both is lost.
func (l *simLoop) submit(o *state.Op) bool {
	if l.kind.faults && l.rnd.IntN(100) == 0 {
		return false
	}
	l.tally.ops++
	fate := l.rnd.IntN(100)
	l.after(l.delayNs(), func() {
		switch {
		case l.kind.faults && fate == 0: // never sent: the lane tells the rest later
			rest := &state.Op{Group: o.Group, Charge: o.Charge, Return: o.Return, Bounds: o.Bounds}
			l.after(l.delayNs(), func() { l.apply(rest) })
			o.Lose()
		case l.kind.faults && fate == 1: // the reply is lost: the lane gives back what was granted
			l.apply(o)
			l.check.lost(o)
			rest := &state.Op{Group: o.Group, Bounds: o.Bounds}
			for k := range o.Group.Limits {
				rest.Return[k] = state.Return{Units: o.Got[k] + o.Extra[k], GrantNs: o.NowNs}
			}
			l.after(l.delayNs(), func() { l.apply(rest) })
			o.Lose()
		default:
			l.apply(o)
		}
		l.after(l.delayNs(), func() { l.answered(o) })
	})
	return true
}

func (l *simLoop) apply(o *state.Op) {
	l.memory.Apply(l.nowNs, []*state.Op{o})
	l.check.applied(o)
}

func (l *simLoop) answered(o *state.Op) {
	for _, d := range l.order {
		l.check.expects(d)
	}
	decisions := l.leases.Answered(l.loopNs(), o)
	for _, c := range decisions {
		d := c.Demand.Owner.(*simDemand)
		if !l.parked[d] {
			l.Error(fmt.Sprintf("a demand that was not parked is decided: %d", c.Verdict))
		}
		delete(l.parked, d)
		if c.Verdict == Granted {
			l.check.looks(d, o.NowNs, false)
		} else {
			l.check.undone(d)
		}
		l.decided(d, c.Verdict)
	}
	stay := l.order[:0]
	for _, d := range l.order {
		if l.parked[d] {
			l.check.looks(d, o.NowNs, false)
			stay = append(stay, d)
		}
	}
	l.order = stay
	l.callbackEnds()
}
