package admit

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"relay/store/catalog"
	"relay/store/state"
)

// A fleet is the leases of several loops over one memory, with one lane that
// works Ops off in the order in which they were submitted.
type fleet struct {
	*testing.T
	loops  []*Leases
	memory *state.Memory
	nowNs  int64
	lane   []*state.Op
	sent   int
}

func newFleet(t *testing.T, loops int) *fleet {
	f := &fleet{T: t, memory: state.NewMemory(loops), nowNs: second}
	for i := range loops {
		f.loops = append(f.loops, NewLeases(i, func(o *state.Op) bool {
			f.lane = append(f.lane, o)
			f.sent++
			return true
		}, func(l *catalog.Limit) state.Bounds { return Bounds(l, epochNs+f.nowNs) }))
	}
	return f
}

// callbackEnds is what a loop does at the end of each of its callbacks.
func (f *fleet) callbackEnds(loop int) {
	if ns := f.loops[loop].DueNs(); ns != 0 && ns <= f.nowNs {
		f.loops[loop].Tick(f.nowNs)
	}
}

// answer has the store answer the first n Ops of the lane. It returns the
// verdict of every demand that was decided.
func (f *fleet) answer(n int, decided map[*Demand]Verdict) {
	ops := f.lane[:n:n]
	f.lane = f.lane[n:]
	f.memory.Apply(epochNs+f.nowNs, ops)
	for _, o := range ops {
		for _, d := range f.loops[o.Loop].Answered(f.nowNs, o) {
			decided[d.Demand] = d.Verdict
		}
		f.callbackEnds(o.Loop)
	}
}

// pass answers all that is with the lane and lets time go by.
func (f *fleet) pass(ns int64, decided map[*Demand]Verdict) {
	f.answer(len(f.lane), decided)
	f.nowNs += ns
	for i := range f.loops {
		f.callbackEnds(i)
	}
}

// Callers who send one request after the other need one slot each, whatever
// loops their connections are on.
func TestSlotsFollowCallers(t *testing.T) {
	for _, callers := range []int64{1, 2, 7, 99} {
		for _, tt := range []struct {
			name  string
			group *catalog.Group
		}{
			{"slots", group(1, slots(callers))},
			{"slots and tokens", group(1, slots(callers), tokens(catalog.TokenBucket, 1_000_000_000, minute, catalog.Expected))},
			{"two slot limits", group(1, slots(callers+5), slots(callers))},
		} {
			t.Run(fmt.Sprintf("%s of %d", tt.name, callers), func(t *testing.T) {
				const loops, requests = 4, 300
				f, rnd := newFleet(t, loops), rand.New(rand.NewPCG(uint64(callers), 1))
				running, decided := make([]*Demand, callers), map[*Demand]Verdict{}
				loopOf := make([]int, callers)
				for range requests * callers {
					c := rnd.IntN(int(callers))
					if d := running[c]; d != nil {
						if d.Parked() {
							if len(f.lane) > 0 && rnd.IntN(4) > 0 {
								f.answer(1+rnd.IntN(len(f.lane)), decided)
							} else {
								f.pass(rnd.Int64N(milli), decided)
							}
							continue
						}
						if !d.Holds() {
							t.Fatalf("caller %d is denied: verdict %d, by %+v", c, decided[d], d.Limit)
						}
						f.loops[loopOf[c]].Settle(f.nowNs, d, Use{Input: 40, Output: rnd.Int64N(100)}, true)
						f.callbackEnds(loopOf[c])
						if rnd.IntN(3) == 0 {
							f.pass(rnd.Int64N(15*milli), decided)
						}
					}
					d := &Demand{Estimate: Estimate{Expected: Use{Input: 40, Output: 60}}}
					d.add(tt.group)
					running[c], loopOf[c] = d, rnd.IntN(loops)
					f.loops[loopOf[c]].Ask(f.nowNs, d)
					f.callbackEnds(loopOf[c])
				}
			})
		}
	}
}

// A slot that comes free while the lease's Op is under way goes with the next
// one, as soon as that has come back.
func TestSlotFollowsOp(t *testing.T) {
	r, g := newRig(t, 1), group(1, slots(2))
	a, b := r.demand(g), r.demand(g)
	r.granted(a)
	r.ask(b, Parked)
	r.leases.Settle(r.nowNs, a, Use{}, true)
	r.leases.Tick(r.nowNs)
	if r.sent != 2 {
		t.Fatalf("%d Ops, want 2", r.sent)
	}
	r.answer(decision{b, Granted})
	if r.sent != 3 {
		t.Fatalf("%d Ops, want a third", r.sent)
	}
	r.answer()
	if got := r.free(g)[0]; got != 1 {
		t.Errorf("left %d, want 1", got)
	}
	r.leases.Settle(r.nowNs, b, Use{}, true)
	if ns := r.leases.DueNs(); ns != r.nowNs {
		t.Errorf("due at %d, want %d", ns, r.nowNs)
	}
	r.full = true // then it is not tried at every callback
	r.leases.Tick(r.nowNs)
	if ns := r.leases.DueNs(); ns != r.nowNs+flushNs {
		t.Errorf("due at %d, want %d", ns, r.nowNs+flushNs)
	}
	r.full = false
	r.pass(flushNs)
	if got := r.free(g)[0]; got != 2 {
		t.Errorf("left %d, want 2", got)
	}
}

