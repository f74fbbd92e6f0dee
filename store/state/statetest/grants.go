package statetest

import (
	"time"

	"relay/store/catalog"
	"relay/store/state"
)

// charge is an Op that has used more than it was granted.
func charge(g *catalog.Group, n int64) *state.Op {
	o := op(g, 0)
	for k := range g.Limits {
		o.Charge[k] = n
	}
	return o
}

// giveBack is an Op that returns units of an earlier answer.
func giveBack(of *state.Op, n int64) *state.Op {
	o := op(of.Group, 0)
	for k := range of.Group.Limits {
		o.Return[k] = state.Return{Units: n, GrantNs: of.NowNs}
	}
	return o
}

func charged(b *bench) {
	bucketed := b.group(bucket(60, time.Minute))
	b.granted(bucketed, 30)
	b.apply(charge(bucketed, 90)) // a debt of 60
	b.waits(b.denied(bucketed, 1), 0, 61*second)
	b.Clock.Advance(61*second + b.ResolutionNs)
	b.granted(bucketed, 1)

	grid := b.group(limit(catalog.FixedWindow, 5, time.Minute))
	b.align(minute)
	o := charge(grid, 9)
	o.Want[0], o.Need[0] = 1, 1 // denied, and charged all the same
	b.apply(o)
	b.gotNothing(o)
	b.waits(b.denied(grid, 1), 0, minute)
	b.Clock.Advance(minute)
	b.granted(grid, 5)
}

func returned(b *bench) {
	g := b.group(limit(catalog.FixedWindow, 5, time.Minute))
	b.align(minute)
	first := b.granted(g, 5)
	b.apply(giveBack(first, 2))
	second := b.granted(g, 2)
	b.denied(g, 1)
	b.Clock.Advance(minute)
	third := b.granted(g, 5)
	b.apply(giveBack(first, 3), giveBack(second, 2)) // of a window that has gone
	b.denied(g, 1)
	b.apply(giveBack(third, 1))
	b.granted(g, 1)

	o := giveBack(third, 3) // of what is charged with it: late, but all of it
	o.Charge[0] = 4
	b.Clock.Advance(minute)
	o.Return[0].GrantNs = b.Clock.NowNs()
	b.apply(o)
	b.granted(g, 4)
	b.denied(g, 1)

	s := b.group(limit(catalog.SessionWindow, 5, time.Minute))
	first = b.granted(s, 5)
	b.Clock.Advance(minute)
	b.granted(s, 5)
	b.apply(giveBack(first, 5))
	b.denied(s, 1)

	k := b.group(bucket(6, time.Minute))
	first = b.granted(k, 6)
	b.apply(giveBack(first, 4))
	b.granted(k, 4)
	b.waits(b.denied(k, 1), 0, 10*int64(time.Second))
}

func returnedDrained(b *bench) {
	g := b.group(bucket(60, time.Minute))
	first := b.granted(g, 60)
	b.Clock.Advance(60*second + b.ResolutionNs)
	b.granted(g, 60) // the first ones have drained
	b.apply(giveBack(first, 50))
	b.denied(g, 1)

	g = b.group(bucket(60, time.Minute))
	first = b.granted(g, 30)
	b.Clock.Advance(20 * second)
	b.granted(g, 50)
	b.apply(giveBack(first, 25)) // of which 20 may have drained
	b.granted(g, 5)
	b.denied(g, 1)

	g = b.group(bucket(60, time.Minute))
	b.align(state.EbbNs)
	b.granted(g, 60)
	for range 14 { // it is kept full, into the next span
		b.Clock.Advance(10 * second)
		first = b.granted(g, 10)
	}
	for range 11 { // and into the one after
		b.Clock.Advance(10 * second)
		b.granted(g, 10)
	}
	b.apply(giveBack(first, 7))
	b.granted(g, 7)
	b.denied(g, 1)
	for range 12 {
		b.Clock.Advance(10 * second)
		b.granted(g, 10)
	}
	b.apply(giveBack(first, 3)) // nobody knows any more how low it was
	b.denied(g, 1)
}

func returnedSliding(b *bench) {
	g := b.group(limit(catalog.SlidingWindow, 10, time.Minute))
	b.align(minute)
	first := b.granted(g, 10)
	b.Clock.Advance(minute)
	b.denied(g, 1) // all ten still overlap
	b.apply(giveBack(first, 4))
	b.granted(g, 4)
	b.denied(g, 1)
	b.Clock.Advance(2 * minute)
	b.apply(giveBack(first, 6)) // long gone
	b.granted(g, 10)
	b.denied(g, 1)
}

