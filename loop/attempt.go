package loop

import (
	"relay/upstream"
	"relay/upstream/wire"
)

// attempt is one try of an exchange at one host key. It is part of its
// exchange and is used again for the next try.
// Invariant: at most one of dial and conn is set.
type attempt struct {
	exchange   *exchange
	next, prev *attempt      // in pool.waiters while a dial runs
	dial       *Dial         // a connection is on its way
	conn       *upstreamConn // the connection in use
	tries      int           // attempts begun, this one included
	sent       int           // bytes of the edited body written
	length     int           // of the edited body
	sentNs     int64         // when the last request byte was written; 0 = not yet
	reused     bool          // conn had served another exchange before
	fresh      bool          // do not take an idle connection: one was stale just now
}

// open gets a connection: an idle one, one that becomes free, or a new one.
func (a *attempt) open() {
	x := a.exchange
	l := x.loop
	host := x.binding.Host
	a.tries++
	a.sent, a.sentNs = 0, 0
	x.event.Attempts = a.tries
	p := l.pool(host)
	if !a.fresh {
		if u := p.take(); u != nil {
			a.start(u)
			return
		}
	}
	d := &Dial{Loop: l.config.Index, Host: host, owner: a}
	if !l.ports.Dial(d) {
		l.metrics.Shed[ShedMailbox]++
		p.sweep()
		x.refuse(wire.Overloaded, "", "", 0)
		return
	}
	a.dial = d
	p.dialing++
	p.waiters.add(a)
	l.wheel.arm(&x.timer, l.nowNs+int64(host.Timeouts.Connect+connectSlack))
}

// start sends the request on a connection.
func (a *attempt) start(u *upstreamConn) {
	x := a.exchange
	l := x.loop
	a.unlink()
	a.conn, a.reused = u, u.served
	if a.reused {
		l.metrics.Reused++
	} else {
		l.metrics.Dialed++
	}
	u.begin(a)
	if x.admitNs == 0 {
		x.admitNs = l.nowNs
		l.metrics.AdmissionTime.observe(l.nowNs - x.readNs)
	}
	u.put(x.appendRequestHead(u.room(len(x.head)+512), a.length))
	a.send()
}

// send writes as much of the body as may wait in front of the upstream.
func (a *attempt) send() {
	x, u := a.exchange, a.conn
	l := x.loop
	for a.sent < a.length {
		if u.backlog() >= sendPiece {
			u.notify(sendPiece / 2)
			break
		}
		piece := x.bodyPiece(a.sent)
		a.sent += len(piece)
		u.write(piece)
	}
	if a.sent == a.length && a.sentNs == 0 {
		a.sentNs = l.nowNs
		if x.state == relaying {
			x.freeRequest()
		}
	}
	if u.phase == awaitingHead { // else the timer watches the early answer
		l.wheel.arm(&x.timer, l.nowNs+int64(x.binding.Host.Timeouts.FirstByte))
	}
}

// cancel gives the attempt up: nobody waits for it any more. A connection in
// use is closed, since its answer would be in the way.
func (a *attempt) cancel() {
	x := a.exchange
	x.loop.wheel.disarm(&x.timer)
	a.abandonDial()
	if u := a.conn; u != nil {
		a.conn, u.attempt = nil, nil
		u.drop()
	}
}

// abandonDial lets a connection on its way go to the pool instead.
func (a *attempt) abandonDial() {
	a.unlink()
	if a.dial != nil {
		a.dial.owner, a.dial = nil, nil
	}
}

// prepareBody works out what changes in the body on its way to the host.
func (x *exchange) prepareBody() {
	host := x.binding.Host
	x.strip = x.scan.Stream && !x.scan.IncludeUsage && !host.NoStreamOptions &&
		(x.route.ID == wire.ChatCompletions || x.route.ID == wire.Completions)
	x.edits = x.edits[:0]
	switch {
	case x.multipart:
		edit, texts, changed := wire.MultipartEdit(x.texts[:0], x.body, x.scan.Model, x.binding.UpstreamModel)
		if x.texts = texts; changed {
			x.edits = append(x.edits, edit)
		}
	default:
		x.edits, x.texts = x.scan.AppendEdits(x.edits, x.texts[:0], x.body, x.binding.UpstreamModel, x.strip)
	}
	x.attempt.length = wire.EditedLen(x.body, x.edits)
}

// bodyPiece is a run of the edited body at an offset of it, at most sendPiece
// long.
func (x *exchange) bodyPiece(at int) []byte {
	from := 0 // in body
	for i := range x.edits {
		e := &x.edits[i]
		if kept := e.Off - from; at < kept {
			return bounded(x.body[from+at : e.Off])
		} else {
			at -= kept
		}
		if at < len(e.Text) {
			return bounded(e.Text[at:])
		}
		at -= len(e.Text)
		from = e.End
	}
	return bounded(x.body[from+at:])
}

func bounded(p []byte) []byte { return p[:min(len(p), sendPiece)] }

// dialFailed takes the news that no connection came.
func (x *exchange) dialFailed(f DialFault) {
	x.attempt.abandonDial()
	x.fail(dialFaults[f])
}

// dialFaults are the faults of an attempt, by DialFault.
var dialFaults = [...]upstream.Fault{
	DialRefused: upstream.Refused, DialTimeout: upstream.DialTimeout, DialTLS: upstream.TLS,
	DialFull: upstream.HostFull, DialExhausted: upstream.Exhausted,
}

// fail ends an attempt by a fault: another attempt, an error for the caller,
// or, when output is at the client already, a visible break.
func (x *exchange) fail(f upstream.Fault) {
	a := &x.attempt
	l := x.loop
	evidence := a.evidence()
	l.metrics.Attempts[f]++
	a.cancel()
	v := upstream.Next(f, evidence, a.tries)
	if v.Cut { // the answer is still needed: for its failure frame and its usage
		x.breakOff(v.Error)
		return
	}
	x.answer.discard(l)
	if v.Again == upstream.Fresh {
		a.fresh = true
		x.answer.status = 0
		a.open()
		return
	}
	x.refuse(v.Error, "", "", 0)
}

// evidence is what is known about the attempt when it fails.
func (a *attempt) evidence() upstream.Evidence {
	x := a.exchange
	e := upstream.Evidence{Reused: a.reused, Begun: x.state == relaying}
	if u := a.conn; u != nil {
		e.Sent, e.Answered, e.Reached = true, u.heard, u.reached()
		if a.sentNs != 0 {
			e.WaitedNs = x.loop.nowNs - a.sentNs
		}
	}
	return e
}

// breakOff ends an exchange before its answer is whole: with an error if
// nothing is at the client, else so that the client sees the break.
func (x *exchange) breakOff(e wire.Error) {
	c := x.client
	x.attempt.cancel()
	if x.state < relaying {
		c.lastAnswer = true
		x.refuse(e, "", "", 0)
		return
	}
	x.loop.metrics.Errors[e]++
	c.lastAnswer = true
	x.answer.breakStream(x, e)
}
