package state_test

import (
	"testing"
	"time"

	"relay/store/catalog"
	"relay/store/state"
	"relay/store/state/statetest"
)

// A remote is what a lane of one process is to a store: it keeps what it cannot
// tell, and tells slots as absolute numbers of the process.
type remote struct {
	store  *state.Memory
	skewNs int64 // of the store's clock
	down   bool
	cut    bool // the store works off what it is asked, and no answer comes

	ops  map[uint64]*state.Op // by group: what the store knows of this process
	held map[uint64]int64
	late []*state.Op // to be told
}

func newRemote(store *state.Memory) *remote {
	return &remote{store: store, ops: map[uint64]*state.Op{}, held: map[uint64]int64{}}
}

func (r *remote) Reaches(uint64) bool  { return !r.down && len(r.late) == 0 }
func (r *remote) Owes() bool           { return len(r.late) > 0 }
func (r *remote) Held(id uint64) int64 { return r.held[id] }
func (r *remote) Moved(g *catalog.Group, n int64) {
	if n != 0 {
		r.held[g.ID] += n
		r.late = append(r.late, &state.Op{Group: g})
	}
}

func (r *remote) Apply(nowNs int64, ops []*state.Op) {
	nowNs += r.skewNs
	blocked := r.down
	for !r.down && !r.cut && len(r.late) > 0 {
		r.ask(nowNs, r.late[0])
		r.late = r.late[1:]
	}
	for _, o := range ops {
		was := *o
		r.held[o.Group.ID] += o.Slots - o.Lent()
		o.SetLent(o.Slots)
		switch {
		case blocked || r.cut && len(r.late) > 0:
			r.late = append(r.late, &state.Op{Group: was.Group, Charge: was.Charge, Return: was.Return, Bounds: was.Bounds})
			o.Lose()
		case r.cut:
			done := *o
			r.ask(nowNs, &done)
			r.held[o.Group.ID] -= done.Lent() - o.Lent()
			back := &state.Op{Group: o.Group}
			for k := range o.Group.Limits {
				if n := done.Got[k] + done.Extra[k]; o.Group.Limits[k].Meter != catalog.Concurrency {
					back.Return[k] = state.Return{Units: n, GrantNs: done.NowNs}
				}
			}
			r.late = append(r.late, back)
			o.Lose()
		default:
			r.ask(nowNs, o)
		}
	}
}

// ask has the store answer an Op whose own slots are counted already.
func (r *remote) ask(nowNs int64, o *state.Op) {
	p := r.ops[o.Group.ID]
	if p == nil {
		p = new(state.Op)
		r.ops[o.Group.ID] = p
	}
	known := p.Lent()
	*p = *o
	p.SetLent(known)
	p.Slots = r.held[o.Group.ID]
	r.store.Apply(nowNs, []*state.Op{p})
	n, slots := p.Lent()-p.Slots, o.Slots
	loop := o.Loop
	*o = *p
	o.Loop, o.Slots = loop, slots
	o.SetLent(slots + n)
	r.held[o.Group.ID] += n
}

func one() int { return 1 }

// TestOutageConformance holds an Outage to the contract, with its store in
// reach, and with none at all, when it is the only relay.
func TestOutageConformance(t *testing.T) {
	for name, down := range map[string]bool{"in reach": false, "out of reach": true} {
		t.Run(name, func(t *testing.T) {
			statetest.Run(t, statetest.Subject{
				New: func(*testing.T) state.Store {
					r := newRemote(state.NewMemory(statetest.Loops))
					r.down = down
					return state.NewOutage(r, true, statetest.Loops, one)
				},
				Clock: statetest.NewFakeClock(), ResolutionNs: 1,
			})
		})
	}
}

const second = int64(time.Second)

func limited(id uint64, limits ...catalog.Limit) *catalog.Group {
	return &catalog.Group{ID: id, Name: "policy/test", Limits: limits}
}

func per(window time.Duration, n int64) catalog.Limit {
	return catalog.Limit{Meter: catalog.Tokens, Strategy: catalog.FixedWindow, Amount: n, Window: window}
}

func slotsOf(n int64) catalog.Limit { return catalog.Limit{Meter: catalog.Concurrency, Amount: n} }

// want makes o ask for n units of every rule and keep so many slots.
func want(o *state.Op, n, slots int64) *state.Op {
	o.Clear()
	for k := range o.Group.Limits {
		o.Want[k], o.Need[k] = n, min(n, 1)
	}
	o.Slots = slots
	return o
}

