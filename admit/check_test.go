package admit

import (
	"cmp"
	"slices"

	"relay/store/catalog"
	"relay/store/state"
)

// A checker notes what was spent when, and in the end holds it to the limits.
type checker struct {
	*sim
	spends  map[uint64][]*spend // by group
	flows   map[ruleOf][]flow   // of buckets
	anchors map[ruleOf][]int64  // of sessions
	inUse   map[uint64]int64    // slots by group
	used    map[ruleOf]int64    // in all, also beyond what was reserved
}

type ruleOf struct {
	group uint64
	rule  int
}

// A spend is the units of one part of a demand that were spent.
type spend struct {
	units   [state.RulesMax]int64
	spentNs int64                    // store time: of the grant for those who waited for it, of the use for what was lent
	grants  [state.RulesMax][2]int64 // store time; 0 = none
	into    bool                     // if it is undone, it goes into a packet of the lease
	slot    bool
}

// A flow is units into a bucket, or out of it.
type flow struct{ ns, units int64 }

func newChecker(s *sim) *checker {
	return &checker{sim: s, spends: map[uint64][]*spend{}, flows: map[ruleOf][]flow{}, anchors: map[ruleOf][]int64{}, inUse: map[uint64]int64{}, used: map[ruleOf]int64{}}
}

// asks notes what the loop has before a demand asks for it.
func (c *checker) asks(d *simDemand) {
	for i := range d.count {
		if l := d.loop.leases.groups[d.parts[i].group.ID]; l != nil {
			d.packets[i] = l.packets
		}
	}
}

// drawn are the grants of the packets from which so many units were taken.
func (d *simDemand) drawn(i uint8, k int, units int64) (grants [2]int64) {
	for n := range d.packets[i] {
		q := &d.packets[i][n]
		if take := min(units, q.units[k]); take > 0 && d.loop.loopNs() < q.untilNs {
			grants[n] = q.grantNs
			units -= take
		}
	}
	if units > 0 && !d.loop.kind.amounts {
		d.loop.Errorf("%d units are taken that there were not", units)
	}
	return grants
}

// looks notes the parts of a demand that were taken since it last looked. ask
// says that it was what was lent that they took.
func (c *checker) looks(d *simDemand, ns int64, ask bool) {
	for i := range d.count {
		p := &d.parts[i]
		if p.stands != taken || d.spent[i] != nil {
			continue
		}
		s := &spend{units: p.units, spentNs: ns, slot: p.slot}
		for k := range p.rules.Limits {
			s.grants[k] = [2]int64{p.grantNs}
			if ask {
				s.grants[k] = d.drawn(i, k, p.units[k])
			}
		}
		d.spent[i] = s
		id := p.group.ID
		c.spends[id] = append(c.spends[id], s)
		for k := range p.rules.Limits {
			c.flow(p.rules, k, ns, p.units[k])
		}
		if p.slot {
			c.inUse[id]++
			if most := c.slots(id); c.inUse[id] > most {
				c.Errorf("group %d: %d slots are in use, limit %d", id, c.inUse[id], most)
			}
		}
	}
}

// slots is the least limit of concurrency of a group, the largest of all
// catalogs.
func (c *checker) slots(id uint64) (most int64) {
	for _, groups := range c.groups {
		least := int64(state.NeverNs)
		for _, l := range groups[id-1].Limits {
			if l.Meter == catalog.Concurrency {
				least = min(least, l.Amount)
			}
		}
		if least < state.NeverNs {
			most = max(most, least)
		}
	}
	return most
}

func (c *checker) flow(g *catalog.Group, k int, ns, units int64) {
	l := &g.Limits[k]
	if units != 0 && l.Meter != catalog.Concurrency && (l.Strategy == catalog.TokenBucket || l.Strategy == catalog.LeakyBucket) {
		at := ruleOf{g.ID, k}
		c.flows[at] = append(c.flows[at], flow{ns, units})
	}
}

// expects notes where the parts of a demand would go if it were undone now.
func (c *checker) expects(d *simDemand) {
	for i := range d.count {
		p := &d.parts[i]
		if s := d.spent[i]; s != nil {
			s.into = c.packet(d, p)
		}
	}
}

