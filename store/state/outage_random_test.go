package state_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"relay/store/catalog"
	"relay/store/state"
)

// The rules of a group of the random test. The first counts everything for
// ever, the others limit.
const (
	everything = iota
	window
	bucket
	slots
)

const (
	relays    = 3
	relayOps  = 2 // per group
	baseUnits = 1 << 30
)

// A rival is one relay of the random test, and what it was granted by itself.
type rival struct {
	*remote
	outage *state.Outage
	ops    [][relayOps]*state.Op
	back   [][relayOps]state.Return // of the first rule, not sent yet
	past   [][]state.Return
	alone  []alone // by group
}

// alone is what a relay has granted by itself, by the plainest arithmetic.
type alone struct {
	index, count int64 // of the window
	level        float64
	atNs         int64
}

// chaos is a random run: relays whose store comes and goes, each alone.
type chaos struct {
	*testing.T
	rnd    *rand.Rand
	nowNs  int64
	groups []*catalog.Group
	rivals []*rival
	total  []int64 // of the first rule, by group
	own    int     // answers that the store had no part in
	lent   int     // of them, those that lent something
}

func newChaos(t *testing.T, seed uint64) *chaos {
	c := &chaos{T: t, rnd: rand.New(rand.NewPCG(seed, 5)), nowNs: 1e18}
	store := state.NewMemory(relays * relayOps)
	for id := range uint64(1 + c.rnd.IntN(4)) {
		limits := []catalog.Limit{
			per(state.WindowMax, state.AmountMax),
			per(time.Duration(2+c.rnd.IntN(20))*time.Second, 1+c.rnd.Int64N([...]int64{50, 4000}[c.rnd.IntN(2)])),
			per(time.Duration(2+c.rnd.IntN(20))*time.Second, 1+c.rnd.Int64N([...]int64{50, 4000}[c.rnd.IntN(2)])),
			slotsOf(1 + c.rnd.Int64N(20)),
		}
		limits[bucket].Strategy = catalog.TokenBucket
		if c.rnd.IntN(3) == 0 {
			limits[window].Strategy = catalog.SlidingWindow
		}
		g := limited(id+1, limits...)
		c.groups = append(c.groups, g)
		o := &state.Op{Group: g}
		o.Charge[everything] = baseUnits // so that no return finds less than it takes off
		store.Apply(c.nowNs, []*state.Op{o})
		c.total = append(c.total, baseUnits)
	}
	for range relays {
		r := &rival{remote: newRemote(store)}
		r.outage = state.NewOutage(r, true, relayOps, func() int { return relays })
		for _, g := range c.groups {
			r.ops = append(r.ops, [relayOps]*state.Op{{Group: g}, {Group: g, Loop: 1}})
		}
		r.back = make([][relayOps]state.Return, len(c.groups))
		r.past = make([][]state.Return, len(c.groups))
		r.alone = make([]alone, len(c.groups))
		c.rivals = append(c.rivals, r)
	}
	return c
}

// step is one Op of one relay.
func (c *chaos) step() {
	c.nowNs += c.rnd.Int64N(second) * c.rnd.Int64N(2)
	r, i, k := c.rivals[c.rnd.IntN(relays)], c.rnd.IntN(len(c.groups)), c.rnd.IntN(relayOps)
	switch c.rnd.IntN(12) {
	case 0:
		r.down = !r.down
	case 1:
		r.cut = !r.cut
	}
	o := r.ops[i][k]
	keep := o.Lent()
	if keep > 0 {
		keep -= c.rnd.Int64N(keep + 1)
	}
	want(o, c.rnd.Int64N(30), keep)
	if o.Want[slots] = min(o.Want[slots], 3); c.rnd.IntN(2) == 0 {
		o.More = [state.RulesMax]int64{20, 20, 20}
	}
	if c.rnd.IntN(4) == 0 {
		o.Charge = [state.RulesMax]int64{c.rnd.Int64N(5), c.rnd.Int64N(5), c.rnd.Int64N(5)}
	}
	c.giveBack(r, i, k)
	o.Return[everything], r.back[i][k] = r.back[i][k], state.Return{}
	c.total[i] += o.Charge[everything] - o.Return[everything].Units
	before := r.outage.Answered()
	r.outage.Apply(c.nowNs, []*state.Op{o})
	if o.Lost {
		c.Fatal("lost")
	}
	c.total[i] += o.Got[everything] + o.Extra[everything]
	if n := o.Got[everything] + o.Extra[everything]; n > 0 {
		r.past[i] = append(r.past[i], state.Return{Units: n, GrantNs: o.NowNs})
	}
	if r.outage.Answered() > before {
		c.own++
		if o.Extra[window] > 0 {
			c.lent++
		}
		c.check(r, i, o)
	}
}

