package admit

import (
	"slices"
	"testing"

	"relay/store/catalog"
	"relay/store/state"
)

// A catalog that says the same changes nothing; other limits are taken over,
// and who still has the older ones is judged by the newer.
func TestRegroup(t *testing.T) {
	r := newRig(t, 1)
	limits := []catalog.Limit{requests(catalog.TokenBucket, 10_000, minute), slots(500)}
	older, same, newer := group(1, limits...), group(1, slices.Clone(limits)...), group(1, requests(catalog.FixedWindow, 5, minute), slots(2))
	same.Generation, newer.Generation = 1, 2
	var runs []*Demand
	for range 15 {
		d := r.demand(older)
		r.granted(d)
		runs = append(runs, d)
	}
	for _, d := range runs[:9] {
		r.leases.Settle(r.nowNs, d, Use{}, true)
	}
	r.pass(50 * milli)
	sent := r.sent
	for range 3 {
		r.ask(r.demand(same), Granted)
		r.ask(r.demand(older), Granted)
	}
	if r.sent > sent+1 {
		t.Errorf("%d Ops for limits that are the same", r.sent-sent)
	}
	waits := r.demand(older)
	for r.leases.Ask(r.nowNs, waits) == Granted {
		waits = r.demand(older)
	}
	d := r.demand(newer)
	r.ask(d, Parked)
	r.answer() // of the older limits: the slots are good, the units are given up
	r.answer(decision{waits, Granted}, decision{d, Granted})
	d = r.demand(newer)
	r.denied(d) // 2 may run
	if d.Limit.Amount != 2 {
		t.Errorf("denied by %+v", d.Limit)
	}
	r.nowNs += 2 * denialNs
	d = r.demand(same)
	r.denied(d)
	if d.Limit.Amount != 2 {
		t.Errorf("denied by %+v", d.Limit)
	}
}

// Units of other limits never come back to the new ones; nor do those of the
// same limit at another place, where the store begins anew.
func TestRegroupRefunds(t *testing.T) {
	limit := tokens(catalog.FixedWindow, 1_000_000, minute, catalog.Expected)
	for _, tt := range []struct {
		name  string
		newer []catalog.Limit
		left  []int64
	}{
		{"another limit", []catalog.Limit{tokens(catalog.FixedWindow, 500, 2*minute, catalog.Strict)}, []int64{300}},
		{"another place", []catalog.Limit{requests(catalog.FixedWindow, 10, minute), limit}, []int64{9, 999_900}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, 1)
			older, newer, other := group(1, limit), group(1, tt.newer...), group(2, slots(10))
			newer.Generation = 1
			for range 5 {
				r.granted(r.demand(older))
			}
			undone, held := r.demand(older, other), r.demand(older)
			r.granted(held)
			r.pass(10 * milli)
			r.ask(undone, Parked)
			if undone.parts[0].stands != taken {
				t.Fatal("nothing is lent")
			}
			var ops []*state.Op // what undone waits for; a renewal of the other group is answered
			for i, o := range r.lane {
				if o.Group == other {
					ops, r.lane = append(ops, o), slices.Delete(r.lane, i, i+1)
					break
				}
			}
			if len(r.lane) > 0 {
				r.answer()
			}
			d := r.demand(newer)
			r.ask(d, Parked)
			r.answer(decision{d, Granted})
			r.leases.Settle(r.nowNs, held, Use{}, true)
			r.lane = ops
			r.lose(decision{undone, Lost})
			r.pass(5 * second)
			for k, got := range r.free(newer) {
				if got > tt.left[k] {
					t.Errorf("rule %d: left %d, want at most %d", k, got, tt.left[k])
				}
			}
		})
	}
}

// Whoever still has limits of long ago is judged by the newest, and brings the
// older ones back for nobody.
func TestRegroupNewest(t *testing.T) {
	r := newRig(t, 1)
	var groups [3]*catalog.Group
	for i := range groups {
		groups[i] = group(1, slots(int64(10-3*i)))
		groups[i].Generation = uint64(i) + 1
	}
	var held []*Demand
	for _, g := range groups {
		d := r.demand(g)
		r.granted(d)
		held = append(held, d)
	}
	for range 10 {
		for _, g := range groups {
			d := r.demand(g)
			r.leases.Ask(r.nowNs, d)
			if r.await(d); d.Holds() {
				held = append(held, d)
			}
		}
	}
	if len(held) != 4 {
		t.Errorf("%d run, want 4, the limit of the newest catalog", len(held))
	}
}
