package admit

import (
	"slices"

	"relay/store/catalog"
	"relay/store/state"
)

// Leases are what one loop may spend of every counter group that is active on
// it. A request that all its groups cover is granted on the spot; otherwise the
// lane is asked, once per group at a time, for all that wait together.
//
// The life of a demand: Plan, Ask; when it is parked, a decision of Answered,
// or Cancel; when it is granted, Charge as often as needed, and Settle once.
// All times nowNs are of the loop's clock, which need not be the store's.
// Owner: the loop.
type Leases struct {
	// Exact has nothing lent in advance: the store is asked for every request.
	// It is set before the first one, to measure what leases save.
	Exact bool

	loop   int
	submit func(*state.Op) bool
	bounds func(*catalog.Limit) state.Bounds

	groups  map[uint64]*lease
	near    [leasesNear]*lease // by the low bits of the id; a part of groups
	due     dueQueue           // all, by when Tick is to look at them
	free    []*lease           // for reuse
	decided []Decision         // result of Answered
	aheadNs int64              // how far the store's clock is ahead of the loop's, at least
	clocked bool               // aheadNs is known
	closed  bool
}

// A Decision is what became of a demand that was parked.
type Decision struct {
	Demand  *Demand
	Verdict Verdict // not Parked
}

// NewLeases makes the leases of one loop. submit gives an Op to the lane and
// reports false when that has no room; the Op comes back by Answered, not
// before submit returns. bounds tells the period of a calendar limit that is
// now.
func NewLeases(loop int, submit func(*state.Op) bool, bounds func(*catalog.Limit) state.Bounds) *Leases {
	return &Leases{loop: loop, submit: submit, bounds: bounds, groups: make(map[uint64]*lease)}
}

// Len is how many groups are active.
func (t *Leases) Len() int { return len(t.due) }

// Ask decides about a planned demand whose Estimate is filled in. Granted: it
// is to be settled. Parked: a decision of Answered follows. Otherwise it holds
// nothing.
func (t *Leases) Ask(nowNs int64, d *Demand) Verdict {
	if d.stands != open {
		panic("BUG: a demand that waits or holds units asks again")
	}
	d.grantNs = 0
	for i := range d.count {
		p := &d.parts[i]
		l := t.of(nowNs, p.group)
		if l == nil {
			return Full
		}
		p.lease = l
		p.reserve()
		if l.refuses(nowNs, p) {
			return Denied
		}
	}
	parked := false
	for i := range d.count {
		p := &d.parts[i]
		l := p.lease
		l.users++
		if l.covers(nowNs, p) {
			l.take(nowNs, p)
			t.renew(nowNs, l)
			continue
		}
		l.queue(p)
		parked = true
		if !l.under && l.againNs == 0 && !t.send(nowNs, l) {
			t.undo(nowNs, d)
			return Full
		}
	}
	if parked {
		d.stands = waiting
		return Parked
	}
	d.complete(nowNs + t.aheadNs)
	return Granted
}

// Cancel withdraws a parked demand, whose caller has gone.
func (t *Leases) Cancel(nowNs int64, d *Demand) {
	if d.stands != waiting {
		panic("BUG: a demand that does not wait is cancelled")
	}
	t.undo(nowNs, d)
}

// undo gives back what a demand that is not complete has taken, and withdraws
// what waits.
func (t *Leases) undo(nowNs int64, d *Demand) {
	for i := range d.count {
		p := &d.parts[i]
		l := p.lease
		switch p.stands {
		case open:
			continue
		case waiting:
			l.leave(p)
		case taken:
			l.untake(nowNs, p)
		}
		l.users--
		t.flush(nowNs, l)
	}
	d.stands = open
}

// untake undoes take.
func (l *lease) untake(nowNs int64, p *part) {
	p.stands = open
	l.freeSlot(p)
	if p.epoch != l.epoch {
		return
	}
	for k := range l.group.Limits {
		if n := p.units[k]; n > 0 {
			l.spent[k] -= min(n, l.spent[k])
			l.refund(nowNs, p, k, n)
		}
	}
}

// of is the lease of a group, with the newest limits that it has been asked
// for; nil when there are too many.
func (t *Leases) of(nowNs int64, g *catalog.Group) *lease {
	place := g.ID & (leasesNear - 1)
	l := t.near[place]
	if l == nil || l.group.ID != g.ID {
		if l = t.groups[g.ID]; l == nil {
			if l = t.open(nowNs, g); l == nil {
				return nil
			}
		}
		t.near[place] = l
	}
	if l.group != g && l.group.Generation <= g.Generation {
		l.regroup(g)
	}
	return l
}

// open makes a lease that has nothing.
func (t *Leases) open(nowNs int64, g *catalog.Group) *lease {
	if len(t.due) >= LeasesMax {
		return nil
	}
	var l *lease
	if n := len(t.free); n > 0 {
		l, t.free = t.free[n-1], t.free[:n-1]
	} else {
		l = new(lease)
	}
	l.group, l.usedNs, l.spanNs, l.submitNs = g, nowNs, nowNs, nowNs
	l.op.Loop, l.op.Owner = t.loop, l
	l.classify()
	t.groups[g.ID] = l
	t.due.add(l, nowNs+idleNs)
	return l
}

// drop forgets a lease that has nothing.
func (t *Leases) drop(l *lease) {
	id := l.group.ID
	delete(t.groups, id)
	if place := id & (leasesNear - 1); t.near[place] == l {
		t.near[place] = nil
	}
	t.due.remove(l)
	*l = lease{}
	if len(t.free) < leasesSpare {
		t.free = append(t.free, l)
	}
}

// regroup goes on with the limits of a new catalog. If they are the same,
// nothing else changes. Otherwise units of the old limits are let go, as the
// store counts them as spent, and whoever waits does so by the new ones.
func (l *lease) regroup(g *catalog.Group) {
	was := l.group
	l.group = g
	if slices.EqualFunc(was.Limits, g.Limits, sameLimit) {
		return
	}
	l.epoch++
	var charge [state.RulesMax]int64
	for k := range g.Limits {
		if i := slices.IndexFunc(was.Limits, func(o catalog.Limit) bool { return sameCount(o, g.Limits[k]) }); i >= 0 {
			charge[k] = l.charge[i]
		}
	}
	l.charge, l.back, l.packets = charge, [state.RulesMax]state.Return{}, [2]packet{}
	l.spent, l.before, l.lent = [state.RulesMax]int64{}, [state.RulesMax]int64{}, [state.RulesMax]int64{}
	l.beginNs, l.answerNs, l.denial, l.tight, l.keep = [state.RulesMax]int64{}, 0, denial{}, false, 0
	l.classify()
	for p := l.firstWaits; p != nil; p = p.next {
		p.reserve()
		p.asked = false
	}
}

// sameLimit reports whether two limits say the same. Every catalog reads its
// time zones anew.
func sameLimit(a, b catalog.Limit) bool { return sameCount(a, b) && a.Amount == b.Amount }

// sameCount reports whether two limits count the same, whatever their amounts.
func sameCount(a, b catalog.Limit) bool {
	if a.Meter != b.Meter || a.Strategy != b.Strategy || a.Window != b.Window || a.Reserve != b.Reserve || a.Period != b.Period {
		return false
	}
	return a.Zone == b.Zone || a.Zone != nil && b.Zone != nil && a.Zone.String() == b.Zone.String()
}
