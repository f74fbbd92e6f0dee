package loop

import (
	"fmt"

	"relay/httpparse"
	"relay/upstream/wire"
)

// clientState is where a client connection rests between two callbacks.
type clientState uint8

const (
	reading   clientState = iota // between requests, or a head is incomplete
	proxying                     // awaits the PROXY header
	receiving                    // the body of its exchange is incomplete
	running                      // its exchange is on its way
	settling                     // answered; the last bytes wait for the spool's fsync
	closing                      // the last answer is given; closes once output has drained
	lingering                    // FIN sent; reads on so that no reset eats the answer
	dead                         // terminal
)

// clientNext holds the legal successors of each state, one bit per state.
var clientNext = [...]uint16{
	reading:   1<<receiving | 1<<running | 1<<closing | 1<<dead,
	proxying:  1<<reading | 1<<dead,
	receiving: 1<<running | 1<<closing | 1<<dead,
	running:   1<<reading | 1<<settling | 1<<closing | 1<<dead,
	settling:  1<<reading | 1<<closing | 1<<dead,
	closing:   1<<lingering | 1<<dead,
	lingering: 1 << dead,
	dead:      0,
}

// client is one client connection. Owner: its loop, from Accept to dead.
// Invariant: exchange != nil exactly while receiving or running.
type client struct {
	outlet
	list     clientLinks
	timer    timer // idle, head, body rate, reader stall, linger: by state
	exchange *exchange
	in       []byte // bytes not understood yet: a partial head, or requests behind the running one
	parsing  []byte // what in was, while it is read
	progress httpparse.Progress
	peer     Peer

	syncAt     int64 // position in the spool that must be synced before held output goes out
	lingered   int64 // bytes thrown away while lingering
	stalledAt  int   // backlog when the reader was last looked at
	headNs     int64 // when the head's first byte came; 0 = none yet
	state      clientState
	paused     bool // reading is paused
	queued     bool // in loop.resume
	lastAnswer bool // the connection ends with the running exchange
	untilClose bool // the running answer ends with the connection
	broken     bool // the last message has no proper end: its client is to see the break
}

// enter moves c to next. An illegal move is a bug in this package.
func (c *client) enter(next clientState) {
	if clientNext[c.state]&(1<<next) == 0 {
		panic(fmt.Sprintf("BUG: client %d -> %d", c.state, next))
	}
	c.state = next
}

// OnBytes takes bytes from the client.
func (c *client) OnBytes(p []byte) {
	l := c.loop
	l.metrics.BytesIn += uint64(len(p))
	switch c.state {
	case running, settling:
		c.keep(p)
		if len(c.in) > pipelineBytesMax && !c.paused {
			c.paused = true
			c.socket.PauseRead(true)
		}
	case closing, lingering:
		c.lingered += int64(len(p))
		if c.lingered > lingerBytesMax && !c.paused {
			c.paused = true // what more comes waits in the kernel until the timer ends it
			c.socket.PauseRead(true)
		}
	case dead:
	default:
		if len(c.in) == 0 {
			c.keep(c.consume(p))
			return
		}
		c.keep(p)
		c.consumeKept()
	}
}

// resumeInput goes on with what came while the last exchange ran.
func (c *client) resumeInput() {
	c.queued = false
	if c.state != reading {
		return
	}
	if len(c.in) > 0 {
		c.consumeKept()
	}
	if c.paused && c.socket != nil && c.state != running && c.state != settling && !c.waitsForReader() {
		c.paused = false
		c.socket.ResumeRead()
	}
}

// consumeKept consumes c.in and keeps what is left of it.
func (c *client) consumeKept() {
	c.parsing, c.in = c.in, nil
	rest := c.consume(c.parsing)
	if len(rest) == len(c.parsing) && c.state < closing {
		c.in, c.parsing = c.parsing, nil
		return
	}
	c.keep(rest)
	c.loop.buffers.give(c.parsing)
	c.parsing = nil
}

// keep appends p to the bytes not understood yet.
func (c *client) keep(p []byte) {
	if len(p) == 0 || c.state >= closing {
		return
	}
	b := &c.loop.buffers
	if c.in == nil {
		c.in = b.take(len(p))
	} else {
		c.in = b.grow(c.in, len(p))
	}
	c.in = append(c.in, p...)
}

// consume takes requests out of p until something has to be waited for, and
// returns what is left.
func (c *client) consume(p []byte) []byte {
	for len(p) > 0 {
		n := 0
		switch c.state {
		case proxying:
			n = c.readProxyHeader(p)
		case reading:
			if c.waitsForReader() {
				return p
			}
			n = c.readHead(p)
		case receiving:
			n = c.exchange.takeBody(p)
		case running, settling:
			return p
		default:
			return nil
		}
		if n == 0 {
			return p
		}
		p = p[n:]
	}
	return nil
}

// waitsForReader reports whether a client between requests has as many answers
// in front of it as it may have: it is read on once it has taken some.
func (c *client) waitsForReader() bool {
	l := c.loop
	if c.state != reading || c.backlog() <= l.highMark() {
		return false
	}
	if !c.paused {
		c.paused = true
		c.socket.PauseRead(true)
	}
	c.notify(l.highMark() / 4)
	return true
}

// readProxyHeader reads the PROXY protocol header that must come first.
func (c *client) readProxyHeader(p []byte) int {
	addr, n, state := ParseProxyHeader(p)
	switch state {
	case ProxyIncomplete:
		return 0
	case ProxyMalformed:
		c.drop()
		return len(p)
	case ProxyOK:
		c.peer.Addr = addr
	}
	c.enter(reading)
	c.loop.wheel.arm(&c.timer, c.loop.nowNs+int64(clientSilent))
	return n
}

