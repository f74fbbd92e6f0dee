package sim

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"

	"relay/httpparse"
	"relay/store/catalog"
)

// streamTokens is how many tokens a fake stream has.
const streamTokens = 12

// upstream is a fake host connection: it reads requests and answers them, well
// or badly.
type upstream struct {
	w        *World
	s        *socket
	host     *catalog.Host
	in       []byte
	head     httpparse.Request
	progress httpparse.Progress
	need     int64 // of the body; -1 = head incomplete
	ended    bool
}

func newUpstream(w *World, h *catalog.Host) *upstream {
	return &upstream{w: w, host: h, need: -1}
}

func (u *upstream) attach(s *socket) { u.s = s }
func (u *upstream) stalled() bool    { return false }
func (u *upstream) gone(bool)        { u.end(u.s.fin) }

func (u *upstream) end(how func()) {
	if !u.ended {
		u.ended = true
		how()
	}
}

func (u *upstream) got(p []byte) {
	if u.ended {
		return
	}
	u.in = append(u.in, p...)
	for !u.ended {
		if u.need < 0 {
			n, fault := u.head.Parse(u.in, &u.progress)
			if fault != httpparse.OK {
				u.w.fault("upstream got a bad head: %s: %.300q", fault, u.in)
				u.end(u.s.reset)
				return
			}
			if n == 0 {
				return
			}
			u.checkHead()
			u.progress = httpparse.Progress{}
			u.need = u.head.ContentLength
			u.in = append([]byte(nil), u.in[n:]...)
		}
		if int64(len(u.in)) < u.need {
			return
		}
		body := u.in[:u.need]
		u.in = append([]byte(nil), u.in[u.need:]...)
		u.need = -1
		if len(u.in) > 0 {
			u.w.fault("upstream got %d bytes behind a request", len(u.in))
		}
		u.answer(body)
	}
}

// checkHead holds the request against what a host must see.
func (u *upstream) checkHead() {
	if u.head.ContentLength < 0 || u.head.Chunked {
		u.w.fault("upstream got a request without Content-Length")
		u.head.ContentLength = 0
	}
	secret := u.head.Field("authorization")
	if u.host.Shape == catalog.Anthropic {
		secret = u.head.Field("x-api-key")
	}
	if !bytes.Contains(secret, []byte("host-secret")) {
		u.w.fault("upstream got no host key")
	}
	for _, f := range u.head.Fields {
		if bytes.Contains(f.Value, []byte("rk-sim")) {
			u.w.fault("upstream got the relay key in %s", f.Name)
		}
	}
}

var markerText = regexp.MustCompile(`m\d+-\d+`)

