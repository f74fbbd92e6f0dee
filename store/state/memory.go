package state

import (
	"fmt"

	"relay/store/catalog"
)

// Memory counts in this process. It is not safe for concurrent use: one lane
// goroutine owns it.
type Memory struct {
	shards [shardCount]shard
	live   int // groups in all shards

	// Where the sweep looks next.
	sweepShard int
	sweepPlace int
}

var _ Store = (*Memory)(nil)

// NewMemory makes an empty store.
func NewMemory() *Memory { return &Memory{} }

// Apply works a batch off in order and fills in the answers. nowNs is a
// monotonic clock. Group state that has returned to its rest is dropped, so
// memory is bounded by what is active.
func (m *Memory) Apply(nowNs int64, batch []*Reservation) {
	for _, r := range batch {
		switch r.Verb {
		case Reserve:
			m.reserve(nowNs, r)
		case Release:
			m.release(r)
		default:
			panic(fmt.Sprintf("BUG: reservation with verb %d", r.Verb))
		}
		m.sweep(nowNs, sweepSteps)
	}
	m.sweep(nowNs, sweepSteps)
}

// Len is how many groups the memory holds.
func (m *Memory) Len() int { return m.live }

// reserve asks every rule of every group, and then takes in all or in none.
func (m *Memory) reserve(nowNs int64, r *Reservation) {
	r.begin()
	for i := range r.Count {
		g := r.group(i)
		if g == nil {
			continue
		}
		if k, waitNs := m.longest(nowNs, g); waitNs > r.RetryNs {
			r.Denied, r.Limit, r.RetryNs = i, g.Limits[k], waitNs
		}
	}
	if r.RetryNs > 0 {
		return
	}
	for i := range r.Count {
		if g := r.group(i); g != nil {
			r.held[i] = m.take(nowNs, g)
		}
	}
	r.Granted = true
}

// longest is the rule of g that one request more would have to wait for the
// longest; 0 ns when none denies. A group that is not there stays so: requests
// that are denied leave nothing behind.
func (m *Memory) longest(nowNs int64, g *catalog.Group) (at int, waitNs int64) {
	if len(g.Limits) > RulesMax {
		panic(fmt.Sprintf("BUG: %s has %d limits", g.Name, len(g.Limits)))
	}
	s := m.shard(g.ID)
	var rules []rule
	var slots int64
	if place := s.find(g.ID); place >= 0 {
		s.advance(nowNs, place, g)
		rules, slots = s.rules(&s.groups[place]), s.groups[place].slots
	}
	var rest rule
	for k := range g.Limits {
		u := &rest
		if rules != nil {
			u = &rules[k]
		}
		if ns := u.waitNs(&g.Limits[k], slots); ns > waitNs {
			at, waitNs = k, ns
		}
	}
	return at, waitNs
}

// take counts one request in g.
func (m *Memory) take(nowNs int64, g *catalog.Group) (slots uint8) {
	s := m.shard(g.ID)
	place := s.find(g.ID)
	if place < 0 {
		place = s.insert(nowNs, g)
		m.live++
	}
	return s.take(nowNs, place, g)
}

// release gives back what r holds, once.
func (m *Memory) release(r *Reservation) {
	for i := range r.Count {
		if r.held[i] == 0 {
			continue
		}
		s := m.shard(r.Groups[i].ID)
		place := s.find(r.Groups[i].ID)
		if place < 0 || s.groups[place].slots < int64(r.held[i]) {
			panic("BUG: a slot comes back that this store has not lent")
		}
		s.groups[place].slots -= int64(r.held[i])
		r.held[i] = 0
	}
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
