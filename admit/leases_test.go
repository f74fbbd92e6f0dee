package admit

import (
	"slices"
	"testing"

	"relay/store/catalog"
	"relay/store/state"
)

// Near a limit every request is counted one by one: ten of ten are granted,
// the eleventh is denied with the exact wait.
func TestExact(t *testing.T) {
	for _, tt := range []struct {
		name   string
		limit  catalog.Limit
		waitNs int64
	}{
		{"token bucket", requests(catalog.TokenBucket, 10, minute), 6 * second},
		{"leaky bucket", requests(catalog.LeakyBucket, 10, minute), 6 * second},
		{"fixed window", requests(catalog.FixedWindow, 10, minute), 59 * second},
		{"sliding window", requests(catalog.SlidingWindow, 10, minute), 59*second + 6*second},
		{"session window", requests(catalog.SessionWindow, 10, minute), minute},
		{"slots", slots(10), state.ConcurrencyRetryNs},
		{"tokens", tokens(catalog.FixedWindow, 1099, minute, catalog.Expected), 59 * second},
		{"tokens, strict", tokens(catalog.FixedWindow, 2199, minute, catalog.Strict), 59 * second},
		{"calendar", catalog.Limit{Meter: catalog.Cost, Strategy: catalog.Calendar, Amount: 10_999, Period: catalog.Hour}, 3600*second - epochNs%(3600*second) - second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, g := newRig(t, 4), group(1, tt.limit)
			for range 10 {
				r.granted(r.demand(g))
			}
			d := r.demand(g)
			r.denied(d)
			if d.RetryNs != tt.waitNs || d.Limit != tt.limit || d.Group != g {
				t.Errorf("denied by %+v for %d, want %d", d.Limit, d.RetryNs, tt.waitNs)
			}
			r.ask(d, Denied) // without asking the store
			if d.RetryNs != tt.waitNs {
				t.Errorf("the second time it waits %d", d.RetryNs)
			}
			r.nowNs += 10 * milli
			if r.ask(d, Denied); d.RetryNs != tt.waitNs-10*milli {
				t.Errorf("later it waits %d", d.RetryNs)
			}
			r.nowNs += denialNs
			r.ask(d, Parked)
		})
	}
}

// Those who wait together are asked for together, and served in order.
func TestTogether(t *testing.T) {
	r, g := newRig(t, 1), group(1, requests(catalog.FixedWindow, 10, minute))
	first := r.demand(g)
	r.ask(first, Parked)
	var want []decision
	for i := range 12 {
		d := r.demand(g)
		r.ask(d, Parked)
		want = append(want, decision{d, Granted})
		if i >= 9 {
			want[i].verdict = Denied
		}
	}
	r.answer(decision{first, Granted})
	if r.sent != 2 {
		t.Fatalf("%d Ops, want 2", r.sent)
	}
	r.answer(want[:9]...) // the tenth did not fit, and asks for itself
	r.answer(want[9:]...)
}

// A great request that does not fit holds nobody up: it is denied with the next
// answer, and those behind it for whom there is enough are granted with the one
// after that.
func TestGreatAndSmall(t *testing.T) {
	r, g := newRig(t, 1), group(1, tokens(catalog.TokenBucket, 1500, minute, catalog.Expected))
	great := func(input int64) *Demand {
		d := r.demand(g)
		d.Estimate.Expected.Input = input
		return d
	}
	first := great(940)
	r.ask(first, Parked)
	greater, less, small := great(1340), great(540), r.demand(g)
	r.ask(greater, Parked)
	r.ask(less, Parked)
	r.ask(small, Parked)
	r.answer(decision{first, Granted}) // 500 are left
	r.answer(decision{greater, Denied})
	r.answer(decision{less, Denied})
	r.answer(decision{small, Granted})
	if greater.RetryNs <= less.RetryNs || less.RetryNs != 4*second {
		t.Errorf("waits of %d and %d", greater.RetryNs, less.RetryNs)
	}
	r.ask(great(540), Denied) // as long as the denial stands
	less = great(539)
	r.ask(less, Parked)
	r.answer(decision{less, Denied})
}

func TestNever(t *testing.T) {
	r := newRig(t, 1)
	d := r.demand(group(1, tokens(catalog.TokenBucket, 150, minute, catalog.Strict)))
	if r.ask(d, Denied); d.RetryNs != state.NeverNs || r.sent != 0 {
		t.Errorf("wait %d, %d Ops", d.RetryNs, r.sent)
	}
}

// A limit below what requests usually use grants one, and goes into debt.
func TestDebt(t *testing.T) {
	r, g := newRig(t, 1), group(1, tokens(catalog.TokenBucket, 90, 90*minute, catalog.Expected))
	d := r.demand(g)
	r.granted(d)
	r.leases.Settle(r.nowNs, d, Use{Input: 7000, Output: 3000}, true)
	r.pass(rideNs + 10*milli)
	r.ask(d, Parked)
	r.answer(decision{d, Denied})
	if want := 10_000 * minute; d.RetryNs > want || d.RetryNs < want-second {
		t.Errorf("wait %d, want about %d", d.RetryNs, want)
	}
}

