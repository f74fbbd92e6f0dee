package admit

import (
	"testing"

	"relay/store/catalog"
	"relay/store/state"
)

// Under a storm on several loops a limit is used, not only kept: leases must
// not leave much of it unspent.
func TestSaturated(t *testing.T) {
	const loops, seconds, perSecond = 4, 20, 3000
	for _, tt := range []struct {
		name  string
		limit catalog.Limit
		least int64 // granted in all
		most  int64
	}{
		{"fixed window", requests(catalog.FixedWindow, 2000, 2*second), 19_900, 20_000},
		{"small fixed window", requests(catalog.FixedWindow, 10, 2*second), 100, 100},
		{"token bucket", requests(catalog.TokenBucket, 2000, 2*second), 21_000, 22_000},
		{"small token bucket", requests(catalog.TokenBucket, 10, 2*second), 105, 110},
		{"sliding window", requests(catalog.SlidingWindow, 2000, 2*second), 18_500, 22_000},
		{"session window", requests(catalog.SessionWindow, 2000, 2*second), 19_000, 20_000},
		{"tokens", tokens(catalog.TokenBucket, 200_000, 2*second, catalog.Expected), 21_300, 22_000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var rigs []*rig
			memory := state.NewMemory(loops)
			for range loops {
				r := newRig(t, loops)
				r.memory, r.nowNs = memory, 0
				rigs = append(rigs, r)
			}
			g, granted, sent := group(9, tt.limit), int64(0), 0
			done := func(r *rig, d *Demand) {
				granted++
				r.leases.Settle(r.nowNs, d, Use{Input: 40, Output: 60}, true)
			}
			for i := range int64(seconds * perSecond) {
				r := rigs[(i*i/7)%loops]
				for _, r := range rigs {
					if r.nowNs = i * second / perSecond; i%15 == 0 {
						r.leases.Tick(r.nowNs)
					}
				}
				d := r.demand(g)
				if r.leases.Ask(r.nowNs, d) == Granted {
					done(r, d)
				}
				if i%3 != 0 { // a round trip is up to a millisecond
					continue
				}
				for _, r := range rigs {
					ops := r.lane
					r.lane = nil
					memory.Apply(r.storeNs(), ops)
					for _, o := range ops {
						sent++
						for _, c := range r.leases.Answered(r.nowNs, o) {
							if c.Verdict == Granted {
								done(r, c.Demand)
							}
						}
					}
				}
			}
			t.Logf("%d granted, %d Ops", granted, sent)
			if granted < tt.least || granted > tt.most {
				t.Errorf("%d granted, want %d to %d", granted, tt.least, tt.most)
			}
		})
	}
}

// In the end the whole of a limit is granted, whatever was lent to loops that
// did not use it: no unit is lost.
func TestWholeLimit(t *testing.T) {
	for _, loops := range []int{1, 4} {
		for _, amount := range []int64{1, 10, 100, 1000, 20_000} {
			for _, limit := range []catalog.Limit{
				requests(catalog.FixedWindow, amount, minute),
				requests(catalog.SlidingWindow, amount, minute),
				requests(catalog.SessionWindow, amount, minute),
				tokens(catalog.FixedWindow, 100*amount, minute, catalog.Expected),
				{Meter: catalog.Cost, Strategy: catalog.Calendar, Amount: 1000 * amount, Period: catalog.Hour},
			} {
				f, g, decided := newFleet(t, loops), group(1, limit), map[*Demand]Verdict{}
				granted := int64(0)
				ask := func(loop int) bool {
					d := &Demand{Estimate: Estimate{Expected: Use{Input: 40, Output: 60, Cost: 1000}}}
					d.add(g)
					f.loops[loop].Ask(f.nowNs, d)
					for d.Parked() {
						f.pass(100_000, decided)
					}
					if !d.Holds() {
						return false
					}
					granted++
					f.loops[loop].Settle(f.nowNs, d, d.Estimate.Expected, true)
					return true
				}
				for i := range amount / 2 { // all loops use it, and then one only
					ask(int(i) % loops)
					f.nowNs += 100_000
				}
				f.calm(decided)
				for ask(0) {
				}
				if granted != amount {
					t.Errorf("%d loops, %+v: %d granted, want %d", loops, limit, granted, amount)
				}
			}
		}
	}
}

// calm lets time go by until what was lent has gone back.
func (f *fleet) calm(decided map[*Demand]Verdict) {
	for range (state.LeaseNs + rideNs + 10*milli) / milli {
		f.pass(milli, decided)
	}
	if len(f.lane) > 0 {
		f.pass(milli, decided)
	}
}
