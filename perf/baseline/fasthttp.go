package baseline

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strconv"

	"github.com/valyala/fasthttp"

	"relay/store/catalog"
	"relay/store/state"
	"relay/upstream"
	"relay/upstream/wire"
)

// fastHTTP is the engine of fasthttp.
type fastHTTP struct {
	core     *core
	server   *fasthttp.Server
	hosts    []fastHost // by catalog.Host.ID
	bearers  map[*catalog.HostKey][]byte
	returned *fieldFilter
}

// A fastHost is a host with its client.
type fastHost struct {
	*catalog.Host
	client *fasthttp.HostClient
	url    string // what all targets begin with
	sent   *fieldFilter
}

// connectionsSpare is how many upstream connections there may be beside those
// in use.
const connectionsSpare = 1024

func newFastHTTP(c *core) engine {
	g := &fastHTTP{core: c, bearers: make(map[*catalog.HostKey][]byte), returned: newFieldFilter(returned)}
	sent := [...]*fieldFilter{
		catalog.OpenAI: newFieldFilter(sentTo(catalog.OpenAI)), catalog.Anthropic: newFieldFilter(sentTo(catalog.Anthropic)),
	}
	for _, h := range c.tables.Hosts {
		g.hosts = append(g.hosts, newFastHost(h, sent[h.Shape], c))
		for _, k := range h.Keys {
			if h.Shape == catalog.OpenAI {
				g.bearers[k] = append([]byte("Bearer "), k.Value...)
			} else {
				g.bearers[k] = k.Value
			}
		}
	}
	g.server = &fasthttp.Server{
		Handler: g.answer, ErrorHandler: g.refuseHead, IdleTimeout: clientIdle, ReadBufferSize: fastReading,
		MaxRequestBodySize: int(c.options.RequestBytesMax), StreamRequestBody: true, DisablePreParseMultipartForm: true,
		NoDefaultServerHeader: true, NoDefaultContentType: true, LazyRequestTime: true,
		Logger: slog.NewLogLogger(c.options.Log.Handler(), slog.LevelDebug),
	}
	return g
}

func newFastHost(h *catalog.Host, sent *fieldFilter, c *core) fastHost {
	dialer := &net.Dialer{Timeout: h.Timeouts.Connect}
	_, limit := c.inflight.Load()
	most := int(limit) + connectionsSpare
	if h.MaxConnections > 0 {
		most = h.MaxConnections
	}
	f := fastHost{
		Host: h, sent: sent, url: "http://" + h.HostPort + h.BasePath,
		client: &fasthttp.HostClient{
			Addr: net.JoinHostPort(h.Hostname, strconv.Itoa(int(h.Port))), IsTLS: h.TLS, MaxConns: most,
			Dial:                func(addr string) (net.Conn, error) { return dialer.Dial("tcp", addr) },
			MaxIdleConnDuration: upstreamIdle, ReadBufferSize: fastReading, StreamResponseBody: true,
			DisablePathNormalizing: true, NoDefaultUserAgentHeader: true,
		},
	}
	if h.TLS {
		f.url = "https://" + h.HostPort + h.BasePath
	}
	if h.Shape == catalog.Anthropic {
		f.url += "/v1"
	}
	return f
}

func (g *fastHTTP) serve(l net.Listener) error { return g.server.Serve(l) }

func (g *fastHTTP) shutdown(ctx context.Context) {
	_ = g.server.ShutdownWithContext(ctx) // past it, what runs is left to the end of the process
	for i := range g.hosts {
		g.hosts[i].client.CloseIdleConnections()
	}
}

// answer serves one request. Streams are written behind its return.
func (g *fastHTTP) answer(ctx *fasthttp.RequestCtx) {
	t := g.core.ticket()
	streams := false // the ticket is the stream's
	defer func() {
		if !streams {
			t.done()
		}
	}()
	refused := g.enter(t, ctx)
	if refused.e == wire.NoError {
		var body io.Reader = ctx.RequestBodyStream()
		if body == nil {
			body = noBody{}
		}
		refused = t.readBody(body, int64(ctx.Request.Header.ContentLength()))
	}
	if refused.e == wire.NoError {
		refused = t.admit()
	}
	if refused.e == wire.NoError {
		streams, refused = g.exchange(t, ctx)
	}
	if refused.e != wire.NoError {
		g.refuse(t, ctx, &refused)
	}
}

type noBody struct{}

// Read is at the end.
func (noBody) Read([]byte) (int, error) { return 0, io.EOF }

