package loop

import (
	"relay/httpparse"
	"relay/store/catalog"
	"relay/upstream"
)

// upstreamPhase is where an upstream connection is within an exchange.
type upstreamPhase uint8

const (
	unused       upstreamPhase = iota // idle, or fresh and without an exchange
	awaitingHead                      // the request goes out or is out, the answer's head is incomplete
	inBody                            // the answer's body comes
)

// upstreamConn is one connection to a host. Owner: its loop; while idle its
// pool, else the attempt that uses it.
type upstreamConn struct {
	outlet
	host     *catalog.Host // of the dial; any host of the same endpoint may use it
	pool     *pool
	attempt  *attempt  // nil exactly while unused
	idle     idleLinks // in pool.idle
	timer    timer     // idle expiry
	in       []byte    // an incomplete head
	parsing  []byte    // what in was, while it is read
	progress httpparse.Progress

	chunks        httpparse.Chunks
	bodyLeft      int64 // for a body by length
	body          httpparse.BodyKind
	phase         upstreamPhase
	informational uint8 // 1xx answers dropped
	keepAlive     bool  // the answer allows another request
	paused        bool
	served        bool // carried an exchange before
	heard         bool // some byte of the answer has come
	dead          bool
}

// begin gives the connection to an attempt.
func (u *upstreamConn) begin(a *attempt) {
	u.attempt, u.phase = a, awaitingHead
	u.informational, u.heard = 0, false
	u.socket.Mark()
	u.progress = httpparse.Progress{}
}

// reached reports whether the host may have read something of the request.
func (u *upstreamConn) reached() bool { return u.socket != nil && u.socket.Reached() }

// OnBytes takes bytes from the upstream.
func (u *upstreamConn) OnBytes(p []byte) {
	if u.dead {
		return
	}
	if u.attempt == nil { // nobody asked: whatever it is, it is no answer
		u.drop()
		return
	}
	u.heard = true
	u.attempt.exchange.answer.lastNs = u.loop.nowNs
	if u.phase == awaitingHead {
		if u.in != nil {
			u.parsing = append(u.loop.buffers.grow(u.in, len(p)), p...)
			u.in = nil
			if !u.readHead(u.parsing) && !u.dead {
				u.in, u.parsing = u.parsing, nil
			}
			u.loop.buffers.give(u.parsing)
			u.parsing = nil
			return
		}
		u.readHead(p)
		return
	}
	u.readBody(p)
}

// readHead parses the answer's head, dropping informational ones before it,
// and goes on with the body behind it. It reports false when
// parsing is to be kept as it is for more to come.
func (u *upstreamConn) readHead(p []byte) (used bool) {
	l := u.loop
	x := u.attempt.exchange
	for {
		n, fault := l.response.Parse(p, &u.progress, false)
		if fault != httpparse.OK {
			x.fail(upstream.BadAnswer)
			return true
		}
		if n == 0 {
			if u.parsing == nil || len(p) < len(u.parsing) { // not kept yet, or some of it is used up
				u.in = append(u.loop.buffers.take(len(p)), p...)
				return true
			}
			return false
		}
		head := p[:n]
		p = p[n:]
		u.progress = httpparse.Progress{}
		if l.response.Status == 408 && u.lateGoodbye() {
			u.heard = false // what came was said before the request, not to it
			x.fail(upstream.StaleReuse)
			return true
		}
		if l.response.Status >= 200 {
			u.startBody(head, p)
			return true
		}
		u.informational++
		if l.response.Status == 101 || u.informational > informationalMax {
			x.fail(upstream.BadAnswer)
			return true
		}
	}
}

// lateGoodbye reports whether a 408 that closes was on its way before the host
// could see the request: some hosts send it on idle connections
// (RFC 9110 §15.5.9), and there it is no answer.
func (u *upstreamConn) lateGoodbye() bool {
	return u.attempt.reused && !u.loop.response.KeepAlive && !u.reached()
}

// startBody takes the answer's head and what came of its body.
func (u *upstreamConn) startBody(head, p []byte) {
	r := &u.loop.response
	x := u.attempt.exchange
	u.phase = inBody
	u.body, u.bodyLeft, u.chunks = r.Body, r.ContentLength, httpparse.Chunks{}
	u.keepAlive = r.KeepAlive
	if !x.answer.begin(x, r) {
		return
	}
	x.answer.head = head
	if u.body == httpparse.NoBody {
		u.finish(p)
	} else if len(p) > 0 {
		u.readBody(p)
	}
	if x.state == waiting { // not at the client yet: head outlives p
		x.answer.keepHead(x.loop)
	}
}