// answer answers a request whose body is whole.
func (u *upstream) answer(body []byte) {
	marker := string(markerText.Find(body))
	if u.w.seen[marker] {
		u.w.fault("request %s came to a host twice", marker)
	}
	u.w.seen[marker] = true
	streams := bytes.Contains(body, []byte(`"stream":true`))
	if bytes.Contains(body, []byte(`gpt-mock`)) {
		u.w.fault("upstream got the alias, not its own model name")
	}
	if streams && !bytes.Contains(body, []byte(`"include_usage":true`)) {
		u.w.fault("upstream was not asked for usage")
	}
	if u.w.chance(u.w.trouble.upstream) {
		u.trouble(marker)
		return
	}
	var out []byte
	switch {
	case streams:
		out = u.stream(marker, streamTokens)
	case u.w.chance(300):
		text := u.json(marker)
		out = httpparse.AppendChunk(httpparse.AppendChunk([]byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"), text[:7]), text[7:])
		out = append(out, httpparse.LastChunk...)
	case u.w.chance(100):
		u.later(append([]byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"), u.json(marker)...), u.s.fin)
		return
	default:
		out = whole(200, "application/json", u.json(marker))
	}
	switch {
	case u.w.chance(100):
		out = append([]byte("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"), out...)
	case u.w.chance(50): // closes an idle connection, soon
		u.later(out, nil)
		u.w.after(int64(u.w.rng.IntN(2e9)), func() { u.end(u.s.fin) })
		return
	}
	u.later(out, nil)
}

func whole(status int, contentType string, body []byte) []byte {
	head := fmt.Sprintf("HTTP/1.1 %d X\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n", status, contentType, len(body))
	return append([]byte(head), body...)
}

// json is a whole answer, of about a size.
func (u *upstream) json(marker string) []byte {
	pad := bytes.Repeat([]byte("x"), u.w.pick(0, 100, 3000, 80000, 300000))
	if u.host.Shape == catalog.Anthropic {
		return []byte(`{"id":"msg_1","type":"message","content":[{"type":"text","text":"` + marker + " " + string(pad) + `"}],"usage":{"input_tokens":3,"output_tokens":4}}`)
	}
	return []byte(`{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"` + marker + " " + string(pad) + `"}}],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}`)
}

// stream is a streamed answer of tokens events; all but the end if it is cut.
func (u *upstream) stream(marker string, tokens int) []byte {
	out := []byte("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
	event := func(data string) { out = httpparse.AppendChunk(out, []byte("data: "+data+"\n\n")) }
	event(`{"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":"` + marker + ` "}}]}`)
	for i := range tokens {
		event(`{"id":"c","choices":[{"index":0,"delta":{"content":"t` + strconv.Itoa(i) + `"},"finish_reason":null}]}`)
	}
	if tokens < streamTokens {
		return out
	}
	event(`{"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`)
	event(`{"id":"c","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}`)
	event(`[DONE]`)
	return append(out, httpparse.LastChunk...)
}

// later sends bytes in pieces over time, then does then.
func (u *upstream) later(out []byte, then func()) {
	var piece func()
	piece = func() {
		if u.ended {
			return
		}
		n := len(out)
		if n > 0 && u.w.chance(400) {
			n = 1 + u.w.rng.IntN(n)
		}
		u.s.send(out[:n])
		out = out[n:]
		if len(out) > 0 {
			u.w.after(int64(u.w.rng.IntN(20e6)), piece)
		} else if then != nil {
			u.end(then)
		}
	}
	u.w.after(int64(u.w.rng.IntN(50e6)), piece)
}

// trouble answers badly.
func (u *upstream) trouble(marker string) {
	text := u.json(marker)
	switch u.w.rng.IntN(16) {
	case 0:
		u.end(u.s.reset)
	case 1:
		u.end(u.s.fin)
	case 2: // never an answer
	case 3:
		u.later(whole(200, "application/json", text)[:60], u.s.fin)
	case 4:
		out := whole(200, "application/json", text)
		u.later(out[:len(out)-3], u.s.reset)
	case 5:
		u.later([]byte("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc"), nil)
	case 6:
		u.later([]byte("SSH-2.0-OpenSSH_9\r\n"), nil)
	case 7:
		u.later(whole(400, "application/json", []byte(`{"type":"error","error":{"type":"invalid_request_error","message":"no","param":null,"code":null}}`)), nil)
	case 8:
		u.later(whole(500, "text/html", []byte("<h1>oops</h1>")), nil)
	case 9:
		u.later(whole(429, "application/json", []byte(`{"type":"error","error":{"type":"rate_limit_error","message":"slow down","param":null,"code":null}}`)), nil)
	case 10:
		u.later(whole(401, "application/json", []byte(`{"error":{"message":"bad host key"}}`)), nil)
	case 11:
		u.later(u.stream(marker, u.w.rng.IntN(streamTokens)), u.s.fin)
	case 12:
		u.later(u.stream(marker, u.w.rng.IntN(streamTokens)), u.s.reset)
	case 13: // a stream that stalls
		u.later(u.stream(marker, u.w.rng.IntN(streamTokens)), nil)
	case 14:
		u.later(append(whole(200, "application/json", text), "HTTP/1.1 200 OK\r\n"...), nil)
	default:
		u.later(whole(200, "application/json", text[:len(text)-1]), nil)
	}
}
