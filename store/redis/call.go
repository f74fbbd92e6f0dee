package redis

import (
	"encoding/binary"
	"math"
	"strconv"
	"time"

	"relay/store/catalog"
	"relay/store/state"
)

// A call is one call of the script: up to opsMax groups of one tag and shape.
// Its key is the guard; one call of it is under way at a time.
type call struct {
	key    string
	prefix string // of the keys of groups
	tag    int
	seq    float64
	script *script
	whole  bool // the server does not know the script
	torn   bool // it failed without a reply
	body   []byte
	runs   []run
	ops    []*state.Op
	since  time.Time // when it was first sent without an answer; zero = answered
}

// A run is a group operation: the Ops of one group in a batch.
type run struct {
	group  *catalog.Group
	bounds [state.RulesMax]state.Bounds
	shape  shape
	count  int // Ops
	first  int // place of the first Op in the batch; the next is in next
	last   int
}

// A shape says how the limits of a group are counted.
type shape struct {
	classes uint64 // 4 bits each, from the low end
	sig     float64
	config  float64 // of kinds, amounts and windows: 53 bits of a hash
}

// kindOf tells rules apart that go on with each other's counts from those that
// do not, 1 to 36.
func kindOf(l *catalog.Limit) int { return 1 + 6*int(l.Meter) + int(l.Strategy) }

func shapeOf(g *catalog.Group) shape {
	var s shape
	hash, digits, digit := uint64(14695981039346656037), uint64(0), uint64(1)
	for k := range g.Limits {
		l := &g.Limits[k]
		s.classes |= (uint64(classOf(l)) + 1) << (4 * k)
		kind := uint64(kindOf(l))
		digits += kind * digit
		digit *= 64
		for _, v := range [...]uint64{kind, uint64(l.Amount), uint64(l.Window)} {
			hash = (hash ^ v) * 0x9e3779b97f4a7c15
			hash ^= hash >> 32
		}
	}
	s.sig, s.config = float64(digits), float64(hash>>11)
	return s
}

// list are the classes of a shape.
func (s shape) list() []class {
	var list []class
	for c := s.classes; c != 0; c >>= 4 {
		list = append(list, class(c&15)-1)
	}
	return list
}

// begin makes the call empty.
func (c *call) begin(process uint64, nowUs, loops int64) {
	c.seq++
	if c.torn { // the driver may still hold the bytes
		c.body, c.torn = nil, false
	}
	c.runs, c.ops, c.since, c.whole = c.runs[:0], c.ops[:0], time.Time{}, false
	c.body = binary.LittleEndian.AppendUint64(c.body[:0], process)
	c.float(c.seq)
	c.int(nowUs)
	c.int(loops)
	c.int(0) // groups, known at the end
}

// groupsAt is where the number of groups is in a body.
const groupsAt = 32

// finish writes how many groups there are.
func (c *call) finish() {
	binary.LittleEndian.PutUint64(c.body[groupsAt:], math.Float64bits(float64(len(c.runs))))
}

func (c *call) float(v float64) {
	c.body = binary.LittleEndian.AppendUint64(c.body, math.Float64bits(v))
}

func (c *call) int(v int64) { c.float(float64(v)) }

// name appends the key of a group, with its length before it: the prefix of the
// tag and the id in 16 hexadecimal digits.
func (c *call) name(id uint64) {
	var digits [16]byte
	text := strconv.AppendUint(digits[:0], id, 16)
	c.body = append(c.body, byte(len(c.prefix)+len(digits)))
	c.body = append(c.body, c.prefix...)
	for range len(digits) - len(text) {
		c.body = append(c.body, '0')
	}
	c.body = append(c.body, text...)
}

// add appends a group operation. held is how many slots of the group this
// process has.
func (c *call) add(r *run, ops []*state.Op, held int64) {
	c.runs = append(c.runs, *r)
	c.ops = append(c.ops, ops...)
	c.name(r.group.ID)
	c.float(r.shape.config)
	c.float(r.shape.sig)
	c.int(held)
	c.int(int64(len(ops)))
	for k := range r.group.Limits {
		l := &r.group.Limits[k]
		c.int(l.Amount)
		c.int(usOf(l.Window))
		if classOf(l) == calendar {
			c.int(r.bounds[k].FromNs / 1e3)
			c.int(r.bounds[k].UntilNs / 1e3)
		}
	}
	if len(ops) > 1 {
		c.sum(r.group, ops)
	}
	for _, o := range ops {
		c.entry(o)
	}
}

// entry appends what one Op asks for.
func (c *call) entry(o *state.Op) {
	more := lendable(o)
	c.int(o.Slots - o.Lent())
	for k := range o.Group.Limits {
		c.int(o.Want[k])
		c.int(o.Need[k])
		c.int(more[k])
		if o.Group.Limits[k].Meter != catalog.Concurrency {
			c.int(o.Charge[k])
			c.int(o.Return[k].Units)
			c.int(o.Return[k].GrantNs / 1e3)
		}
	}
}

// sum appends what all Ops of a group ask for together: it is what counts when
// all of it is there. Returns of several windows cannot be summed; then the sum
// needs more than there ever is, and the script goes through the Ops.
func (c *call) sum(g *catalog.Group, ops []*state.Op) {
	var want, over, more, most, charge [state.RulesMax]int64
	var back [state.RulesMax]state.Return
	slots, apart := int64(0), false
	for _, o := range ops {
		slots += o.Slots - o.Lent()
		lent := lendable(o)
		for k := range g.Limits {
			want[k] += o.Want[k]
			over[k] = max(over[k], o.Need[k]-o.Want[k])
			more[k] += lent[k]
			most[k] = max(most[k], lent[k])
			charge[k] += o.Charge[k]
			if r := o.Return[k]; r.Units > 0 {
				apart = apart || back[k].Units > 0 && !joins(&g.Limits[k], back[k], r)
				if back[k].Units == 0 || r.GrantNs < back[k].GrantNs {
					back[k].GrantNs = r.GrantNs
				}
				back[k].Units += r.Units
			}
		}
	}
	c.int(slots)
	for k := range g.Limits {
		c.int(want[k])
		if apart {
			c.float(math.Inf(1))
		} else {
			c.int(want[k] + over[k])
		}
		c.int(more[k])
		c.int(most[k])
		if g.Limits[k].Meter != catalog.Concurrency {
			c.int(charge[k])
			c.int(back[k].Units)
			c.int(back[k].GrantNs / 1e3)
		}
	}
}

// lendable is how much an Op could be lent of each rule when there is plenty:
// of all that it asks for more of, or of none.
func lendable(o *state.Op) [state.RulesMax]int64 {
	var more [state.RulesMax]int64
	for k := range o.Group.Limits {
		if o.More[k] == 0 {
			continue
		}
		more[k] = min(o.More[k], o.Group.Limits[k].Amount/state.LeaseShare)
		if more[k] < state.LeaseMin {
			return [state.RulesMax]int64{}
		}
	}
	return more
}
