package admit

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"relay/store/catalog"
)

// BenchmarkHot is Ask and Settle of a request of so many groups at 100,000
// requests a second, with the few answers of the store that it needs.
func BenchmarkHot(b *testing.B) {
	for _, n := range []int{1, 2, 4} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			r := newRig(&testing.T{}, 2)
			d := r.demand(hotGroups()[:n]...)
			lane := r.lane[:0]
			parked := 0
			b.ReportAllocs() // budget 0, enforced by TestHotAllocs
			for b.Loop() {
				r.nowNs += 10_000
				if r.leases.Ask(r.nowNs, d) == Parked {
					parked++
				}
				for len(r.lane) > 0 {
					lane, r.lane = r.lane, lane[:0]
					r.memory.Apply(r.storeNs(), lane)
					for _, o := range lane {
						r.leases.Answered(r.nowNs, o)
					}
				}
				r.leases.Settle(r.nowNs, d, Use{Input: 40, Output: 60, Cost: 1000}, true)
				if ns := r.leases.DueNs(); ns != 0 && ns <= r.nowNs {
					r.leases.Tick(r.nowNs)
				}
			}
			b.ReportMetric(float64(r.sent)/float64(b.N), "Ops/op")
			b.ReportMetric(float64(parked)/float64(b.N), "parked/op")
		})
	}
}

// BenchmarkOps is how many Ops a request costs that is counted one by one, and
// one of which units are lent: eight callers on four loops, each with one
// request of about 20 ms after the other.
func BenchmarkOps(b *testing.B) {
	for _, bb := range []struct {
		name  string
		group *catalog.Group
	}{
		{"slots, exact", group(1, slots(10))},
		{"tokens, used up", group(1, tokens(catalog.TokenBucket, 30_000, second, catalog.Expected))},
		{"slots and tokens, used up", group(1, slots(10), tokens(catalog.TokenBucket, 30_000, second, catalog.Expected))},
		{"leased", group(1, slots(10_000), requests(catalog.TokenBucket, 1_000_000, minute), tokens(catalog.TokenBucket, 100_000_000, minute, catalog.Expected))},
	} {
		b.Run(bb.name, func(b *testing.B) {
			const loops, callers, stepNs = 4, 8, 500_000 // a round trip takes a step
			f, decided := newFleet(nil, loops), map[*Demand]Verdict{}
			var running [callers]*Demand
			var endNs [callers]int64
			asked, denied := 0, 0
			rnd := rand.New(rand.NewPCG(1, 2))
			for b.Loop() {
				for c := range running {
					d := running[c]
					switch loop := rnd.IntN(loops); {
					case d == nil || !d.Parked() && !d.Holds() && f.nowNs >= endNs[c]:
						d = &Demand{Owner: f.loops[loop], Estimate: Estimate{Expected: Use{Input: 40, Output: 60}}}
						d.add(bb.group)
						if running[c], endNs[c] = d, 0; f.loops[loop].Ask(f.nowNs, d) == Denied {
							denied++
							endNs[c] = f.nowNs + 15*milli + rnd.Int64N(10*milli)
						}
						asked++
					case d.Holds() && endNs[c] == 0:
						endNs[c] = f.nowNs + 15*milli + rnd.Int64N(10*milli)
					case d.Holds() && f.nowNs >= endNs[c]:
						d.Owner.(*Leases).Settle(f.nowNs, d, Use{Input: 40, Output: 50}, true)
					}
				}
				f.pass(stepNs, decided)
			}
			for _, v := range decided {
				if v == Denied {
					denied++
				}
			}
			b.ReportMetric(float64(f.sent)/float64(asked), "Ops/request")
			b.ReportMetric(float64(denied)/float64(asked), "denied/request")
		})
	}
}
