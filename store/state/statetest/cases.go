package statetest

import (
	"time"

	"relay/store/catalog"
	"relay/store/state"
)

func bucketWait(b *bench) {
	g := b.group(requests(3, time.Minute))
	b.granted(3, g)
	b.waits(b.denied(g), 20e9)
	b.Clock.Advance(20e9 - b.ResolutionNs)
	b.waits(b.denied(g), b.ResolutionNs)
	b.Clock.Advance(b.ResolutionNs)
	b.granted(1, g)
	b.denied(g)
}

func bucketRefill(b *bench) {
	g := b.group(requests(60, time.Minute))
	b.granted(60, g)
	for range 5 {
		b.Clock.Advance(10e9)
		b.granted(10, g)
		b.denied(g)
	}
	b.Clock.Advance(3600e9) // more than full is full
	b.granted(60, g)
	b.waits(b.denied(g), 1e9)
}

func bucketLargest(b *bench) {
	slow := b.group(requests(1, state.WindowMax))
	b.granted(1, slow)
	b.waits(b.denied(slow), int64(state.WindowMax))
	b.Clock.Advance(int64(state.WindowMax) - b.ResolutionNs)
	b.denied(slow)
	b.Clock.Advance(b.ResolutionNs)
	b.granted(1, slow)

	fast := b.group(requests(state.AmountMax, state.WindowMax), requests(state.AmountMax, time.Nanosecond))
	for range 100 {
		b.granted(10, fast)
		b.Clock.Advance(int64(24 * time.Hour))
	}
}

func slots(b *bench) {
	g := b.group(concurrency(3))
	first := b.granted(1, g)
	b.granted(2, g)
	if r := b.denied(g); r.RetryNs != state.ConcurrencyRetryNs || r.Limit != g.Limits[0] {
		b.Fatalf("denied by %+v for %d ns", r.Limit, r.RetryNs)
	}
	b.Clock.Advance(int64(time.Hour)) // waiting alone frees nothing
	b.denied(g)
	b.release(first)
	b.granted(1, g)
	b.denied(g)
}

func slotsOnce(b *bench) {
	g := b.group(concurrency(2))
	first := b.granted(1, g)
	if !first.Holds() {
		b.Fatal("a granted reservation holds nothing")
	}
	b.granted(1, g)
	for range 3 {
		b.release(first)
		if first.Holds() {
			b.Fatal("a released reservation still holds")
		}
	}
	denied := reservation(g)
	b.granted(1, g)
	b.apply(denied)
	b.release(denied)         // was denied
	b.release(reservation(g)) // never asked
	b.denied(g)

	first.Verb = state.Reserve // used again
	b.apply(first)
	if first.Granted {
		b.Fatal("a third slot of two")
	}
}

func allGroups(b *bench) {
	wide, narrow := b.group(requests(5, time.Minute), concurrency(5)), b.group(requests(1, time.Hour))
	b.granted(1, wide, narrow)
	for range 10 {
		if r := b.denied(wide, narrow); r.Denied != 1 || r.Limit != narrow.Limits[0] {
			b.Fatalf("denied by group %d, %+v", r.Denied, r.Limit)
		}
	}
	b.granted(4, wide) // the ten took nothing
	b.denied(wide)
}

func allRules(b *bench) {
	g := b.group(requests(5, time.Minute), requests(6, time.Hour), concurrency(2))
	b.granted(1, g)
	last := b.granted(1, g)
	for range 10 {
		b.denied(g)
	}
	b.release(last)
	b.release(b.granted(1, g))
	b.release(b.granted(1, g))
	b.release(b.granted(1, g))
	b.waits(b.denied(g), 12e9)
	b.Clock.Advance(12e9)
	b.release(b.granted(1, g))
	if r := b.denied(g); r.Limit != g.Limits[1] {
		b.Fatalf("denied by %+v", r.Limit)
	}
}

