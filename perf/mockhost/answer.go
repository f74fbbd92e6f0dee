package mockhost

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// answer reads the body of c.req and answers. It returns false when the
// connection is of no further use.
func (c *conn) answer() bool {
	e, s := c.req.route()
	switch {
	case c.req.chunked:
		c.server.tally.chunked.Add(1)
		c.req.close = true
		return c.refuse(s, 400, "invalid_request_error", "", "this host wants a Content-Length: chunked request bodies are not accepted")
	case c.req.contentLength > bodyBytesMax:
		return c.answerEarly(s)
	}
	if text := joinScenario(c.server.options.Scenario, c.req.scenarioText(s)); text != "" {
		if sc, err := c.server.scenario(text); err == nil && sc.early {
			return c.answerEarly(s)
		}
	}
	if c.req.expects && c.req.contentLength > 0 && !c.write([]byte("HTTP/1.1 100 Continue\r\n\r\n")) {
		return false
	}
	ok, early := c.readBody()
	if early {
		return c.answerEarly(s)
	}
	if !ok {
		return false
	}
	started := time.Now()
	switch e {
	case mockStats:
		body, _ := json.Marshal(c.server.Stats())
		return c.respond(s, 200, "application/json", body, started)
	case mockLast:
		body, _ := json.Marshal(c.server.Requests())
		return c.respond(s, 200, "application/json", body, started)
	}
	c.server.tally.requests.Add(1)
	if c.server.options.Record {
		c.server.record(&c.req)
	}
	return c.provide(e, s, started)
}

// provide answers a request of the provider's API.
func (c *conn) provide(e endpoint, s shape, started time.Time) bool {
	if key := c.server.options.Key; key != "" && c.req.credential(s) != key {
		kind, code := "invalid_request_error", "invalid_api_key"
		if s == anthropicShape {
			kind = "authentication_error"
		}
		return c.refuse(s, 401, kind, code, "incorrect API key provided")
	}
	if e == unknown {
		return c.refuse(s, 404, "not_found_error", "", "unknown path "+c.req.path)
	}
	if e == models {
		if c.req.method != "GET" {
			return c.refuse(s, 405, "invalid_request_error", "", "method not allowed")
		}
		return c.respond(s, 200, "application/json", appendModels(nil, s), started)
	}
	if c.req.method != "POST" {
		return c.refuse(s, 405, "invalid_request_error", "", "method not allowed")
	}
	f, err := c.readFields(e, s)
	if err == "" {
		text, wrong := c.scenarioFor(s, f.model)
		if wrong != nil {
			return c.refuse(s, 400, "invalid_request_error", "mock_scenario", wrong.Error())
		}
		sc := c.scenario
		if sc.times > 0 && !c.server.strikes(f.model+" "+text, sc.times, sc.flap) {
			sound := *sc
			sound.trouble = noTrouble
			sc = &sound
		}
		if sc.menu > 0 {
			sc = c.server.deal(f.model+" "+text, sc)
		}
		return c.perform(e, s, f, sc, started)
	}
	return c.refuse(s, 400, "invalid_request_error", "", err)
}

// readFields scans the body and refuses what the real hosts refuse; the text
// says why, "" is a sound request.
func (c *conn) readFields(e endpoint, s shape) (fields, string) {
	if bytes.HasPrefix(c.req.contentType, []byte("multipart/form-data")) {
		return formFields(c.req.body), ""
	}
	f, err := scan(c.req.body)
	switch {
	case err != nil:
		return f, err.Error()
	case s == anthropicShape && len(c.req.version) == 0:
		return f, "anthropic-version: header is required"
	case f.model == "" && e != moderations && e != images:
		return f, "you must provide a model parameter"
	case e == messages && f.maxTokens < 0:
		return f, "max_tokens: Field required"
	case e == messages && f.sampling != "" && string(c.req.version) == "2026-10-21":
		return f, f.sampling + ": Extra inputs are not permitted"
	case f.streamOptions && !f.stream && s == openaiShape:
		return f, "The 'stream_options' parameter is only allowed when 'stream' is enabled."
	}
	if f.modelJSON == nil {
		f.modelJSON = []byte(`"mock"`)
	}
	return f, ""
}

// formFields finds the model of a multipart body.
func formFields(body []byte) fields {
	f := fields{maxTokens: -1, modelJSON: []byte(`"mock"`)}
	if _, rest, ok := bytes.Cut(body, []byte(`name="model"`)); ok {
		if _, rest, ok = bytes.Cut(rest, []byte("\r\n\r\n")); ok {
			value, _, _ := bytes.Cut(rest, crlf)
			f.model, f.modelJSON = string(value), appendString(nil, string(value))
		}
	}
	return f
}

// perform does what the scenario says.
func (c *conn) perform(e endpoint, s shape, f fields, sc *scenario, started time.Time) bool {
	switch sc.transport {
	case reset:
		c.abort()
		return false
	case hangUp:
		return false
	case silent:
		return c.hold()
	}
	if sc.early {
		return c.answerEarly(s)
	}
	c.req.close = c.req.close || sc.connectionClose
	c.idle = sc.trouble
	if sc.head != noHeadFault {
		return c.answerWithWrongHead(sc)
	}
	if sc.interim > 0 && !c.write(bytes.Repeat([]byte("HTTP/1.1 103 Early Hints\r\nlink: </a>; rel=preload\r\n\r\n"), sc.interim)) {
		return false
	}
	c.reply = reply{endpoint: e, fields: f, sc: sc, id: c.server.ids.Add(1), created: started.Unix()}
	if sc.status >= 300 || sc.html || sc.status == 204 {
		return c.refuseByScenario(s, sc, started)
	}
	if sc.prefillRefused && isPrefill(f.prompt) {
		return c.refuse(s, 400, "invalid_request_error", "", "This model does not support assistant message prefill. The conversation must end with a user message.")
	}
	if err := c.reply.plan(); err != nil {
		return c.refuse(s, 400, "invalid_request_error", "", err.Error())
	}
	if f.stream && e.spoken() && !sc.jsonOnStream {
		return c.stream(s, started)
	}
	return c.answerWhole(e, s, sc, started)
}