func lent(b *bench) {
	g := b.group(bucket(100_000, time.Minute), limit(catalog.SlidingWindow, 1_000_000, time.Minute))
	o := op(g, 1)
	o.More[0], o.More[1] = 50, 700
	b.apply(o)
	b.got(o, 1)
	if o.Extra[0] != 50 || o.Extra[1] != 700 {
		b.Fatalf("lent %v, want what could be used", o.Extra[:2])
	}
	want(o, 0)
	o.More[0], o.More[1] = 1e6, 1e9
	b.apply(o)
	if o.Extra[0] != 100_000/state.LeaseShare || o.Extra[1] != 1_000_000/state.LeaseShare {
		b.Fatalf("lent %v, want a share of the amounts", o.Extra[:2])
	}
	want(o, 0)
	o.More[0], o.More[1] = 100, 1 // one rule alone is of no use
	b.apply(o)
	if o.Extra[0] != 0 || o.Extra[1] != 0 {
		b.Fatalf("lent %v, want nothing", o.Extra[:2])
	}
	want(o, 0)
	o.More[0] = 100 // the other rule is not asked for more
	b.apply(o)
	if o.Extra[0] != 100 || o.Extra[1] != 0 {
		b.Fatalf("lent %v, want 100 of the first rule", o.Extra[:2])
	}
}

func lentBucket(b *bench) {
	g := b.group(bucket(1000, time.Second))
	b.Clock.Advance(state.LeaseNs - b.Clock.NowNs()%state.LeaseNs)
	o := op(g, 0)
	o.More[0] = 20
	b.apply(o)
	if o.Extra[0] != 20 {
		b.Fatalf("lent %d, want 20", o.Extra[0])
	}
	b.Clock.Advance(state.LeaseNs - b.ResolutionNs) // the bucket drains 200 meanwhile
	b.granted(g, 980)
	b.denied(g, 1)

	rested := b.group(bucket(1000, time.Second))
	b.Clock.Advance(state.LeaseNs - b.Clock.NowNs()%state.LeaseNs)
	o = op(rested, 0)
	o.More[0] = 20
	b.apply(o)
	b.Clock.Advance(3 * state.LeaseNs)
	b.granted(rested, 1000) // the lease is over
}

func lentNear(b *bench) {
	g := b.group(limit(catalog.FixedWindow, 1000, time.Minute))
	b.align(minute)
	b.granted(g, 1000-4*state.LeaseParts*Loops)
	o := op(g, 1)
	o.More[0] = 100
	b.apply(o)
	if o.Got[0] != 1 || o.Extra[0] != 3 {
		b.Fatalf("got %d, lent %d, want an equal share of a quarter of what is left", o.Got[0], o.Extra[0])
	}
	b.granted(g, 2*state.LeaseParts*Loops)
	want(o, 1)
	o.More[0] = 100
	b.apply(o)
	if o.Got[0] != 1 || o.Extra[0] != 0 {
		b.Fatalf("got %d, lent %d, want nothing lent", o.Got[0], o.Extra[0])
	}
	small := b.group(limit(catalog.FixedWindow, 10, time.Minute))
	o = op(small, 1)
	o.More[0] = 5
	b.apply(o)
	if o.Extra[0] != 0 {
		b.Fatalf("lent %d of a small limit", o.Extra[0])
	}
}

func slots(b *bench) {
	g := b.group(concurrency(3))
	o := op(g, 0)
	for held := range int64(3) {
		o.Slots = held
		want(o, 1)
		b.apply(o)
		b.got(o, 1)
	}
	o.Slots = 3
	want(o, 1)
	b.apply(o)
	b.gotNothing(o)
	if o.RetryNs[0] != state.ConcurrencyRetryNs || o.Lent() != 3 {
		b.Fatalf("waits %d, %d lent", o.RetryNs[0], o.Lent())
	}
	o.Slots = 2
	want(o, 1)
	b.apply(o)
	b.got(o, 1)
	o.Slots = 0
	want(o, 0)
	b.apply(o)
	if o.Lent() != 0 {
		b.Fatalf("%d are lent, want 0", o.Lent())
	}
	b.granted(g, 3)
}

