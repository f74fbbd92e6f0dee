package loop

import (
	"math/rand/v2"

	"relay/admit"
	"relay/httpparse"
	"relay/store/catalog"
	"relay/upstream"
	"relay/upstream/wire"
)

// A Message is something that another goroutine tells a loop.
type Message interface {
	// Deliver runs on the loop's goroutine.
	Deliver(*Loop)
}

// A Loop is one shard of the gateway. Owner: its driver's goroutine, but for
// Post.
type Loop struct {
	config Config
	ports  Ports
	tables *catalog.Tables // current generation
	random *rand.Rand

	nowNs  int64 // monotonic, read once per callback
	wallNs int64 // time of day at nowNs

	mail      *Mailbox[Message]
	mailBatch []Message // taken and not delivered yet
	mailSpare []Message // memory of the batch before

	suspect any // what the callback is at, beside its own connection
	blamed  any // the suspect of a callback that panicked

	wheel   wheel
	buffers buffers
	metrics Metrics

	clients   clientList
	answers   stock[wire.Answer]
	streams   stock[wire.Stream]
	exchanges []*exchange       // idle objects, for reuse
	pools     map[uint64]*pool  // by Host.Endpoint
	freed     []*upstreamConn   // may serve another exchange
	dirty     []*outlet         // have output gathered in this callback
	resume    []*client         // have unread input that may go on
	ending    []*client         // may send their FIN if their output drained at once
	unsynced  []*client         // hold their output until the spool is synced
	request   httpparse.Request // scratch: valid from Parse to the end of the callback
	response  httpparse.Response
	rotation  *upstream.Rotation

	dateText []byte // see date

	dateSecond int64

	scratch []byte // for texts that are copied at once
	infos   []wire.ModelInfo

	leases    *admit.Leases
	estimates *admit.Estimates
	calendar  *admit.Calendar
	decisions []admit.Decision // from decided on still to be worked off
	decided   int

	asked     bool // the lane, in this callback
	draining  bool // answers say Connection: close
	drainIdle bool // idle clients are closed
	quiet     drainQuiet
	deadline  drainDeadline
}

// New makes a loop with its first catalog. wake is called from any goroutine
// when a message waits; the driver then calls RunMail soon.
func New(c Config, p Ports, t *catalog.Tables, wake func()) *Loop {
	l := &Loop{
		config: c, ports: p, tables: t,
		random: rand.New(rand.NewPCG(c.Seed, uint64(c.Index))),
		pools:  make(map[uint64]*pool),
	}
	l.mail = NewMailbox[Message](mailboxMax, wake)
	l.buffers.budget = c.BudgetBytes
	l.clients.init()
	l.wheel.init(0)
	l.quiet.loop, l.quiet.timer.wakes = l, &l.quiet
	l.deadline.loop, l.deadline.timer.wakes = l, &l.deadline
	l.rotation = upstream.NewRotation(c.Seed + uint64(c.Index))
	l.estimates, l.calendar = admit.NewEstimates(), admit.NewCalendar()
	l.leases = admit.NewLeases(c.Index, l.submit, l.bounds)
	return l
}

// Post tells the loop something, from any goroutine. It reports false when the
// mailbox is full.
func (l *Loop) Post(m Message) bool { return l.mail.Put(m) }

// Begin starts a callback: every call of a Conn method, of Accept, Opened,
// Tick, RunMail and Panicked stands between Begin and End. monoNs is a
// monotonic clock, wallNs the time of day, both in nanoseconds.
func (l *Loop) Begin(monoNs, wallNs int64) {
	l.nowNs, l.wallNs = monoNs, wallNs
	l.blamed, l.suspect = l.suspect, nil // set only when the last callback panicked
}

