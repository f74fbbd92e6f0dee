package admit

import (
	"testing"

	"relay/store/catalog"
)

// hotGroups are four groups far from their limits, as of a busy policy, key,
// account and host key.
func hotGroups() []*catalog.Group {
	return []*catalog.Group{
		group(0x10001, requests(catalog.TokenBucket, 10_000_000, minute), tokens(catalog.TokenBucket, 10_000_000_000, minute, catalog.Expected), slots(100_000)),
		group(0x20002, requests(catalog.SlidingWindow, 10_000_000, minute)),
		group(0x30003, catalog.Limit{Meter: catalog.Cost, Strategy: catalog.Calendar, Amount: 1e15, Period: catalog.Month}),
		group(0x40004, requests(catalog.FixedWindow, 10_000_000, minute), tokens(catalog.SessionWindow, 10_000_000_000, minute, catalog.Strict), slots(100_000)),
	}
}

// Far from the limit hardly any request asks the store.
func TestFarFromLimit(t *testing.T) {
	for _, tt := range []struct {
		name   string
		groups []*catalog.Group
		most   float64 // Ops per request
	}{
		{"one group", hotGroups()[:1], 0.1},
		{"four groups", hotGroups(), 0.1},
		{"slots and requests of a smaller limit", []*catalog.Group{group(1, requests(catalog.TokenBucket, 600_000, minute), slots(1000))}, 0.1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, 2)
			const rate, seconds, durationMs = 1000, 10, 20
			running := make([][]*Demand, durationMs)
			parked, asked := 0, 0
			for ms := range rate * seconds {
				r.nowNs += milli
				if ms%5 == 0 {
					r.leases.Tick(r.nowNs)
				}
				if len(r.lane) > 0 {
					ops := r.lane
					r.lane = nil
					r.memory.Apply(r.storeNs(), ops)
					for _, o := range ops {
						for _, d := range r.leases.Answered(r.nowNs, o) {
							if d.Verdict != Granted {
								t.Fatalf("denied by %+v", d.Demand.Limit)
							}
						}
					}
				}
				for _, d := range running[ms%durationMs] {
					if d.Holds() {
						r.leases.Settle(r.nowNs, d, Use{Input: 40, Output: int64(ms % 100), Cost: int64(ms%100) * 20}, true)
					}
				}
				d := r.demand(tt.groups...)
				running[ms%durationMs] = append(running[ms%durationMs][:0], d)
				asked++
				if r.leases.Ask(r.nowNs, d) == Parked {
					parked++
				}
			}
			perRequest := float64(r.sent) / float64(asked)
			t.Logf("%.4f Ops per request, %.4f parked", perRequest, float64(parked)/float64(asked))
			if perRequest > tt.most {
				t.Errorf("%.4f Ops per request, want at most %.2f", perRequest, tt.most)
			}
			if parked*20 > asked {
				t.Errorf("%d of %d parked", parked, asked)
			}
		})
	}
}

func TestHotAllocs(t *testing.T) {
	r := newRig(t, 2)
	d := r.demand(hotGroups()...)
	lane := r.lane[:0]
	round := func() {
		r.nowNs += milli
		switch r.leases.Ask(r.nowNs, d) {
		case Granted:
			r.leases.Settle(r.nowNs, d, Use{Input: 40, Output: 50}, true)
		case Parked:
			for d.Parked() {
				lane, r.lane = r.lane, lane[:0]
				r.memory.Apply(r.storeNs(), lane)
				for _, o := range lane {
					r.leases.Answered(r.nowNs, o)
				}
			}
			r.leases.Settle(r.nowNs, d, Use{Input: 40, Output: 500}, true)
		}
		r.leases.Tick(r.nowNs)
		lane, r.lane = r.lane, lane[:0]
		r.memory.Apply(r.storeNs(), lane)
		for _, o := range lane {
			r.leases.Answered(r.nowNs, o)
		}
	}
	for range 5000 {
		round()
	}
	if n := testing.AllocsPerRun(5000, round); n != 0 {
		t.Errorf("%v allocations per hot request", n)
	}
}

// The way of those who wait: parked, granted or denied or cancelled; and leases
// that are dropped and made again.
func TestParkedAllocs(t *testing.T) {
	r := newRig(t, 2)
	g, other := group(1, requests(catalog.TokenBucket, 60, minute), slots(8)), group(2, tokens(catalog.FixedWindow, 3000, second, catalog.Expected))
	var demands []*Demand
	for range 24 {
		demands = append(demands, r.demand(g, other))
	}
	lane := r.lane[:0]
	round := func() {
		r.nowNs += 100 * milli
		if r.nowNs%(20*second) < 100*milli {
			r.nowNs += 5 * second // leases go
			r.leases.Tick(r.nowNs)
		}
		for _, d := range demands {
			r.leases.Ask(r.nowNs, d)
		}
		if demands[3].Parked() {
			r.leases.Cancel(r.nowNs, demands[3])
		}
		for len(r.lane) > 0 {
			lane, r.lane = r.lane, lane[:0]
			r.memory.Apply(r.storeNs(), lane)
			for _, o := range lane {
				r.leases.Answered(r.nowNs, o)
			}
			if len(r.lane) == 0 { // who found no slot is asked for again
				r.nowNs += slotAgainNs
				r.leases.Tick(r.nowNs)
			}
		}
		for _, d := range demands {
			if d.Holds() {
				r.leases.Settle(r.nowNs, d, Use{Input: 4, Output: 5}, true)
			}
		}
		r.leases.Tick(r.nowNs)
		r.leases.Tightest(r.nowNs, demands[0], true)
	}
	for range 3000 {
		round()
	}
	if n := testing.AllocsPerRun(3000, round); n != 0 {
		t.Errorf("%v allocations per round", n)
	}
}