// readBody takes bytes of the answer's body. Each piece may end the attempt.
func (u *upstreamConn) readBody(p []byte) {
	a := u.attempt
	x := a.exchange
	switch u.body {
	case httpparse.ByLength:
		n := int(min(int64(len(p)), u.bodyLeft))
		u.bodyLeft -= int64(n)
		x.answer.take(x, p[:n], u.bodyLeft == 0)
		if u.attempt == a && u.bodyLeft == 0 {
			u.finish(p[n:])
		}
	case httpparse.ByChunks:
		for len(p) > 0 && u.attempt == a {
			data, n, done, fault := u.chunks.Next(p)
			if fault != httpparse.OK {
				x.fail(upstream.Truncated)
				return
			}
			p = p[n:]
			if len(data) > 0 {
				x.answer.take(x, data, false)
			}
			if done && u.attempt == a {
				u.finish(p)
				return
			}
		}
	case httpparse.UntilClose:
		x.answer.take(x, p, false)
	}
}

// finish ends a complete answer. The connection serves again only if nothing
// follows the answer, neither side wants to close, and the request was sent
// whole (RFC 9112 §9.3).
func (u *upstreamConn) finish(rest []byte) {
	a := u.attempt
	x := a.exchange
	reusable := u.keepAlive && len(rest) == 0 && a.sentNs != 0 && u.backlog() == 0
	a.conn, u.attempt = nil, nil
	x.loop.wheel.disarm(&x.timer)
	u.phase, u.served = unused, true
	if reusable {
		u.loop.freed = append(u.loop.freed, u) // at the end of the callback: this exchange comes first
	} else {
		u.drop()
	}
	x.loop.suspect = x
	x.answer.finish(x)
	x.loop.suspect = nil
}

// release gives the connection to the attempt that waits longest, or keeps it.
func (u *upstreamConn) release() {
	l, p := u.loop, u.pool
	if u.dead { // by a panic behind its answer
		return
	}
	u.phase = unused
	if u.paused {
		u.paused = false
		u.socket.ResumeRead()
	}
	if a := p.waiters.first(); a != nil {
		if a.dial != nil {
			a.dial.owner, a.dial = nil, nil
		}
		a.start(u)
		return
	}
	if p.idle.n >= l.config.IdlePerHostMax {
		u.drop()
		return
	}
	p.keep(u)
	l.wheel.arm(&u.timer, l.nowNs+int64(upstreamIdle))
}

// onTimer closes a connection that was idle for long.
func (u *upstreamConn) onTimer() { u.drop() }

// OnDrained goes on sending the request.
func (u *upstreamConn) OnDrained() {
	u.drained()
	if a := u.attempt; a != nil && a.sent < a.length {
		a.send()
	}
}

// OnClosed tells that the upstream closed or broke the connection.
func (u *upstreamConn) OnClosed(c Cause) {
	if u.dead {
		return
	}
	a := u.attempt
	if a == nil {
		u.bury()
		return
	}
	x := a.exchange
	if c == EOF && u.phase == inBody && u.body == httpparse.UntilClose {
		a.conn, u.attempt = nil, nil
		x.loop.wheel.disarm(&x.timer)
		u.bury()
		x.loop.suspect = x
		x.answer.finish(x)
		x.loop.suspect = nil
		return
	}
	x.fail(upstream.Lost(a.evidence()))
}

// drop closes the connection now. Its attempt has been detached.
func (u *upstreamConn) drop() {
	if u.dead {
		return
	}
	u.socket.Close()
	u.bury()
}

// bury takes a connection that is gone out of the loop.
func (u *upstreamConn) bury() {
	if u.phase == unused && u.attempt == nil {
		u.pool.forget(u)
	}
	u.dead = true
	u.gone()
	u.loop.buffers.give(u.in)
	u.in = nil
	u.loop.wheel.disarm(&u.timer)
	u.loop.metrics.Upstreams--
	u.pool.open--
	u.pool.sweep()
}