// giveBack adds what was not used of earlier grants up, as a loop does.
func (c *chaos) giveBack(r *rival, i, k int) {
	for len(r.past[i]) > 0 && c.rnd.IntN(3) == 0 {
		at := c.rnd.IntN(len(r.past[i]))
		n := r.past[i][at]
		r.past[i][at] = r.past[i][len(r.past[i])-1]
		r.past[i] = r.past[i][:len(r.past[i])-1]
		if b := &r.back[i][k]; b.Units == 0 || n.GrantNs < b.GrantNs {
			b.GrantNs = n.GrantNs
		}
		r.back[i][k].Units += 1 + c.rnd.Int64N(n.Units)
	}
}

// check holds what a relay has granted by itself to its share.
func (c *chaos) check(r *rival, i int, o *state.Op) {
	a, l := &r.alone[i], c.groups[i].Limits
	share := func(k int) int64 { return max(1, l[k].Amount/relays) }
	if index := o.NowNs / int64(l[window].Window); index != a.index {
		a.index, a.count = index, 0
	}
	if a.count += o.Got[window] + o.Extra[window]; a.count > share(window) {
		c.Fatalf("%d units in a window, the share is %d", a.count, share(window))
	}
	a.level = max(0, a.level-float64(o.NowNs-a.atNs)*float64(share(bucket))/float64(l[bucket].Window))
	a.atNs = o.NowNs
	if a.level += float64(o.Got[bucket] + o.Extra[bucket]); o.Got[bucket] > 0 && a.level > float64(share(bucket))+1e-6 {
		c.Fatalf("%v units in a bucket, the share is %d", a.level, share(bucket))
	}
	held := int64(0)
	for _, o := range r.ops[i] {
		held += o.Lent()
	}
	if held != r.held[o.Group.ID] {
		c.Fatalf("the lane has %d slots, its Ops %d", r.held[o.Group.ID], held)
	}
	if o.Lent() > o.Slots && held > share(slots) {
		c.Fatalf("%d slots, the share is %d", held, share(slots))
	}
}

// settle has everything told, and holds the store to the books.
func (c *chaos) settle() {
	for _, r := range c.rivals {
		r.down, r.cut = false, false
		for n := 0; r.outage.Owes(); n++ {
			if r.outage.Apply(c.nowNs, nil); n > 100 {
				c.Fatal("it does not end")
			}
		}
	}
	for i, g := range c.groups {
		held, back := int64(0), int64(0)
		for _, r := range c.rivals {
			for k, o := range r.ops[i] {
				held += o.Lent()
				back += r.back[i][k].Units
			}
		}
		o := &state.Op{Group: g}
		c.rivals[0].store.Apply(c.nowNs, []*state.Op{o})
		if n := state.AmountMax - o.Left[everything]; n != c.total[i] {
			c.Fatalf("the store has counted %d, the relays %d", n-baseUnits, c.total[i]-baseUnits)
		}
		if left := max(0, g.Limits[slots].Amount-held); o.Left[slots] != left {
			c.Fatalf("%d slots are left at the store, want %d", o.Left[slots], left)
		}
	}
}

// TestOutageRandom has relays lose the store at random: none grants more than
// its share by itself, and when it is back everything is counted once.
func TestOutageRandom(t *testing.T) {
	own, lent := 0, 0
	for seed := range uint64(200) {
		c := newChaos(t, seed)
		for range 5 {
			for range 200 {
				if c.step(); t.Failed() {
					t.Fatalf("seed %d", seed)
				}
			}
			c.settle()
		}
		own, lent = own+c.own, lent+c.lent
	}
	if own < 10_000 || lent < 1000 {
		t.Errorf("only %d Ops were answered without the store, and %d of them lent", own, lent)
	}
}
