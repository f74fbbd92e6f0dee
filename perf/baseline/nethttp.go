package baseline

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"

	"relay/store/catalog"
	"relay/store/state"
	"relay/upstream"
	"relay/upstream/wire"
)

// netHTTP is the engine of net/http.
type netHTTP struct {
	core     *core
	server   *http.Server
	hosts    []netHost                     // by catalog.Host.ID
	bearers  map[*catalog.HostKey][]string // values of the credential fields
	returned *fieldFilter
}

// A netHost is a host with its transport.
type netHost struct {
	*catalog.Host
	transport *http.Transport
	template  *http.Request // of all requests
	url       url.URL       // without path
	path      string        // what all paths begin with
	urls      map[string]*url.URL
	sent      *fieldFilter
	version   []string // Anthropic-Version when the caller names none
}

// Values that many requests share. Nobody changes them.
var (
	userAgent    = []string{"relay"}
	identity     = []string{"identity"}
	jsonMedia    = []string{"application/json"}
	noCache      = []string{"no-cache"}
	noBuffering  = []string{"no"}
	emptyRequest = (&http.Request{Method: http.MethodPost, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1})
)

func newNetHTTP(c *core) engine {
	g := &netHTTP{core: c, bearers: make(map[*catalog.HostKey][]string), returned: newFieldFilter(returned)}
	sent := [...]*fieldFilter{
		catalog.OpenAI: newFieldFilter(sentTo(catalog.OpenAI)), catalog.Anthropic: newFieldFilter(sentTo(catalog.Anthropic)),
	}
	for _, h := range c.tables.Hosts {
		g.hosts = append(g.hosts, newNetHost(h, sent[h.Shape], c))
		for _, k := range h.Keys {
			if h.Shape == catalog.OpenAI {
				g.bearers[k] = []string{"Bearer " + string(k.Value)}
			} else {
				g.bearers[k] = []string{string(k.Value)}
			}
		}
	}
	g.server = &http.Server{
		Handler: g, ReadHeaderTimeout: headTime, IdleTimeout: clientIdle, MaxHeaderBytes: headBytesMax,
		ErrorLog: slog.NewLogLogger(c.options.Log.Handler(), slog.LevelDebug),
	}
	return g
}

func newNetHost(h *catalog.Host, sent *fieldFilter, c *core) netHost {
	idle := c.idlePerHost()
	dialer := &net.Dialer{Timeout: h.Timeouts.Connect}
	n := netHost{
		Host: h, sent: sent, url: url.URL{Scheme: "http", Host: h.HostPort}, path: h.BasePath,
		urls: make(map[string]*url.URL), version: []string{h.AnthropicVersion}, template: emptyRequest,
		transport: &http.Transport{
			DialContext: dialer.DialContext, TLSHandshakeTimeout: h.Timeouts.Connect,
			DisableCompression: true, MaxIdleConns: idle, MaxIdleConnsPerHost: idle, MaxConnsPerHost: h.MaxConnections,
			IdleConnTimeout: upstreamIdle, ReadBufferSize: transportReading, WriteBufferSize: transportWriting,
			MaxResponseHeaderBytes: headBytesMax,
		},
	}
	if h.TLS {
		n.url.Scheme = "https"
	}
	if h.Shape == catalog.Anthropic {
		n.path += "/v1"
	}
	for _, suffix := range []string{
		"/chat/completions", "/completions", "/embeddings", "/responses", "/messages", "/messages/count_tokens",
	} {
		u := n.url
		u.Path = n.path + suffix
		n.urls[suffix] = &u
	}
	return n
}

// idlePerHost is how many idle upstream connections are kept.
func (c *core) idlePerHost() int {
	if c.options.IdlePerHost > 0 {
		return c.options.IdlePerHost
	}
	_, limit := c.inflight.Load()
	return int(limit)
}

func (g *netHTTP) serve(l net.Listener) error { return g.server.Serve(l) }

func (g *netHTTP) shutdown(ctx context.Context) {
	if g.server.Shutdown(ctx) != nil {
		g.server.Close()
	}
	for i := range g.hosts {
		g.hosts[i].transport.CloseIdleConnections()
	}
}

// ServeHTTP serves one request.
func (g *netHTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	t := g.core.ticket()
	defer t.done()
	t.caller = r.Context()
	refused := g.enter(t, r)
	if refused.e == wire.NoError {
		refused = t.readBody(r.Body, r.ContentLength)
	}
	if refused.e == wire.NoError {
		refused = t.admit()
	}
	if refused.e == wire.NoError {
		refused = g.exchange(t, w, r)
	}
	if refused.e != wire.NoError && !t.left() {
		g.refuse(t, w, &refused)
	}
}

