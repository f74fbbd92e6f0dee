package redis

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"relay/store/catalog"
	"relay/store/state"
)

// A Lane sends the Ops of its groups to the store. Owner: one goroutine, except
// where said otherwise.
type Lane struct {
	store  *Store
	index  int
	tags   []tag // all of the store, of which some are ours
	ledger ledger

	// What did not answer is down: nothing is sent there until a probe was
	// answered. Lane and probes share this.
	down   []atomic.Bool // by tag; set by the lane, cleared by its probe
	dial   sync.Mutex
	client rueidis.Client        // nil: not made yet; the lane may use it when a tag is up
	sick   atomic.Pointer[fault] // of the probes
	fault  atomic.Pointer[fault] // of the lane
	counts counts

	scripts map[uint64]*script // by the classes of a shape
	generic *script

	// Of the batch under way; kept for their memory.
	groups  map[uint64]int // place in runs
	runs    []run
	next    []int // places of the Ops of a run in the batch
	batch   []*state.Op
	later   []*state.Op
	members []*state.Op
	calls   []*call
	open    []*call // that still have room
	pending []*call
	cmds    []rueidis.Completed

	answered []bool        // by tag: in the exchange under way
	left     time.Duration // of the deadline
}

var _ state.Remote = (*Lane)(nil)

// A tag is what a lane has under way on one hash tag.
type tag struct {
	calls []*call // by their place in a batch; those of them that have no answer are kept
	used  int     // in this batch
	kept  int

	downAt time.Time // when it was suspected last
}

func newLane(s *Store, index int) *Lane {
	l := &Lane{
		store: s, index: index, tags: make([]tag, s.options.Tags),
		down: make([]atomic.Bool, s.options.Tags), answered: make([]bool, s.options.Tags),
		ledger: newLedger(), scripts: make(map[uint64]*script), groups: make(map[uint64]int),
		generic: newScript(nil),
	}
	return l
}

// dialer makes the lane's connections; nil = the driver does.
func (l *Lane) dialer() dialFunc {
	dial := l.store.options.Dial
	if dial == nil {
		return nil
	}
	return func(ctx context.Context, d *net.Dialer, addr string) (net.Conn, error) {
		return dial(ctx, l.index, d, addr)
	}
}

// Apply works a batch off and fills in the answers. It takes the deadline of
// the store at most, and a moment; what is not answered by then is Lost. When
// the store did not answer lately it asks nothing and is done at once. An empty
// batch tells the store what it has missed.
func (l *Lane) Apply(_ int64, batch []*state.Op) {
	if l.store.refuse.Load() != nil {
		l.lose(batch)
		return
	}
	l.left = l.store.options.Deadline
	l.resend()
	l.batch = l.ledger.debts(owedMax, l.batch[:0], l.blocked)
	l.batch = append(l.batch, batch...)
	for len(l.batch) > 0 {
		if l.left < l.store.options.Deadline/leastLeft {
			l.lose(l.batch)
			break
		}
		l.later = l.later[:0]
		l.sort()
		l.fill()
		l.exchange()
		// Ops of a group with other limits than the first ones of the batch.
		l.batch, l.later = l.later, l.batch
	}
	l.counts.done(l.store.options.Deadline - l.left)
}

// Owes reports whether the store has to be told something that no Op will tell
// it: then an empty batch is due, at the latest after a second or so.
func (l *Lane) Owes() bool {
	for i := range l.tags {
		if l.tags[i].kept > 0 {
			return true
		}
	}
	return len(l.ledger.owing) > 0
}

// Reaches reports whether the next batch would ask the store about a group.
func (l *Lane) Reaches(group uint64) bool {
	return l.store.refuse.Load() == nil && !l.blocked(group)
}

// Held is how many slots of a group this process has.
func (l *Lane) Held(group uint64) int64 { return l.ledger.held(group) }

// Moved says that Ops of a group have n slots more which the store has not lent.
// It is told soon, or by the next Op if there is too much to tell.
func (l *Lane) Moved(g *catalog.Group, n int64) {
	if n != 0 {
		l.ledger.hold(g.ID, n)
		l.ledger.doubt(g)
	}
}

// lose answers without asking, and keeps what has to be told later.
func (l *Lane) lose(batch []*state.Op) {
	for _, o := range batch {
		if !l.ledger.keep(o) {
			l.store.forgot.Add(1)
		}
		o.Lose()
	}
}