func slotsAbsolute(b *bench) {
	g := b.group(concurrency(10))
	one, two := op(g, 6), op(g, 3)
	two.Loop = 1
	b.apply(one, two)
	b.got(one, 6)
	b.got(two, 3)
	for range 3 { // told again, counted once
		one.Slots, two.Slots = 6, 3
		want(one, 0)
		want(two, 0)
		b.apply(one, two)
	}
	one.Slots = 1
	want(one, 0)
	two.Slots = 3
	want(two, 7)
	b.apply(two)
	b.gotNothing(two)
	b.apply(one)
	two.Slots = 3
	want(two, 6)
	b.apply(two)
	b.got(two, 6)
	b.denied(g, 1)
}

func slotsKept(b *bench) {
	g := b.group(concurrency(1000))
	o := op(g, 1)
	o.More[0] = 5
	b.apply(o)
	if o.Got[0] != 1 || o.Extra[0] != 5 || o.Keep != 1000/state.LeaseShare {
		b.Fatalf("got %d, lent %d, keep %d", o.Got[0], o.Extra[0], o.Keep)
	}
	o.Slots = 6
	want(o, 994)
	b.apply(o)
	b.got(o, 994)
	if o.Keep != 0 {
		b.Fatalf("keep %d at the limit, want 0", o.Keep)
	}
	b.denied(g, 1)
}

func inOrder(b *bench) {
	g := b.group(concurrency(2))
	first := b.granted(g, 1)
	first.Slots = 0
	want(first, 0)
	batch := []*state.Op{op(g, 1), op(g, 1), first, op(g, 1), op(g, 1)}
	b.apply(batch...)
	for i, want := range []int64{1, 0, 0, 1, 0} {
		if batch[i].Got[0] != want {
			b.Fatalf("Op %d of the batch got %d", i, batch[i].Got[0])
		}
	}
}

func separate(b *bench) {
	for range 100 {
		b.granted(b.group(bucket(2, time.Minute)), 2)
	}
}

func amountChanged(b *bench) {
	g := b.group(bucket(10, time.Minute), concurrency(4))
	b.granted(g, 3)
	b.granted(with(g, bucket(20, time.Minute), concurrency(30)), 17) // what was used stays used
	b.denied(with(g, bucket(20, time.Minute), concurrency(30)), 1)
	lower := with(g, bucket(5, time.Minute), concurrency(30))
	b.denied(lower, 1)
	b.Clock.Advance(minute)
	b.granted(lower, 5)

	grid := b.group(limit(catalog.FixedWindow, 10, time.Minute))
	b.align(minute)
	b.granted(grid, 8)
	b.denied(with(grid, limit(catalog.FixedWindow, 5, time.Minute)), 1)
	b.granted(with(grid, limit(catalog.FixedWindow, 20, time.Minute)), 12)
}

func windowChanged(b *bench) {
	g := b.group(bucket(4, 24*time.Hour))
	b.granted(g, 4)
	b.waits(b.denied(g, 1), 0, 6*60*minute)
	shorter := with(g, bucket(4, time.Minute))
	if o := b.denied(shorter, 1); o.RetryNs[0] > minute {
		b.Fatalf("the wait %v is of the old window", time.Duration(o.RetryNs[0]))
	}
	b.Clock.Advance(minute)
	b.granted(shorter, 4)
}

func shapeChanged(b *bench) {
	g := b.group(bucket(100, time.Minute), concurrency(2))
	older := b.granted(g, 2)
	moved := with(g, concurrency(3), bucket(50, time.Hour), bucket(100, time.Minute))
	without := with(g, bucket(10, time.Minute))
	alone := with(g, concurrency(1))
	newer := b.granted(moved, 1)
	b.denied(moved, 1) // two and one
	b.granted(without, 5)
	b.denied(alone, 1)
	older.Slots = 0
	want(older, 0)
	b.apply(older)
	b.denied(alone, 1)
	newer.Slots = 0
	want(newer, 0)
	b.apply(newer)
	b.granted(alone, 1)
	b.denied(alone, 1)
}

func left(b *bench) {
	g := b.group(limit(catalog.FixedWindow, 10, time.Minute), bucket(60, time.Minute))
	b.align(minute)
	b.Clock.Advance(20 * second)
	o := b.granted(g, 4)
	if o.Left[0] != 6 || o.Left[1] != 56 {
		b.Fatalf("left %v, want 6 and 56", o.Left[:2])
	}
	if d := o.RestNs[0] - 40*second; d < 0 || d > 2*b.ResolutionNs {
		b.Fatalf("the window rests in %v, want 40 s", time.Duration(o.RestNs[0]))
	}
	if d := o.RestNs[1] - 4*second; d < 0 || d > 2*b.ResolutionNs {
		b.Fatalf("the bucket is full in %v, want 4 s", time.Duration(o.RestNs[1]))
	}
}