func longestWait(b *bench) {
	short, long := b.group(requests(1, 5*time.Second), concurrency(1)), b.group(concurrency(9), requests(1, time.Minute))
	b.granted(1, short, long)
	for _, order := range [][]*catalog.Group{{short, long}, {long, short}} {
		r := b.denied(order...)
		if order[r.Denied] != long || r.Limit != long.Limits[1] {
			b.Fatalf("denied by group %d, %+v", r.Denied, r.Limit)
		}
		b.waits(r, 60e9)
	}
	b.waits(b.denied(short), 5e9)
	b.Clock.Advance(5e9)
	if r := b.denied(short); r.Limit != short.Limits[1] || r.RetryNs != state.ConcurrencyRetryNs {
		b.Fatalf("denied by %+v for %d ns", r.Limit, r.RetryNs)
	}
}

func inOrder(b *bench) {
	g := b.group(concurrency(2))
	first := b.granted(1, g)
	first.Verb = state.Release
	batch := []*state.Reservation{reservation(g), reservation(g), first, reservation(g), reservation(g)}
	b.apply(batch...)
	for i, want := range []bool{0: true, 1: false, 3: true, 4: false} {
		if i != 2 && batch[i].Granted != want {
			b.Fatalf("reservation %d of the batch: granted %t", i, batch[i].Granted)
		}
	}
}

func unlimited(b *bench) {
	limited := b.group(requests(1, time.Minute))
	b.granted(5)
	b.granted(5, &catalog.Group{Name: "account/free"})
	b.granted(1, &catalog.Group{}, limited)
	if r := b.denied(&catalog.Group{}, limited); r.Denied != 1 {
		b.Fatalf("denied by group %d", r.Denied)
	}
	twice := b.group(requests(2, time.Minute))
	b.granted(2, twice, twice) // named twice, counted once
	b.denied(twice)
}

func separate(b *bench) {
	for range 100 {
		b.granted(2, b.group(requests(2, time.Minute)))
	}
}

func amountChanged(b *bench) {
	g := b.group(requests(10, time.Minute), concurrency(4))
	b.granted(3, g)
	raised := *g
	raised.Limits = []catalog.Limit{requests(20, time.Minute), concurrency(30)}
	b.granted(17, &raised) // what was used stays used
	b.denied(&raised)
	lowered := *g
	lowered.Limits = []catalog.Limit{requests(5, time.Minute), concurrency(30)}
	b.denied(&lowered)
	b.Clock.Advance(60e9)
	b.granted(5, &lowered)
	b.waits(b.denied(&lowered), 12e9)
}

func windowChanged(b *bench) {
	g := b.group(requests(4, 24*time.Hour))
	b.granted(4, g)
	b.waits(b.denied(g), int64(6*time.Hour))
	shorter := *g
	shorter.Limits = []catalog.Limit{requests(4, time.Minute)}
	if r := b.denied(&shorter); r.RetryNs > 60e9 {
		b.Fatalf("the wait %v is of the old window", time.Duration(r.RetryNs))
	}
	b.Clock.Advance(60e9)
	b.granted(4, &shorter)
	longer := *g
	longer.Limits = []catalog.Limit{requests(4, time.Hour)}
	b.Clock.Advance(15e9)
	b.ask(&longer)
	b.Clock.Advance(int64(time.Hour))
	b.granted(4, &longer)
	b.waits(b.denied(&longer), int64(15*time.Minute))
}

func shapeChanged(b *bench) {
	g := b.group(requests(100, time.Minute), concurrency(2))
	older := []*state.Reservation{b.granted(1, g), b.granted(1, g)}
	moved, without, alone := *g, *g, *g
	moved.Limits = []catalog.Limit{concurrency(3), requests(50, time.Hour), requests(100, time.Minute)}
	without.Limits = []catalog.Limit{requests(10, time.Minute)}
	alone.Limits = []catalog.Limit{concurrency(1)}

	newer := b.granted(1, &moved)
	b.denied(&moved) // two and one
	b.granted(5, &without)
	b.denied(&alone)
	for _, r := range older {
		b.release(r)
		b.release(r)
	}
	b.denied(&alone)
	b.release(newer)
	b.granted(1, &alone)
	if r := b.denied(&alone); r.Limit != alone.Limits[0] {
		b.Fatalf("denied by %+v", r.Limit)
	}
}