func TestPosthoc(t *testing.T) {
	r, g := newRig(t, 1), group(1, tokens(catalog.FixedWindow, 100, minute, catalog.Posthoc))
	a, b := r.demand(g), r.demand(g)
	r.granted(a)
	r.ask(b, Granted) // nothing is reserved, and the answer is fresh
	r.leases.Settle(r.nowNs, a, Use{Input: 99}, true)
	r.ask(a, Granted)
	r.leases.Settle(r.nowNs, b, Use{Output: 1}, true)
	r.ask(b, Parked)
	r.answer(decision{b, Denied})
	if want := 59 * second; b.RetryNs != want {
		t.Errorf("wait %d, want %d", b.RetryNs, want)
	}
}

// What was lent ends when the store stops counting it as lent, and at the end
// of its window.
func TestLeaseEnds(t *testing.T) {
	for _, tt := range []struct {
		name   string
		limit  catalog.Limit
		goodNs int64 // from when it was asked for
	}{
		{"bucket", requests(catalog.TokenBucket, 1000, second), state.LeaseNs},
		{"long window", requests(catalog.FixedWindow, 100_000, minute), state.LeaseNs},
		{"end of a window", requests(catalog.FixedWindow, 10_000, 500*milli), 27 * milli},
		{"end of a session", requests(catalog.SessionWindow, 10_000, 100*milli), 97 * milli},
	} {
		for _, after := range []bool{false, true} {
			r, g := newRig(t, 1), group(1, tt.limit)
			r.nowNs += 470 * milli // 30 ms before a window ends
			r.granted(r.demand(g))
			d := r.demand(g)
			r.ask(d, Parked)
			sentNs := r.nowNs
			r.nowNs += 3 * milli // the way there and back does not lengthen it
			r.answer(decision{d, Granted})
			verdict := Granted
			if r.nowNs = sentNs + tt.goodNs - 1; after {
				r.nowNs++
				verdict = Parked
			}
			r.ask(r.demand(g), verdict)
		}
	}
}

// When one group denies, the others get back what they gave.
func TestOthersGoBack(t *testing.T) {
	r := newRig(t, 1)
	wide, narrow := group(1, requests(catalog.FixedWindow, 100, minute), slots(5)), group(2, requests(catalog.FixedWindow, 1, minute))
	r.granted(r.demand(narrow))
	r.nowNs += milli
	for range 20 {
		d := r.demand(wide, narrow)
		r.ask(d, Parked)
		r.answer(decision{d, Denied})
		r.nowNs += denialNs
	}
	r.pass(second)
	if got := r.free(wide); !slices.Equal(got, []int64{100, 5}) {
		t.Errorf("left %v, want all", got)
	}
}

func TestCancel(t *testing.T) {
	r := newRig(t, 1)
	g, other := group(1, requests(catalog.FixedWindow, 3, minute), slots(3)), group(2, slots(3))
	a, b, c := r.demand(g, other), r.demand(g, other), r.demand(g)
	r.ask(a, Parked)
	r.ask(b, Parked)
	r.ask(c, Parked)
	r.leases.Cancel(r.nowNs, a)
	r.leases.Cancel(r.nowNs, c)
	r.answer()
	r.answer(decision{b, Granted})
	if a.Parked() || a.Holds() || !b.Holds() || c.Parked() {
		t.Error("a demand stands wrong")
	}
	r.pass(10 * second)
	if got := r.free(g); !slices.Equal(got, []int64{2, 2}) {
		t.Errorf("left %v, want 2 and 2", got)
	}
	r.leases.Settle(r.nowNs, b, Use{}, true)
	r.pass(3 * second)
	if r.leases.Len() != 0 {
		t.Errorf("%d leases are left", r.leases.Len())
	}
}

func TestNoRoom(t *testing.T) {
	r := newRig(t, 1)
	one, two := group(1, requests(catalog.FixedWindow, 3, minute)), group(2, requests(catalog.FixedWindow, 3, minute))
	d := r.demand(one, two)
	r.full = true
	r.ask(d, Full)
	r.full = false
	a := r.demand(one)
	r.ask(a, Parked)
	r.full = true
	r.ask(d, Full) // it waited in the first group already
	b := r.demand(one)
	r.ask(b, Parked)
	r.answer(decision{a, Granted}, decision{b, Full}) // the Op for b has no room
	r.full = false
	r.ask(d, Parked)
	r.answer(decision{d, Granted})
	r.pass(second)
	if got := r.free(one); got[0] != 1 {
		t.Errorf("left %d, want 1", got[0])
	}
}

func TestLost(t *testing.T) {
	r := newRig(t, 1)
	g, other := group(1, slots(3)), group(2, requests(catalog.FixedWindow, 3, minute))
	a, b := r.demand(g), r.demand(g, other)
	r.granted(a)
	r.ask(b, Parked)
	r.lose(decision{b, Lost})
	r.leases.Settle(r.nowNs, a, Use{}, true)
	r.pass(3 * second)
	if got := r.free(g); got[0] != 3 || r.leases.Len() != 0 {
		t.Errorf("left %d, %d leases", got[0], r.leases.Len())
	}
}

