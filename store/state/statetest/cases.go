package statetest

import (
	"time"

	"relay/store/catalog"
	"relay/store/state"
)

const (
	second = int64(time.Second)
	minute = int64(time.Minute)
)

// cases are the contract, one sentence each.
var cases = []struct {
	name string
	run  func(b *bench)
}{
	{"a bucket starts full and says when it grants again", bucketWait},
	{"a bucket refills evenly", bucketRefill},
	{"a leaky bucket has the same arithmetic", leaky},
	{"the largest limits are counted", largest},
	{"a fixed window grants anew at its end", fixed},
	{"a sliding window remembers the one before", sliding},
	{"a session begins with its first use", session},
	{"a calendar period is what its bounds say", calendar},
	{"a calendar may be changed", calendarChanged},
	{"more than there ever is never fits", never},
	{"a need without a want looks and takes nothing", look},
	{"a debt of many windows is waited for", abyss},
	{"a denial takes nothing of any rule", nothing},
	{"a denial lends nothing, whoever denies", nothingLent},
	{"what waits together is granted as far as it is there", together},
	{"use beyond the grant is always counted", charged},
	{"what comes back enlarges no other window", returned},
	{"what a bucket has drained does not come off again", returnedDrained},
	{"a window's return is for its own window", returnedSliding},
	{"a lease is a share, of all rules or of none", lent},
	{"a bucket does not refill behind a lease", lentBucket},
	{"near the limit nothing is lent", lentNear},
	{"slots are lent and taken back", slots},
	{"slots are counted absolutely, per loop", slotsAbsolute},
	{"slots without a use may be kept far from the limit", slotsKept},
	{"a batch is worked off in order", inOrder},
	{"groups do not share counts", separate},
	{"a limit may be raised and lowered", amountChanged},
	{"a window may be changed", windowChanged},
	{"slots outlive a change of shape", shapeChanged},
	{"what is left is told", left},
}

func bucketWait(b *bench) {
	g := b.group(bucket(3, time.Minute))
	for range 3 {
		b.granted(g, 1)
	}
	b.waits(b.denied(g, 1), 0, 20*second)
	b.waits(b.denied(g, 2), 0, 40*second)
	b.Clock.Advance(20*second - b.ResolutionNs)
	b.waits(b.denied(g, 1), 0, b.ResolutionNs)
	b.Clock.Advance(2 * b.ResolutionNs)
	b.granted(g, 1)
	b.denied(g, 1)
}

func bucketRefill(b *bench) {
	g := b.group(bucket(60, time.Minute))
	b.granted(g, 60)
	for range 5 {
		b.Clock.Advance(10*second + b.ResolutionNs)
		b.granted(g, 10)
		b.denied(g, 1)
	}
	b.Clock.Advance(60 * minute) // more than full is full
	b.granted(g, 60)
	b.waits(b.denied(g, 1), 0, second)
}

func leaky(b *bench) {
	g := b.group(limit(catalog.LeakyBucket, 4, time.Minute))
	b.granted(g, 3)
	b.waits(b.denied(g, 2), 0, 15*second)
	b.granted(g, 1)
	b.waits(b.denied(g, 4), 0, 60*second)
}

func largest(b *bench) {
	slow := b.group(bucket(1, state.WindowMax))
	b.granted(slow, 1)
	if o := b.denied(slow, 1); !b.Coarse {
		b.waits(o, 0, int64(state.WindowMax))
	}
	grid := b.group(limit(catalog.FixedWindow, state.AmountMax, state.WindowMax))
	b.granted(grid, state.AmountMax-1)
	b.denied(grid, 2)
	b.granted(grid, 1)
	b.denied(grid, 1)
	if b.Coarse {
		return
	}
	fast := b.group(bucket(state.AmountMax, state.WindowMax), bucket(state.AmountMax, time.Nanosecond))
	for range 100 {
		b.granted(fast, 10)
		b.Clock.Advance(24 * 60 * minute)
	}
}

func fixed(b *bench) {
	g := b.group(limit(catalog.FixedWindow, 5, time.Minute))
	b.align(minute)
	b.Clock.Advance(10 * second)
	b.granted(g, 3)
	b.granted(g, 2)
	b.waits(b.denied(g, 1), 0, 50*second)
	b.Clock.Advance(50*second - b.ResolutionNs)
	b.denied(g, 5)
	b.Clock.Advance(b.ResolutionNs)
	b.granted(g, 5)
	b.waits(b.denied(g, 1), 0, minute)
	b.Clock.Advance(5 * minute)
	b.granted(g, 5)
}