// enter takes what decides before the body out of the request.
func (g *netHTTP) enter(t *ticket, r *http.Request) refusal {
	path, _, _ := strings.Cut(r.RequestURI, "?")
	if !strings.HasPrefix(path, "/") {
		path = r.URL.EscapedPath()
	}
	t.path = append(t.path, path...)
	for _, field := range [...]struct {
		name  string
		shown []byte
	}{{"X-Wr-Api-Key", relayField}, {"X-Api-Key", keyField}, {"Authorization", bearerField}} {
		for _, value := range r.Header[field.name] {
			show(t, field.shown, value)
		}
	}
	refused := t.enter(&head{
		method: r.Method, version: r.Header["Anthropic-Version"] != nil, id: first(r.Header["X-Request-Id"]),
		encoding: first(r.Header["Content-Encoding"]), media: first(r.Header["Content-Type"]), announce: r.ContentLength,
	})
	t.ids = []string{t.id}
	return refused
}

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// exchange sends the request on and its answer back.
func (g *netHTTP) exchange(t *ticket, w http.ResponseWriter, r *http.Request) refusal {
	host := &g.hosts[t.binding.Host.ID]
	answer, refused := host.send(t, r, g.bearers[t.hostKey])
	if answer == nil {
		return refused
	}
	defer answer.Body.Close()
	t.dropBody()
	refused = t.begin(&hostHead{
		status: answer.StatusCode, media: first(answer.Header["Content-Type"]), encoding: first(answer.Header["Content-Encoding"]),
		retryAfter: first(answer.Header["Retry-After"]), id: hostRequestID(answer.Header, t.route.Shape),
	}, answer.Body)
	if refused.e != wire.NoError {
		return refused
	}
	if t.answer.mode == holding {
		var e ending
		if refused, e = t.hold(answer.ContentLength); e == unbegun || e == gone {
			return refused
		}
	}
	if !t.answer.whole {
		return g.relay(t, w, answer)
	}
	body := t.deliver()
	g.head(t, w, answer, int64(len(body)))
	w.Write(body) // the caller who has gone was accounted for as one who was there: the row comes first
	return refusal{}
}

// relay passes an answer on as it comes.
func (g *netHTTP) relay(t *ticket, w http.ResponseWriter, answer *http.Response) refusal {
	flusher := w.(interface{ FlushError() error })
	for begun := false; ; begun = true {
		out, e, refused := t.next()
		if e == unbegun || e == gone {
			return refused
		}
		if !begun {
			length := int64(-1)
			if t.answer.mode == passing {
				length = answer.ContentLength
			}
			g.head(t, w, answer, length)
		}
		if len(out) > 0 {
			if _, err := w.Write(out); err != nil {
				t.hangUp()
				return refusal{}
			}
		}
		if e == whole {
			return refusal{} // the server flushes the rest together with the end
		}
		if err := flusher.FlushError(); err != nil {
			t.hangUp()
			return refusal{}
		}
		if e == broken {
			panic(http.ErrAbortHandler) // the connection ends without the end of the message
		}
	}
}

// send makes the attempts. Without an answer the request is refused, or was
// accounted for.
//
// A transport writes head and body at once only when it knows the type of the
// body's reader, and such a reader does not tell when it is done with its
// bytes. So a small body is copied once, for the collector to take, which is
// cheaper than a second write; a large one is read out of its pooled buffer.
func (n *netHost) send(t *ticket, r *http.Request, credential []string) (*http.Response, refusal) {
	header := n.header(t, r, credential)
	address := n.address(t, r)
	for {
		t.attempt()
		out := n.template.WithContext(t.caller)
		out.URL, out.Host, out.Header = address, n.HostPort, header
		out.ContentLength = int64(t.body.length)
		if t.body.length <= inlineBytesMax {
			text := wire.AppendEdited(make([]byte, 0, t.body.length), t.body.bytes, t.body.edits)
			out.Body = io.NopCloser(bytes.NewReader(text))
			out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
		} else {
			out.Body = t.body.reader()
			out.GetBody = func() (io.ReadCloser, error) { return t.body.reader(), nil } // within RoundTrip only
		}
		answer, err := n.transport.RoundTrip(out)
		if err == nil {
			return answer, refusal{}
		}
		if t.left() {
			return nil, refusal{}
		}
		fault := faultOf(err)
		if fault != upstream.Refused || t.event.Attempts == attemptsMax {
			return nil, t.failed(fault)
		}
	}
}

// address is where the request goes.
func (n *netHost) address(t *ticket, r *http.Request) *url.URL {
	known := n.urls[string(t.route.Suffix)]
	_, query, asked := strings.Cut(r.RequestURI, "?")
	if !asked || reveals(query, t.credential()) {
		return known
	}
	u := *known
	u.RawQuery = query
	return &u
}

// reveals reports whether a text holds the caller's relay key.
func reveals(text string, credential []byte) bool {
	return len(credential) > 0 && strings.Contains(text, viewString(credential))
}