// readHead reads a request head and starts its exchange, or refuses it.
func (c *client) readHead(p []byte) int {
	l := c.loop
	n, fault := l.request.Parse(p, &c.progress)
	if fault != httpparse.OK {
		c.progress = httpparse.Progress{}
		c.refuseHead(p, fault)
		return len(p)
	}
	if n == 0 {
		if !l.buffers.room(int64(len(p))) { // heads that do not end could fill the memory
			l.metrics.Shed[ShedMemory]++
			c.progress = httpparse.Progress{}
			c.refuseWithout(p, wire.Overloaded, "")
			return len(p)
		}
		if c.headNs == 0 {
			c.headNs = l.nowNs
			l.wheel.arm(&c.timer, l.nowNs+int64(headTime))
		}
		return 0
	}
	c.progress = httpparse.Progress{}
	c.headNs = 0
	l.wheel.disarm(&c.timer)
	return n + c.begin(p[:n], p[n:])
}

// next makes c ready for another request behind a finished exchange, or ends
// the connection.
func (c *client) next() {
	l := c.loop
	if c.lastAnswer || l.drainIdle {
		c.finish()
		return
	}
	c.enter(reading)
	l.wheel.arm(&c.timer, l.nowNs+int64(clientIdle))
	if (len(c.in) > 0 || c.paused) && !c.queued {
		c.queued = true
		l.resume = append(l.resume, c)
	}
}

// finish ends the connection in good order: output drains, a FIN goes out, and
// reading goes on for a bounded while.
func (c *client) finish() {
	c.startClosing()
	c.loop.ending = append(c.loop.ending, c)
	c.notify(0)
	c.stalledAt = c.backlog()
	c.loop.wheel.arm(&c.timer, c.loop.nowNs+int64(c.loop.config.StreamIdle))
}

// finishLater is finish after a pause in which the client can read what was
// sent, for a message that is broken off.
func (c *client) finishLater() {
	c.startClosing()
	c.loop.wheel.arm(&c.timer, c.loop.nowNs+int64(failureDelay))
}

// startClosing lets output drain and throws input away: unread, it would turn
// the close into a reset.
func (c *client) startClosing() {
	c.enter(closing)
	c.dropInput()
	if c.paused {
		c.paused = false
		c.socket.ResumeRead()
	}
	c.touch()
}

func (c *client) dropInput() {
	c.loop.buffers.give(c.in)
	c.in = nil
}

// OnDrained goes on with what had waited for the client to read.
func (c *client) OnDrained() {
	c.drained()
	switch c.state {
	case reading:
		if c.paused && !c.queued {
			c.queued = true
			c.loop.resume = append(c.loop.resume, c)
		}
	case running:
		c.exchange.clientDrained()
	case closing:
		if c.broken { // its pause is not over
			return
		}
		if c.backlog() > 0 {
			c.notify(0)
			return
		}
		c.closeWrite()
	}
}

// closeWrite sends the FIN once all output is with the kernel.
func (c *client) closeWrite() {
	c.enter(lingering)
	c.socket.CloseWrite()
	c.loop.wheel.arm(&c.timer, c.loop.nowNs+int64(lingerTime))
}

// onTimer is the one clock of a client connection; the state says what it
// waited for.
func (c *client) onTimer() {
	switch c.state {
	case reading:
		if c.headNs == 0 {
			c.finish() // idle: nothing is owed
			return
		}
		c.headNs = 0
		c.refuseSlow()
	case receiving:
		c.exchange.bodyTimer()
	case running:
		c.exchange.stallTimer()
	case closing:
		c.closingTimer()
	default:
		c.drop()
	}
}

// closingTimer starts the close of a broken message, or gives a reader up who
// has taken nothing for a whole period.
func (c *client) closingTimer() {
	n := c.backlog()
	if c.broken && c.untilClose { // its end must not look like the message's
		c.socket.Abort()
		c.bury()
		return
	}
	if c.broken || n < c.stalledAt {
		c.broken = false
		c.stalledAt = n
		c.notify(0)
		c.loop.wheel.arm(&c.timer, c.loop.nowNs+int64(c.loop.config.StreamIdle))
		return
	}
	c.drop()
}

// OnClosed tells that the client has gone. A FIN before the answer counts as
// gone, too.
func (c *client) OnClosed(Cause) {
	if c.state == dead {
		return
	}
	x := c.exchange
	c.bury()
	if x != nil {
		x.callerGone()
	}
}

// drop closes the connection now.
func (c *client) drop() {
	if c.state == dead {
		return
	}
	if c.socket != nil {
		c.socket.Close()
	}
	x := c.exchange
	c.bury()
	if x != nil {
		x.callerGone()
	}
}

// bury takes a connection that is gone out of the loop.
func (c *client) bury() {
	c.state = dead
	c.gone()
	c.dropInput()
	c.loop.wheel.disarm(&c.timer)
	c.loop.clients.remove(c)
	c.loop.metrics.Clients--
}

// clientLinks and clientList are an intrusive list of all client connections
// of a loop, for the drain.
type clientLinks struct{ next, prev *client }

type clientList struct{ root client }

func (s *clientList) init() { s.root.list.next, s.root.list.prev = &s.root, &s.root }

func (s *clientList) add(c *client) {
	c.list.prev, c.list.next = s.root.list.prev, &s.root
	c.list.prev.list.next, s.root.list.prev = c, c
}

func (s *clientList) remove(c *client) {
	c.list.prev.list.next, c.list.next.list.prev = c.list.next, c.list.prev
	c.list.next, c.list.prev = nil, nil
}