// packet reports whether units that come back go into a packet.
func (c *checker) packet(d *simDemand, p *part) bool {
	for i := range p.lease.packets {
		if q := &p.lease.packets[i]; p.packed && q.grantNs == p.grantNs && d.loop.loopNs() < q.untilNs {
			return true
		}
	}
	return false
}

func (c *checker) undoes(d *simDemand) {
	c.expects(d)
	c.undone(d)
}

// undone takes note that a demand was not granted after all.
func (c *checker) undone(d *simDemand) {
	for i := range d.count {
		s := d.spent[i]
		if s == nil {
			continue
		}
		p := &d.parts[i]
		for k := range p.rules.Limits {
			if s.into {
				c.flow(p.rules, k, c.nowNs, -s.units[k])
			}
		}
		s.units = [state.RulesMax]int64{}
		c.frees(d, i)
	}
}

func (c *checker) frees(d *simDemand, i uint8) {
	if d.spent[i].slot {
		c.inUse[d.parts[i].group.ID]--
	}
	d.spent[i] = nil
}

// settles reduces what was spent to what was used. What was used beyond it is
// no fault of the limit.
func (c *checker) settles(d *simDemand, used Use, counted bool) {
	if !counted {
		used = Use{}
	}
	for i := range d.count {
		p, s := &d.parts[i], d.spent[i]
		into := c.packet(d, p)
		for k := range p.rules.Limits {
			l := &p.rules.Limits[k]
			at := ruleOf{p.group.ID, k}
			switch {
			case l.Meter == catalog.Concurrency:
			case l.Meter == catalog.Requests:
				c.used[at]++
			default: // what was charged does not come back
				c.used[at] += max(p.charged[k], used.of(l.Meter))
			}
			if l.Meter == catalog.Requests || l.Meter == catalog.Concurrency {
				continue
			}
			if less := min(s.units[k], s.units[k]+p.charged[k]-used.of(l.Meter)); less > 0 {
				s.units[k] -= less
				if into {
					c.flow(p.rules, k, c.nowNs, -less)
				}
			}
		}
		c.frees(d, i)
	}
}

// applied looks at what the store was told and answered.
func (c *checker) applied(o *state.Op) {
	for k := range o.Group.Limits {
		c.flow(o.Group, k, c.nowNs, -o.Return[k].Units)
		if l := &o.Group.Limits[k]; l.Strategy == catalog.SessionWindow && o.RestNs[k] > 0 {
			at := ruleOf{o.Group.ID, k}
			anchor := o.NowNs + o.RestNs[k] - int64(l.Window)
			if list := c.anchors[at]; len(list) == 0 || list[len(list)-1] < anchor {
				c.anchors[at] = append(list, anchor)
			}
		}
	}
}

// lost notes what was granted to nobody.
func (c *checker) lost(o *state.Op) {
	for k := range o.Group.Limits {
		c.flow(o.Group, k, c.nowNs, o.Got[k]+o.Extra[k])
	}
}

// finish holds every rule to its definition.
func (c *checker) finish() {
	for id, n := range c.inUse {
		if n != 0 {
			c.Errorf("group %d: the checker counts %d slots in use at the end", id, n)
		}
	}
	if c.kind.shapes { // units are of several limits
		return
	}
	for _, g := range c.most() {
		for k := range g.Limits {
			switch l := &g.Limits[k]; {
			case l.Meter == catalog.Concurrency:
			case l.Strategy == catalog.TokenBucket, l.Strategy == catalog.LeakyBucket:
				if !c.kind.amounts { // a bucket that is made smaller forgets what it cannot hold
					c.bucket(g, k)
				}
			case l.Strategy == catalog.SlidingWindow:
				c.sliding(g, k)
			default:
				c.windows(g, k)
			}
		}
	}
}

// most are the groups with the greatest amounts of all catalogs.
func (c *checker) most() (groups []*catalog.Group) {
	for i, g := range c.groups[0] {
		m := group(g.ID, slices.Clone(g.Limits)...)
		for _, later := range c.groups[1:] {
			for k := range m.Limits {
				m.Limits[k].Amount = max(m.Limits[k].Amount, later[i].Limits[k].Amount)
			}
		}
		groups = append(groups, m)
	}
	return groups
}

