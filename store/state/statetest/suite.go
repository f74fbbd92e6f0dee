package statetest

import (
	"testing"
	"time"

	"relay/store/catalog"
	"relay/store/state"
)

// A Clock is the time that a store under test lives by.
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
	New   func(t *testing.T) state.Store // empty, closed by t.Cleanup if need be
	Clock Clock                          // drives every store that New makes

	// ResolutionNs ≥ 1 is the step of the store's clock. Waits are exact to it:
	// RetryNs is never too short and at most one step too long.
	ResolutionNs int64
}

// Run holds a store to the contract.
func Run(t *testing.T, s Subject) {
	for _, c := range []struct {
		name string
		run  func(b *bench)
	}{
		{"a bucket starts full and says when it grants again", bucketWait},
		{"a bucket refills evenly", bucketRefill},
		{"the largest limits are counted exactly", bucketLargest},
		{"concurrency lends and takes back", slots},
		{"a slot comes back once", slotsOnce},
		{"all groups or none", allGroups},
		{"all rules or none", allRules},
		{"the longest wait is told", longestWait},
		{"a batch is worked off in order", inOrder},
		{"groups without limits are not counted", unlimited},
		{"groups do not share counts", separate},
		{"a limit may be raised and lowered", amountChanged},
		{"a window may be changed", windowChanged},
		{"slots outlive a change of shape", shapeChanged},
	} {
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

func requests(amount int64, window time.Duration) catalog.Limit {
	return catalog.Limit{Meter: catalog.Requests, Strategy: catalog.TokenBucket, Amount: amount, Window: window}
}

func concurrency(amount int64) catalog.Limit {
	return catalog.Limit{Meter: catalog.Concurrency, Amount: amount}
}

func reservation(groups ...*catalog.Group) *state.Reservation {
	r := &state.Reservation{Verb: state.Reserve, Count: len(groups)}
	copy(r.Groups[:], groups)
	return r
}

// ask makes one reservation.
func (b *bench) ask(groups ...*catalog.Group) *state.Reservation {
	b.Helper()
	r := reservation(groups...)
	b.apply(r)
	if r.Lost {
		b.Fatal("the store could not be asked")
	}
	return r
}

func (b *bench) apply(batch ...*state.Reservation) { b.store.Apply(b.Clock.NowNs(), batch) }

// granted makes n reservations that must be granted, and returns the last.
func (b *bench) granted(n int, groups ...*catalog.Group) *state.Reservation {
	b.Helper()
	var r *state.Reservation
	for i := range n {
		if r = b.ask(groups...); !r.Granted {
			b.Fatalf("request %d of %d: denied by %+v for %v, want it granted", i+1, n, r.Limit, time.Duration(r.RetryNs))
		}
	}
	return r
}

// denied makes a reservation that must be denied.
func (b *bench) denied(groups ...*catalog.Group) *state.Reservation {
	b.Helper()
	r := b.ask(groups...)
	if r.Granted {
		b.Fatal("granted, want it denied")
	}
	if r.Holds() {
		b.Fatal("a denied reservation holds slots")
	}
	if r.RetryNs <= 0 {
		b.Fatalf("denied with a wait of %d ns", r.RetryNs)
	}
	return r
}

func (b *bench) release(r *state.Reservation) {
	r.Verb = state.Release
	b.apply(r)
}

// waits fails unless a denial waits for ns, to the resolution of the store.
func (b *bench) waits(r *state.Reservation, ns int64) {
	b.Helper()
	if d := r.RetryNs - ns; d < 0 || d >= b.ResolutionNs {
		b.Fatalf("RetryNs %d, want %d", r.RetryNs, ns)
	}
}
