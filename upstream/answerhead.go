package upstream

import (
	"relay/httpparse"
	"relay/upstream/wire"
)

// An AnswerHead is what the head of an answer is made from that Relay itself
// gives: an error, or the list of models. The body is JSON.
type AnswerHead struct {
	Status    int
	Shape     wire.Shape // of the caller's route
	RequestID []byte     // ours
	Date      []byte     // now, as a Date field says it (RFC 9110 §6.6.1); nil = not told

	ContentLength int64 // bytes
	RetryAfterNs  int64 // 0 = not told
	Limits        RateLimits
	Allow         string // with 405
	NoRetry       bool   // SDKs that would try again by status are told not to
	Close         bool   // the connection is closed behind the answer
	KeepAlive     bool   // an HTTP/1.0 client asked for another exchange and gets it
}

// AppendAnswerHead appends the whole head, with the empty line.
func AppendAnswerHead(dst []byte, a *AnswerHead) []byte {
	dst = httpparse.AppendStatusLine(dst, a.Status)
	dst = appendRequestID(dst, a.Shape, a.RequestID)
	if len(a.Date) > 0 {
		dst = httpparse.AppendField(dst, "date", a.Date)
	}
	dst = append(dst, "content-type: application/json\r\n"...)
	if a.RetryAfterNs > 0 {
		dst = appendRetryAfter(dst, a.RetryAfterNs)
	}
	dst = a.Limits.append(dst, a.Shape)
	if a.Allow != "" {
		dst = appendText(dst, "allow", a.Allow)
	}
	if a.NoRetry {
		dst = append(dst, "x-should-retry: false\r\n"...)
	}
	f := Framing{Body: httpparse.ByLength, ContentLength: a.ContentLength, Close: a.Close, KeepAlive: a.KeepAlive}
	dst = f.append(dst, a.Status)
	return append(dst, "\r\n"...)
}
