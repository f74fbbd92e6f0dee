package statetest

import (
	"testing"
	"time"

	"relay/store/catalog"
	"relay/store/state"
)

// A Clock is the time that a store under test lives by, Unix ns.
type Clock interface {
	NowNs() int64
	Advance(ns int64)
}

// FakeClock is a Clock for stores that take the time from their caller.
type FakeClock struct{ ns int64 }

// NewFakeClock makes a clock that stands still until it is advanced.
func NewFakeClock() *FakeClock { return &FakeClock{ns: epochNs} }

// NowNs is the time.
func (c *FakeClock) NowNs() int64 { return c.ns }

// Advance moves the time on.
func (c *FakeClock) Advance(ns int64) { c.ns += ns }

// A Subject is a store under test.
type Subject struct {
	New   func(t *testing.T) state.Store // empty, for Loops loops, closed by t.Cleanup if need be
	Clock Clock                          // drives every store that New makes

	// ResolutionNs ≥ 1 is the step of the store's clock. Waits are exact to it:
	// RetryNs is never too short and at most two steps too long.
	ResolutionNs int64

	// Coarse says that the store counts in doubles: limits whose product with
	// their window is beyond 2^53 are not asked of it.
	Coarse bool
}

// Loops is how many loops share what is lent in advance.
const Loops = 2

// Run holds a store to the contract.
func Run(t *testing.T, s Subject) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.run(&bench{T: t, store: s.New(t), Subject: s})
		})
	}
	t.Run("random use agrees with the model", func(t *testing.T) { random(t, s) })
}

// A bench is one test with its store.
type bench struct {
	*testing.T
	Subject
	store state.Store
	ids   uint64
}

// group makes a counter group of its own.
func (b *bench) group(limits ...catalog.Limit) *catalog.Group {
	b.ids++
	return &catalog.Group{ID: b.ids, Name: "policy/test", Limits: limits}
}

// with is the same group under other limits.
func with(g *catalog.Group, limits ...catalog.Limit) *catalog.Group {
	return &catalog.Group{ID: g.ID, Name: g.Name, Limits: limits}
}

func limit(s catalog.Strategy, amount int64, window time.Duration) catalog.Limit {
	return catalog.Limit{Meter: catalog.Requests, Strategy: s, Amount: amount, Window: window}
}

func bucket(amount int64, window time.Duration) catalog.Limit {
	return limit(catalog.TokenBucket, amount, window)
}

func concurrency(amount int64) catalog.Limit {
	return catalog.Limit{Meter: catalog.Concurrency, Amount: amount}
}

// op makes an Op that wants n units of every rule, all for one request.
func op(g *catalog.Group, n int64) *state.Op {
	o := &state.Op{Group: g}
	want(o, n)
	return o
}

// want makes o ask for n units of every rule, and for nothing else.
func want(o *state.Op, n int64) {
	o.Clear()
	for k := range o.Group.Limits {
		o.Want[k], o.Need[k] = n, n
	}
}

// apply has the store answer.
func (b *bench) apply(ops ...*state.Op) {
	b.Helper()
	b.store.Apply(b.Clock.NowNs(), ops)
	for _, o := range ops {
		if o.Lost {
			b.Fatal("the store could not be asked")
		}
	}
}

// granted asks for n units of every rule; all must be granted.
func (b *bench) granted(g *catalog.Group, n int64) *state.Op {
	b.Helper()
	o := op(g, n)
	b.apply(o)
	b.got(o, n)
	return o
}

// got fails unless every rule gave n units and none denied.
func (b *bench) got(o *state.Op, n int64) {
	b.Helper()
	for k := range o.Group.Limits {
		if o.Got[k] != n || o.RetryNs[k] != 0 {
			b.Fatalf("rule %d gave %d and waits %v, want %d", k, o.Got[k], time.Duration(o.RetryNs[k]), n)
		}
	}
}

// denied asks for n units of every rule; it must be denied, and take nothing.
func (b *bench) denied(g *catalog.Group, n int64) *state.Op {
	b.Helper()
	o := op(g, n)
	b.apply(o)
	b.gotNothing(o)
	return o
}

func (b *bench) gotNothing(o *state.Op) {
	b.Helper()
	waits := false
	for k := range o.Group.Limits {
		if o.Got[k] != 0 || o.Extra[k] != 0 {
			b.Fatalf("rule %d gave %d and lent %d, want a denial", k, o.Got[k], o.Extra[k])
		}
		waits = waits || o.RetryNs[k] > 0
	}
	if !waits {
		b.Fatal("denied without a wait")
	}
}

// waits fails unless rule k waits for ns, to the resolution of the store.
func (b *bench) waits(o *state.Op, k int, ns int64) {
	b.Helper()
	if d := o.RetryNs[k] - ns; d < 0 || d > 2*(b.ResolutionNs-1) {
		b.Fatalf("rule %d waits %d, want %d", k, o.RetryNs[k], ns)
	}
}

// align advances the clock to the next multiple of ns.
func (b *bench) align(ns int64) { b.Clock.Advance(ns - b.Clock.NowNs()%ns) }
