package loop

import (
	"relay/upstream"
	"relay/upstream/wire"
	"relay/usage"
)

// pauseForClient stops what produces output while the client has too much in
// front of it.
func (x *exchange) pauseForClient() {
	c, u, l := x.client, x.attempt.conn, x.loop
	if !x.waitsForClient() || u == nil && x.answer.inflater == nil {
		return // there is room, or the rest is here already and drains by itself
	}
	if u != nil && !u.paused {
		u.paused = true
		u.socket.PauseRead(false)
	}
	if !x.stalled {
		x.stalled = true
		c.notify(l.highMark() / 4)
		c.stalledAt = c.backlog()
		l.wheel.arm(&c.timer, l.nowNs+int64(l.config.StreamIdle))
	}
}

// waitsForClient reports whether the client has as much in front of it as it
// may have.
func (x *exchange) waitsForClient() bool {
	return x.client != nil && x.client.backlog() > x.loop.highMark()
}

// clientDrained lets what produces output go on.
func (x *exchange) clientDrained() {
	l, c, a := x.loop, x.client, &x.answer
	if !x.stalled {
		return
	}
	if c.backlog() > l.highMark()/4 { // more was gathered meanwhile
		c.notify(l.highMark() / 4)
		return
	}
	x.stalled = false
	l.wheel.disarm(&c.timer)
	if a.nextOwed {
		a.nextOwed = false
		a.inflater.Next()
	}
	x.resumeUpstream()
}

// resumeUpstream goes on reading unless the client or the inflater still has
// too much in front of it.
func (x *exchange) resumeUpstream() {
	u := x.attempt.conn
	if u == nil || !u.paused || x.stalled || x.answer.encoded > outHigh/4 {
		return
	}
	u.paused = false
	x.answer.lastNs = x.loop.nowNs // its silence was ours
	u.socket.ResumeRead()
}

// stallTimer gives a client up that has taken nothing for a whole period while
// output waited for it.
func (x *exchange) stallTimer() {
	c, l := x.client, x.loop
	n := c.backlog()
	if n > 0 && n >= c.stalledAt {
		c.drop()
		return
	}
	c.stalledAt = n
	l.wheel.arm(&c.timer, l.nowNs+int64(l.config.StreamIdle))
}

// silenceTimer looks at an answer whose body is under way: it ends one that
// was silent for too long, keeps the client's connection alive, and sets
// itself for the next of these times. It is not moved at each byte.
func (x *exchange) silenceTimer() {
	l, a := x.loop, &x.answer
	u := x.attempt.conn
	limits := &x.binding.Host.Timeouts
	idleNs := int64(min(limits.Idle, l.config.StreamIdle))
	if u.paused { // the silence is the client's: see stallTimer
		l.wheel.arm(&x.timer, l.nowNs+idleNs)
		return
	}
	next := a.lastNs + idleNs
	if l.nowNs >= next {
		x.fail(upstream.IdleTimeout)
		return
	}
	if a.mode == streaming {
		if a.stream.Events == 0 {
			firstNs := max(x.attempt.sentNs, x.readNs) + int64(limits.FirstToken)
			if l.nowNs >= firstNs {
				x.fail(upstream.FirstTokenTimeout)
				return
			}
			next = min(next, firstNs)
		}
		next = min(next, x.keepAlive())
	}
	l.wheel.arm(&x.timer, next)
}

// keepAlive sends the shape's keep-alive when the client has heard nothing for
// a while and is between events. It returns when to look again.
func (x *exchange) keepAlive() int64 {
	l, a := x.loop, &x.answer
	everyNs := int64(l.config.KeepAlive)
	if l.nowNs < a.outNs+everyNs {
		return a.outNs + everyNs
	}
	if a.stream.AtBoundary() {
		l.scratch = a.stream.AppendKeepAlive(l.scratch[:0])
		a.send(x, l.scratch)
	}
	return l.nowNs + everyNs
}

// breakStream ends an answer that is partly at the client so that the break is
// seen: an error frame in a stream, no proper end of the message in any case.
func (a *answer) breakStream(x *exchange, e wire.Error) {
	c, l := x.client, x.loop
	x.account(usage.Cut, e)
	if a.mode == streaming {
		l.scratch = a.stream.AppendFailure(l.scratch[:0], e, x.requestID())
		a.frame(c, l.scratch)
	}
	c.broken = true
	x.detach()
}
