package admit

import (
	"relay/store/catalog"
	"relay/store/state"
)

// renew asks for more while there still is some, so that on a busy group nobody
// waits. A lease that was refused more does not ask before somebody waits.
func (t *Leases) renew(nowNs int64, l *lease) {
	if l.under || t.closed {
		return
	}
	l.roll(nowNs)
	for k := range l.group.Limits {
		low := false
		switch {
		case l.kinds[k] == useRule && l.group.Limits[k].Reserve == catalog.Posthoc:
			low = nowNs-l.answerNs >= lookNs/2
		case l.tight:
		case l.kinds[k] == slotRule:
			low = 2*l.spare < min(l.ahead(), l.lent[k])
		default:
			low = 2*l.has(k) < min(l.pace(k), l.lent[k])
		}
		if low {
			t.send(nowNs, l)
			return
		}
	}
}

// pace is how many units of a rule were used in a span lately.
func (l *lease) pace(k int) int64 { return max(l.before[k], l.spent[k]) }

// ahead is how many slots beyond those in use the loop could use soon.
func (l *lease) ahead() int64 { return max(l.used/slotsAhead, state.LeaseMin) }

// more is how many units of a rule are asked for beyond what is waited for. A
// rule that gives nothing in advance is not asked: it would hold the others up.
func (l *lease) more(k int) int64 {
	n := int64(0)
	switch l.kinds[k] {
	case slotRule:
		if l.keep > 0 {
			n = min(l.ahead(), l.keep) - l.spare
		}
	default:
		if pace := l.pace(k); pace > 0 {
			n = max(spansLent*pace, state.LeaseMin) - l.has(k)
		}
	}
	if n <= 0 {
		return 0
	}
	return min(max(n, state.LeaseMin), state.AmountMax)
}

// send submits the lease's Op with all that there is to say. It reports false
// when the lane has no room; then Tick tries again.
func (t *Leases) send(nowNs int64, l *lease) bool {
	if l.under {
		panic("BUG: an Op under way is sent again")
	}
	l.roll(nowNs)
	l.expire(nowNs)
	if l.firstWaits != nil { // what there is does not suffice: it is exchanged
		l.putBack(0)
		l.putBack(1)
	}
	o := &l.op
	o.Clear()
	o.Group = l.group
	waits := l.want(o)
	idle := t.closed || nowNs-l.usedNs >= idleNs && waits == 0
	keep := max(l.keep, waits)
	if idle {
		keep = 0
	}
	l.spare = min(l.spare, keep)
	for k := range l.group.Limits {
		limit := &l.group.Limits[k]
		if limit.Strategy == catalog.Calendar {
			o.Bounds[k] = t.boundsOf(nowNs, limit)
		}
		if l.kinds[k] == slotRule {
			o.Want[k] = max(0, waits-l.spare)
			o.Need[k] = 0
			if waits > 0 && l.spare == 0 {
				o.Need[k] = 1
			}
		}
		if !idle && !t.Exact {
			o.More[k] = l.more(k)
		}
	}
	o.Charge, o.Return, o.Slots = l.charge, l.back, l.held()
	if !t.submit(o) {
		for p := l.firstWaits; p != nil; p = p.next {
			p.asked = false
		}
		l.flushNs = nowNs + flushNs
		t.due.hasten(l, l.flushNs)
		return false
	}
	l.charge, l.back = [state.RulesMax]int64{}, [state.RulesMax]state.Return{}
	l.under, l.opEpoch, l.submitNs, l.flushNs, l.againNs = true, l.epoch, nowNs, 0, 0
	return true
}

// want puts into o what the waiters want, from the first on, as many as an Op
// can hold, and returns their number.
func (l *lease) want(o *state.Op) (waits int64) {
	for p := l.firstWaits; p != nil; p = p.next {
		for k := range l.group.Limits {
			if o.Want[k] > state.AmountMax-p.units[k] {
				return waits
			}
		}
		for k := range l.group.Limits {
			o.Want[k] += p.units[k]
			if waits == 0 {
				o.Need[k] = p.need(k)
			}
		}
		p.asked = true
		waits++
	}
	return waits
}

// boundsOf is the period of a calendar limit. The store's clock decides, and by
// the last answer the store's time is at least so much.
func (t *Leases) boundsOf(nowNs int64, limit *catalog.Limit) state.Bounds {
	b := t.bounds(limit)
	if ns := nowNs + t.aheadNs; t.clocked && (ns < b.FromNs || ns >= b.UntilNs) {
		return Bounds(limit, ns)
	}
	return b
}