// End lets clients go on whose next request had waited, tells lanes what they
// are to know, and sends what the callback gathered: so a slot that an answer
// sets free is with its lane before the answer is with the client. Each entry
// leaves its list before it is worked off, so that a panic loses none of the
// others. asked says that mail may come at once: the callback asked a lane for
// something. Tick is to be called at nextNs at the latest; 0 = whenever.
func (l *Loop) End() (asked bool, nextNs int64) {
	for n := len(l.freed); n > 0; n = len(l.freed) {
		u := l.freed[n-1]
		l.freed = l.freed[:n-1]
		l.suspect = u
		u.release()
	}
	for n := len(l.resume); n > 0; n = len(l.resume) {
		c := l.resume[n-1]
		l.resume = l.resume[:n-1]
		l.suspect = c
		c.resumeInput()
	}
	if due := l.leases.DueNs(); due != 0 && due <= l.nowNs {
		l.suspect = nil
		l.leases.Tick(l.nowNs)
	}
	for n := len(l.dirty); n > 0; n = len(l.dirty) {
		o := l.dirty[n-1]
		l.dirty = l.dirty[:n-1]
		l.suspect = o.owner
		o.queued = false
		o.flush()
	}
	for n := len(l.ending); n > 0; n = len(l.ending) {
		c := l.ending[n-1]
		l.ending = l.ending[:n-1]
		l.suspect = c
		if c.state == closing && !c.broken && c.backlog() == 0 {
			c.closeWrite()
		}
	}
	l.suspect = nil
	asked, l.asked = l.asked, false
	return asked, l.leases.DueNs()
}

// Tick fires the timers that are due.
func (l *Loop) Tick() {
	if len(l.mailBatch) > 0 || len(l.decisions) > 0 { // left by a panic
		l.RunMail()
	}
	l.wheel.advance(l.nowNs, &l.suspect)
	l.suspect = nil
}

// RunMail delivers waiting messages, at most one batch, and reports whether
// more came meanwhile: the driver then calls it again after it has looked at
// its sockets.
func (l *Loop) RunMail() (more bool) {
	l.workDecisions()
	if len(l.mailBatch) == 0 {
		l.mailBatch = l.mail.Take(l.mailSpare)
		l.mailSpare = l.mailBatch
	}
	for len(l.mailBatch) > 0 {
		m := l.mailBatch[0]
		l.mailBatch = l.mailBatch[1:]
		l.suspect = m
		m.Deliver(l)
	}
	l.suspect = nil
	return l.mail.Len() > 0
}

// Accept takes a new client connection.
func (l *Loop) Accept(s Socket, p Peer) Conn {
	c := &client{peer: p}
	c.outlet.init(l, s, c)
	c.timer.wakes = c
	l.clients.add(c)
	l.metrics.Accepted++
	l.metrics.Clients++
	if p.ProxyHeader {
		c.state = proxying
		l.wheel.arm(&c.timer, l.nowNs+int64(proxyHeaderTime))
	} else {
		l.wheel.arm(&c.timer, l.nowNs+int64(clientSilent))
	}
	return c
}

// Opened takes the connection that d asked for.
func (l *Loop) Opened(s Socket, d *Dial) Conn {
	u := &upstreamConn{host: d.Host, pool: l.pool(d.Host)}
	u.outlet.init(l, s, u)
	u.timer.wakes = u
	l.metrics.Upstreams++
	u.pool.dialing--
	u.pool.open++
	if a := d.owner; a != nil {
		d.owner, a.dial = nil, nil
		l.suspect = a.exchange
		a.start(u)
		l.suspect = nil
	} else {
		u.release()
	}
	return u
}

// Deliver takes a failed dial back; d.Fault and d.Text are set.
func (d *Dial) Deliver(l *Loop) {
	p := l.pool(d.Host)
	p.dialing--
	if a := d.owner; a != nil {
		d.owner, a.dial = nil, nil
		l.suspect = a.exchange
		a.exchange.dialFailed(d.Fault)
	}
	p.sweep()
}

// Panicked is called by the driver's panic boundary after a callback of c
// panicked (c may be nil when it was not a connection's). What the loop was at
// is ended, and so is c, whose socket the driver closes; everything else goes
// on. The driver calls RunMail soon, since messages may have been left.
func (l *Loop) Panicked(c Conn) {
	l.metrics.Panics++
	blamed := l.blamed
	l.blamed = nil
	if blamed != nil {
		l.crash(blamed)
	}
	if c != nil && c != blamed {
		l.crash(c)
	}
}

