package upstream

import (
	"relay/httpparse"
	"relay/upstream/wire"
)

// A ResponseHead is what the head of an answer is made from that a host gave
// and a caller gets.
type ResponseHead struct {
	Status    int
	Fields    []httpparse.Field // of the host
	Shape     wire.Shape        // of the caller's route
	RequestID []byte            // ours
	Date      []byte            // now: told when the host tells none (RFC 9110 §6.6.1); nil = not told

	Framing
	Decoded      bool  // the body goes out without the content coding that it came in
	EventStream  bool  // the body is server-sent events
	RetryAfterNs int64 // told when the host tells none; 0 = not told
	Limits       RateLimits
}

// Framing says how an answer ends and what becomes of its connection.
type Framing struct {
	Body          httpparse.BodyKind
	ContentLength int64 // with ByLength: bytes
	Close         bool  // the connection is closed behind the answer
	KeepAlive     bool  // an HTTP/1.0 client asked for another exchange and gets it
}

// unreturned are the host's fields that no caller gets: about the host's own
// connection and origin, about our account, or false once the body has been
// edited. Limits are of keys that are pooled, so they say nothing to one
// caller.
var unreturned = newFieldSet(
	"set-cookie", "set-cookie2", "server", "via", "alt-svc", "strict-transport-security", "expect-ct",
	"public-key-pins", "nel", "report-to", "reporting-endpoints", "clear-site-data", "x-powered-by",
	"cf-*", "x-envoy-*", "proxy-*", "x-wr-*", "x-relay-*",
	"openai-organization", "openai-project", "anthropic-organization-id",
	"x-ratelimit-*", "anthropic-ratelimit-*",
	"x-request-id", "request-id",
	"content-md5", "digest", "content-digest", "repr-digest",
)

// UpstreamRequestID is the id that a host of the shape gave its answer, or nil.
func UpstreamRequestID(fields []httpparse.Field, s wire.Shape) []byte {
	own, other := "x-request-id", "request-id"
	if s == wire.Anthropic {
		own, other = other, own
	}
	if id := find(fields, own); len(id) > 0 {
		return id
	}
	return find(fields, other)
}

// AppendResponseHead appends the whole head, with the empty line.
func AppendResponseHead(dst []byte, a *ResponseHead) []byte {
	dst = httpparse.AppendStatusLine(dst, a.Status)
	dst = appendRequestID(dst, a.Shape, a.RequestID)
	if id := UpstreamRequestID(a.Fields, a.Shape); len(id) > 0 {
		dst = httpparse.AppendField(dst, "x-relay-upstream-request-id", id)
	}
	retry, cache, buffering, dated := a.RetryAfterNs > 0, a.EventStream, a.EventStream, len(a.Date) == 0
	var name [fieldNameBytesMax]byte
	for i := range a.Fields {
		f := &a.Fields[i]
		n := lower(&name, f.Name)
		if unreturned.has(n) || a.Decoded && string(n) == "content-encoding" || httpparse.HopByHop(a.Fields, f.Name) {
			continue
		}
		switch string(n) {
		case "retry-after":
			retry = false
		case "date":
			dated = true
		case "cache-control":
			cache = false
		case "x-accel-buffering":
			buffering = false
		}
		dst = f.Append(dst)
	}
	if !dated {
		dst = httpparse.AppendField(dst, "date", a.Date)
	}
	if retry {
		dst = appendRetryAfter(dst, a.RetryAfterNs)
	}
	dst = a.Limits.append(dst, a.Shape)
	if cache {
		dst = append(dst, "cache-control: no-cache\r\n"...)
	}
	if buffering { // proxies before us must pass events on as they come
		dst = append(dst, "x-accel-buffering: no\r\n"...)
	}
	dst = a.Framing.append(dst, a.Status)
	return append(dst, "\r\n"...)
}

// append appends the fields of the framing (RFC 9112 §6, §9.3).
func (f *Framing) append(dst []byte, status int) []byte {
	bodiless := status < 200 || status == 204 || status == 304
	switch {
	case bodiless:
	case f.Body == httpparse.ByLength:
		dst = httpparse.AppendFieldUint(dst, "content-length", uint64(f.ContentLength))
	case f.Body == httpparse.NoBody: // said, or the client would wait for the end
		dst = append(dst, "content-length: 0\r\n"...)
	case f.Body == httpparse.ByChunks:
		dst = append(dst, "transfer-encoding: chunked\r\n"...)
	}
	switch {
	case f.Close, f.Body == httpparse.UntilClose && !bodiless:
		dst = append(dst, "connection: close\r\n"...)
	case f.KeepAlive:
		dst = append(dst, "connection: keep-alive\r\n"...)
	}
	return dst
}

// appendRequestID appends our id, and for Anthropic callers also under the name
// that their SDKs read.
func appendRequestID(dst []byte, s wire.Shape, id []byte) []byte {
	dst = httpparse.AppendField(dst, "x-request-id", id)
	if s == wire.Anthropic {
		dst = httpparse.AppendField(dst, "request-id", id)
	}
	return dst
}

func appendRetryAfter(dst []byte, ns int64) []byte {
	return httpparse.AppendFieldUint(dst, "retry-after", uint64(RetryAfterSeconds(ns)))
}