// enter takes what decides before the body out of the request.
func (g *fastHTTP) enter(t *ticket, ctx *fasthttp.RequestCtx) refusal {
	h := &ctx.Request.Header
	t.path = append(t.path, ctx.URI().PathOriginal()...)
	for _, field := range [...]struct {
		name  string
		shown []byte
	}{{"X-Wr-Api-Key", relayField}, {"X-Api-Key", keyField}, {"Authorization", bearerField}} {
		for _, value := range h.PeekAll(field.name) {
			show(t, field.shown, value)
		}
	}
	return t.enter(&head{
		method: viewString(h.Method()), version: h.Peek("Anthropic-Version") != nil, id: string(h.Peek("X-Request-Id")),
		encoding: viewString(h.ContentEncoding()), media: viewString(h.ContentType()), announce: int64(h.ContentLength()),
	})
}

// exchange sends the request on and its answer back, or leaves that to a
// stream.
func (g *fastHTTP) exchange(t *ticket, ctx *fasthttp.RequestCtx) (streams bool, refused refusal) {
	answer := fasthttp.AcquireResponse()
	defer func() {
		if !streams {
			_ = answer.CloseBodyStream() // a connection that is not at its end is closed
			fasthttp.ReleaseResponse(answer)
		}
	}()
	if refused = g.send(t, ctx, answer); refused.e != wire.NoError {
		return false, refused
	}
	t.dropBody()
	h := &answer.Header
	refused = t.begin(&hostHead{
		status: answer.StatusCode(), media: viewString(h.ContentType()), encoding: viewString(h.ContentEncoding()),
		retryAfter: viewString(h.Peek("Retry-After")), id: viewString(fastRequestID(h, t.route.Shape)),
	}, answer.BodyStream())
	if refused.e != wire.NoError {
		return false, refused
	}
	if t.answer.mode == holding {
		var e ending
		if refused, e = t.hold(int64(h.ContentLength())); e == unbegun {
			return false, refused
		}
	}
	if t.answer.whole {
		body := t.deliver()
		g.head(t, ctx, answer)
		ctx.Response.SetBody(body)
		return false, refusal{}
	}
	first, e, refused := t.next()
	if e == unbegun {
		return false, refused
	}
	g.head(t, ctx, answer)
	ctx.Response.SetBodyStream(&fastStream{ticket: t, answer: answer, out: first, ending: e}, -1)
	return true, refusal{}
}

// send makes the attempts.
func (g *fastHTTP) send(t *ticket, ctx *fasthttp.RequestCtx, answer *fasthttp.Response) refusal {
	request := fasthttp.AcquireRequest()
	defer fasthttp.ReleaseRequest(request)
	host := &g.hosts[t.binding.Host.ID]
	host.head(t, ctx, request, g.bearers[t.hostKey])
	if b := t.body; len(b.edits) == 0 {
		request.SetBodyRaw(b.bytes)
	} else {
		t.answer.out = wire.AppendEdited(t.answer.out[:0], b.bytes, b.edits) // free until there is an answer
		request.SetBodyRaw(t.answer.out)
	}
	for {
		t.attempt()
		err := host.client.Do(request, answer)
		if err == nil {
			t.answer.out = t.answer.out[:0]
			return refusal{}
		}
		fault := faultOf(err)
		if errors.Is(err, fasthttp.ErrNoFreeConns) {
			fault = upstream.HostFull
		}
		if fault != upstream.Refused || t.event.Attempts == attemptsMax {
			return t.failed(fault)
		}
	}
}

// head makes the head of the request to the host.
func (f *fastHost) head(t *ticket, ctx *fasthttp.RequestCtx, request *fasthttp.Request, credential []byte) {
	shown := t.credential()
	t.texts = append(append(t.texts, f.url...), t.route.Suffix...) // behind the credentials
	target := t.texts[len(t.texts)-len(f.url)-len(t.route.Suffix):]
	if query := ctx.URI().QueryString(); len(query) > 0 && !reveals(viewString(query), shown) {
		target = append(append(target, '?'), query...)
	}
	request.SetRequestURIBytes(target)
	out := &request.Header
	out.SetMethod(fasthttp.MethodPost)
	connection := ctx.Request.Header.Peek("Connection")
	for name, value := range ctx.Request.Header.All() {
		if f.sent.passes(viewString(name)) && !reveals(viewString(value), shown) {
			out.AddBytesKV(name, value)
		}
	}
	if len(connection) > 0 {
		named(string(connection), out.Del)
	}
	out.SetUserAgent("relay")
	out.Set("Accept-Encoding", "identity")
	out.Set("X-Request-Id", t.id)
	if f.Shape == catalog.OpenAI {
		out.SetBytesV("Authorization", credential)
		if f.Organization != "" {
			out.Set("OpenAI-Organization", f.Organization)
		}
		if f.Project != "" {
			out.Set("OpenAI-Project", f.Project)
		}
		return
	}
	out.SetBytesV("X-Api-Key", credential)
	version := ctx.Request.Header.Peek("Anthropic-Version")
	if len(version) == 0 || reveals(viewString(version), shown) {
		out.Set("Anthropic-Version", f.AnthropicVersion)
	} else {
		out.SetBytesV("Anthropic-Version", version)
	}
}