// tagOf is the tag of a group.
func (l *Lane) tagOf(id uint64) int { return int(scatter(id) % uint64(len(l.tags))) }

// blocked reports whether nothing new may be sent of a group: its tag is down,
// or a call of it has no answer yet.
func (l *Lane) blocked(id uint64) bool {
	at := l.tagOf(id)
	return l.tags[at].kept > 0 || l.down[at].Load()
}

// sort makes a run of all Ops of each group.
func (l *Lane) sort() {
	clear(l.groups)
	l.runs = l.runs[:0]
	l.next = l.next[:0]
	for i, o := range l.batch {
		l.next = append(l.next, -1)
		if l.blocked(o.Group.ID) {
			l.lose(l.batch[i : i+1])
			continue
		}
		at, known := l.groups[o.Group.ID]
		if !known {
			l.groups[o.Group.ID] = len(l.runs)
			l.runs = append(l.runs, run{group: o.Group, shape: shapeOf(o.Group), bounds: o.Bounds, first: i, last: i, count: 1})
			continue
		}
		r := &l.runs[at]
		if r.group != o.Group && shapeOf(o.Group) != r.shape {
			l.later = append(l.later, o)
			continue
		}
		for k := range r.group.Limits {
			if o.Bounds[k].FromNs > r.bounds[k].FromNs {
				r.bounds[k] = o.Bounds[k]
			}
		}
		l.next[r.last], r.last = i, i
		r.count++
	}
}

// fill puts the runs into calls.
func (l *Lane) fill() {
	l.calls, l.open = l.calls[:0], l.open[:0]
	for i := range l.tags {
		l.tags[i].used = 0
	}
	nowUs := int64(0)
	if l.store.options.clock != nil {
		nowUs = l.store.options.clock() / 1e3
	}
	loops := l.store.loops.Load()
	for i := range l.runs {
		r := &l.runs[i]
		if len(r.group.Limits) > state.RulesMax {
			panic(fmt.Sprintf("BUG: %s has %d limits", r.group.Name, len(r.group.Limits)))
		}
		l.members = l.members[:0]
		for at := r.first; at >= 0; at = l.next[at] {
			l.members = append(l.members, l.batch[at])
		}
		c := l.callFor(l.tagOf(r.group.ID), l.scriptOf(r.shape), nowUs, loops)
		c.add(r, l.members, l.ledger.held(r.group.ID))
		for _, o := range l.members {
			l.ledger.hold(r.group.ID, o.Slots-o.Lent())
			o.SetLent(o.Slots)
		}
	}
	for _, c := range l.calls {
		c.finish()
	}
}

// callFor is a call of this batch with room for one more group.
func (l *Lane) callFor(at int, s *script, nowUs, loops int64) *call {
	for i, c := range l.open {
		if c.tag != at || c.script != s {
			continue
		}
		if len(c.runs) < opsMax {
			return c
		}
		l.open[i] = l.open[len(l.open)-1]
		l.open = l.open[:len(l.open)-1]
		break
	}
	t := &l.tags[at]
	if t.used == len(t.calls) {
		key := fmt.Sprintf("%sb:%016x.%d.%d", tagName(at), l.store.options.Process, l.index, t.used)
		t.calls = append(t.calls, &call{key: key, prefix: tagName(at) + "g:", tag: at})
	}
	c := t.calls[t.used]
	t.used++
	c.script = s
	c.begin(l.store.options.Process, nowUs, loops)
	l.calls, l.open = append(l.calls, c), append(l.open, c)
	return c
}

// scriptOf is the script of a shape.
func (l *Lane) scriptOf(s shape) *script {
	if found := l.scripts[s.classes]; found != nil {
		return found
	}
	if s.classes>>(4*specialRulesMax) != 0 || len(l.scripts) >= l.store.options.specials {
		return l.generic
	}
	made := newScript(s.list())
	l.scripts[s.classes] = made
	return made
}

// resend sends what has no answer yet, and gives back what it brought. What is
// so old that the store may have forgotten it is given up.
func (l *Lane) resend() {
	now := time.Now()
	l.calls = l.calls[:0]
	for i := range l.tags {
		t := &l.tags[i]
		if t.kept == 0 || l.down[i].Load() {
			continue
		}
		for _, c := range t.calls {
			switch {
			case c.since.IsZero():
			case now.Sub(c.since) < l.store.options.keep:
				l.calls = append(l.calls, c)
			default:
				l.giveUp(c)
			}
		}
	}
	l.exchange()
}

