package loop

import (
	"relay/httpparse"
	"relay/upstream"
	"relay/upstream/wire"
	"relay/usage"
)

// answerMode is what happens to the body of an upstream's answer.
type answerMode uint8

const (
	holding   answerMode = iota // kept until it is whole and proved, within a bound
	streaming                   // events are passed on as they come
	passing                     // bytes are passed on as they come
)

// answer is the upstream's answer on its way to the client. It is part of its
// exchange.
// Invariant: head is set from the head's arrival until it is at the client.
type answer struct {
	json      *wire.Answer // reads along in a JSON answer; from loop.answers
	stream    *wire.Stream // watches a streamed answer; from loop.streams
	head      []byte       // the upstream's head: borrowed within its callback, then kept
	held      []byte       // body so far, while holding
	rest      []byte       // borrowed last piece of the body, for finish in the same callback
	status    int          // the upstream's; 0 = no head yet
	lastNs    int64        // last byte from the upstream
	outNs     int64        // last byte given to the client
	bodyOut   int64        // body bytes given to the client
	retryNs   int64        // wait that the host's error asks for; 0 = none told
	announced int64        // length of the body as the upstream said it, or -1
	inflater  Inflater     // set while the body has to be decoded
	encoded   int          // bytes that the inflater has not used up
	partial   int          // memory of the stream for an event that is not whole, charged
	mode      answerMode
	source    uint8 // who made the answer that the client gets
	headKept  bool  // head is ours, not borrowed
	nextOwed  bool  // the inflater waits to be asked for the next piece
	chunked   bool  // the client gets chunks
	decoded   bool  // the client gets the body without the upstream's encoding
}

// begin takes the upstream's head and decides what happens to the body. It
// reports false when the attempt failed by it.
func (a *answer) begin(x *exchange, r *httpparse.Response) bool {
	l := x.loop
	a.status, a.announced = r.Status, -1
	if r.Body == httpparse.ByLength {
		a.announced = r.ContentLength
	}
	x.takeHostID(r)
	fault := upstream.StatusFault(r.Status)
	if fault == upstream.CredentialRefused || fault == upstream.BadAnswer {
		if fault == upstream.CredentialRefused {
			l.metrics.KeysDown++
		}
		x.fail(fault)
		return false
	}
	if encoding := r.Field("content-encoding"); encoding != nil && !httpparse.EqualFold(encoding, "identity") {
		if !a.inflate(x, encoding) {
			return false
		}
	}
	contentType := r.Field("content-type")
	json := hasPrefixFold(contentType, "application/json")
	switch {
	case r.Status >= 400:
		a.mode = holding
		a.retryNs, _ = upstream.RetryAfterNs(r.Field("retry-after"), l.wallNs)
	case hasPrefixFold(contentType, "text/event-stream"):
		a.mode = streaming
		a.stream = l.streams.take()
		a.stream.Reset(x.route.ID, x.strip)
		l.metrics.Streams++
	case json || len(contentType) == 0 && r.Status != 204:
		a.mode, a.json = holding, l.answers.take()
		a.json.Reset(x.route.ID)
	case hasPrefixFold(contentType, "text/html"):
		x.fail(upstream.BadAnswer)
		return false
	default:
		a.mode = passing
	}
	a.lastNs, a.outNs = l.nowNs, l.nowNs
	x.silenceTimer() // ends the attempt when the first output is overdue
	return x.attempt.conn != nil
}

// keepHead copies a borrowed head that is needed beyond its callback.
func (a *answer) keepHead(l *Loop) {
	if a.head != nil && !a.headKept {
		a.head = append(l.buffers.take(len(a.head)), a.head...)
		a.headKept = true
	}
}

// dropHead forgets the head once it is at the client or of no use.
func (a *answer) dropHead(l *Loop) {
	if a.headKept {
		l.buffers.give(a.head)
	}
	a.head, a.headKept = nil, false
}

