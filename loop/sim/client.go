package sim

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"relay/httpparse"
	"relay/loop"
)

// A kind is what a client asks for.
type kind int

const (
	chat kind = iota
	chatStream
	message
	modelList
	unknownPath
	wrongMethod
	wrongKey
	unknownModel
	badJSON
	badHead
	tooLarge
	kinds
)

// request is one request of a client and what may come of it.
type request struct {
	kind   kind
	marker string // in the request's text, and so in its own answer
	bytes  []byte
	closes bool // the connection ends with the answer
}

// client is a fake client: it sends requests, reads answers, and leaves when
// it likes.
type client struct {
	w     *World
	s     *socket
	todo  []request
	asked []request // sent, not answered

	in       []byte
	head     httpparse.Response
	progress httpparse.Progress
	chunks   httpparse.Chunks
	inBody   bool
	left     int64
	body     []byte

	slow, ended, left_ bool
	answers            int
}

func (w *World) newClient() *client {
	c := &client{w: w, slow: w.chance(w.trouble.slow)}
	for range 1 + w.rng.IntN(6) {
		c.todo = append(c.todo, w.newRequest())
	}
	w.clients = append(w.clients, c)
	s := newSocket(w, c)
	w.callback(nil, func() { s.conn = w.loop.Accept(s, loop.Peer{}) })
	c.next()
	if w.chance(w.trouble.leave) {
		w.after(int64(w.rng.IntN(3e9)), c.leave)
	}
	return c
}

func (w *World) newRequest() request {
	r := request{kind: kind(w.rng.IntN(int(kinds)))}
	if w.chance(700) {
		r.kind = kind(w.rng.IntN(3))
	}
	w.order++
	r.marker = fmt.Sprintf("m%d-%d", w.seed, w.order)
	text := r.marker + strings.Repeat(" é", w.pick(0, 10, 500, 9000))
	model := "gpt-mock"
	path, key := "/v1/chat/completions", "rk-sim"
	method, more := "POST", ""
	body := fmt.Sprintf(`{"messages":[{"role":"user","content":%q}],"stream":%v,"model":%q}`, text, r.kind == chatStream, model)
	switch r.kind {
	case message:
		path = "/v1/messages"
		body = fmt.Sprintf(`{"max_tokens":10,"model":"claude-mock","messages":[{"role":"user","content":%q}]}`, text)
	case modelList:
		method, path, body = "GET", "/v1/models", ""
	case unknownPath:
		path = "/v1/nothing"
	case wrongMethod:
		method = "PUT"
	case wrongKey:
		key = "rk-wrong"
	case unknownModel:
		body = strings.Replace(body, "gpt-mock", "no-such-model", 1)
	case badJSON:
		body = body[:len(body)-2]
	case badHead:
		more = "Bad Name: x\r\n"
	case tooLarge:
		body = strings.Repeat("x", 65<<10)
	}
	if w.chance(100) {
		more += "Connection: close\r\n"
		r.closes = true
	}
	head := method + " " + path + " HTTP/1.1\r\nHost: sim\r\nAuthorization: Bearer " + key + "\r\n" + more
	switch {
	case body == "":
	case w.chance(200):
		head += "Transfer-Encoding: chunked\r\n"
		var chunked []byte
		for p := []byte(body); len(p) > 0; {
			n := min(len(p), 1+w.rng.IntN(3000))
			chunked = httpparse.AppendChunk(chunked, p[:n])
			p = p[n:]
		}
		body = string(chunked) + httpparse.LastChunk
	default:
		head += "Content-Length: " + strconv.Itoa(len(body)) + "\r\n"
	}
	r.bytes = []byte(head + "\r\n" + body)
	return r
}

func (c *client) attach(s *socket) { c.s = s }
func (c *client) stalled() bool    { return c.slow && c.w.chance(800) }

// next sends the next request, sometimes more than one at once.
func (c *client) next() {
	for len(c.todo) > 0 && !c.ended {
		r := c.todo[0]
		c.todo = c.todo[1:]
		c.asked = append(c.asked, r)
		c.s.send(r.bytes)
		if r.closes || r.kind == badHead || !c.w.chance(150) {
			return
		}
	}
}

// leave goes away by FIN or reset.
func (c *client) leave() {
	if c.ended {
		return
	}
	c.ended, c.left_ = true, true
	if c.w.chance(500) {
		c.s.fin()
	} else {
		c.s.reset()
	}
}

// got reads answers.
func (c *client) got(p []byte) {
	if c.left_ {
		return
	}
	c.in = append(c.in, p...)
	for len(c.in) > 0 && c.step() {
	}
}