// answerWhole sends one body.
func (c *conn) answerWhole(e endpoint, s shape, sc *scenario, started time.Time) bool {
	r := &c.reply
	c.scratch = voices[e].whole(c.scratch[:0], r)
	switch {
	case sc.emptyBody:
		c.scratch = c.scratch[:0]
	case sc.jsonBroken:
		c.scratch = c.scratch[:len(c.scratch)*2/3]
	}
	due := started
	switch {
	case e == countTokens:
	case sc.unpaced(e):
		due = due.Add(sc.delay())
	default:
		due = due.Add(sc.delay() + sc.rest(len(r.words.ends)))
	}
	if !c.waitUntil(due) {
		return false
	}
	kind := "application/json"
	if e == speechAudio {
		kind = "audio/mpeg"
	}
	cut := sc.cut
	if cut < 0 {
		cut = sc.cutReset
	}
	if cut < 0 && sc.stall < 0 {
		return c.respond(s, 200, kind, c.scratch, started)
	}
	c.out = c.appendHead(c.out[:0], s, 200, kind, int64(len(c.scratch)), started)
	c.out = append(c.out, c.scratch[:len(c.scratch)/2]...)
	if !c.flush() {
		return false
	}
	if sc.stall >= 0 {
		return c.hold()
	}
	if sc.cutReset >= 0 {
		c.abort()
	}
	return false
}

// unpaced says that an endpoint has no tokens to wait for.
func (s *scenario) unpaced(e endpoint) bool { return !e.spoken() }

// respond sends a whole answer in one write.
func (c *conn) respond(s shape, status int, contentType string, body []byte, started time.Time) bool {
	if c.gzips() {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		z.Write(body)
		z.Close()
		body = b.Bytes()
	}
	c.out = c.appendHead(c.out[:0], s, status, contentType, int64(len(body)), started)
	if status != 204 && status != 304 {
		c.out = append(c.out, body...)
	}
	ok := c.flush()
	if sc := c.reply.sc; sc != nil && sc.closeDelimited {
		return false
	}
	return ok && !c.req.close
}

func (c *conn) gzips() bool { return c.reply.sc != nil && c.reply.sc.gzip }

// chunkedLength asks appendHead for chunked framing.
const chunkedLength = -1

// What hosts send along; a gateway strips or renames most of it.
const (
	fieldsOpenAI = "openai-organization: mock-org\r\nopenai-version: 2020-10-01\r\nopenai-processing-ms: 1\r\n" +
		"x-ratelimit-limit-requests: 10000\r\nx-ratelimit-remaining-requests: 9999\r\nx-ratelimit-reset-requests: 6ms\r\n"
	fieldsAnthropic = "anthropic-organization-id: mock-org\r\n" +
		"anthropic-ratelimit-requests-limit: 4000\r\nanthropic-ratelimit-requests-remaining: 3999\r\n"
	fieldsBoth = "server: mock\r\nset-cookie: __cf_bm=mock; path=/; HttpOnly\r\ncf-ray: mock-0\r\n"
)

// appendHead appends a head. The duration in it runs from started to now.
func (c *conn) appendHead(dst []byte, s shape, status int, contentType string, length int64, started time.Time) []byte {
	c.server.tally.status[status].Add(1)
	dst = appendInt(dst, "HTTP/1.1 ", int64(status))
	dst = append(append(dst, ' '), http.StatusText(status)...)
	dst = append(append(dst, "\r\ncontent-type: "...), contentType...)
	sc := c.reply.sc
	switch {
	case sc != nil && sc.closeDelimited || length == chunkedLength && c.req.http10:
		c.req.close = true
	case length == chunkedLength:
		dst = append(dst, "\r\ntransfer-encoding: chunked"...)
	case status != 204 && status != 304:
		dst = appendInt(dst, "\r\ncontent-length: ", length)
	}
	if c.gzips() {
		dst = append(dst, "\r\ncontent-encoding: gzip"...)
	}
	if c.req.close {
		dst = append(dst, "\r\nconnection: close"...)
	}
	if length == chunkedLength {
		dst = append(dst, "\r\ncache-control: no-cache"...)
	}
	name, rest := "\r\nx-request-id: ", fieldsOpenAI
	if s == anthropicShape {
		name, rest = "\r\nrequest-id: ", fieldsAnthropic
	}
	dst = appendID(append(dst, name...), "req_", c.reply.id, 0)
	if sc != nil && sc.retryAfter != "" {
		dst = append(append(dst, "\r\nretry-after: "...), retryAfter(sc.retryAfter)...)
	}
	dst = appendInt(dst, "\r\nx-mock-duration-us: ", time.Since(started).Microseconds())
	dst = append(append(append(dst, "\r\n"...), rest...), fieldsBoth...)
	return append(dst, "\r\n"...)
}

func retryAfter(text string) string {
	seconds, ok := strings.CutPrefix(text, retryDateMark)
	if !ok {
		return text
	}
	n, _ := strconv.Atoi(seconds)
	return time.Now().Add(time.Duration(n) * time.Second).UTC().Format(http.TimeFormat)
}