// discard forgets an answer that is not passed on.
func (a *answer) discard(l *Loop) {
	a.dropHead(l)
	if a.stream != nil {
		l.metrics.Streams--
		l.buffers.used -= int64(a.partial)
		a.partial = 0
		if a.stream.Held() <= textScratchKept { // else its buffer would stay, too
			l.streams.give(a.stream)
		}
		a.stream = nil
	}
	if a.json != nil {
		l.answers.give(a.json)
		a.json = nil
	}
	l.buffers.give(a.held)
	a.held, a.rest = nil, nil
	a.nextOwed = false
	if a.inflater != nil {
		a.inflater.Stop()
		a.inflater = nil
	}
	l.buffers.used -= int64(a.encoded)
	a.encoded = 0
}

// take takes a piece of the body. last says that the announced length ends
// with it; finish follows in the same callback.
func (a *answer) take(x *exchange, p []byte, last bool) {
	if a.inflater == nil {
		a.takePlain(x, p, last)
		return
	}
	a.encoded += len(p)
	x.loop.buffers.used += int64(len(p))
	a.inflater.Write(p)
	x.pauseForInflater()
}

// takePlain takes a piece of the body that is not encoded.
func (a *answer) takePlain(x *exchange, p []byte, last bool) {
	l := x.loop
	if a.json != nil {
		a.json.Feed(p)
	}
	switch {
	case a.mode == streaming:
		a.relay(x, p)
	case last && len(a.held) == 0:
		a.rest = p
	case a.mode == passing:
		a.pass(x, p)
	case a.status >= 400 && (len(a.held)+len(p) > heldBytesMax || !l.buffers.room(int64(len(p)))):
		a.refuseJunk(x)
	case len(a.held)+len(p) > heldBytesMax || !l.buffers.room(int64(len(p))):
		a.mode = passing // too long to be held: from here on a break is seen as a break
		a.pass(x, a.held)
		l.buffers.give(a.held)
		a.held = nil
		a.pass(x, p)
	default:
		if a.held == nil {
			a.held = l.buffers.take(len(p))
		}
		a.held = append(l.buffers.grow(a.held, len(p)), p...)
	}
}

// pass gives body bytes to the client.
func (a *answer) pass(x *exchange, p []byte) {
	if x.state == waiting {
		a.commit(x, a.announced)
	}
	a.written(x, len(p))
	a.frame(x.client, p)
	x.pauseForClient()
}

// relay gives the events in p to the client.
func (a *answer) relay(x *exchange, p []byte) {
	l := x.loop
	l.scratch = a.stream.Feed(l.scratch[:0], p)
	l.buffers.used += int64(a.stream.Held() - a.partial)
	a.partial = a.stream.Held()
	x.topUp()
	if len(l.scratch) == 0 {
		return
	}
	a.send(x, l.scratch)
	x.pauseForClient()
}

// send gives event bytes to the client, the head before the first.
func (a *answer) send(x *exchange, p []byte) {
	if x.state == waiting {
		a.commit(x, -1)
	}
	a.written(x, len(p))
	a.frame(x.client, p)
}

// frame writes body bytes as the client's head has announced them.
func (a *answer) frame(c *client, p []byte) {
	if a.chunked {
		c.put(httpparse.AppendChunk(c.room(len(p)+chunkFrameMax), p))
	} else {
		c.write(p)
	}
}

// frameLast writes the last body bytes, and the end of the message.
func (a *answer) frameLast(c *client, p []byte) {
	a.frame(c, p)
	if a.chunked {
		c.put(append(c.room(len(httpparse.LastChunk)), httpparse.LastChunk...))
	}
}

// written counts body bytes given to the client.
func (a *answer) written(x *exchange, n int) {
	l := x.loop
	a.outNs = l.nowNs
	a.bodyOut += int64(n)
	if x.firstNs == 0 && n > 0 && (a.mode != streaming || a.stream.Events > 0) { // a keep-alive is no output
		x.firstNs = l.nowNs
		l.metrics.FirstTokenTime.observe(l.nowNs - x.readNs)
	}
}

