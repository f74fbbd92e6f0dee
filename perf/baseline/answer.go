package baseline

import (
	"io"
	"time"

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

// An answer is the upstream's answer on its way to the caller. It is part of
// its ticket.
type answer struct {
	source    io.Reader    // the upstream's body
	json      *wire.Answer // kept by the ticket
	stream    *wire.Stream // kept by the ticket
	buffer    []byte       // of reads
	out       []byte       // what goes out, or is held
	status    int          // the upstream's; 0 = no head yet
	retryNs   int64        // wait that the host's error asks for
	lastAt    time.Time    // last byte from the upstream
	firstAt   time.Time    // first output for the caller
	bodyOut   int64        // bytes given to the caller
	mode      answerMode
	whole     bool // a held answer is whole and proved
	begun     bool // the caller has a part of it
	readsJSON bool
}

// An ending says how an answer goes on behind the bytes that come with it.
type ending uint8

const (
	more    ending = iota // there is more
	whole                 // it is complete, and accounted for
	broken                // it must not look complete; accounted for
	unbegun               // it failed before the caller had a part of it: not accounted for
	gone                  // the caller has left; accounted for
)

// A hostHead is what an engine read of the upstream's answer.
type hostHead struct {
	status     int
	media      string // Content-Type
	encoding   string // Content-Encoding
	retryAfter string
	id         string // of the upstream's own
}

// begin takes the head of the upstream's answer, and decides what happens to
// the body, which body reads.
func (t *ticket) begin(h *hostHead, body io.Reader) refusal {
	a := &t.answer
	a.status, a.source, a.lastAt = h.status, body, time.Now()
	t.event.UpstreamRequestID = viewString(t.hostID[:copy(t.hostID[:], h.id)])
	fault := upstream.StatusFault(h.status)
	if fault == upstream.CredentialRefused || fault == upstream.BadAnswer {
		return t.failed(fault)
	}
	if h.encoding != "" && h.encoding != "identity" { // we asked for none
		return t.failed(upstream.BadAnswer)
	}
	switch {
	case h.status >= 400:
		a.mode = holding
		a.retryNs, _ = upstream.RetryAfterNs([]byte(h.retryAfter), a.lastAt.UnixNano())
	case hasPrefixFold(h.media, "text/event-stream"):
		a.mode = streaming
		if a.stream == nil {
			a.stream = new(wire.Stream)
		}
		a.stream.Reset(t.route.ID, t.strip)
	case hasPrefixFold(h.media, "application/json"), h.media == "" && h.status != 204:
		a.mode, a.readsJSON = holding, true
		if a.json == nil {
			a.json = new(wire.Answer)
		}
		a.json.Reset(t.route.ID)
	case hasPrefixFold(h.media, "text/html"):
		return t.failed(upstream.BadAnswer)
	default:
		a.mode = passing
	}
	return refusal{}
}

// hold reads a JSON answer to its end and proves it. When it is too long, it is
// passed on from here. The caller who leaves meanwhile ends it.
func (t *ticket) hold(announced int64) (refusal, ending) {
	a := &t.answer
	want := int64(readBytes)
	if announced >= 0 {
		want = min(announced+1, heldBytesMax)
	}
	if int64(cap(a.out)) < want {
		a.out = make([]byte, 0, want)
	}
	for {
		if len(a.out) == cap(a.out) {
			a.out = append(a.out, 0)[:len(a.out)]
		}
		from := len(a.out)
		n, err := a.source.Read(a.out[from:cap(a.out)])
		a.out = a.out[:from+n]
		if a.readsJSON {
			a.json.Feed(a.out[from:])
		}
		switch {
		case err == io.EOF:
			a.lastAt = time.Now()
			return t.prove()
		case err != nil && t.left():
			return refusal{}, gone
		case err != nil:
			return t.failed(upstream.Truncated), unbegun
		case len(a.out) > heldBytesMax && a.status >= 400:
			return t.junk(), unbegun
		case len(a.out) > heldBytesMax:
			a.mode = passing
			return refusal{}, more
		}
	}
}

// prove looks at a whole held answer.
func (t *ticket) prove() (refusal, ending) {
	a := &t.answer
	switch {
	case a.status >= 400 && !wire.ErrorBodyOK(a.out, t.route.Shape):
		return t.junk(), unbegun
	case a.status < 400 && !a.json.End():
		return t.failed(upstream.BadAnswer), unbegun
	}
	a.whole = true
	return refusal{}, whole
}

// junk tells in our own words of a host's error whose body is not one of the
// shape.
func (t *ticket) junk() refusal {
	e := wire.BadGateway
	switch t.answer.status {
	case 429:
		e = wire.RateLimited
	case 503, 529:
		e = wire.Overloaded
	case 504:
		e = wire.UpstreamTimeout
	}
	return refusal{e: e, retryNs: t.answer.retryNs}
}

// deliver accounts for a held answer that is whole, and returns it.
func (t *ticket) deliver() []byte {
	a := &t.answer
	t.event.Status = a.status
	outcome := usage.Completed
	if a.status >= 400 {
		outcome = usage.Failed
	}
	a.bodyOut, a.firstAt = int64(len(a.out)), a.lastAt
	t.settle(outcome, wire.NoError)
	return a.out
}

// next reads on and returns bytes for the caller, which are borrowed. Unless
// the ending is more, they are the last ones. r is set with unbegun only.
func (t *ticket) next() (out []byte, e ending, r refusal) {
	a := &t.answer
	if a.mode == passing && len(a.out) > 0 && !a.begun { // what was held
		return t.give(a.out), more, refusal{}
	}
	if a.buffer == nil {
		a.buffer = make([]byte, readBytes)
	}
	for {
		n, err := a.source.Read(a.buffer)
		piece := a.buffer[:n]
		a.lastAt = time.Now()
		switch {
		case a.mode == streaming:
			a.out = a.stream.Feed(a.out[:0], piece)
			piece = a.out
		case a.readsJSON:
			a.json.Feed(piece)
		}
		switch {
		case err == io.EOF:
			return t.finish(piece)
		case err != nil && t.left():
			return nil, gone, refusal{}
		case err != nil:
			return t.breakOff(piece, upstream.Truncated)
		case len(piece) > 0:
			return t.give(piece), more, refusal{}
		}
	}
}

// give counts bytes for the caller.
func (t *ticket) give(out []byte) []byte {
	a := &t.answer
	a.begun = a.begun || len(out) > 0
	a.bodyOut += int64(len(out))
	if a.firstAt.IsZero() && len(out) > 0 && (a.mode != streaming || a.stream.Events > 0) {
		a.firstAt = a.lastAt
	}
	t.event.Status = a.status
	return out
}

// finish ends an answer whose body came to its end: whole if a stream's
// terminal event came, else as a cut.
func (t *ticket) finish(piece []byte) (out []byte, e ending, r refusal) {
	a := &t.answer
	outcome := usage.Completed
	switch {
	case a.mode == streaming:
		tail, complete := a.stream.End(piece)
		a.out, piece = tail, tail
		if !complete && !a.stream.Failed {
			return t.breakOff(piece, upstream.Truncated)
		}
		if a.stream.Failed {
			outcome = usage.Cut
		}
	case a.readsJSON:
		a.json.End() // for its usage: what it says of the JSON comes too late
	}
	out = t.give(piece)
	t.settle(outcome, wire.NoError)
	return out, whole, refusal{}
}

// breakOff ends an answer that the upstream broke off: with an error if the
// caller has nothing yet, else visibly.
func (t *ticket) breakOff(piece []byte, f upstream.Fault) (out []byte, e ending, r refusal) {
	a := &t.answer
	if !a.begun && len(piece) == 0 {
		return nil, unbegun, t.failed(f)
	}
	v := upstream.Next(f, upstream.Evidence{Sent: true, Answered: true, Begun: true}, t.event.Attempts)
	if a.mode == streaming {
		piece = a.stream.AppendFailure(piece, v.Error, []byte(t.id))
		a.out = piece
	}
	out = t.give(piece)
	t.settle(usage.Cut, v.Error)
	return out, broken, refusal{}
}

// left reports whether the caller has gone, as far as the engine can tell, and
// ends the request if so.
func (t *ticket) left() bool {
	if t.caller == nil || t.caller.Err() == nil {
		return false
	}
	t.hangUp()
	return true
}

// hangUp ends the request of a caller who has gone.
func (t *ticket) hangUp() {
	if !t.accounted {
		t.settle(usage.Cancelled, wire.NoError)
	}
}

// refuse makes the body of an error, and accounts for it.
func (t *ticket) refuse(r *refusal) (status int, text []byte) {
	a := &t.answer
	status = r.e.Status(t.route.Shape)
	a.out = wire.AppendError(a.out[:0], t.route.Shape, r.e, r.message, r.param, []byte(t.id))
	a.bodyOut = int64(len(a.out))
	t.event.Status = status
	outcome := usage.Refused
	if t.event.Attempts > 0 {
		outcome = usage.Failed
	}
	t.settle(outcome, r.e)
	return status, a.out
}

// used is what the upstream reported, and how many bytes of text an estimate
// may count on.
func (a *answer) used(id wire.RouteID) (used wire.Usage, text int64) {
	switch {
	case a.status == 0:
	case a.mode == streaming:
		return a.stream.Usage, a.stream.OutputBytes
	case a.readsJSON:
		used = a.json.Usage
	}
	if id != wire.Embeddings {
		text = a.bodyOut
	}
	return used, text
}
