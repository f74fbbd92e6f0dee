package loop

import (
	"fmt"

	"relay/admit"
	"relay/httpparse"
	"relay/store/catalog"
	"relay/upstream"
	"relay/upstream/wire"
	"relay/usage"
)

// exchangeState is where an exchange rests between two callbacks.
type exchangeState uint8

const (
	arriving exchangeState = iota // its body is incomplete
	parked                        // admission awaits the shared state store
	waiting                       // an attempt runs, nothing is at the client
	relaying                      // output is at the client: no other attempt from here
	over                          // terminal: accounted for
)

// exchangeNext holds the legal successors of each state, one bit per state.
var exchangeNext = [...]uint8{
	arriving: 1<<parked | 1<<waiting | 1<<over,
	parked:   1<<waiting | 1<<over,
	waiting:  1<<relaying | 1<<over,
	relaying: 1 << over,
	over:     0,
}

// exchange is one request and its response. It is its own object: its client
// may leave before it is over. Owner: its loop; it is used again after over.
type exchange struct {
	loop   *Loop
	client *client // nil once the caller has gone
	tables *catalog.Tables

	key     *catalog.RelayKey
	model   *catalog.Model
	binding *catalog.Binding
	hostKey *catalog.HostKey

	route  wire.Route // Suffix is nil: see suffix
	suffix wire.Span  // of the path in head
	query  wire.Span  // in head

	head      []byte // the request head, kept for the attempts
	body      []byte // the request body as the caller sent it
	bodyBytes int64  // length of body, also after it was freed
	bodyLeft  int64  // bytes announced and still to come; -1 = chunked
	chunks    httpparse.Chunks
	scan      wire.Scan
	edits     []wire.Edit // what changes in body on its way out
	texts     []byte      // texts of edits

	limits  admit.Demand // on them
	attempt attempt
	timer   timer
	answer  answer

	startNs   int64 // head read
	readNs    int64 // last request byte read
	admitNs   int64 // handed to an upstream
	firstNs   int64 // first output written to the client
	topUpAt   int64 // bytes of generated text at which the limits are charged next
	startWall int64

	event   usage.Event
	id      [requestIDMax]byte
	name    [modelNameMax]byte // model as the caller wrote it
	hostID  [upstreamIDMax]byte
	idLen   uint8
	nameLen int16

	state     exchangeState
	multipart bool
	detached  bool // parted from its client and given back
	slot      bool // holds a slot of the in-flight cap
	undecided bool // it was parked, and has not gone on
	stalled   bool // the client reads too slowly: what produces output is paused
	strip     bool // the usage chunk is ours and not passed on
	http10    bool
	bodiless  bool // HEAD: the answer has no body
}

// enter moves x to next. An illegal move is a bug in this package.
func (x *exchange) enter(next exchangeState) {
	if exchangeNext[x.state]&(1<<next) == 0 {
		panic(fmt.Sprintf("BUG: exchange %d -> %d", x.state, next))
	}
	x.state = next
}

// newExchange starts an exchange for a client.
func (l *Loop) newExchange(c *client) *exchange {
	var x *exchange
	if n := len(l.exchanges); n > 0 {
		x = l.exchanges[n-1]
		l.exchanges[n-1] = nil
		l.exchanges = l.exchanges[:n-1]
		edits, texts := x.edits[:0], x.texts[:0]
		*x = exchange{edits: edits, texts: texts}
	} else {
		x = new(exchange)
	}
	x.loop, x.client, x.tables = l, c, l.tables
	x.startNs, x.startWall = l.nowNs, l.wallNs
	x.timer.wakes = x
	x.attempt.exchange = x
	c.exchange = x
	l.metrics.Exchanges++
	return x
}

// recycle keeps a finished exchange for reuse. Nothing points to it any more.
func (l *Loop) recycle(x *exchange) {
	if len(l.exchanges) >= exchangesKept {
		return
	}
	if cap(x.texts) > textScratchKept {
		x.texts = nil
	}
	l.exchanges = append(l.exchanges, x)
}

// requestID is the id told to the caller and to the upstream.
func (x *exchange) requestID() []byte { return x.id[:x.idLen] }

// onTimer is the one clock of an exchange's attempt: the connection, the
// answer's head, the silence of its body.
func (x *exchange) onTimer() {
	a := &x.attempt
	switch {
	case x.state == parked:
		x.parkedTimer()
	case a.dial != nil:
		x.dialFailed(DialTimeout)
	case a.conn != nil && a.conn.phase == awaitingHead:
		x.fail(upstream.FirstByteTimeout)
	case a.conn != nil:
		x.silenceTimer()
	}
}

// callerGone ends the exchange of a client that has left: its attempt is
// cancelled at once, and what it used so far is recorded.
func (x *exchange) callerGone() {
	x.client = nil
	if x.state == over {
		return
	}
	x.event.HungUp = true
	x.loop.metrics.HungUp++
	if x.attempt.tries > 0 {
		x.loop.metrics.Attempts[upstream.ClientGone]++
	}
	x.attempt.cancel()
	x.end(usage.Cancelled, wire.NoError)
}

// crash ends an exchange after a panic in one of its callbacks. The panic may
// have come from anywhere, so each step stands on its own.
func (x *exchange) crash() {
	c := x.client
	x.attempt.cancel()
	if c != nil && x.state < relaying {
		c.lastAnswer = true
		x.refuse(wire.InternalError, "", "", 0)
		return
	}
	switch x.state {
	case over:
	case relaying: // what the client has is charged
		x.account(usage.Cut, wire.InternalError)
	default:
		x.account(usage.Failed, wire.InternalError)
	}
	x.release()
	if c != nil {
		c.exchange, x.client = nil, nil
		c.drop()
	}
	if !x.detached {
		x.detach()
	}
}

// release gives back what admission granted: the slot of the in-flight cap, and
// what is left of the limits.
func (x *exchange) release() {
	if x.slot {
		x.slot = false
		x.loop.ports.Inflight.Release()
	}
	x.settleLimits()
}
