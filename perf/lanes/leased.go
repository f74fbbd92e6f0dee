package lanes

import (
	"time"

	"golang.org/x/sys/unix"

	"relay/admit"
	"relay/store/catalog"
	"relay/store/state"
)

// A leased counter asks as Relay does: by leases, and lanes for what they do
// not cover.
type leased struct {
	loop   *loop
	keys   []*catalog.RelayKey // by policy
	leases *admit.Leases
	laneOf func(groupID uint64) int
	lanes  []*box[*state.Op]
	asked  [][]*state.Op // by lane, until send
	box    *box[*state.Op]
	spare  []*state.Op
	bell   bell
	closed bool
}

func newLeased(index int, l *loop, keys []*catalog.RelayKey, laneOf func(uint64) int, lanes []*box[*state.Op], exact bool) (*leased, error) {
	b, err := newBell()
	if err != nil {
		return nil, err
	}
	c := &leased{loop: l, keys: keys, laneOf: laneOf, lanes: lanes, asked: make([][]*state.Op, len(lanes)), bell: b}
	c.box = &box[*state.Op]{wake: b.ring}
	c.leases = admit.NewLeases(index, c.submit, func(*catalog.Limit) state.Bounds { panic("BUG: no policy here has a calendar") })
	c.leases.Exact = exact
	return c, nil
}

// submit puts an Op to what goes to its lane with the next send.
func (c *leased) submit(o *state.Op) bool {
	lane := c.laneOf(o.Group.ID)
	c.asked[lane] = append(c.asked[lane], o)
	if c.loop.holds {
		c.loop.tally.ops++
	}
	return true
}

func (c *leased) ask(nowNs int64, r *request) {
	d := &r.demand
	d.Plan(c.keys[r.policy], nil)
	d.Estimate.Expected.Input = tokensExpected
	if v := c.leases.Ask(nowNs, d); v != admit.Parked {
		c.loop.decided(nowNs, r, v)
	}
}

func (c *leased) settle(nowNs int64, r *request) {
	c.leases.Settle(nowNs, &r.demand, admit.Use{Input: r.tokens}, true)
	c.loop.ended(r)
}

func (c *leased) answers(nowNs int64) error {
	c.spare = c.box.take(c.spare)
	for _, o := range c.spare {
		for _, d := range c.leases.Answered(nowNs, o) {
			c.loop.decided(nowNs, d.Demand.Owner.(*request), d.Verdict)
		}
	}
	return nil
}

func (c *leased) send() error {
	for i, ops := range c.asked {
		if len(ops) > 0 {
			c.lanes[i].put(ops...)
			clear(ops)
			c.asked[i] = ops[:0]
		}
	}
	return nil
}

func (c *leased) tick(nowNs int64) { c.leases.Tick(nowNs) }

func (c *leased) await(atMost time.Duration) error {
	rings, err := await(int(c.bell), unix.POLLIN, atMost)
	if rings {
		c.bell.still()
	}
	return err
}

func (c *leased) rests(nowNs int64) bool {
	if !c.closed {
		c.closed = true
		c.leases.Close(nowNs)
	}
	c.leases.Tick(nowNs)
	return c.leases.Len() == 0
}

func (c *leased) close() {
	c.loop.tally.unsettled += int64(c.leases.Len())
	unix.Close(int(c.bell))
}