// head makes the head of the host's answer.
func (g *fastHTTP) head(t *ticket, ctx *fasthttp.RequestCtx, answer *fasthttp.Response) {
	ctx.SetStatusCode(answer.StatusCode())
	out := &ctx.Response.Header
	for name, value := range answer.Header.All() {
		if g.returned.passes(viewString(name)) {
			out.AddBytesKV(name, value)
		}
	}
	if connection := answer.Header.Peek("Connection"); len(connection) > 0 {
		named(string(connection), out.Del)
	}
	if id := fastRequestID(&answer.Header, t.route.Shape); len(id) > 0 {
		out.SetBytesV("X-Relay-Upstream-Request-Id", id)
	}
	t.fastFields(out, answer.StatusCode(), t.answer.retryNs)
	if t.answer.mode == streaming {
		if len(out.Peek("Cache-Control")) == 0 {
			out.Set("Cache-Control", "no-cache")
		}
		if len(out.Peek("X-Accel-Buffering")) == 0 {
			out.Set("X-Accel-Buffering", "no")
		}
	}
}

// fastFields adds the fields that every answer has.
func (t *ticket) fastFields(out *fasthttp.ResponseHeader, status int, retryNs int64) {
	out.Set("X-Request-Id", t.id)
	if t.route.Shape == catalog.Anthropic {
		out.Set("Request-Id", t.id)
	}
	if ns := retryAfterNs(status, retryNs); ns > 0 && len(out.Peek("Retry-After")) == 0 {
		out.Set("Retry-After", strconv.FormatInt(upstream.RetryAfterSeconds(ns), 10))
	}
}

// refuse answers with an error of the gateway's own.
func (g *fastHTTP) refuse(t *ticket, ctx *fasthttp.RequestCtx, refused *refusal) {
	status, text := t.refuse(refused)
	ctx.SetStatusCode(status)
	t.fastFields(&ctx.Response.Header, status, refused.retryNs)
	ctx.Response.Header.SetContentType("application/json")
	if refused.retryNs == state.NeverNs {
		ctx.Response.Header.Set("X-Should-Retry", "false")
	}
	if refused.e == wire.MethodNotAllowed {
		ctx.Response.Header.Set("Allow", t.route.ID.Allow())
	}
	ctx.Response.SetBody(text)
}

// refuseHead answers a head that could not be read.
func (g *fastHTTP) refuseHead(ctx *fasthttp.RequestCtx, err error) {
	t := g.core.ticket()
	defer t.done()
	t.takeIDs("")
	e := wire.BadRequest
	if small := (*fasthttp.ErrSmallBuffer)(nil); errors.As(err, &small) {
		e = wire.HeadTooLarge
	}
	g.refuse(t, ctx, &refusal{e: e})
}

// fastRequestID is the id that a host of the shape gave its answer.
func fastRequestID(h *fasthttp.ResponseHeader, s catalog.Shape) []byte {
	own, other := "X-Request-Id", "Request-Id"
	if s == catalog.Anthropic {
		own, other = other, own
	}
	if id := h.Peek(own); len(id) > 0 {
		return id
	}
	return h.Peek(other)
}

// A fastStream gives an answer to the server piece by piece, once the handler
// has returned. Owner: the server, which closes it.
type fastStream struct {
	ticket *ticket
	answer *fasthttp.Response
	out    []byte // not written yet
	ending ending // behind out
}

// errBroken ends a connection in the middle of a message.
var errBroken = errors.New("baseline: the answer broke off")

// SupportsBodyWriteTo says that WriteTo does as Read does.
func (s *fastStream) SupportsBodyWriteTo() bool { return true }

// WriteTo writes the answer. The server flushes each write.
func (s *fastStream) WriteTo(w io.Writer) (n int64, err error) {
	for {
		m, err := w.Write(s.out)
		n += int64(m)
		if err != nil {
			return n, err
		}
		if err := s.turn(); err == io.EOF {
			return n, nil
		} else if err != nil {
			return n, err
		}
	}
}

// Read is for callers who get no chunks.
func (s *fastStream) Read(p []byte) (int, error) {
	for len(s.out) == 0 {
		if err := s.turn(); err != nil {
			return 0, err
		}
	}
	n := copy(p, s.out)
	s.out = s.out[n:]
	return n, nil
}

// turn gets the next piece, once the last was written.
func (s *fastStream) turn() error {
	s.out = nil
	switch s.ending {
	case more:
		s.out, s.ending, _ = s.ticket.next()
		return nil
	case whole:
		return io.EOF
	}
	return errBroken
}

// Close ends the answer, whole or not.
func (s *fastStream) Close() error {
	t := s.ticket
	t.hangUp() // unless it is accounted for, the caller did not take it all
	_ = s.answer.CloseBodyStream()
	fasthttp.ReleaseResponse(s.answer)
	t.done()
	return nil
}