// crash ends what was at work when a callback panicked.
func (l *Loop) crash(culprit any) {
	switch it := culprit.(type) {
	case *client:
		l.buffers.give(it.parsing)
		it.parsing = nil
		if x := it.exchange; x != nil {
			x.crash()
		} else {
			it.drop()
		}
	case *upstreamConn:
		l.buffers.give(it.parsing)
		it.parsing = nil
		if a := it.attempt; a != nil {
			a.exchange.crash()
		} else {
			it.drop()
		}
	case *exchange:
		if !it.detached {
			it.crash()
		}
	}
}

// outlet is the writing side of a connection: it gathers what one callback
// produces and hands it to the socket in one Write. Owner: its client or
// upstreamConn.
type outlet struct {
	loop    *Loop
	owner   Conn
	socket  Socket // nil once the connection is gone
	out     []byte // gathered; from the loop's buffers
	charged int    // bytes of Socket.Buffered charged to the budget
	queued  bool   // in loop.dirty
	watched bool   // NotifyDrained was asked for and not answered yet
	held    bool   // not to be flushed: the spool has to be synced first
}

func (o *outlet) init(l *Loop, s Socket, owner Conn) { o.loop, o.socket, o.owner = l, s, owner }

// room returns the gathered output with room for n more bytes. The caller
// appends to it and passes the result to put, with nothing between that could
// gather output on the same connection.
func (o *outlet) room(n int) []byte {
	if o.out == nil {
		o.out = o.loop.buffers.take(n)
	} else {
		o.out = o.loop.buffers.grow(o.out, n)
	}
	return o.out
}

func (o *outlet) put(p []byte) {
	o.loop.buffers.recharge(p, cap(o.out))
	o.out = p
	if len(p) >= flushAt && !o.held {
		o.flush()
		return
	}
	o.touch()
}

func (o *outlet) touch() {
	if !o.queued {
		o.queued = true
		o.loop.dirty = append(o.loop.dirty, o)
	}
}

// write sends bytes that outlive the call without gathering them when they are
// many.
func (o *outlet) write(p []byte) {
	if len(p) < flushAt/4 || o.held {
		o.put(append(o.room(len(p)), p...))
		return
	}
	o.flush()
	if o.socket != nil {
		o.socket.Write(p)
		o.recharge()
	}
}

func (o *outlet) flush() {
	if o.held || o.out == nil {
		return
	}
	if o.socket != nil && len(o.out) > 0 {
		o.socket.Write(o.out)
		o.recharge()
	}
	o.loop.buffers.give(o.out)
	o.out = nil
}

// recharge keeps the bytes that the kernel has not taken in the loop's budget,
// and sees to it that the loop hears when they are gone: a connection that then
// lies idle would be charged for them until it closes.
func (o *outlet) recharge() {
	n := o.socket.Buffered()
	o.loop.buffers.used += int64(n - o.charged)
	o.charged = n
	if n > 0 && !o.watched {
		o.notify(0)
	}
}

// notify asks for OnDrained once at most low bytes wait for the kernel.
func (o *outlet) notify(low int) {
	o.watched = true
	o.socket.NotifyDrained(low)
}

// drained takes OnDrained.
func (o *outlet) drained() {
	o.watched = false
	o.recharge()
}

// backlog is how many bytes wait in front of the peer, gathered ones included.
func (o *outlet) backlog() int {
	if o.socket == nil {
		return 0
	}
	return o.socket.Buffered() + len(o.out)
}

// gone forgets the socket and everything gathered for it.
func (o *outlet) gone() {
	o.socket = nil
	o.loop.buffers.used -= int64(o.charged)
	o.charged = 0
	o.loop.buffers.give(o.out)
	o.out = nil
	o.held = false
}

// highMark is how much output may wait in front of one peer.
func (l *Loop) highMark() int {
	if l.buffers.tight() {
		return outHighTight
	}
	return outHigh
}