// step reads a head or a piece of a body; false = more is needed.
func (c *client) step() bool {
	if !c.inBody {
		n, fault := c.head.Parse(c.in, &c.progress, false)
		if fault != httpparse.OK {
			c.w.fault("client got a bad head: %s: %.200q", fault, c.in)
			c.in = nil
			return false
		}
		if n == 0 {
			return false
		}
		c.in = append([]byte(nil), c.in[n:]...)
		c.progress = httpparse.Progress{}
		if c.head.Status == 100 {
			return true
		}
		if len(c.asked) == 0 {
			c.w.fault("client got an answer that it did not ask for: %d", c.head.Status)
			return false
		}
		c.inBody, c.chunks, c.left, c.body = true, httpparse.Chunks{}, c.head.ContentLength, nil
		if c.head.Body == httpparse.NoBody {
			c.answered(true)
		}
		return true
	}
	switch c.head.Body {
	case httpparse.ByLength:
		n := int(min(c.left, int64(len(c.in))))
		c.body = append(c.body, c.in[:n]...)
		c.in = c.in[n:]
		if c.left -= int64(n); c.left == 0 {
			c.answered(true)
		}
	case httpparse.ByChunks:
		data, n, done, fault := c.chunks.Next(c.in)
		if fault != httpparse.OK {
			c.w.fault("client got a bad chunk: %s", fault)
			c.in = nil
			return false
		}
		c.body = append(c.body, data...)
		c.in = c.in[n:]
		if done {
			c.answered(true)
		}
	default:
		c.body = append(c.body, c.in...)
		c.in = nil
	}
	return true
}

// answered checks a whole answer, and asks again.
func (c *client) answered(whole bool) {
	c.inBody = false
	r := c.asked[0]
	c.asked = c.asked[1:]
	c.answers++
	c.check(r)
	if r.closes || !c.head.KeepAlive {
		c.asked = nil
		c.ended = c.ended || r.closes
		return
	}
	if len(c.asked) == 0 {
		if len(c.todo) == 0 {
			c.done()
			return
		}
		c.next()
	}
}

// done goes away in good order.
func (c *client) done() {
	if !c.ended {
		c.ended = true
		c.s.fin()
	}
}

// statuses are what may come of a kind of request, besides 5xx and 529 of
// trouble, and 429.
var statuses = [kinds][]int{
	chat: {200, 400}, chatStream: {200, 400}, message: {200, 400}, modelList: {200}, unknownPath: {404},
	wrongMethod: {405}, wrongKey: {401}, unknownModel: {404}, badJSON: {400}, badHead: {400}, tooLarge: {400, 413},
}

// check holds an answer against its request.
func (c *client) check(r request) {
	status := c.head.Status
	ok := status == 429 || status >= 500
	for _, s := range statuses[r.kind] {
		ok = ok || s == status
	}
	if !ok {
		c.w.fault("kind %d got status %d: %.200q", r.kind, status, c.body)
	}
	if status != 200 {
		if !bytes.HasPrefix(c.body, []byte(`{`)) || !bytes.Contains(c.body, []byte(`"error"`)) {
			c.w.fault("status %d without an error body: %.200q", status, c.body)
		}
		return
	}
	if r.kind > message {
		return
	}
	if !bytes.Contains(c.body, []byte(r.marker+`"`)) && !bytes.Contains(c.body, []byte(r.marker+" ")) {
		c.w.fault("an answer without its own marker %s: %.300q", r.marker, c.body)
	}
	if n := bytes.Count(c.body, []byte("m"+strconv.FormatUint(c.w.seed, 10)+"-")); n != 1 {
		c.w.fault("an answer with %d markers", n)
	}
	if r.kind == chatStream && bytes.Contains(c.body, []byte("data: ")) {
		c.checkStream()
	}
}

// checkStream holds a stream that ended in good order against what was sent.
func (c *client) checkStream() {
	if !bytes.HasSuffix(c.body, []byte("data: [DONE]\n\n")) {
		c.w.fault("a stream without its end was ended in good order: %.300q", c.body)
	}
	if bytes.Contains(c.body, []byte(`"prompt_tokens"`)) {
		c.w.fault("a usage chunk that was not asked for")
	}
	for i := range streamTokens {
		if !bytes.Contains(c.body, []byte(fmt.Sprintf(`"t%d"`, i))) {
			c.w.fault("token %d is missing", i)
			return
		}
	}
}

// gone takes the end of the connection.
func (c *client) gone(bool) {
	if c.inBody && c.head.Body == httpparse.UntilClose {
		c.answered(true)
	}
	c.asked, c.todo = nil, nil
	c.ended = true
	c.s.fin()
}