// DueNs says when there is something to do, and that there is nothing.
func TestDueNs(t *testing.T) {
	r, g := newRig(t, 1), group(1, tokens(catalog.FixedWindow, 1_000_000, minute, catalog.Expected))
	if ns := r.leases.DueNs(); ns != 0 {
		t.Errorf("due at %d without a lease", ns)
	}
	d := r.demand(g)
	r.granted(d)
	r.nowNs += milli
	r.leases.Settle(r.nowNs, d, Use{}, true)
	if ns, want := r.leases.DueNs(), r.nowNs+rideNs; ns != want {
		t.Errorf("due at %d, want %d", ns, want)
	}
	for steps := 0; r.leases.Len() > 0; steps++ {
		if steps > 20 {
			t.Fatal("the lease stays")
		}
		ns := r.leases.DueNs()
		if ns < r.nowNs {
			t.Fatalf("due at %d, before %d", ns, r.nowNs)
		}
		r.nowNs = ns
		r.leases.Tick(r.nowNs)
		if len(r.lane) > 0 {
			r.answer()
		}
	}
	if ns := r.leases.DueNs(); ns != 0 {
		t.Errorf("due at %d without a lease", ns)
	}
}

// GrantNs is the time of the store's grant, and stays until the next plan.
func TestGrantNs(t *testing.T) {
	r := newRig(t, 1)
	g, other, running := group(1, requests(catalog.FixedWindow, 100_000, minute)), group(2, requests(catalog.FixedWindow, 100_000, minute)), group(3, slots(1000))
	d := r.demand(g)
	r.ask(d, Parked)
	if d.GrantNs() != 0 {
		t.Error("a time before the grant")
	}
	r.nowNs += milli
	first := r.storeNs()
	r.answer(decision{d, Granted})
	if d.GrantNs() != first {
		t.Errorf("granted at %d, want %d", d.GrantNs(), first)
	}
	r.leases.Settle(r.nowNs, d, Use{}, true)
	if d.GrantNs() != first {
		t.Error("the time is gone after Settle")
	}
	d = r.demand(g)
	r.ask(d, Parked)
	lent := r.storeNs()
	r.answer(decision{d, Granted})
	r.nowNs += milli
	d = r.demand(g)
	r.ask(d, Granted) // of what was lent
	if d.GrantNs() != lent {
		t.Errorf("granted at %d, want %d", d.GrantNs(), lent)
	}
	d = r.demand(g, other)
	r.ask(d, Parked)
	r.answer(decision{d, Granted})
	if d.GrantNs() != lent {
		t.Errorf("of two groups: granted at %d, want the earlier %d", d.GrantNs(), lent)
	}
	r.granted(r.demand(running))
	r.granted(r.demand(running))
	r.nowNs += milli
	d = r.demand(running)
	r.ask(d, Granted)
	if d.GrantNs() != r.storeNs() {
		t.Errorf("slots only: granted at %d, want %d", d.GrantNs(), r.storeNs())
	}
	r.leases.Settle(r.nowNs, d, Use{}, true)
	if d.Plan(&catalog.RelayKey{Policy: &catalog.Policy{}, Account: &catalog.Account{}}, nil); d.GrantNs() != 0 {
		t.Error("the time outlives the plan")
	}
}

// A denial ends on the loop when what it was for comes back there.
func TestDenialEnds(t *testing.T) {
	r, g := newRig(t, 1), group(1, tokens(catalog.FixedWindow, 250, minute, catalog.Expected))
	a, b, c := r.demand(g), r.demand(g), r.demand(g)
	r.granted(a)
	r.granted(b)
	r.ask(c, Parked)
	r.answer(decision{c, Denied}) // 50 are left
	r.leases.Settle(r.nowNs, a, Use{Input: 60}, true)
	r.ask(c, Denied) // 40 came back
	r.leases.Settle(r.nowNs, b, Use{Input: 80}, true)
	r.ask(c, Parked) // and 20
	r.answer(decision{c, Granted})
}

