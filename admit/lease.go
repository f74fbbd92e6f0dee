package admit

import (
	"math"

	"relay/store/catalog"
	"relay/store/state"
)

// A lease is what one loop has of one counter group. Owner: the loop's Leases;
// op belongs to the lane while it is under way.
//
// Invariant: while anybody waits, op is under way, or is to be at againNs.
type lease struct {
	group    *catalog.Group
	epoch    uint32 // counts changes of the limits
	kinds    [state.RulesMax]kind
	hasSlots bool // a rule is of concurrency
	users    int  // parts that wait or are taken

	op         state.Op
	under      bool   // op is with the lane
	opEpoch    uint32 // of op
	submitNs   int64  // loop time of the last Op
	firstWaits *part  // queue, first come first served
	lastWaits  *part
	againNs    int64                 // loop time at which those who found no slot are asked for again; 0 = op is under way, or nobody waits
	packets    [2]packet             // the older one first
	used       int64                 // slots in use
	spare      int64                 // slots without a use
	keep       int64                 // spare slots that may be kept, by the last answer
	tight      bool                  // the last answer lent nothing of what was asked
	usedNs     int64                 // loop time of the last use
	spanNs     int64                 // beginning of this span
	spent      [state.RulesMax]int64 // in this span
	before     [state.RulesMax]int64 // in the one before
	lent       [state.RulesMax]int64 // by the last answer that lent
	left       [state.RulesMax]int64 // by the last answer, less charges since
	restNs     [state.RulesMax]int64 // loop time at which the rule is full again
	beginNs    [state.RulesMax]int64 // store time at which the session or period began
	answerNs   int64                 // loop time of the last answer; 0 = none of these limits yet
	denial     denial

	// What the store is to be told.
	charge  [state.RulesMax]int64
	back    [state.RulesMax]state.Return
	flushNs int64 // loop time at which it is told at the latest; 0 = nothing to tell

	dueNs int64 // loop time at which Tick looks at it
	place int   // in the queue of Tick
}

// A kind is what sort of limit a rule is.
type kind uint8

const (
	requestRule kind = iota // counts requests: nothing to correct
	useRule                 // counts tokens or cost: estimated, and corrected
	slotRule                // counts what runs at once
)

// A packet is units that may be spent until a time of the loop's clock. Zero
// is none.
type packet struct {
	units   [state.RulesMax]int64
	untilNs int64
	grantNs int64 // store time
}

// A denial is remembered for a moment, so that a storm of callers over their
// limit costs the store nothing.
type denial struct {
	untilNs int64 // loop time; 0 = none
	retryNs int64 // loop time at which the limit could grant; NeverNs: it never will
	rule    int
	units   int64 // that did not fit: fewer may
}

// classify looks at the limits of the group.
func (l *lease) classify() {
	l.hasSlots = false
	for k := range l.group.Limits {
		switch l.group.Limits[k].Meter {
		case catalog.Requests:
			l.kinds[k] = requestRule
		case catalog.Concurrency:
			l.kinds[k], l.hasSlots = slotRule, true
		default:
			l.kinds[k] = useRule
		}
	}
}

// refuses reports whether the part is denied without asking: it wants more
// than there ever is, or the last denial covers it.
func (l *lease) refuses(nowNs int64, p *part) bool {
	for k := range l.group.Limits {
		if p.units[k] > l.group.Limits[k].Amount {
			p.demand.deny(l.group, k, state.NeverNs)
			return true
		}
	}
	if nowNs >= l.denial.untilNs || p.need(l.denial.rule) < l.denial.units {
		return false
	}
	retryNs := l.denial.retryNs
	if retryNs != state.NeverNs {
		retryNs = max(1, retryNs-nowNs)
	}
	p.demand.deny(l.group, l.denial.rule, retryNs)
	return true
}

// covers reports whether the part fits in what the loop has, and nobody waits
// before it.
func (l *lease) covers(nowNs int64, p *part) bool {
	if l.firstWaits != nil || l.hasSlots && l.spare < 1 {
		return false
	}
	l.expire(nowNs)
	for k := range l.group.Limits {
		switch want := p.units[k]; {
		case l.kinds[k] == slotRule:
		case want == 0: // nothing is taken, but there must be something left
			if l.answerNs == 0 || nowNs-l.answerNs >= lookNs || l.left[k] < 1 {
				return false
			}
		case l.has(k) < want:
			return false
		}
	}
	return true
}

// has is how many units of a rule the loop may spend.
func (l *lease) has(k int) int64 { return l.packets[0].units[k] + l.packets[1].units[k] }

// take spends what the part wants; covers has said yes.
func (l *lease) take(nowNs int64, p *part) {
	p.stands, p.grantNs, p.packed = taken, math.MaxInt64, true
	for k := range l.group.Limits {
		want := p.units[k]
		if want == 0 {
			continue
		}
		l.spent[k] += want
		for i := range l.packets {
			q := &l.packets[i]
			if n := min(want, q.units[k]); n > 0 {
				q.units[k] -= n
				want -= n
				p.packed = p.packed && (p.grantNs == math.MaxInt64 || p.grantNs == q.grantNs)
				p.grantNs = min(p.grantNs, q.grantNs) // of two the earlier is the safe one
			}
		}
	}
	l.takeSlot(p)
	l.usedNs = nowNs
}