func sliding(b *bench) {
	g := b.group(limit(catalog.SlidingWindow, 10, time.Minute))
	b.align(minute)
	b.granted(g, 10)
	b.Clock.Advance(30 * second)
	// The next window, when half of the ten has slid out: 90 s from the start.
	b.waits(b.denied(g, 5), 0, 60*second)
	b.waits(b.denied(g, 1), 0, 36*second)
	b.Clock.Advance(60 * second)
	b.granted(g, 5)
	b.waits(b.denied(g, 1), 0, 6*second)
	b.Clock.Advance(6 * second)
	b.granted(g, 1)
	b.denied(g, 1)
	b.Clock.Advance(2 * minute)
	b.granted(g, 10)
}

func session(b *bench) {
	g := b.group(limit(catalog.SessionWindow, 4, time.Hour))
	b.denied(g, 5) // begins nothing
	b.Clock.Advance(17 * second)
	b.granted(g, 1)
	b.Clock.Advance(59 * minute)
	b.granted(g, 3)
	b.waits(b.denied(g, 1), 0, minute)
	b.Clock.Advance(minute)
	b.Clock.Advance(7 * second)
	b.granted(g, 4) // a new one, from now
	b.waits(b.denied(g, 1), 0, 60*minute)
}

func calendar(b *bench) {
	g := b.group(catalog.Limit{Meter: catalog.Cost, Strategy: catalog.Calendar, Amount: 100, Period: catalog.Day})
	now := b.Clock.NowNs()
	today := state.Bounds{FromNs: now - 3600*second, UntilNs: now + 100*second}
	ask := func(n int64, in state.Bounds) *state.Op {
		o := op(g, n)
		o.Bounds[0] = in
		b.apply(o)
		return o
	}
	b.got(ask(70, today), 70)
	o := ask(31, today)
	b.gotNothing(o)
	b.waits(o, 0, 100*second)
	b.got(ask(30, today), 30)
	b.Clock.Advance(100 * second)
	b.gotNothing(ask(1, today)) // a loop whose clock is late opens nothing
	tomorrow := state.Bounds{FromNs: today.UntilNs, UntilNs: today.UntilNs + 86400*second}
	b.got(ask(100, tomorrow), 100)
	b.gotNothing(ask(1, today))
}

// The time of the store decides when a period begins, and a period that has
// ended is followed by any that is now, also a longer one that began before.
func calendarChanged(b *bench) {
	g := b.group(catalog.Limit{Meter: catalog.Cost, Strategy: catalog.Calendar, Amount: 100, Period: catalog.Day})
	now := b.Clock.NowNs()
	today := state.Bounds{FromNs: now - 3600*second, UntilNs: now + 100*second}
	tomorrow := state.Bounds{FromNs: today.UntilNs, UntilNs: today.UntilNs + 86400*second}
	month := state.Bounds{FromNs: now - 86400*second, UntilNs: now + 30*86400*second}
	ask := func(n int64, in state.Bounds) *state.Op {
		o := op(g, n)
		o.Bounds[0] = in
		b.apply(o)
		return o
	}
	b.gotNothing(ask(1, tomorrow)) // a loop whose clock is ahead opens nothing
	early := ask(70, today)
	b.got(early, 70)
	b.got(ask(20, tomorrow), 20) // and counts to the period that is now
	b.gotNothing(ask(11, tomorrow))
	b.got(ask(10, month), 10) // the same until its end
	b.gotNothing(ask(1, month))
	b.Clock.Advance(100 * second)
	o := op(g, 90)
	o.Bounds[0], o.Return[0] = month, state.Return{Units: 70, GrantNs: early.NowNs}
	b.apply(o)
	b.got(o, 90)
	b.got(ask(10, month), 10) // what came back was of the period before
	b.gotNothing(ask(1, month))
}