// Units that come back after a denial go soon.
func TestDenialHastens(t *testing.T) {
	r, g := newRig(t, 1), group(1, tokens(catalog.FixedWindow, 150, minute, catalog.Expected))
	a, c := r.demand(g), r.demand(g)
	r.granted(a)
	r.nowNs += second
	r.ask(c, Parked)
	r.answer(decision{c, Denied})
	r.leases.Settle(r.nowNs, a, Use{Input: 10}, true)
	r.pass(flushNs)
	if got := r.free(g)[0]; got != 140 {
		t.Errorf("left %d, want 140", got)
	}
}

// Who finds no slot waits a moment for one, which may still be on its way.
func TestSlotAgain(t *testing.T) {
	start := func(t *testing.T) (r *rig, holds, waits *Demand, g *catalog.Group) {
		r, g = newRig(t, 1), group(1, slots(1))
		holds, waits = r.demand(g), r.demand(g)
		r.granted(holds)
		r.ask(waits, Parked)
		r.answer()
		if ns := r.leases.DueNs(); ns != r.nowNs+slotAgainNs {
			t.Fatalf("due at %d, want %d", ns, r.nowNs+slotAgainNs)
		}
		return r, holds, waits, g
	}
	t.Run("there is one", func(t *testing.T) {
		r, holds, waits, _ := start(t)
		r.leases.Settle(r.nowNs, holds, Use{}, true)
		r.leases.Tick(r.nowNs)
		r.answer(decision{waits, Granted})
	})
	t.Run("there is none", func(t *testing.T) {
		r, _, waits, g := start(t)
		later := r.demand(g)
		r.ask(later, Parked) // and is asked for with the other
		r.leases.Tick(r.nowNs + slotAgainNs - 1)
		if len(r.lane) > 0 {
			t.Fatal("asked too early")
		}
		r.nowNs += slotAgainNs
		r.leases.Tick(r.nowNs)
		r.answer(decision{waits, Denied}, decision{later, Denied})
		r.ask(later, Denied)
	})
	t.Run("the caller goes", func(t *testing.T) {
		r, holds, waits, g := start(t)
		r.leases.Cancel(r.nowNs, waits)
		r.nowNs += slotAgainNs
		if r.leases.Tick(r.nowNs); len(r.lane) > 0 {
			t.Error("asked for nobody")
		}
		r.leases.Settle(r.nowNs, holds, Use{}, true)
		r.pass(3 * second)
		if got := r.free(g)[0]; got != 1 || r.leases.Len() > 0 {
			t.Errorf("left %d, %d leases", got, r.leases.Len())
		}
	})
	t.Run("the lane is full", func(t *testing.T) {
		r, holds, waits, _ := start(t)
		r.full = true
		for range 10 {
			r.nowNs = r.leases.DueNs()
			r.leases.Tick(r.nowNs)
		}
		if !waits.Parked() {
			t.Fatal("it waits no more")
		}
		r.full = false
		r.leases.Settle(r.nowNs, holds, Use{}, true)
		r.nowNs = r.leases.DueNs()
		r.leases.Tick(r.nowNs)
		r.answer(decision{waits, Granted})
	})
	t.Run("the store is lost", func(t *testing.T) {
		r, _, waits, _ := start(t)
		r.nowNs += slotAgainNs
		r.leases.Tick(r.nowNs)
		r.lose(decision{waits, Lost})
	})
}

// A loop that needs few slots does not sit on more when another needs them.
func TestSpareSlotsGoBack(t *testing.T) {
	const limit = 200
	f, g, decided := newFleet(t, 2), group(1, slots(limit)), map[*Demand]Verdict{}
	ask := func(loop int) *Demand {
		d := &Demand{}
		d.add(g)
		f.loops[loop].Ask(f.nowNs, d)
		for f.callbackEnds(loop); d.Parked(); {
			f.pass(milli, decided)
		}
		return d
	}
	var few []*Demand
	for range 30 {
		few = append(few, ask(0))
	}
	for _, d := range few[1:] {
		f.loops[0].Settle(f.nowNs, d, Use{}, true)
	}
	holds := 1
	for step := range 30 {
		f.loops[0].Settle(f.nowNs, few[0], Use{}, true)
		f.pass(150*milli, decided)
		if few[0] = ask(0); !few[0].Holds() {
			t.Fatal("denied what it had")
		}
		f.pass(150*milli, decided)
		if step < 10 {
			continue
		}
		if step == 10 && f.loops[0].groups[1].spare == 0 {
			t.Fatal("there are no spare slots")
		}
		for d := ask(1); d.Holds(); d = ask(1) {
			holds++
		}
	}
	if holds < limit-1 {
		t.Errorf("%d of %d slots are in use", holds, limit)
	}
}