// header makes the fields of the request to the host. The caller's values are
// shared, not copied.
func (n *netHost) header(t *ticket, r *http.Request, credential []string) http.Header {
	shown := t.credential()
	count := ownFieldsMost
	for name := range r.Header {
		if n.sent.passes(name) {
			count++
		}
	}
	out := make(http.Header, count) // up to 8 are one small object
	for name, values := range r.Header {
		if !n.sent.passes(name) {
			continue
		}
		safe := true
		for _, v := range values {
			safe = safe && !reveals(v, shown)
		}
		if safe {
			out[name] = values
		}
	}
	for _, v := range r.Header["Connection"] {
		named(v, func(name string) { delete(out, name) })
	}
	out["User-Agent"] = userAgent
	out["Accept-Encoding"] = identity
	out["X-Request-Id"] = t.ids
	if n.Shape == catalog.OpenAI {
		out["Authorization"] = credential
		if n.Organization != "" {
			out["Openai-Organization"] = []string{n.Organization}
		}
		if n.Project != "" {
			out["Openai-Project"] = []string{n.Project}
		}
		return out
	}
	out["X-Api-Key"] = credential
	out["Anthropic-Version"] = n.version
	if version := r.Header["Anthropic-Version"]; len(version) > 0 && version[0] != "" && !reveals(version[0], shown) {
		out["Anthropic-Version"] = version[:1]
	}
	return out
}

// head writes the head of the host's answer. length is -1 when it is not
// known.
func (g *netHTTP) head(t *ticket, w http.ResponseWriter, answer *http.Response, length int64) {
	out := w.Header()
	for name, values := range answer.Header {
		if g.returned.passes(name) {
			out[name] = values
		}
	}
	for _, v := range answer.Header["Connection"] {
		named(v, func(name string) { delete(out, name) })
	}
	delete(out, "Content-Length")
	values := make([]string, 2) // one object for both
	if id := hostRequestID(answer.Header, t.route.Shape); id != "" {
		values[0] = id
		out["X-Relay-Upstream-Request-Id"] = values[0:1:1]
	}
	t.ownFields(out, answer.StatusCode, t.answer.retryNs)
	if t.answer.mode == streaming {
		if out["Cache-Control"] == nil {
			out["Cache-Control"] = noCache
		}
		if out["X-Accel-Buffering"] == nil {
			out["X-Accel-Buffering"] = noBuffering
		}
	}
	if _, told := out["Content-Type"]; !told {
		out["Content-Type"] = nil // else the server would guess
	}
	if length >= 0 {
		values[1] = strconv.FormatInt(length, 10)
		out["Content-Length"] = values[1:2:2]
	}
	w.WriteHeader(answer.StatusCode)
}

// ownFields adds the fields that every answer has.
func (t *ticket) ownFields(out http.Header, status int, retryNs int64) {
	out["X-Request-Id"] = t.ids
	if t.route.Shape == catalog.Anthropic {
		out["Request-Id"] = t.ids
	}
	if ns := retryAfterNs(status, retryNs); ns > 0 && out["Retry-After"] == nil {
		out["Retry-After"] = []string{strconv.FormatInt(upstream.RetryAfterSeconds(ns), 10)}
	}
}

// refuse answers with an error of the gateway's own.
func (g *netHTTP) refuse(t *ticket, w http.ResponseWriter, refused *refusal) {
	status, text := t.refuse(refused)
	out := w.Header()
	t.ownFields(out, status, refused.retryNs)
	out["Content-Type"] = jsonMedia
	out["Content-Length"] = []string{strconv.Itoa(len(text))}
	if refused.retryNs == state.NeverNs {
		out["X-Should-Retry"] = []string{"false"}
	}
	if refused.e == wire.MethodNotAllowed {
		out["Allow"] = []string{t.route.ID.Allow()}
	}
	w.WriteHeader(status)
	w.Write(text)
}

// hostRequestID is the id that a host of the shape gave its answer.
func hostRequestID(h http.Header, s catalog.Shape) string {
	own, other := "X-Request-Id", "Request-Id"
	if s == catalog.Anthropic {
		own, other = other, own
	}
	if id := first(h[own]); id != "" {
		return id
	}
	return first(h[other])
}

// faultOf says why an attempt failed without an answer.
func faultOf(err error) upstream.Fault {
	var op *net.OpError
	var record tls.RecordHeaderError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.EADDRNOTAVAIL):
		return upstream.Exhausted
	case errors.As(err, &op) && op.Op == "dial" && op.Timeout():
		return upstream.DialTimeout
	case errors.As(err, &op) && op.Op == "dial":
		return upstream.Refused
	case errors.As(err, &record), errors.As(err, &certificate):
		return upstream.TLS
	case errors.Is(err, os.ErrDeadlineExceeded):
		return upstream.FirstByteTimeout
	}
	return upstream.ResetAfterSend
}