// A lease near its limit gives slots back soon.
func TestSlotsGoBack(t *testing.T) {
	r, g := newRig(t, 1), group(1, slots(2))
	a, b := r.demand(g), r.demand(g)
	r.granted(a)
	r.granted(b)
	r.leases.Settle(r.nowNs, a, Use{}, true)
	r.ask(a, Granted) // the slot has not gone yet
	r.leases.Settle(r.nowNs, a, Use{}, true)
	r.pass(flushNs)
	if got := r.free(g); got[0] != 1 {
		t.Errorf("left %d, want 1", got[0])
	}
	sent := r.sent
	r.pass(35 * second) // b runs on: the store is told of its slot
	if n := r.sent - sent; n != 3 {
		t.Errorf("%d Ops in 35 s, want 3", n)
	}
	r.leases.Settle(r.nowNs, b, Use{}, true)
	r.pass(3 * second)
	if got := r.free(g); got[0] != 2 || r.leases.Len() != 0 {
		t.Errorf("left %d, %d leases", got[0], r.leases.Len())
	}
}

// A denial for want of a slot ends when one comes back on the loop.
func TestSlotEndsDenial(t *testing.T) {
	r, g := newRig(t, 1), group(1, slots(1))
	a, b := r.demand(g), r.demand(g)
	r.granted(a)
	r.denied(b)
	r.ask(b, Denied)
	r.leases.Settle(r.nowNs, a, Use{}, true)
	r.ask(b, Granted)
}

func TestSettle(t *testing.T) {
	g := group(1, requests(catalog.FixedWindow, 10, minute), tokens(catalog.FixedWindow, 1000, minute, catalog.Expected),
		tokens(catalog.FixedWindow, 2000, 2*minute, catalog.Strict), tokens(catalog.FixedWindow, 3000, 3*minute, catalog.Posthoc))
	for _, tt := range []struct {
		name    string
		charge  Use
		used    Use
		counted bool
		left    []int64
	}{
		{"as expected", Use{}, Use{Input: 40, Output: 60}, true, []int64{9, 900, 1900, 2900}},
		{"less", Use{}, Use{Input: 4, Output: 6}, true, []int64{9, 990, 1990, 2990}},
		{"more", Use{}, Use{Input: 400, Output: 600}, true, []int64{9, 0, 1000, 2000}},
		{"nothing sent", Use{}, Use{Input: 40, Output: 60}, false, []int64{9, 1000, 2000, 3000}},
		{"charged on the way", Use{Input: 40, Output: 100}, Use{Input: 40, Output: 300}, true, []int64{9, 660, 1660, 2660}},
		{"charged too much", Use{Input: 40, Output: 300}, Use{Input: 40, Output: 100}, true, []int64{9, 760, 1860, 2660}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, 1)
			d := r.demand(g)
			r.granted(d)
			if tt.charge != (Use{}) {
				r.leases.Charge(r.nowNs, d, tt.charge)
				r.leases.Charge(r.nowNs, d, tt.charge) // counts once
			}
			r.leases.Settle(r.nowNs, d, tt.used, tt.counted)
			r.pass(2 * second)
			if got := r.free(g); !slices.Equal(got, tt.left) {
				t.Errorf("left %v, want %v", got, tt.left)
			}
		})
	}
}

func TestTightest(t *testing.T) {
	r := newRig(t, 1)
	wide := group(1, requests(catalog.FixedWindow, 5000, minute), tokens(catalog.FixedWindow, 500, minute, catalog.Expected))
	narrow := group(2, requests(catalog.TokenBucket, 60, minute), slots(1))
	d := r.demand(wide, narrow)
	if _, ok := r.leases.Tightest(r.nowNs, d, false); ok {
		t.Error("a limit is known before the store was asked")
	}
	r.granted(d)
	s, ok := r.leases.Tightest(r.nowNs+milli, d, false)
	if want := (Standing{narrow.Limits[0], 59, second - milli}); !ok || s != want {
		t.Errorf("requests: %+v, want %+v", s, want)
	}
	s, ok = r.leases.Tightest(r.nowNs, d, true)
	if want := (Standing{wide.Limits[1], 400, 59 * second}); !ok || s != want {
		t.Errorf("tokens: %+v, want %+v", s, want)
	}
}

func TestClose(t *testing.T) {
	r, g := newRig(t, 1), group(1, requests(catalog.FixedWindow, 10_000, minute), slots(1000))
	var held []*Demand
	for range 40 {
		d := r.demand(g)
		r.granted(d)
		held = append(held, d)
	}
	r.leases.Close(r.nowNs)
	r.pass(10 * milli)
	if got := r.free(g); !slices.Equal(got, []int64{9960, 960}) {
		t.Errorf("left %v, want all but what is in use", got)
	}
	for _, d := range held {
		r.leases.Settle(r.nowNs, d, Use{}, true)
	}
	r.pass(10 * milli)
	if r.leases.Len() != 0 || r.free(g)[1] != 1000 {
		t.Errorf("%d leases are left, %v free", r.leases.Len(), r.free(g))
	}
}