func never(b *bench) {
	for _, s := range []catalog.Strategy{catalog.TokenBucket, catalog.LeakyBucket, catalog.FixedWindow, catalog.SlidingWindow, catalog.SessionWindow} {
		g := b.group(limit(s, 9, time.Minute))
		for range 2 {
			if o := b.denied(g, 10); o.RetryNs[0] != state.NeverNs {
				b.Fatalf("strategy %d waits %d for more than there is", s, o.RetryNs[0])
			}
			b.granted(g, 4)
		}
	}
}

func look(b *bench) {
	g := b.group(limit(catalog.FixedWindow, 3, time.Minute))
	b.align(minute)
	for range 10 {
		o := op(g, 0)
		o.Need[0] = 1
		b.apply(o)
		b.got(o, 0)
	}
	b.granted(g, 3)
	o := op(g, 0)
	o.Need[0] = 1
	b.apply(o)
	b.waits(o, 0, minute)

	// It is a denial as any other: of the other rules nothing is lent.
	far := b.group(limit(catalog.FixedWindow, 3, time.Minute), bucket(100_000, time.Minute))
	o = op(far, 0)
	o.Need[0], o.Charge[0] = 1, 3
	o.Want[1], o.Need[1], o.More[1] = 1, 1, 100
	b.apply(o)
	b.gotNothing(o)
}

func nothing(b *bench) {
	g := b.group(bucket(5, time.Minute), limit(catalog.FixedWindow, 3, time.Hour), concurrency(9))
	b.align(60 * minute)
	o := b.granted(g, 3)
	for range 10 {
		b.denied(g, 1)
	}
	o.Slots = 0
	want(o, 0)
	b.apply(o)
	b.Clock.Advance(60 * minute)
	b.granted(g, 3) // the ten took nothing of the bucket
	b.granted(with(g, g.Limits[0]), 2)
	b.denied(with(g, g.Limits[0]), 1)
}

func nothingLent(b *bench) {
	posthoc := limit(catalog.FixedWindow, 10, time.Hour)
	posthoc.Meter, posthoc.Reserve = catalog.Tokens, catalog.Posthoc
	g := b.group(posthoc, limit(catalog.FixedWindow, 1000, time.Hour), concurrency(1000))
	b.align(60 * minute)
	full := op(g, 0)
	full.Charge[0] = 12
	b.apply(full)
	o, twin := op(g, 0), op(g, 0)
	for _, o := range []*state.Op{o, twin} {
		o.Need[0], o.More[1], o.More[2] = 1, 5, 5
	}
	b.apply(o)
	b.gotNothing(o)
	b.apply(o, twin) // beside another Op of its batch
	b.gotNothing(o)
	b.gotNothing(twin)
	if o.Lent() != 0 || o.Left[1] != 1000 {
		b.Fatalf("%d slots are lent, and %d units left of a rule that had 1000", o.Lent(), o.Left[1])
	}
}

func together(b *bench) {
	g := b.group(bucket(7, time.Minute), limit(catalog.SessionWindow, 100, time.Hour))
	o := op(g, 10) // five requests of two
	o.Need[0], o.Need[1] = 2, 2
	b.apply(o)
	if o.Got[0] != 7 || o.Got[1] != 10 || o.RetryNs[0] != 0 {
		b.Fatalf("got %v, waits %v", o.Got[:2], o.RetryNs[:2])
	}
	want(o, 0)
	o.Return[0], o.Return[1] = state.Return{Units: 1, GrantNs: o.NowNs}, state.Return{Units: 4, GrantNs: o.NowNs}
	b.apply(o)
	b.granted(g, 1)
	b.denied(g, 1)
}

// A debt may be of more time than a clock has room for.
func abyss(b *bench) {
	for _, charge := range []int64{30_000, 70_000, 1e12, state.AmountMax} {
		for _, amount := range []int64{1, 100} {
			g := b.group(bucket(amount, state.WindowMax))
			debt := op(g, 0)
			debt.Charge[0] = charge
			b.apply(debt)
			b.Clock.Advance(3600 * second)
			o := op(g, amount)
			b.apply(o)
			b.gotNothing(o)
			if o.RetryNs[0] < int64(state.WindowMax) || o.RetryNs[0] > state.WaitMaxNs || o.RestNs[0] < o.RetryNs[0]/2 || o.RestNs[0] > state.WaitMaxNs {
				b.Errorf("a debt of %d at %d a window: wait %d, rest %d", charge, amount, o.RetryNs[0], o.RestNs[0])
			}
		}
	}
}