// commit gives the head to the client: from here no other attempt is made.
// length is that of the body, -1 when it is not known.
func (a *answer) commit(x *exchange, length int64) {
	l, c := x.loop, x.client
	x.enter(relaying)
	a.source = fromUpstream
	a.chunked = length < 0 && !x.http10
	c.untilClose = length < 0 && x.http10 && a.mode != streaming // a stream ends in a frame that tells
	if l.draining || length < 0 && x.http10 {
		c.lastAnswer = true
	}
	c.put(x.appendResponseHead(c.room(len(a.head)+256), length))
	x.event.Status = a.status
	a.dropHead(l)
	if x.attempt.sentNs != 0 { // an early answer: the rest still goes out
		x.freeRequest()
	}
}

// freeRequest gives the memory of the request back: no attempt needs it again.
func (x *exchange) freeRequest() {
	b := &x.loop.buffers
	b.give(x.head)
	if x.body != nil {
		x.bodyBytes = int64(len(x.body))
	}
	b.give(x.body)
	x.head, x.body = nil, nil
}

// finish takes the end of a complete body.
func (a *answer) finish(x *exchange) {
	if a.inflater != nil {
		a.inflater.End()
		return
	}
	a.finishPlain(x)
}

func (a *answer) finishPlain(x *exchange) {
	switch a.mode {
	case streaming:
		a.finishStream(x)
	case passing:
		a.finishPassed(x)
	default:
		a.finishHeld(x)
	}
}

// finishHeld proves a held answer and gives it to the client.
func (a *answer) finishHeld(x *exchange) {
	l := x.loop
	body := a.held
	if a.rest != nil {
		body = a.rest
	}
	if a.status >= 400 {
		if !wire.ErrorBodyOK(body, x.route.Shape) {
			a.refuseJunk(x)
			return
		}
	} else if !a.json.End() {
		x.fail(upstream.BadAnswer)
		return
	}
	l.metrics.Attempts[upstream.StatusFault(a.status)]++
	a.commit(x, int64(len(body)))
	a.written(x, len(body))
	outcome := usage.Completed
	if a.status >= 400 {
		outcome = usage.Failed
	}
	x.account(outcome, wire.NoError)
	x.client.write(body)
	x.detach()
}

// refuseJunk tells in our own words of a host's error whose body is not one of
// the shape.
func (a *answer) refuseJunk(x *exchange) {
	e, retryNs := junkErrors[a.status], a.retryNs
	if e == wire.NoError {
		e = wire.BadGateway
	}
	x.loop.metrics.Attempts[upstream.BadAnswer]++
	a.discard(x.loop)
	x.refuse(e, "", "", retryNs)
}

// junkErrors says what a caller is told when an upstream's error has a body
// that is not of the shape, by status; others are bad gateways.
var junkErrors = [600]wire.Error{
	429: wire.RateLimited, 503: wire.Overloaded, 529: wire.Overloaded, 504: wire.UpstreamTimeout,
}

// finishPassed ends an answer that was passed on as it came.
func (a *answer) finishPassed(x *exchange) {
	rest := a.rest
	if x.state == waiting {
		a.commit(x, int64(len(rest)))
	}
	if a.json != nil {
		a.json.End() // for its usage: what it says of the JSON comes too late
	}
	x.loop.metrics.Attempts[upstream.NoFault]++
	a.written(x, len(rest))
	x.account(usage.Completed, wire.NoError)
	a.frameLast(x.client, rest)
	x.detach()
}

// finishStream ends a stream: whole if its terminal event came, else as a cut.
func (a *answer) finishStream(x *exchange) {
	l := x.loop
	tail, complete := a.stream.End(l.scratch[:0])
	l.scratch = tail
	if !complete && !a.stream.Failed {
		x.fail(upstream.Truncated)
		return
	}
	fault, outcome := upstream.NoFault, usage.Completed
	if a.stream.Failed {
		fault, outcome = upstream.ServerError, usage.Cut
	}
	l.metrics.Attempts[fault]++
	if x.state == waiting {
		a.commit(x, -1)
	}
	a.written(x, len(tail))
	x.account(outcome, wire.NoError)
	a.frameLast(x.client, tail)
	x.detach()
}