// exchange sends calls and takes the answers in. What fails without a reply is
// sent again at once, a few times: a connection that has broken costs nobody
// anything.
func (l *Lane) exchange() {
	if len(l.calls) == 0 {
		return
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), l.left)
	defer cancel()
	clear(l.answered)
	silent := false
	var last error
	pending := append(l.pending[:0], l.calls...)
	for try := 0; len(pending) > 0; try++ {
		if try > 1 {
			time.Sleep(time.Duration(try-1) * retryPause)
		}
		l.cmds = l.cmds[:0]
		for _, c := range pending {
			l.cmds = append(l.cmds, l.command(c))
			l.counts.groups(c)
		}
		again, torn := pending[:0], false
		for i, r := range l.client.DoMulti(ctx, l.cmds...) {
			c := pending[i]
			text, err := r.ToString()
			e, replied := rueidis.IsRedisErr(err)
			c.whole = replied && e.IsNoScript()
			if err != nil && !replied {
				c.torn, torn = true, true
			}
			if err != nil {
				l.counts.failed.Add(1)
			}
			if c.whole || err != nil && !replied {
				if try < retries && ctx.Err() == nil {
					again = append(again, c)
					continue
				}
			}
			l.answered[c.tag] = l.answered[c.tag] || err == nil
			silent = silent || err != nil && !replied
			if err = l.settle(c, text, err, began); err != nil {
				last = err
			}
		}
		if pending = again; torn {
			l.cmds = nil // the driver may still read it
		}
	}
	l.pending = pending
	l.left -= time.Since(began)
	noteIn(&l.fault, last)
	if silent {
		l.distrust()
	}
}

// command is the call for the driver: with the whole script when the server
// does not know it.
func (l *Lane) command(c *call) rueidis.Completed {
	body := rueidis.BinaryString(c.body)
	if c.whole {
		return l.client.B().Eval().Script(c.script.text).Numkeys(1).Key(c.key).Arg(body).Build()
	}
	return l.client.B().Evalsha().Sha1(c.script.sha).Numkeys(1).Key(c.key).Arg(body).Build()
}

// settle takes in the reply of one call.
func (l *Lane) settle(c *call, text string, err error, now time.Time) error {
	wasKept := !c.since.IsZero()
	if err == nil {
		if err = c.answer(text, l.store.loops.Load()); err == nil {
			l.take(c)
			return nil
		}
	} else if mayCome(err) && (!wasKept || now.Sub(c.since) < l.store.options.keep) {
		if !wasKept {
			l.keep(c, now)
		}
		l.suspect(c.tag)
		return fmt.Errorf("redis: lane %d: %w", l.index, err)
	}
	l.giveUp(c)
	return fmt.Errorf("redis: lane %d: %w", l.index, err)
}

// giveUp ends a call of which nobody knows what was counted.
func (l *Lane) giveUp(c *call) {
	for _, o := range c.ops {
		if c.since.IsZero() {
			o.Lose()
		}
		l.ledger.doubt(o.Group)
	}
	l.release(c)
	l.store.forgot.Add(int64(len(c.runs)))
}

// keep has a call sent again: the Ops are answered Lost, and their content
// stays with the call.
func (l *Lane) keep(c *call, now time.Time) {
	l.tags[c.tag].kept++
	c.since = now
	for i, o := range c.ops {
		kept := *o
		c.ops[i] = &kept
		o.Lose()
	}
}

// release ends a call that was kept.
func (l *Lane) release(c *call) {
	if !c.since.IsZero() {
		l.tags[c.tag].kept--
		c.since = time.Time{}
	}
}

// take counts what the answers of a call brought. What was brought too late
// goes back.
func (l *Lane) take(c *call) {
	for _, o := range c.ops {
		switch n := lent(o); {
		case c.since.IsZero():
			l.ledger.hold(o.Group.ID, n)
			o.SetLent(o.Slots + n)
		case !l.ledger.giveBack(o):
			l.store.forgot.Add(1)
		}
	}
	l.release(c)
}
