package state

import (
	"fmt"

	"relay/store/catalog"
)

// Memory counts in this process. It is not safe for concurrent use: one lane
// goroutine owns it.
type Memory struct {
	shards [shardCount]shard
	live   int   // groups in all shards
	loops  int64 // that share what is lent in advance
	atNs   int64 // the latest time that it has seen

	// Where the sweep looks next.
	sweepShard int
	sweepPlace int
}

var _ Store = (*Memory)(nil)

// NewMemory makes an empty store for so many loops, at least one.
func NewMemory(loops int) *Memory { return &Memory{loops: max(int64(loops), 1)} }

// Apply works a batch off in order and fills in the answers. Group state that
// has returned to its rest is dropped, so memory is bounded by what is active.
func (m *Memory) Apply(nowNs int64, batch []*Op) {
	m.atNs = max(m.atNs, nowNs)
	for _, o := range batch {
		m.apply(m.atNs, o)
		m.sweep(m.atNs, sweepSteps)
	}
	m.sweep(m.atNs, sweepSteps)
}

// Len is how many groups the memory holds.
func (m *Memory) Len() int { return m.live }

// apply works one Op off: what comes back and what was used first, then what is
// asked. A group that has no state and gets none stays so: requests that are
// denied leave nothing behind.
func (m *Memory) apply(nowNs int64, o *Op) {
	if s, place := m.open(nowNs, o, o.counts()); place >= 0 {
		m.answer(nowNs, s, place, o)
	} else {
		m.refuse(nowNs, o)
	}
}

// applyHeld is apply for a group whose slots are counted elsewhere. held is how
// many all its Ops have been lent, this one among them.
func (m *Memory) applyHeld(nowNs int64, o *Op, held int64) {
	m.atNs = max(m.atNs, nowNs)
	if s, place := m.open(nowNs, o, held > 0 || o.counts()); place >= 0 {
		s.groups[place].slots = held
		m.answer(nowNs, s, place, o)
		s.groups[place].slots = 0
	} else {
		m.refuse(nowNs, o)
	}
	m.sweep(nowNs, sweepSteps)
}

// withdraw moves what is counted of a group of o into the charges of o, as far
// as it still counts, and forgets the group. A rule of a calendar brings its
// period. It reports whether there is anything.
func (m *Memory) withdraw(nowNs int64, o *Op) bool {
	s := m.shard(o.Group.ID)
	place := s.find(o.Group.ID)
	if place < 0 {
		return false
	}
	s.advance(nowNs, place, o)
	some, rules := false, s.rules(&s.groups[place])
	for k := range rules {
		l := &o.Group.Limits[k]
		o.Charge[k] = rules[k].used(nowNs, l)
		some = some || o.Charge[k] > 0
		if l.Strategy == catalog.Calendar {
			o.Bounds[k] = Bounds{FromNs: rules[k].at, UntilNs: rules[k].before}
		}
	}
	s.drop(place)
	m.live--
	return some
}

// holds reports whether a group has any state.
func (m *Memory) holds(id uint64) bool { return m.shard(id).find(id) >= 0 }

// open finds the state of the group of an Op, and makes it if it counts: -1 if
// there is none.
func (m *Memory) open(nowNs int64, o *Op, counts bool) (s *shard, place int32) {
	if len(o.Group.Limits) > RulesMax {
		panic(fmt.Sprintf("BUG: %s has %d limits", o.Group.Name, len(o.Group.Limits)))
	}
	o.Begin()
	o.NowNs = nowNs
	s = m.shard(o.Group.ID)
	place = s.find(o.Group.ID)
	if place < 0 && counts {
		place = s.insert(nowNs, o.Group)
		m.live++
	}
	return s, place
}

// answer works an Op off on the state of its group.
func (m *Memory) answer(nowNs int64, s *shard, place int32, o *Op) {
	s.advance(nowNs, place, o)
	g := &s.groups[place]
	rules := s.rules(g)
	settle(nowNs, rules, g, o)
	grant(nowNs, m.loops, rules, g, o)
	g.restNs = nowNs
	for k := range rules {
		rest := rules[k].restNs(nowNs, &o.Group.Limits[k])
		o.RestNs[k] = rest
		g.restNs = max(g.restNs, nowNs+rest)
	}
}

// counts reports whether the Op leaves something behind in a group at rest.
func (o *Op) counts() bool {
	fits, wants := true, false
	for k := range o.Group.Limits {
		if o.Charge[k] > 0 {
			return true
		}
		fits = fits && o.Need[k] <= o.Group.Limits[k].Amount
		wants = wants || o.Want[k] > 0 || o.More[k] > 0
	}
	return wants && fits || o.Slots > 0
}

// refuse answers an Op on a group at rest that gets no state: it asked for
// nothing, or for more than there ever is.
func (m *Memory) refuse(nowNs int64, o *Op) {
	o.known = 0
	for k := range o.Group.Limits {
		l := &o.Group.Limits[k]
		o.Left[k] = l.Amount
		if o.Need[k] > l.Amount {
			o.RetryNs[k] = NeverNs
		}
		if l.Meter == catalog.Concurrency {
			o.Keep = Share(l.Amount, l.Amount, l.Amount, m.loops)
		}
	}
}