// bucket checks that in no span more flows in than the amount and what the rate
// gives in it: the largest such excess is the level of a bucket that starts
// empty and drains with the rate.
func (c *checker) bucket(g *catalog.Group, k int) {
	l, flows := &g.Limits[k], c.flows[ruleOf{g.ID, k}]
	slices.SortStableFunc(flows, func(a, b flow) int {
		return cmp.Or(cmp.Compare(a.ns, b.ns), cmp.Compare(a.units, b.units)) // what comes back first
	})
	level, atNs, windowNs := int64(0), int64(0), int64(l.Window)
	for _, f := range flows {
		if f.ns-atNs > windowNs {
			level = 0
		} else {
			level = max(0, level-(f.ns-atNs)*l.Amount)
		}
		level, atNs = max(0, level+f.units*windowNs), f.ns
		if level > l.Amount*windowNs {
			c.Errorf("group %d, rule %d %+v: the bucket holds %d", g.ID, k, *l, level/windowNs)
			return
		}
	}
}

// windowOf names the window of a time.
func (c *checker) windowOf(g *catalog.Group, k int, ns int64) int64 {
	switch l := &g.Limits[k]; l.Strategy {
	case catalog.Calendar:
		return Bounds(l, ns).FromNs
	case catalog.SessionWindow:
		anchors := c.anchors[ruleOf{g.ID, k}]
		i, found := slices.BinarySearch(anchors, ns)
		if !found {
			i--
		}
		if i < 0 || ns >= anchors[i]+int64(l.Window) {
			c.Errorf("group %d, rule %d: something is spent outside of every session", g.ID, k)
			return 0
		}
		return anchors[i]
	default:
		return ns / int64(l.Window)
	}
}

// windows checks fixed, session and calendar windows.
func (c *checker) windows(g *catalog.Group, k int) {
	l := &g.Limits[k]
	sums := map[int64]int64{}
	for _, s := range c.spends[g.ID] {
		if s.units[k] == 0 {
			continue
		}
		window := c.windowOf(g, k, s.spentNs)
		for _, ns := range s.grants[k] {
			if ns != 0 && c.windowOf(g, k, ns) != window {
				c.Errorf("group %d, rule %d %+v: spent in window %d, granted in %d", g.ID, k, *l, window, c.windowOf(g, k, ns))
			}
		}
		sums[window] += s.units[k]
	}
	for window, n := range sums {
		if n > l.Amount {
			c.Errorf("group %d, rule %d %+v: %d in window %d", g.ID, k, *l, n, window)
		}
	}
	anchors := c.anchors[ruleOf{g.ID, k}]
	for i := 1; i < len(anchors); i++ {
		if l.Strategy == catalog.SessionWindow && anchors[i]-anchors[i-1] < int64(l.Window) {
			c.Errorf("group %d, rule %d: sessions overlap", g.ID, k)
		}
	}
}

// sliding checks at every grant that the window and what still overlaps of the
// one before are within the amount.
func (c *checker) sliding(g *catalog.Group, k int) {
	l, windowNs := &g.Limits[k], int64(g.Limits[k].Window)
	var flows []flow
	for _, s := range c.spends[g.ID] {
		if ns := max(s.grants[k][0], s.grants[k][1]); s.units[k] > 0 {
			flows = append(flows, flow{ns, s.units[k]})
		}
	}
	slices.SortStableFunc(flows, func(a, b flow) int { return cmp.Compare(a.ns, b.ns) })
	index, count, before := int64(-1), int64(0), int64(0)
	for i, f := range flows {
		switch at := f.ns / windowNs; {
		case at == index+1:
			index, count, before = at, 0, count
		case at > index:
			index, count, before = at, 0, 0
		}
		if count += f.units; i+1 < len(flows) && flows[i+1].ns == f.ns {
			continue
		}
		leftNs := (index+1)*windowNs - f.ns
		if n := count + before*leftNs/windowNs; n > l.Amount {
			c.Errorf("group %d, rule %d %+v: %d in the window and %d overlap", g.ID, k, *l, count, n-count)
			return
		}
	}
}
