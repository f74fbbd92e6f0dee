package loop

import (
	"math/rand/v2"

	"relay/httpparse"
	"relay/store/catalog"
	"relay/store/state"
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
	mailSpare []Message

	wheel   wheel
	buffers buffers
	metrics Metrics

	clients   clientList
	exchanges []*exchange       // idle objects, for reuse
	pools     map[uint64]*pool  // by Host.Endpoint
	dirty     []*outlet         // have output gathered in this callback
	resume    []*client         // have unread input that may go on
	ending    []*client         // may send their FIN if their output drained at once
	unsynced  []*client         // hold their output until the spool is synced
	request   httpparse.Request // scratch: valid from Parse to the end of the callback
	response  httpparse.Response
	rotation  *upstream.Rotation

	scratch []byte // for texts that are copied at once
	infos   []wire.ModelInfo
	spare   *state.Reservation   // one that holds nothing, for reuse
	owed    []*state.Reservation // releases that the lane could not take yet

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
	return l
}

// Post tells the loop something, from any goroutine. It reports false when the
// mailbox is full.
func (l *Loop) Post(m Message) bool { return l.mail.Put(m) }

// Begin starts a callback: every call of a Conn method, of Accept, Opened,
// Tick, RunMail and Panicked stands between Begin and End. monoNs is a
// monotonic clock, wallNs the time of day, both in nanoseconds.
func (l *Loop) Begin(monoNs, wallNs int64) { l.nowNs, l.wallNs = monoNs, wallNs }

// End lets clients go on whose next request had waited, and sends what the
// callback gathered.
func (l *Loop) End() {
	for i := 0; i < len(l.resume); i++ { // grows while it runs
		c := l.resume[i]
		l.resume[i] = nil
		c.resumeInput()
	}
	l.resume = l.resume[:0]
	for i := 0; i < len(l.dirty); i++ {
		o := l.dirty[i]
		l.dirty[i] = nil
		o.queued = false
		o.flush()
	}
	l.dirty = l.dirty[:0]
	for i, c := range l.ending {
		l.ending[i] = nil
		if c.state == closing && !c.broken && c.backlog() == 0 {
			c.closeWrite()
		}
	}
	l.ending = l.ending[:0]
}

// Tick fires the timers that are due.
func (l *Loop) Tick() {
	l.payOwed()
	l.wheel.advance(l.nowNs)
}

// RunMail delivers waiting messages, at most one batch, and reports whether
// more came meanwhile: the driver then calls it again after it has looked at
// its sockets.
func (l *Loop) RunMail() (more bool) {
	batch := l.mail.Take(l.mailSpare)
	for _, m := range batch {
		m.Deliver(l)
	}
	l.mailSpare = batch
	return l.mail.Len() > 0
}

// Accept takes a new client connection.
func (l *Loop) Accept(s Socket, p Peer) Conn {
	c := &client{peer: p}
	c.outlet.init(l, s)
	c.timer.wakes = c
	l.clients.add(c)
	l.metrics.Accepted++
	l.metrics.Clients++
	if p.ProxyHeader {
		c.state = proxying
		l.wheel.arm(&c.timer, l.nowNs+int64(proxyHeaderTime))
	} else {
		l.wheel.arm(&c.timer, l.nowNs+int64(clientIdle))
	}
	return c
}

// Opened takes the connection that d asked for.
func (l *Loop) Opened(s Socket, d *Dial) Conn {
	u := &upstreamConn{host: d.Host, pool: l.pool(d.Host)}
	u.outlet.init(l, s)
	u.timer.wakes = u
	l.metrics.Upstreams++
	u.pool.dialing--
	u.pool.open++
	if a := d.owner; a != nil {
		d.owner, a.dial = nil, nil
		l.metrics.Dialed++
		a.start(u, false)
	} else {
		u.release()
	}
	return u
}

// Deliver takes a failed dial back; d.Fault and d.Text are set.
func (d *Dial) Deliver(l *Loop) {
	l.pool(d.Host).dialing--
	if a := d.owner; a != nil {
		d.owner, a.dial = nil, nil
		a.exchange.dialFailed(d.Fault)
	}
}

// Panicked is called by the driver's panic boundary after a callback of c
// panicked (c may be nil when it was not a connection's). The exchange of c is
// ended, its sockets are closed, everything else goes on.
func (l *Loop) Panicked(c Conn) {
	l.metrics.Panics++
	switch c := c.(type) {
	case *client:
		if x := c.exchange; x != nil {
			x.crash()
		} else {
			c.drop()
		}
	case *upstreamConn:
		if a := c.attempt; a != nil {
			a.exchange.crash()
		} else {
			c.drop()
		}
	}
}

// outlet is the writing side of a connection: it gathers what one callback
// produces and hands it to the socket in one Write. Owner: its client or
// upstreamConn.
type outlet struct {
	loop    *Loop
	socket  Socket // nil once the connection is gone
	out     []byte // gathered; from the loop's buffers
	charged int    // bytes of Socket.Buffered charged to the budget
	queued  bool   // in loop.dirty
	held    bool   // not to be flushed: the spool has to be synced first
}

func (o *outlet) init(l *Loop, s Socket) { o.loop, o.socket = l, s }

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

// recharge keeps the bytes that the kernel has not taken in the loop's budget.
func (o *outlet) recharge() {
	n := o.socket.Buffered()
	o.loop.buffers.used += int64(n - o.charged)
	o.charged = n
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
