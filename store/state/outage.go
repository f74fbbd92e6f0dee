package state

import (
	"sync/atomic"

	"relay/store/catalog"
)

// An Outage is a shared store with something to fall back on: while a group is
// out of reach, its Ops are answered by this process alone, each relay by its
// share of the limits, which is the amount divided by the relays that lived
// when they were last counted, rounded down, and at least one. Without the
// fallback such Ops stay Lost.
//
// What goes through: of all relays together at most one limit more in the
// window in which the store is lost, since nobody knows what has been used of
// it, and one limit in every window of the outage; with more relays than units,
// one unit each. A relay that is cut off from a store that others reach adds
// its share to their limit. One that starts in an outage knows of no others, and
// takes the whole for its share. However often the store comes and goes, what a
// relay grants by itself in a window is at most its share.
//
// When a group is in reach again the store is charged, before any Op of the
// group asks it, what was granted and charged here and still counts: of the
// window that is now, and of a bucket what has not drained. Of a sliding window
// also what the window before still overlaps, which then counts for longer.
// What was lent here and is not spent by then may be spent for LeaseNs while a
// bucket refills behind it: at most one part of LeaseShare of the share per loop.
// A bucket whose share becomes smaller, since more relays live, is cut to it. If
// the relay ends before, all of this is forgotten.
//
// Slots are counted absolutely by the Remote, also those that were lent here: so
// the share of a relay includes the slots from before, and the gauge of the
// store is right as soon as it is told.
//
// Charges and Returns of an Op that the Remote has answered Lost are told by
// the Remote and not counted here. Those of Ops that it has not seen count here,
// except for Returns of what the store has granted, which wait for it. (A loop
// adds Returns up: one with units of both goes to the store, which is charged
// all that was granted here, and counts right in the end.)
//
// Owner: the lane's goroutine, except where said otherwise.
type Outage struct {
	shared Remote
	local  bool
	live   func() int

	// By shares: what was granted here, and of it what the shared store has not
	// been told. Both age by themselves.
	here   *Memory
	untold *Memory

	episodes map[uint64]*episode // of groups that untold may have
	shares   map[*catalog.Group]*catalog.Group
	parts    int64 // that shares are of

	atNs    int64 // the time by the shared store's clock, as far as known; never goes back
	aheadNs int64 // of the shared store's clock, before that of this process
	lastNs  int64 // no shared answer, and none of an episode that has ended, is later

	// Of the batch under way; kept for their memory.
	asked   []*Op // of the shared store
	debts   []*Op
	used    int   // of debts
	send    []*Op // debts that are used, then asked
	scratch [1]*Op

	answered atomic.Int64
	lost     atomic.Int64
	out      atomic.Bool
}

var _ Store = (*Outage)(nil)

// An episode is the time in which a group is answered here: from its first
// answer until the store is told.
type episode struct {
	group, share *catalog.Group // as last seen
	told, by     *catalog.Group // the same, as last counted; nil = nothing was
	begunNs      int64          // what was granted earlier was granted by the store, or it was told
}

// NewOutage puts a shared store behind a fallback. loops are those of this
// process; live is how many relays use the store as far as known, and is called
// while Ops are answered here. Without local Ops stay Lost, and live may be nil.
func NewOutage(shared Remote, local bool, loops int, live func() int) *Outage {
	return &Outage{
		shared: shared, local: local, live: live,
		here: NewMemory(loops), untold: NewMemory(loops),
		episodes: make(map[uint64]*episode), shares: make(map[*catalog.Group]*catalog.Group),
		scratch: [1]*Op{new(Op)},
	}
}

// Answered is how many Ops were answered by this process alone. Any goroutine
// may ask.
func (t *Outage) Answered() int64 { return t.answered.Load() }

// Lost is how many Ops came back Lost. Any goroutine may ask.
func (t *Outage) Lost() int64 { return t.lost.Load() }

// Out reports whether the shared store left an Op of the last batch without an
// answer. Any goroutine may ask.
func (t *Outage) Out() bool { return t.out.Load() }

// Owes reports whether a batch is due soon, an empty one if need be.
func (t *Outage) Owes() bool { return len(t.episodes) > 0 || t.shared.Owes() }

// Apply asks the shared store, and answers here what it does not. nowNs is
// needed: it is Unix time of this process and never goes back.
func (t *Outage) Apply(nowNs int64, batch []*Op) {
	t.asked, t.send, t.used = append(t.asked[:0], batch...), t.send[:0], 0
	if t.local {
		t.atNs = max(t.atNs, nowNs+t.aheadNs)
		t.sort(batch)
		t.tell()
	}
	t.send = append(t.send, t.asked...)
	t.shared.Apply(nowNs, t.send)
	answered, lost := len(batch)-len(t.asked), 0
	for _, o := range t.asked {
		switch {
		case !o.Lost:
			t.aheadNs = o.NowNs - nowNs
			t.lastNs = max(t.lastNs, o.NowNs)
		case t.local && t.begin(o.Group):
			o.Charge, o.Return = [RulesMax]int64{}, [RulesMax]Return{} // they are with the shared store
			t.answer(o)
			answered++
		default:
			lost++
		}
	}
	t.answered.Add(int64(answered))
	t.lost.Add(int64(lost))
	if out := answered+lost > 0; len(batch) > 0 || !t.Owes() {
		t.out.Store(out)
	}
	t.rest()
}

