package admit

import (
	"testing"
	"time"

	"relay/store/catalog"
	"relay/store/state"
)

const (
	milli  = int64(time.Millisecond)
	second = int64(time.Second)
	minute = int64(time.Minute)

	// epochNs is a store time at a minute of the grid.
	epochNs = 1_800_000_000 * second
)

// group makes a counter group.
func group(id uint64, limits ...catalog.Limit) *catalog.Group {
	return &catalog.Group{ID: id, Name: "policy/test", Limits: limits}
}

func requests(s catalog.Strategy, amount, windowNs int64) catalog.Limit {
	return catalog.Limit{Meter: catalog.Requests, Strategy: s, Amount: amount, Window: time.Duration(windowNs)}
}

func tokens(s catalog.Strategy, amount, windowNs int64, r catalog.Reserve) catalog.Limit {
	return catalog.Limit{Meter: catalog.Tokens, Strategy: s, Amount: amount, Window: time.Duration(windowNs), Reserve: r}
}

func slots(amount int64) catalog.Limit {
	return catalog.Limit{Meter: catalog.Concurrency, Amount: amount}
}

// A rig is the leases of one loop over a memory, with a lane that answers when
// it is told to.
type rig struct {
	*testing.T
	leases *Leases
	memory *state.Memory
	nowNs  int64 // of the loop
	lane   []*state.Op
	sent   int  // Ops submitted
	full   bool // the lane has no room
}

type decision struct {
	demand  *Demand
	verdict Verdict
}

func newRig(t *testing.T, loops int) *rig {
	r := &rig{T: t, memory: state.NewMemory(loops), nowNs: second}
	r.leases = NewLeases(3, r.submit, func(l *catalog.Limit) state.Bounds { return Bounds(l, r.storeNs()) })
	return r
}

// storeNs is the store's time, whose clock reads other than the loop's.
func (r *rig) storeNs() int64 { return epochNs + r.nowNs }

func (r *rig) submit(o *state.Op) bool {
	if r.full {
		return false
	}
	if o.Loop != 3 {
		r.Errorf("loop %d", o.Loop)
	}
	r.lane = append(r.lane, o)
	r.sent++
	return true
}

// demand makes one of groups, for a request of about a hundred tokens.
func (r *rig) demand(groups ...*catalog.Group) *Demand {
	d := &Demand{Estimate: Estimate{Expected: Use{Input: 40, Output: 60, Cost: 1000}, Strict: Use{Input: 40, Output: 160, Cost: 3000}}}
	for _, g := range groups {
		d.add(g)
	}
	return d
}

func (r *rig) ask(d *Demand, want Verdict) {
	r.Helper()
	if got := r.leases.Ask(r.nowNs, d); got != want {
		r.Fatalf("verdict %d, want %d", got, want)
	}
}

// answer has the store answer all that is with the lane, and wants these
// decisions.
func (r *rig) answer(want ...decision) {
	r.Helper()
	ops := r.lane
	r.lane = nil
	r.memory.Apply(r.storeNs(), ops)
	r.post(ops, want...)
}

// lose has the lane answer that the store could not be asked.
func (r *rig) lose(want ...decision) {
	r.Helper()
	ops := r.lane
	r.lane = nil
	for _, o := range ops {
		o.Lose()
	}
	r.post(ops, want...)
}

func (r *rig) post(ops []*state.Op, want ...decision) {
	r.Helper()
	if len(ops) == 0 {
		r.Fatal("nothing is with the lane")
	}
	for _, o := range ops {
		for _, d := range r.leases.Answered(r.nowNs, o) {
			if len(want) == 0 || want[0] != (decision{d.Demand, d.Verdict}) {
				r.Fatalf("decided %d of %p, want %v", d.Verdict, d.Demand, want)
			}
			want = want[1:]
		}
	}
	if len(want) > 0 {
		r.Fatalf("not decided: %v", want)
	}
}

// await answers, and lets time go by, until the demand is decided.
func (r *rig) await(d *Demand) {
	for d.Parked() {
		if len(r.lane) == 0 {
			r.nowNs = max(r.nowNs, r.leases.DueNs())
			r.leases.Tick(r.nowNs)
			continue
		}
		ops := r.lane
		r.lane = nil
		r.memory.Apply(r.storeNs(), ops)
		for _, o := range ops {
			r.leases.Answered(r.nowNs, o)
		}
	}
}

// denied asks and awaits a denial.
func (r *rig) denied(d *Demand) {
	r.Helper()
	r.ask(d, Parked)
	if r.await(d); d.Holds() || d.Group == nil {
		r.Fatal("a demand is not denied")
	}
}

// granted asks and answers until the demand is granted.
func (r *rig) granted(d *Demand) {
	r.Helper()
	switch v := r.leases.Ask(r.nowNs, d); v {
	case Granted:
	case Parked:
		if r.await(d); !d.Holds() {
			r.Fatal("a demand is not granted")
		}
	default:
		r.Fatalf("verdict %d, want a grant", v)
	}
}

// pass lets time go by in steps of a tick, and answers what is sent.
func (r *rig) pass(ns int64) {
	r.Helper()
	for end := r.nowNs + ns; r.nowNs < end; {
		r.nowNs += min(5*milli, end-r.nowNs)
		r.leases.Tick(r.nowNs)
		if len(r.lane) > 0 {
			r.answer()
		}
	}
}

// free is how many units of each rule the store has.
func (r *rig) free(g *catalog.Group) []int64 {
	o := &state.Op{Group: g}
	for k := range g.Limits {
		if g.Limits[k].Strategy == catalog.Calendar {
			o.Bounds[k] = Bounds(&g.Limits[k], r.storeNs())
		}
	}
	r.memory.Apply(r.storeNs(), []*state.Op{o})
	return o.Left[:len(g.Limits)]
}
