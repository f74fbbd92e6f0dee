package loop

import (
	"time"

	"relay/admit"
	"relay/httpparse"
	"relay/store/state"
	"relay/upstream"
	"relay/upstream/wire"
)

// appendRequestHead appends the head of the upstream request; length is that
// of its body.
func (x *exchange) appendRequestHead(dst []byte, length int) []byte {
	r := x.parsedHead()
	h := upstream.RequestHead{
		Method: r.Method, Suffix: cut(x.head, x.suffix), Fields: r.Fields,
		Host: x.binding.Host, Key: x.hostKey,
		Credential: admit.Credential(r, x.route.Shape),
		RequestID:  x.requestID(), ContentLength: int64(length),
	}
	if x.query.Len > 0 {
		h.Query = cut(x.head, x.query)
	}
	return upstream.AppendRequestHead(dst, &h)
}

// appendResponseHead appends the head of the upstream's answer as the client
// gets it; length is that of the body, -1 when it is not known.
func (x *exchange) appendResponseHead(dst []byte, length int64) []byte {
	l, a, c := x.loop, &x.answer, x.client
	r := &l.response
	if a.headKept {
		var g httpparse.Progress
		if n, fault := r.Parse(a.head, &g, false); n == 0 || fault != httpparse.OK {
			panic("BUG: a kept response head is not valid")
		}
	}
	h := upstream.ResponseHead{
		Status: r.Status, Fields: r.Fields, Shape: x.route.Shape, RequestID: x.requestID(), Date: l.date(),
		Decoded: a.decoded, EventStream: a.mode == streaming,
		RetryAfterNs: usualRetryNs(r.Status), Limits: x.rateLimits(),
	}
	h.Framing = upstream.Framing{
		Body: httpparse.ByLength, ContentLength: length,
		Close: c.lastAnswer, KeepAlive: x.http10 && !c.lastAnswer,
	}
	switch {
	case a.chunked:
		h.Framing.Body = httpparse.ByChunks
	case length < 0:
		h.Framing.Body = httpparse.UntilClose
	}
	return upstream.AppendResponseHead(dst, &h)
}

// usualRetryNs is the wait told with statuses that ask for another try.
func usualRetryNs(status int) int64 {
	switch status {
	case 429, 503, 529:
		return int64(time.Second)
	}
	return 0
}

// appendErrorHead appends the head of an error of Relay's own.
func (x *exchange) appendErrorHead(dst []byte, status int, e wire.Error, length int, retryNs int64) []byte {
	c := x.client
	if x.loop.draining {
		c.lastAnswer = true
	}
	h := upstream.AnswerHead{
		Status: status, Shape: x.route.Shape, RequestID: x.requestID(), Date: x.loop.date(), ContentLength: int64(length),
		RetryAfterNs: retryNs, Limits: x.rateLimits(), Close: c.lastAnswer, KeepAlive: x.http10 && !c.lastAnswer,
	}
	switch retryNs {
	case 0:
		h.RetryAfterNs = usualRetryNs(status)
	case state.NeverNs:
		h.RetryAfterNs, h.NoRetry = 0, true
	}
	if e == wire.MethodNotAllowed {
		h.Allow = x.route.ID.Allow()
	}
	return upstream.AppendAnswerHead(dst, &h)
}

// appendLocalHead appends the head of an answer that Relay makes itself.
func (x *exchange) appendLocalHead(dst []byte, length int) []byte {
	c := x.client
	return upstream.AppendAnswerHead(dst, &upstream.AnswerHead{
		Status: 200, Shape: x.route.Shape, RequestID: x.requestID(), Date: x.loop.date(), ContentLength: int64(length),
		Close: c.lastAnswer, KeepAlive: x.http10 && !c.lastAnswer,
	})
}

// date is the time of day as a Date field says it (RFC 9110 §5.6.7), made once
// a second.
func (l *Loop) date() []byte {
	if second := l.wallNs / 1e9; second != l.dateSecond || len(l.dateText) == 0 {
		l.dateSecond = second
		l.dateText = time.Unix(second, 0).UTC().AppendFormat(l.dateText[:0], "Mon, 02 Jan 2006 15:04:05 GMT")
	}
	return l.dateText
}
