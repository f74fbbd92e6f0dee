package admit

import (
	"math"

	"relay/store/catalog"
	"relay/store/state"
)

// Answered takes an Op back and returns the demands that it decided. They have
// what they were granted already, so the caller must look at each. The slice
// is valid until the next call.
func (t *Leases) Answered(nowNs int64, o *state.Op) []Decision {
	l := o.Owner.(*lease)
	if !l.under {
		panic("BUG: an Op comes back that is not under way")
	}
	l.under = false
	t.decided = t.decided[:0]
	if !o.Lost {
		t.aheadNs, t.clocked = o.NowNs-nowNs, true
	}
	switch {
	case o.Lost:
		// What the Op was to tell is with the lane; of what it asked nothing came.
		for p := l.firstWaits; p != nil; p = l.firstWaits {
			if !p.asked {
				break
			}
			t.decide(nowNs, p.demand, Lost)
		}
	case l.opEpoch != l.epoch:
		// Of limits that have changed meanwhile: the slots are good, the units are
		// given up, and whoever waits asks anew.
		l.gainSlots(o)
	default:
		l.gainSlots(o)
		l.learn(nowNs, o)
		t.share(nowNs, l, o)
	}
	for p := l.firstWaits; p != nil; p = p.next {
		p.asked = false
	}
	if l.firstWaits != nil && l.againNs == 0 && !t.send(nowNs, l) {
		for l.firstWaits != nil {
			t.decide(nowNs, l.firstWaits.demand, Full)
		}
	}
	t.flush(nowNs, l)
	if !l.under && l.flushNs != 0 && l.flushNs <= nowNs { // it waited for the Op to come back
		t.send(nowNs, l)
	}
	next := l.nextNs(nowNs)
	if t.closed {
		next = nowNs
	}
	t.due.hasten(l, next)
	return t.decided
}

// decide ends the waiting of a demand that is not granted.
func (t *Leases) decide(nowNs int64, d *Demand, v Verdict) {
	t.undo(nowNs, d)
	t.decided = append(t.decided, Decision{d, v})
}

// gainSlots takes in the slots that the answer brought: as many as every rule
// of concurrency gave.
func (l *lease) gainSlots(o *state.Op) {
	n, limited := int64(math.MaxInt64), false
	for k := range o.Group.Limits {
		if o.Group.Limits[k].Meter == catalog.Concurrency {
			n, limited = min(n, o.Got[k]+o.Extra[k]), true
		}
	}
	if limited {
		l.spare += n
		l.keep = o.Keep
	}
}

// learn takes in what the answer says of the group, and what it lends.
func (l *lease) learn(nowNs int64, o *state.Op) {
	l.answerNs = nowNs
	p := packet{untilNs: l.submitNs + state.LeaseNs, grantNs: o.NowNs}
	asked, lent := false, false
	for k := range l.group.Limits {
		l.left[k], l.restNs[k] = o.Left[k]-l.charge[k], nowNs+o.RestNs[k]
		l.begin(k, o)
		asked = asked || o.More[k] > 0
		if o.Extra[k] > 0 {
			lent, l.lent[k] = true, o.Extra[k]
		}
		if l.kinds[k] != slotRule && o.Extra[k] > 0 {
			p.units[k] = o.Extra[k]
			p.untilNs = max(1, min(p.untilNs, l.submitNs+l.endNs(k, o)-o.NowNs))
		}
	}
	l.tight = asked && !lent
	if p.units != [state.RulesMax]int64{} {
		l.receive(p)
		l.expire(nowNs)
	}
	l.reconsider()
}

// begin notes when the session or the period of a rule began: what was granted
// before is in no count any more.
func (l *lease) begin(k int, o *state.Op) {
	switch limit := &l.group.Limits[k]; {
	case limit.Meter == catalog.Concurrency:
		return
	case limit.Strategy == catalog.SessionWindow:
		l.beginNs[k] = o.NowNs
		if o.RestNs[k] > 0 {
			l.beginNs[k] += o.RestNs[k] - int64(limit.Window)
		}
	case limit.Strategy == catalog.Calendar:
		if o.NowNs < o.Bounds[k].FromNs { // the period before is still counted
			return
		}
		l.beginNs[k] = o.Bounds[k].FromNs
	default:
		return
	}
	if b := &l.back[k]; b.GrantNs < l.beginNs[k] {
		*b = state.Return{}
	}
}