// TestOutageRefuses leaves Ops Lost without the fallback.
func TestOutageRefuses(t *testing.T) {
	r := newRemote(state.NewMemory(1))
	s := state.NewOutage(r, false, 1, nil)
	o := want(&state.Op{Group: limited(1, per(time.Minute, 10))}, 1, 0)
	s.Apply(0, []*state.Op{o})
	if o.Lost || s.Out() {
		t.Fatal("lost with a store in reach")
	}
	r.down = true
	s.Apply(0, []*state.Op{o})
	if !o.Lost || !s.Out() || s.Lost() != 1 || s.Answered() != 0 {
		t.Fatalf("lost %t, out %t, %d lost and %d answered", o.Lost, s.Out(), s.Lost(), s.Answered())
	}
}

// TestOutage goes through one outage: what is granted is a share, and all of
// it is known to the store in the end.
func TestOutage(t *testing.T) {
	r := newRemote(state.NewMemory(1))
	r.skewNs = 5 * second
	s := state.NewOutage(r, true, 1, func() int { return 4 })
	g := limited(1, per(time.Minute, 100), slotsOf(40))
	a, b := &state.Op{Group: g}, &state.Op{Group: g, Loop: 1}
	nowNs := 600 * second
	ask := func(o *state.Op, units, need, slots, keep int64) {
		nowNs += second / 1000
		want(o, units, keep)
		o.Need[0], o.Want[1], o.Need[1] = need, slots, min(slots, 1)
		s.Apply(nowNs, []*state.Op{o})
	}
	got := func(o *state.Op, units, slots int64) {
		t.Helper()
		if o.Lost || o.Got[0] != units || o.Got[1] != slots || o.Lent() != o.Slots+slots {
			t.Fatalf("lost %t, got %v, %d slots lent, want %d and %d", o.Lost, o.Got[:2], o.Lent(), units, slots)
		}
	}
	ask(a, 8, 8, 7, 0)
	ask(b, 3, 3, 3, 0)
	grantNs := a.NowNs
	r.down = true

	// A share is 25 units, and 10 slots, which are in use.
	ask(a, 5, 5, 1, 7)
	got(a, 0, 0)
	if a.RetryNs[1] != state.ConcurrencyRetryNs {
		t.Fatalf("waits %v for a slot", a.RetryNs[:2])
	}
	ask(b, 2, 2, 2, 2)
	got(b, 2, 1)
	if b.NowNs < nowNs+r.skewNs {
		t.Fatalf("answered at %d, which is not by the clock of the store", b.NowNs)
	}
	want(a, 0, 6)
	a.Charge[0] = 4                                        // counts here
	a.Return[0] = state.Return{Units: 2, GrantNs: grantNs} // of the store's grant: waits for it
	s.Apply(nowNs, []*state.Op{a})
	if a.Left[0] != 25-2-4 || a.Left[1] != 1 {
		t.Fatalf("left %v of the share", a.Left[:2])
	}
	ask(a, 20, 20, 0, 6)
	got(a, 0, 0)
	ask(a, 9, 9, 1, 6)
	got(a, 9, 1)
	grantNs = a.NowNs
	ask(a, 30, 1, 0, 7)
	got(a, 10, 0)
	want(a, 0, 7)
	a.Return[0] = state.Return{Units: 6, GrantNs: grantNs} // of a grant of here
	s.Apply(nowNs, []*state.Op{a})
	ask(a, 7, 7, 0, 7)
	got(a, 0, 0)
	ask(a, 26, 26, 0, 7) // more than there ever is here
	got(a, 0, 0)
	if a.RetryNs[0] == state.NeverNs || a.Left[0] != 6 {
		t.Fatalf("waits %d, %d left", a.RetryNs[0], a.Left[0])
	}
	if s.Answered() != 9 || s.Lost() != 0 || !s.Out() || !s.Owes() {
		t.Fatalf("%d answered, %d lost, out %t, owes %t", s.Answered(), s.Lost(), s.Out(), s.Owes())
	}

	r.down = false
	for range 3 {
		s.Apply(nowNs, nil)
	}
	if s.Owes() || s.Out() {
		t.Fatal("the outage does not end")
	}
	ask(a, 0, 0, 0, 7)
	if n, want := 100-a.Left[0], int64(8+3+2+4-2+9+10-6); n != want {
		t.Fatalf("the store has counted %d, want %d", n, want)
	}
	if n := 40 - a.Left[1]; n != 10 || a.Lent()+b.Lent() != 10 {
		t.Fatalf("the store has %d slots, the loops %d and %d", n, a.Lent(), b.Lent())
	}
	want(a, 0, 0)
	want(b, 0, 0)
	a.Return[0] = state.Return{Units: 4, GrantNs: grantNs} // it has been told
	s.Apply(nowNs, []*state.Op{a, b})
	if b.Left[0] != 100-24 || b.Left[1] != 40 {
		t.Fatalf("left %v at the end", b.Left[:2])
	}
}