func (l *lease) takeSlot(p *part) {
	if p.slot = l.hasSlots; p.slot {
		l.used++
		l.spare--
	}
}

func (l *lease) freeSlot(p *part) {
	if !p.slot {
		return
	}
	p.slot = false
	l.used--
	l.spare++
	l.reconsider()
}

// reconsider ends a denial when by what the loop knows there is again what it
// was for: a slot or units came back here, or an answer says so.
func (l *lease) reconsider() {
	if l.denial.untilNs == 0 {
		return
	}
	k := l.denial.rule
	has := l.left[k] + l.has(k) + l.back[k].Units
	if l.kinds[k] == slotRule {
		has = l.left[k] + l.spare
	}
	if has >= l.denial.units {
		l.denial.untilNs = 0
	}
}

// receive takes in what was lent. There is room for two packets: what is left
// of an older one goes back.
func (l *lease) receive(p packet) {
	if l.packets[0].empty() {
		l.packets[0], l.packets[1] = l.packets[1], packet{}
	}
	switch {
	case l.packets[0].empty():
		l.packets[0] = p
	case l.packets[1].untilNs == 0:
		l.packets[1] = p
	default:
		l.putBack(0)
		l.packets[0], l.packets[1] = l.packets[1], p
	}
}

func (p *packet) empty() bool { return p.untilNs == 0 || p.units == [state.RulesMax]int64{} }

// expire has units go back whose time is over. Either packet may end first:
// the second when a window of it ends.
func (l *lease) expire(nowNs int64) {
	if l.packets[1].untilNs != 0 && nowNs >= l.packets[1].untilNs {
		l.putBack(1)
	}
	if l.packets[0].untilNs != 0 && nowNs >= l.packets[0].untilNs {
		l.putBack(0)
		l.packets[0], l.packets[1] = l.packets[1], packet{}
	}
}

// putBack has what is left of a packet go back to the store.
func (l *lease) putBack(i int) {
	q := &l.packets[i]
	if q.untilNs != 0 {
		for k := range l.group.Limits {
			l.giveBack(k, q.units[k], q.grantNs)
		}
	}
	*q = packet{}
}

// refund takes back units that the part took and did not use: into their packet
// if it is still good, else to the store. Only units of one packet may be spent
// again: another may be good longer than a window that they are of, and what a
// waiter was granted is not counted as lent by the store, so that a bucket
// refills behind it.
func (l *lease) refund(nowNs int64, p *part, k int, units int64) {
	for i := range l.packets {
		if q := &l.packets[i]; p.packed && q.grantNs == p.grantNs && nowNs < q.untilNs {
			q.units[k] += units
			l.reconsider()
			return
		}
	}
	l.giveBack(k, units, p.grantNs)
}

// giveBack notes units that go back to the store. Those of two windows cannot
// go together: the earlier ones are given up, which leaves that window
// under-used and nothing else.
func (l *lease) giveBack(k int, units, grantNs int64) {
	if units == 0 || grantNs < l.beginNs[k] {
		return
	}
	b := &l.back[k]
	if b.Units == 0 {
		b.GrantNs = grantNs
	}
	if limit := &l.group.Limits[k]; limit.Strategy == catalog.FixedWindow || limit.Strategy == catalog.SlidingWindow {
		switch has, is := b.GrantNs/int64(limit.Window), grantNs/int64(limit.Window); {
		case has > is:
			return
		case has < is:
			b.Units, b.GrantNs = 0, grantNs
		}
	}
	// Of one window, as far as the loop knows. If it is wrong, the earlier time
	// has the store drop all of it.
	b.Units += units
	b.GrantNs = min(b.GrantNs, grantNs)
	l.reconsider()
}

// queue has the part wait.
func (l *lease) queue(p *part) {
	p.stands, p.asked, p.again = waiting, false, false
	p.next, p.prev = nil, l.lastWaits
	if l.lastWaits == nil {
		l.firstWaits = p
	} else {
		l.lastWaits.next = p
	}
	l.lastWaits = p
}

// leave takes the part out of the queue.
func (l *lease) leave(p *part) {
	if p.prev == nil {
		l.firstWaits = p.next
	} else {
		p.prev.next = p.next
	}
	if p.next == nil {
		l.lastWaits = p.prev
	} else {
		p.next.prev = p.prev
	}
	p.next, p.prev, p.asked, p.stands = nil, nil, false, open
	if l.firstWaits == nil {
		l.againNs = 0
	}
}

// roll goes to the span of now.
func (l *lease) roll(nowNs int64) {
	switch passed := nowNs - l.spanNs; {
	case passed >= 2*spanNs:
		l.before, l.spent, l.spanNs = [state.RulesMax]int64{}, [state.RulesMax]int64{}, nowNs
	case passed >= spanNs:
		l.before, l.spent, l.spanNs = l.spent, [state.RulesMax]int64{}, nowNs
	}
}

// held is how many slots the loop has.
func (l *lease) held() int64 { return l.used + l.spare }

// owes reports whether the store is to be told something soon.
func (l *lease) owes() bool {
	if l.spare > l.keep {
		return true
	}
	for k := range l.group.Limits {
		if l.charge[k] > 0 || l.back[k].Units > 0 {
			return true
		}
	}
	return false
}
