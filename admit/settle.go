package admit

import (
	"slices"

	"relay/store/catalog"
	"relay/store/state"
)

// Settle ends a granted demand: what it used beyond its reservation is charged,
// and what it did not use goes back. counted false says that nothing was sent
// to a provider: nothing was used, though it stays one request.
func (t *Leases) Settle(nowNs int64, d *Demand, used Use, counted bool) {
	if d.stands != taken {
		panic("BUG: a demand that holds nothing is settled")
	}
	if !counted {
		used = Use{}
	}
	d.stands = open
	for i := range d.count {
		p := &d.parts[i]
		l := p.lease
		p.stands = open
		l.correct(nowNs, p, &used, true)
		l.freeSlot(p)
		l.users--
		t.flush(nowNs, l)
	}
}

// Charge counts at once what a granted demand has used so far beyond what it
// has reserved and been charged: a long stream has outgrown its estimate.
// Settle counts the rest only. What was charged does not come back.
func (t *Leases) Charge(nowNs int64, d *Demand, soFar Use) {
	if d.stands != taken {
		panic("BUG: a demand that holds nothing is charged")
	}
	for i := range d.count {
		p := &d.parts[i]
		p.lease.correct(nowNs, p, &soFar, false)
		t.flush(nowNs, p.lease)
	}
}

// correct charges what was used beyond what the part has reserved, and at the
// end gives back what was not used.
func (l *lease) correct(nowNs int64, p *part, used *Use, end bool) {
	for k := range l.group.Limits {
		if l.kinds[k] != useRule {
			continue
		}
		i, same := k, p.epoch == l.epoch
		if !same { // the limits are others than those that were reserved by
			i = slices.IndexFunc(p.rules.Limits, func(o catalog.Limit) bool { return sameCount(o, l.group.Limits[k]) })
			if i < 0 {
				continue
			}
		}
		switch n := used.of(l.group.Limits[k].Meter) - p.units[i]; {
		case n > 0:
			p.units[i] += n
			p.charged[i] += n
			l.charge[k] = min(l.charge[k]+n, state.AmountMax)
			l.left[k] -= n
		case n < 0 && end && same:
			if n = min(-n, p.units[i]-p.charged[i]); n > 0 {
				l.refund(nowNs, p, k, n)
			}
		}
	}
}

// flush has the store told soon, if there is something to tell: of slots near
// the limit at once, as whoever has got the answer may send the next request to
// another loop.
func (t *Leases) flush(nowNs int64, l *lease) {
	ns := nowNs + rideNs
	switch {
	case t.closed: // also a lease that has nothing to tell is to go
		ns = nowNs
		t.due.hasten(l, ns)
	case l.keep == 0 && l.spare > 0:
		ns = nowNs
	case l.tight || l.hasSlots && l.keep == 0:
		ns = nowNs + flushNs
	}
	if l.under || !l.owes() {
		return
	}
	if l.flushNs == 0 || ns < l.flushNs {
		l.flushNs = ns
		t.due.hasten(l, ns)
	}
}