// settle takes in what was used beyond its grant and what comes back.
func settle(nowNs int64, rules []rule, g *group, o *Op) {
	for k := range rules {
		u, l := &rules[k], &o.Group.Limits[k]
		if l.Meter == catalog.Concurrency {
			continue
		}
		// In this order: what comes back may be of what is charged only now.
		if o.Charge[k] > 0 {
			u.take(o.Charge[k], nowNs, l)
		}
		if o.Return[k].Units > 0 {
			u.giveBack(o.Return[k], nowNs, l)
		}
	}
	if g.slots -= o.known - o.Slots; g.slots < 0 {
		panic("BUG: a slot comes back that this store has not lent")
	}
	o.known = o.Slots
}

// grant gives what is wanted as far as it is there, rule by rule, and lends
// more when all of it was. When not even the first request can go on, nothing
// is taken, and nothing lent: also when a rule denies of which nothing is wanted.
func grant(nowNs, loops int64, rules []rule, g *group, o *Op) {
	denied, whole := false, true
	for k := range rules {
		o.Left[k] = free(&rules[k], nowNs, g, &o.Group.Limits[k])
		whole = whole && o.Left[k] >= o.Want[k]
		if o.Left[k] < o.Need[k] {
			o.RetryNs[k] = retry(&rules[k], nowNs, o, k)
			denied = true
		}
	}
	if !denied {
		for k := range rules {
			o.Got[k] = min(o.Want[k], o.Left[k])
			o.Left[k] -= o.Got[k]
		}
	}
	if whole && !denied {
		o.lend(loops)
	}
	o.take(nowNs, loops, rules, g)
}

// lend gives more than is wanted, of all rules that were asked for it or of
// none: a request needs all of them.
func (o *Op) lend(loops int64) {
	for k := range o.Group.Limits {
		if o.More[k] == 0 {
			continue
		}
		if o.Extra[k] = Share(o.More[k], o.Group.Limits[k].Amount, o.Left[k], loops); o.Extra[k] == 0 {
			o.Extra = [RulesMax]int64{}
			return
		}
	}
	for k := range o.Group.Limits {
		o.Left[k] -= o.Extra[k]
	}
}

// take counts what was granted and lent.
func (o *Op) take(nowNs, loops int64, rules []rule, g *group) {
	slots, limited := int64(NeverNs), false
	for k := range rules {
		l := &o.Group.Limits[k]
		if l.Meter == catalog.Concurrency {
			slots, limited = min(slots, o.Got[k]+o.Extra[k]), true
			continue
		}
		rules[k].take(o.Got[k], nowNs, l)
		if o.Extra[k] > 0 {
			rules[k].lend(o.Extra[k], nowNs, l)
		}
	}
	if !limited {
		return
	}
	g.slots += slots
	o.known += slots
	o.Keep = NeverNs
	for k := range rules {
		if l := &o.Group.Limits[k]; l.Meter == catalog.Concurrency {
			o.Keep = min(o.Keep, Share(l.Amount, l.Amount, l.Amount-g.slots, loops))
		}
	}
}

// free is how many units of a rule can be granted.
func free(u *rule, nowNs int64, g *group, l *catalog.Limit) int64 {
	if l.Meter == catalog.Concurrency {
		return max(0, l.Amount-g.slots)
	}
	return u.available(nowNs, l)
}

// retry is how long until what the first request needs of a rule fits.
func retry(u *rule, nowNs int64, o *Op, k int) int64 {
	l := &o.Group.Limits[k]
	switch {
	case o.Need[k] > l.Amount:
		return NeverNs
	case l.Meter == catalog.Concurrency:
		return ConcurrencyRetryNs
	}
	return u.retryNs(o.Need[k], nowNs, l)
}

// Share is how much of a limit is lent in advance to one of so many loops that
// could use more units, when so many are left; 0 near the limit.
func Share(more, amount, left, loops int64) int64 {
	n := min(more, amount/LeaseShare, left/(LeaseParts*loops))
	if n < LeaseMin {
		return 0
	}
	return n
}

// sweep looks at the next few places and drops the groups at rest.
func (m *Memory) sweep(nowNs int64, steps int) {
	for range steps {
		s := &m.shards[m.sweepShard]
		if m.sweepPlace >= len(s.groups) {
			m.sweepShard, m.sweepPlace = (m.sweepShard+1)%shardCount, 0
			continue
		}
		g := &s.groups[m.sweepPlace]
		if g.count > 0 && g.atRest(nowNs) {
			s.drop(int32(m.sweepPlace))
			m.live--
		}
		m.sweepPlace++
	}
}

func (m *Memory) shard(id uint64) *shard {
	return &m.shards[scatter(id)>>56&(shardCount-1)]
}
