package state

import "relay/store/catalog"

// A shard is one part of the memory: an index over places of groups, and runs
// of rules by their count. Everything is addressed by place, so it can grow,
// and shrink again, by copying what lives into new arrays.
type shard struct {
	index  []int32 // open addressing, linear probing: place of a group + 1; 0 = free
	groups []group
	free   []int32 // places of groups not in use
	runs   [RulesMax + 1]runs
	live   int // groups in use
}

// A group is the state of one counter group. It holds no pointer, so a million
// of them cost the garbage collector nothing. Owner: the shard that it is in.
//
// Slots are counted per group and not per rule: all concurrency limits of a
// group count the same requests, and the count stays true when a new catalog
// moves, removes or adds such a limit while requests run.
type group struct {
	id      uint64
	stampNs int64 // to which the rules have advanced
	restNs  int64 // from then on all rules are zero
	slots   int64 // of concurrency, lent to all loops
	rules   int32 // place of the rules in the shard's runs of that count
	count   uint8 // of rules; 0 = this place is free
}

// atRest reports whether g says the same as no group at all.
func (g *group) atRest(nowNs int64) bool { return g.slots == 0 && g.restNs <= nowNs }

// scatter spreads ids that differ in few bits. The shard is chosen by the top
// bits, the place in its index by the low ones.
func scatter(id uint64) uint64 {
	h := id * 0x9e3779b97f4a7c15
	return h ^ h>>29
}

// find is the place of a group, or -1.
func (s *shard) find(id uint64) int32 {
	if s.live == 0 {
		return -1
	}
	mask := uint64(len(s.index) - 1)
	for at := scatter(id) & mask; s.index[at] != 0; at = (at + 1) & mask {
		if place := s.index[at] - 1; s.groups[place].id == id {
			return place
		}
	}
	return -1
}

// insert makes a group at rest for a group that has none, and returns its
// place. Places found before may have moved.
func (s *shard) insert(nowNs int64, of *catalog.Group) int32 {
	if (s.live+1)*4 > len(s.index)*3 {
		s.rebuild()
	}
	var place int32
	if n := len(s.free); n > 0 {
		place, s.free = s.free[n-1], s.free[:n-1]
	} else {
		place = int32(len(s.groups))
		s.groups = append(s.groups, group{})
	}
	n := len(of.Limits)
	s.groups[place] = group{id: of.ID, stampNs: nowNs, restNs: nowNs, count: uint8(n), rules: s.runs[n].take(n)}
	s.live++
	s.enter(of.ID, place)
	clear(s.rules(&s.groups[place]))
	return place
}

func (s *shard) enter(id uint64, place int32) {
	mask := uint64(len(s.index) - 1)
	at := scatter(id) & mask
	for s.index[at] != 0 {
		at = (at + 1) & mask
	}
	s.index[at] = place + 1
}

// rules is a view that dies with the next insert.
func (s *shard) rules(g *group) []rule { return s.runs[g.count].at(g.rules, int(g.count)) }

// advance brings the group at a place to now and to the limits as o has them.
// Rules that were at rest under the limits seen before are zero whatever is
// configured now, so that it makes no difference whether the sweep came by.
func (s *shard) advance(nowNs int64, place int32, o *Op) {
	g := &s.groups[place]
	limits := o.Group.Limits
	if int(g.count) != len(limits) {
		s.recount(g, len(limits))
	}
	elapsedNs, rested := max(nowNs-g.stampNs, 0), g.restNs <= nowNs
	g.stampNs = max(g.stampNs, nowNs)
	rules := s.rules(g)
	for k := range rules {
		if rested {
			rules[k] = rule{}
		}
		rules[k].advance(elapsedNs, nowNs, &limits[k], o.Bounds[k])
	}
}

// recount gives g room for another number of rules; those at the same places
// stay.
func (s *shard) recount(g *group, n int) {
	was := *g
	g.rules, g.count = s.runs[n].take(n), uint8(n)
	rules := s.rules(g)
	clear(rules[copy(rules, s.rules(&was)):])
	s.runs[was.count].give(was.rules)
}

// drop forgets the group at a place.
func (s *shard) drop(place int32) {
	g := &s.groups[place]
	s.leave(g.id)
	s.runs[g.count].give(g.rules)
	*g = group{}
	s.free = append(s.free, place)
	s.live--
	if len(s.index) > indexMin && s.live*8 < len(s.index) {
		s.rebuild()
	}
}

// leave takes an id that is there out of the index, and closes the gap: every
// entry behind it that the gap would cut off from its own place moves up.
func (s *shard) leave(id uint64) {
	mask := uint64(len(s.index) - 1)
	gap := scatter(id) & mask
	for s.groups[s.index[gap]-1].id != id {
		gap = (gap + 1) & mask
	}
	for at := (gap + 1) & mask; s.index[at] != 0; at = (at + 1) & mask {
		home := scatter(s.groups[s.index[at]-1].id) & mask
		if (at-home)&mask >= (at-gap)&mask {
			s.index[gap] = s.index[at]
			gap = at
		}
	}
	s.index[gap] = 0
}

// rebuild copies what lives into arrays of a size that fits: the index is then
// between a quarter and half full.
func (s *shard) rebuild() {
	size := indexMin
	for size < s.live*2+2 {
		size *= 2
	}
	was := *s
	*s = shard{
		index:  make([]int32, size),
		groups: make([]group, 0, size*3/4),
		live:   was.live,
	}
	for i := range was.groups {
		g := was.groups[i]
		if g.count == 0 {
			continue
		}
		rules := was.rules(&g)
		g.rules = s.runs[g.count].take(int(g.count))
		copy(s.rules(&g), rules)
		s.enter(g.id, int32(len(s.groups)))
		s.groups = append(s.groups, g)
	}
}

// runs keeps runs of rules of one length.
type runs struct {
	rules []rule
	free  []int32 // runs not in use
}

// take is a run of n rules, whatever is in them.
func (p *runs) take(n int) int32 {
	if k := len(p.free); k > 0 {
		run := p.free[k-1]
		p.free = p.free[:k-1]
		return run
	}
	run := int32(len(p.rules) / n)
	for range n {
		p.rules = append(p.rules, rule{})
	}
	return run
}

func (p *runs) give(run int32) { p.free = append(p.free, run) }

func (p *runs) at(run int32, n int) []rule {
	return p.rules[int(run)*n : int(run)*n+n : int(run)*n+n]
}