// endNs is when the window in which a rule has lent ends, in store time. The
// store stands there later than the loop thinks, which counts from when the Op
// was submitted.
func (l *lease) endNs(k int, o *state.Op) int64 {
	limit := &l.group.Limits[k]
	windowNs := int64(limit.Window)
	switch limit.Strategy {
	case catalog.FixedWindow, catalog.SlidingWindow:
		return (o.NowNs/windowNs + 1) * windowNs
	case catalog.SessionWindow:
		return o.NowNs + o.RestNs[k]
	case catalog.Calendar:
		if b := o.Bounds[k]; o.NowNs < b.FromNs { // the clocks of two stores differ
			return b.FromNs
		}
		return o.Bounds[k].UntilNs
	}
	return math.MaxInt64 / 2 // buckets have no end
}

// share gives what the answer brought to those who were asked for, first come
// first served, or denies them.
func (t *Leases) share(nowNs int64, l *lease, o *state.Op) {
	if k := longest(o); k >= 0 {
		if b := o.Bounds[k]; l.group.Limits[k].Strategy == catalog.Calendar && (o.NowNs < b.FromNs || o.NowNs >= b.UntilNs) {
			return // that period is not now: they ask again for the one that is
		}
		t.refuse(nowNs, l, o, k)
		return
	}
	got := o.Got
	for p := l.firstWaits; p != nil && p.asked; p = l.firstWaits {
		if !l.fits(&got, p) {
			break
		}
		l.leave(p)
		p.stands, p.grantNs, p.packed = taken, o.NowNs, false
		for k := range l.group.Limits {
			got[k] -= p.units[k]
			l.spent[k] += p.units[k]
		}
		l.takeSlot(p)
		l.usedNs = nowNs
		if p.demand.complete(o.NowNs) {
			t.decided = append(t.decided, Decision{p.demand, Granted})
		}
	}
	for k := range l.group.Limits { // of those who have left, or did not fit
		if l.kinds[k] != slotRule {
			l.giveBack(k, got[k], o.NowNs)
		}
	}
}

// fits reports whether the part fits in what is left of an answer.
func (l *lease) fits(got *[state.RulesMax]int64, p *part) bool {
	if l.hasSlots && l.spare < 1 {
		return false
	}
	for k := range l.group.Limits {
		if l.kinds[k] != slotRule && got[k] < p.units[k] {
			return false
		}
	}
	return true
}

// longest is the rule that waits longest for what the first request needs, or
// -1 when none does.
func longest(o *state.Op) int {
	rule := -1
	for k := range o.Group.Limits {
		if o.RetryNs[k] != 0 && (rule < 0 || o.RetryNs[k] > o.RetryNs[rule]) {
			rule = k
		}
	}
	return rule
}

// refuse denies those who were asked for and need of a rule at least what did
// not fit. The others ask again.
func (t *Leases) refuse(nowNs int64, l *lease, o *state.Op, k int) {
	if l.kinds[k] == slotRule && l.waitsAgain(nowNs) {
		return
	}
	retryNs := o.RetryNs[k]
	l.denial = denial{untilNs: nowNs + min(retryNs, denialNs), retryNs: retryNs, rule: k, units: o.Need[k]}
	if retryNs != state.NeverNs {
		l.denial.retryNs += nowNs
	}
	l.tight = true
	for p := l.firstWaits; p != nil && p.asked; {
		next := p.next
		if p.need(k) >= o.Need[k] {
			p.demand.deny(l.group, k, retryNs)
			t.decide(nowNs, p.demand, Denied)
		}
		p = next
	}
}

// waitsAgain has those for whom there was no slot asked for once more, unless
// the first of them was already. It reports whether they wait.
func (l *lease) waitsAgain(nowNs int64) bool {
	if p := l.firstWaits; p == nil || !p.asked || p.again {
		return false
	}
	l.againNs = nowNs + slotAgainNs
	for p := l.firstWaits; p != nil && p.asked; p = p.next {
		p.again = true
	}
	return true
}
