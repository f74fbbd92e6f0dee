package admit

import (
	"container/heap"
	"math"
)

// DueNs is when Tick has something to do next; 0 = never. Every other call may
// bring it forward, to now when a slot near its limit has come free: look at
// it at the end of each callback, before the end of an answer is written.
func (t *Leases) DueNs() int64 {
	if len(t.due) == 0 {
		return 0
	}
	return t.due[0].dueNs
}

// Tick does what is due, for a bounded number of leases: has the store told
// what is to be told, renews slots, gives back what has expired, and drops what
// is idle. It returns when there is more to do, nowNs if at once, 0 if there are
// no leases.
func (t *Leases) Tick(nowNs int64) (nextNs int64) {
	for range tickSteps {
		if len(t.due) == 0 || t.due[0].dueNs > nowNs {
			break
		}
		t.visit(nowNs, t.due[0])
	}
	if len(t.due) == 0 {
		return 0
	}
	return max(nowNs, t.DueNs())
}

// Close has everything go back as it is settled. Demands are decided as
// before, and nothing is lent any more. When Len is 0, all has gone back.
func (t *Leases) Close(nowNs int64) {
	t.closed = true
	for _, l := range t.groups {
		t.due.hasten(l, nowNs)
	}
}

// visit does what is due of one lease.
func (t *Leases) visit(nowNs int64, l *lease) {
	l.expire(nowNs)
	if !l.under {
		if t.closed {
			l.putBack(0)
			l.putBack(1)
		}
		t.flush(nowNs, l)
		idle := t.closed || nowNs-l.usedNs >= idleNs
		switch {
		case l.flushNs != 0 && nowNs >= l.flushNs,
			l.againNs != 0 && nowNs >= l.againNs,
			l.held() > 0 && nowNs >= l.gaugeNs(),
			idle && l.spare > 0,
			l.op.Lent() != l.held() && nowNs-l.submitNs >= idleNs:
			if !t.send(nowNs, l) {
				l.dueNs = nowNs + flushNs
				t.due.fix(l)
				return
			}
		case idle && l.rests():
			t.drop(l)
			return
		}
	}
	l.dueNs = l.nextNs(nowNs)
	t.due.fix(l)
}

// rests reports whether the lease has nothing, and the store nothing of it.
func (l *lease) rests() bool {
	return l.users == 0 && l.op.Lent() == 0 && l.held() == 0 && l.packets[0].untilNs == 0 && !l.owes()
}

// gaugeNs is when the store is to be told of slots again.
func (l *lease) gaugeNs() int64 {
	if l.spare > 0 {
		return l.submitNs + spareNs
	}
	return l.submitNs + gaugeNs
}

// nextNs is when the lease is to be looked at next.
func (l *lease) nextNs(nowNs int64) int64 {
	next := int64(math.MaxInt64)
	for i := range l.packets {
		if ns := l.packets[i].untilNs; ns != 0 {
			next = min(next, ns)
		}
	}
	if l.under { // the answer has it looked at again
		return min(next, nowNs+gaugeNs)
	}
	if l.flushNs != 0 {
		next = min(next, l.flushNs)
	}
	if l.againNs != 0 {
		next = min(next, l.againNs)
	}
	if l.op.Lent() != l.held() {
		next = min(next, l.submitNs+idleNs)
	}
	if ns := l.usedNs + idleNs; ns > nowNs || l.spare > 0 {
		next = min(next, ns)
	}
	if l.held() > 0 {
		next = min(next, l.gaugeNs())
	}
	return max(nowNs, min(next, nowNs+idleNs))
}

// A dueQueue are leases by the time when Tick is to look at them. It is a heap.
type dueQueue []*lease

// add puts a lease in.
func (q *dueQueue) add(l *lease, dueNs int64) {
	l.dueNs = dueNs
	heap.Push(q, l)
}

// remove takes a lease out.
func (q *dueQueue) remove(l *lease) { heap.Remove(q, l.place) }

// hasten has a lease looked at earlier, if the time is earlier.
func (q *dueQueue) hasten(l *lease, dueNs int64) {
	if dueNs < l.dueNs {
		l.dueNs = dueNs
		heap.Fix(q, l.place)
	}
}

// fix follows a change of dueNs.
func (q *dueQueue) fix(l *lease) { heap.Fix(q, l.place) }

// Len is for package heap, as the four below.
func (q dueQueue) Len() int { return len(q) }

// Less orders by time.
func (q dueQueue) Less(i, j int) bool { return q[i].dueNs < q[j].dueNs }

// Swap exchanges two leases.
func (q dueQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i, j
}

// Push adds a lease at the end.
func (q *dueQueue) Push(x any) {
	l := x.(*lease)
	l.place = len(*q)
	*q = append(*q, l)
}

// Pop takes the last one away.
func (q *dueQueue) Pop() any {
	was := *q
	l := was[len(was)-1]
	was[len(was)-1] = nil
	*q = was[:len(was)-1]
	return l
}