// TestOutageAges tells the store what still counts, and in the same window the
// share is given once, however often the store is lost.
func TestOutageAges(t *testing.T) {
	r := newRemote(state.NewMemory(1))
	s := state.NewOutage(r, true, 1, func() int { return 2 })
	bucket, session := per(time.Minute, 60), per(time.Minute, 60)
	bucket.Strategy, session.Strategy = catalog.TokenBucket, catalog.SessionWindow
	groups := []*catalog.Group{limited(1, per(time.Minute, 60)), limited(2, bucket), limited(3, session)}
	nowNs := 600 * second
	ask := func(n int64) (got, left [3]int64) {
		for i, g := range groups {
			o := want(&state.Op{Group: g}, n, 0)
			s.Apply(nowNs, []*state.Op{o})
			got[i], left[i] = o.Got[0], o.Left[0]
		}
		return got, left
	}
	r.down = true
	if got, _ := ask(50); got != [3]int64{30, 30, 30} {
		t.Fatalf("got %v, want the share", got)
	}
	for range 3 { // the store comes and goes
		nowNs += second
		r.down = false
		if _, left := ask(0); left[0] > 30 || left[1] > 32 || left[2] > 30 {
			t.Fatalf("left %v at the store", left)
		}
		r.down = true
		if got, _ := ask(50); got[0] != 0 || got[1] > 1 || got[2] != 0 {
			t.Fatalf("got %v, want the share once", got)
		}
	}
	nowNs += 60 * second // the next window, the bucket has drained, the session ended
	if got, _ := ask(50); got != [3]int64{30, 30, 30} {
		t.Fatalf("got %v in the next window", got)
	}
	nowNs += 10 * second
	r.down = false
	if _, left := ask(0); left != [3]int64{30, 35, 30} {
		t.Fatalf("left %v at the store, want what has not passed", left)
	}
	for range 5000 {
		nowNs += second
		s.Apply(nowNs, nil)
	}
	if s.Owes() {
		t.Fatal("there still is something to tell")
	}
}

// TestOutageTellsFirst has more groups than are told of with one batch: none
// is asked about before it is told of.
func TestOutageTellsFirst(t *testing.T) {
	r := newRemote(state.NewMemory(1))
	s := state.NewOutage(r, true, 1, one)
	r.down = true
	var ops []*state.Op
	for id := range uint64(1000) {
		ops = append(ops, want(&state.Op{Group: limited(id+1, per(time.Minute, 2))}, 2, 0))
	}
	s.Apply(600*second, ops)
	r.down = false
	s.Apply(600*second, ops[900:])
	for _, o := range ops[900:] {
		if o.Lost || o.Got[0] != 0 {
			t.Fatalf("lost %t, got %d of a limit that is used", o.Lost, o.Got[0])
		}
	}
	n := 0
	for ; s.Owes(); n++ {
		s.Apply(600*second, nil)
	}
	if n == 0 || n > 10 {
		t.Errorf("all was told after %d batches more", n)
	}
}

// TestOutageAllocs holds an outage to no allocation per Op.
func TestOutageAllocs(t *testing.T) {
	r := newRemote(state.NewMemory(1))
	s := state.NewOutage(r, true, 1, one)
	r.down = true
	var ops []*state.Op
	for id := range uint64(100) {
		ops = append(ops, &state.Op{Group: limited(id+1, per(time.Minute, 1<<40), per(time.Second, 1<<40))})
	}
	nowNs := 600 * second
	n := testing.AllocsPerRun(500, func() {
		nowNs += second / 1000
		for _, o := range ops {
			want(o, 1, 0)
		}
		s.Apply(nowNs, ops)
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}