// sort finds the Ops that the shared store is asked, and answers the others.
// Before it is asked about a group it is told what was granted here.
func (t *Outage) sort(batch []*Op) {
	t.asked = t.asked[:0]
	for _, o := range batch {
		e := t.episodes[o.Group.ID]
		switch reaches := t.shared.Reaches(o.Group.ID); {
		case !reaches && t.begin(o.Group):
			t.forward(o)
			t.answer(o)
			continue
		case reaches && e != nil:
			t.end(e)
		}
		t.asked = append(t.asked, o)
	}
}

// forward has the shared store told what comes back of its own grants.
func (t *Outage) forward(o *Op) {
	begunNs, debt := t.episodes[o.Group.ID].begunNs, (*Op)(nil)
	for k := range o.Group.Limits {
		if r := &o.Return[k]; r.Units > 0 && r.GrantNs < begunNs {
			if debt == nil {
				debt = t.debt(o.Group)
			}
			debt.Return[k], debt.Bounds[k], *r = *r, o.Bounds[k], Return{}
		}
	}
}

// tell ends the episodes of some groups that are in reach and not in the batch.
func (t *Outage) tell() {
	told, missed := 0, 0
	for id, e := range t.episodes { // each time from another one on
		switch {
		case t.shared.Reaches(id):
			t.end(e)
			told++
		case !t.untold.holds(id):
			delete(t.episodes, id)
			missed++
		default:
			missed++
		}
		if told == tellMax || missed == missedMax {
			return
		}
	}
}

// begin has the group answered here. It reports false when there are too many.
func (t *Outage) begin(g *catalog.Group) bool {
	e := t.episodes[g.ID]
	if e == nil {
		if len(t.episodes) >= outageGroupsMax {
			return false
		}
		t.atNs = max(t.atNs, t.lastNs+1)
		e = &episode{begunNs: t.atNs}
		t.episodes[g.ID] = e
	}
	e.group, e.share = g, t.share(g)
	return true
}

// end has the shared store told what was granted here.
func (t *Outage) end(e *episode) {
	delete(t.episodes, e.group.ID)
	t.lastNs = max(t.lastNs, t.atNs)
	if e.by == nil {
		return
	}
	o := t.debt(e.by)
	if !t.untold.withdraw(t.atNs, o) {
		t.used--
		t.send = t.send[:t.used]
		return
	}
	o.Group = e.told
}

// debt is one more Op that tells the shared store something, and asks nothing.
func (t *Outage) debt(g *catalog.Group) *Op {
	if t.used == len(t.debts) {
		t.debts = append(t.debts, new(Op))
	}
	o := t.debts[t.used]
	*o = Op{Group: g}
	t.used++
	t.send = append(t.send, o)
	return o
}

// share is the group with the part of its limits that one relay has.
func (t *Outage) share(g *catalog.Group) *catalog.Group {
	parts := max(int64(t.live()), 1)
	if parts != t.parts || len(t.shares) >= sharesMax {
		clear(t.shares)
		t.parts = parts
	}
	s := t.shares[g]
	if s == nil {
		s = &catalog.Group{ID: g.ID, Name: g.Name, Limits: append([]catalog.Limit(nil), g.Limits...)}
		for k := range s.Limits {
			s.Limits[k].Amount = max(s.Limits[k].Amount/parts, 1)
		}
		t.shares[g] = s
	}
	return s
}

// answer answers an Op by the share of this relay. Its episode has begun.
func (t *Outage) answer(o *Op) {
	group, had := o.Group, o.known
	e := t.episodes[group.ID]
	o.Group = e.share
	t.here.applyHeld(t.atNs, o, t.shared.Held(group.ID))
	if t.note(o) {
		e.told, e.by = e.group, e.share
	}
	o.Group = group
	for k := range group.Limits {
		if o.RetryNs[k] == NeverNs && o.Need[k] <= group.Limits[k].Amount {
			o.RetryNs[k] = outageRetryNs
		}
	}
	t.shared.Moved(group, o.known-had)
}

// note counts what the shared store is to be told, if there is anything.
func (t *Outage) note(o *Op) bool {
	u, counts := t.scratch[0], false
	u.Group = o.Group
	u.Return, u.Bounds = o.Return, o.Bounds
	for k := range o.Group.Limits {
		u.Charge[k] = 0
		if o.Group.Limits[k].Meter != catalog.Concurrency {
			u.Charge[k] = o.Charge[k] + o.Got[k] + o.Extra[k]
			counts = counts || u.Charge[k] > 0 || u.Return[k].Units > 0
		}
	}
	if counts {
		t.untold.Apply(t.atNs, t.scratch[:])
	}
	return counts
}

// rest lets go what is not needed any more.
func (t *Outage) rest() {
	if t.here.Len() > 0 {
		t.here.Apply(t.atNs, nil)
	}
	if t.untold.Len() > 0 {
		t.untold.Apply(t.atNs, nil)
	}
	if len(t.episodes) == 0 && len(t.shares) > 0 {
		clear(t.shares)
	}
	for _, o := range t.debts[:t.used] {
		*o = Op{}
	}
	t.scratch[0].Group = nil
	clear(t.asked) // what is not ours is not kept alive
	clear(t.send)
}
