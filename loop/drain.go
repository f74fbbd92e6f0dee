package loop

import (
	"relay/store/catalog"
	"relay/upstream/wire"
)

// Drain is a Message that starts the end of a loop: answers say
// Connection: close, idle clients are closed soon, and AfterNs nanoseconds
// after delivery what still runs gets an error in its shape and is closed.
type Drain struct{ AfterNs int64 }

// Deliver starts the drain; a second one moves the deadline.
func (d Drain) Deliver(l *Loop) {
	l.draining = true
	l.leases.Close(l.nowNs)
	l.wheel.arm(&l.quiet.timer, l.nowNs+min(int64(drainQuietTime), d.AfterNs))
	l.wheel.arm(&l.deadline.timer, l.nowNs+d.AfterNs)
}

// drainQuiet ends the time in which idle clients may still send a request that
// was on its way when the drain began.
type drainQuiet struct {
	loop  *Loop
	timer timer
}

func (q *drainQuiet) onTimer() {
	q.loop.drainIdle = true
	q.loop.endEach(&q.timer, func(c *client) {
		if c.state == reading && c.headNs == 0 {
			c.finish()
		}
	})
}

// drainDeadline ends what still runs.
type drainDeadline struct {
	loop  *Loop
	timer timer
}

func (d *drainDeadline) onTimer() {
	d.loop.endEach(&d.timer, func(c *client) {
		switch c.state {
		case receiving, running:
			c.exchange.breakOff(wire.ShuttingDown)
		case reading, proxying, settling:
			c.drop()
		}
	})
}

// endEach does something to every client that is to end. Should it panic on
// one, that one is blamed, and the timer comes again for the others.
func (l *Loop) endEach(t *timer, do func(*client)) {
	l.wheel.arm(t, l.nowNs+1)
	l.clients.each(func(c *client) {
		l.suspect = c
		do(c)
	})
	l.wheel.disarm(t)
}

// each calls do for every client; do may remove the client it is given.
func (s *clientList) each(do func(*client)) {
	for c := s.root.list.next; c != &s.root; {
		next := c.list.next
		do(c)
		c = next
	}
}

// Yield is a Message that makes a loop close one idle connection to a host,
// so that another loop may open one within the host's max_connections.
type Yield struct{ Host *catalog.Host }

// Deliver closes the connection that was idle longest, if there is one.
func (y Yield) Deliver(l *Loop) {
	p := l.pools[y.Host.Endpoint]
	if p == nil {
		return
	}
	if u := p.idle.oldest(); u != nil {
		u.drop()
	}
}
