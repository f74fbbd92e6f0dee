package loop

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"

	"relay/admit"
	"relay/httpparse"
	"relay/upstream/wire"
	"relay/usage"
)

// begin starts the exchange of a request whose head was just parsed into
// loop.request. after is what came behind the head; begin returns how many
// bytes of it belong to a body that is not wanted.
func (c *client) begin(head, after []byte) int {
	l := c.loop
	r := &l.request
	x := l.newExchange(c)
	c.lastAnswer = !r.KeepAlive
	x.http10 = r.Minor == 0
	x.bodiless = string(r.Method) == "HEAD"
	x.route = wire.FindRoute(r.Path, r.Field("anthropic-version") != nil)
	x.suffix = spanIn(head, x.route.Suffix)
	x.query = spanIn(head, r.Query)
	x.takeIDs(r)
	x.event.BytesIn = int64(len(head))

	unwanted := x.unwantedBody(after)
	if e, message := x.checkHead(r); e != wire.NoError {
		c.enter(running)
		c.lastAnswer = c.lastAnswer || unwanted < 0
		x.refuse(e, message, "", 0)
		return max(unwanted, 0)
	}
	if x.route.ID == wire.Models || x.route.ID == wire.ModelByID {
		c.enter(running)
		c.lastAnswer = c.lastAnswer || unwanted < 0
		x.answerModels(r)
		return max(unwanted, 0)
	}
	x.expectBody(head, after)
	return 0
}

// unwantedBody is the number of bytes of a body that will not be read, when
// all of them are here already, and -1 when they are not: the connection then
// ends with the answer, so that they are never taken for a request.
func (x *exchange) unwantedBody(after []byte) int {
	r := &x.loop.request
	switch {
	case r.Chunked:
		return -1
	case r.ContentLength > int64(len(after)):
		return -1
	}
	return int(max(r.ContentLength, 0))
}

// checkHead decides what can be decided before the body: path and method,
// announced length, in-flight cap, relay key, in this order.
func (x *exchange) checkHead(r *httpparse.Request) (wire.Error, string) {
	l := x.loop
	if x.route.ID == wire.NoRoute {
		return wire.UnknownPath, ""
	}
	if !x.route.ID.Allows(r.Method) {
		return wire.MethodNotAllowed, ""
	}
	if r.ContentLength > l.config.RequestBytesMax {
		return wire.BodyTooLarge, ""
	}
	if !l.ports.Inflight.Acquire() {
		l.metrics.Shed[ShedInflight]++
		return wire.Overloaded, ""
	}
	x.slot = true
	key, e := admit.Key(x.tables, admit.Credential(r, x.route.Shape), l.wallNs/1e9)
	if e != wire.NoError {
		return e, ""
	}
	x.key = key
	if encoding := r.Field("content-encoding"); encoding != nil && !httpparse.EqualFold(encoding, "identity") {
		return wire.UnsupportedMedia, "the request body must not be encoded: send it without Content-Encoding"
	}
	contentType := r.Field("content-type")
	x.multipart = hasPrefixFold(contentType, "multipart/form-data")
	return wire.NoError, ""
}

// takeIDs takes the caller's request id if it is printable ASCII of bounded
// length, else makes one: the text of the UUIDv7 that the usage row gets.
func (x *exchange) takeIDs(r *httpparse.Request) {
	l := x.loop
	id := &x.event.RequestID
	binary.BigEndian.PutUint64(id[0:], uint64(l.wallNs/1e6)<<16|l.random.Uint64()&0x0fff|0x7000)
	binary.BigEndian.PutUint64(id[8:], l.random.Uint64()&0x3fffffffffffffff|0x8000000000000000)
	if sent := r.Field("x-request-id"); len(sent) > 0 && len(sent) <= requestIDMax && printable(sent) {
		x.idLen = uint8(copy(x.id[:], sent))
		x.event.CallerID = viewString(x.id[:x.idLen])
		return
	}
	t := x.id[:36]
	hex.Encode(t[0:8], id[0:4])
	hex.Encode(t[9:13], id[4:6])
	hex.Encode(t[14:18], id[6:8])
	hex.Encode(t[19:23], id[8:10])
	hex.Encode(t[24:36], id[10:16])
	t[8], t[13], t[18], t[23] = '-', '-', '-', '-'
	x.idLen = 36
}

func printable(p []byte) bool {
	for _, b := range p {
		if b < ' ' || b > '~' {
			return false
		}
	}
	return true
}

func hasPrefixFold(p []byte, lower string) bool {
	return len(p) >= len(lower) && httpparse.EqualFold(p[:len(lower)], lower)
}

// refuseHead answers a request whose head could not be understood, and ends
// the connection: what follows cannot be told apart from it.
func (c *client) refuseHead(head []byte, fault httpparse.Error) {
	e := wire.BadRequest
	for _, known := range headErrors {
		if known.Status(wire.OpenAI) == fault.Status() {
			e = known
		}
	}
	c.refuseWithout(head, e, fault.String())
}

// headErrors are the errors that a head can be refused with, found by status.
var headErrors = [...]wire.Error{
	wire.BadRequest, wire.BodyTooLarge, wire.TargetTooLong, wire.ExpectationFailed,
	wire.HeadTooLarge, wire.NotImplemented, wire.BadVersion,
}

// refuseSlow answers a head that did not come in time.
func (c *client) refuseSlow() { c.refuseWithout(c.in, wire.RequestTimeout, "") }

// refuseWithout answers without an exchange: there was no request. The shape
// is guessed from the first line of what there is of the head.
func (c *client) refuseWithout(head []byte, e wire.Error, message string) {
	l := c.loop
	shape := wire.OpenAI
	line, _, _ := bytes.Cut(head, []byte("\n"))
	if bytes.Contains(line, []byte("/messages")) || bytes.Contains(line, []byte(" /anthropic/")) {
		shape = wire.Anthropic
	}
	x := l.newExchange(c)
	x.route.Shape = shape
	x.takeIDs(&httpparse.Request{})
	c.enter(running)
	c.lastAnswer = true
	x.refuse(e, message, "", 0)
}

// refuse answers with an error of Relay's own and ends the exchange. retryNs
// is when the caller may come again; 0 = the error's usual time, if any.
func (x *exchange) refuse(e wire.Error, message, param string, retryNs int64) {
	c, l := x.client, x.loop
	if c == nil {
		x.end(usage.Cancelled, e)
		return
	}
	if c.state == receiving {
		c.lastAnswer = c.lastAnswer || x.bodyLeft != 0 // the rest of its body cannot be a request
		c.enter(running)
	}
	l.metrics.Errors[e]++
	l.scratch = wire.AppendError(l.scratch[:0], x.route.Shape, e, message, param, x.requestID())
	x.answer.bodyOut = int64(len(l.scratch))
	status := e.Status(x.route.Shape)
	out := c.room(512 + len(l.scratch))
	out = x.appendErrorHead(out, status, e, len(l.scratch), retryNs)
	if !x.bodiless {
		out = append(out, l.scratch...)
	}
	c.put(out)
	x.event.Status = status
	x.answer.source = fromRelay
	outcome := usage.Refused
	if x.event.Attempts > 0 {
		outcome = usage.Failed
	}
	x.end(outcome, e)
}
