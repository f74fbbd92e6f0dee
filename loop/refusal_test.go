package loop

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// refusals are the requests that Relay refuses itself, whatever comes behind
// them is never taken for a request.
var refusals = []struct {
	name    string
	request string // %s is the path of the shape: chat or messages
	status  int
	other   int    // of the Anthropic shape; 0 = the same
	kind    string // error type, OpenAI
	kindA   string // error type, Anthropic
	code    string // OpenAI; "" = null
	text    string // in the message
	keep    bool   // the connection serves on
}{
	{"no key", "POST %s HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}", 401, 0, "invalid_request_error", "authentication_error", "invalid_api_key", "No API key", true},
	{"unknown key", post("%s", "{}", "Authorization: Bearer rk-none"), 401, 0, "invalid_request_error", "authentication_error", "invalid_api_key", "not valid", true},
	{"disabled key", post("%s", "{}", "Authorization: Bearer rk-off"), 401, 0, "invalid_request_error", "authentication_error", "invalid_api_key", "not valid", true},
	{"expired key", post("%s", "{}", "Authorization: Bearer rk-old"), 401, 0, "invalid_request_error", "authentication_error", "invalid_api_key", "not valid", true},
	{"unknown path", post("%s/nothing", "{}"), 404, 0, "invalid_request_error", "not_found_error", "unknown_url", "path", true},
	{"wrong method", head("PUT", "%s", "Content-Length: 2") + "{}", 405, 0, "invalid_request_error", "invalid_request_error", "method_not_allowed", "method", true},
	{"announced too long", head("POST", "%s", "Content-Length: 2097153"), 413, 0, "invalid_request_error", "request_too_large", "request_too_large", "too large", false},
	{"encoded body", post("%s", "{}", "Content-Encoding: gzip"), 415, 0, "invalid_request_error", "invalid_request_error", "", "Content-Encoding", true},
	{"no JSON", post("%s", "{]"), 400, 0, "invalid_request_error", "invalid_request_error", "", "not valid JSON", true},
	{"half a JSON", post("%s", `{"model":"gpt"`), 400, 0, "invalid_request_error", "invalid_request_error", "", "middle", true},
	{"no model", post("%s", "{}"), 400, 0, "invalid_request_error", "invalid_request_error", "", "model", true},
	{"empty model", post("%s", `{"model":""}`), 400, 0, "invalid_request_error", "invalid_request_error", "", "model", true},
	{"long model", post("%s", `{"model":"`+strings.Repeat("m", 300)+`"}`), 400, 0, "invalid_request_error", "invalid_request_error", "", "256", true},
	{"empty body", post("%s", ""), 400, 0, "invalid_request_error", "invalid_request_error", "", "empty", true},
	{"stream is no bool", post("%s", `{"model":"gpt","stream":1}`), 400, 0, "invalid_request_error", "invalid_request_error", "", "stream", true},
	{"two models", post("%s", `{"model":"gpt","mod\u0065l":"bare"}`), 400, 0, "invalid_request_error", "invalid_request_error", "", "'model' must be given once", true},
	{"two lengths of output", post("%s", `{"model":"claude","max_tokens":1,"max_tokens":2}`), 400, 0, "invalid_request_error", "invalid_request_error", "", "'max_tokens' must be given once", true},
	{"no JSON, chunked", head("POST", "%s", "Transfer-Encoding: chunked") + chunk(`{"model"`) + chunk(`}`) + lastChunk, 400, 0, "invalid_request_error", "invalid_request_error", "", "not valid JSON", true},
	{"no JSON, half of it", head("POST", "%s", "Content-Length: 9000") + `{]`, 400, 0, "invalid_request_error", "invalid_request_error", "", "not valid JSON", false},
	{"no JSON, HTTP/1.0", "POST %s HTTP/1.0\r\nAuthorization: Bearer rk-free\r\nContent-Length: 2\r\n\r\n{]", 400, 0, "invalid_request_error", "invalid_request_error", "", "not valid JSON", false},
	{"unknown model", post("%s", `{"model":"nope"}`), 404, 0, "invalid_request_error", "not_found_error", "model_not_found", "model", true},
	{"bad chunk", head("POST", "%s", "Transfer-Encoding: chunked") + "zz\r\n", 400, 0, "invalid_request_error", "invalid_request_error", "", "chunk", false},
	{"two hosts", "POST %s HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, 0, "invalid_request_error", "invalid_request_error", "", "Host", false},
	{"bad version", "POST %s HTTP/2.0\r\nHost: a\r\n\r\n", 505, 0, "invalid_request_error", "invalid_request_error", "", "version", false},
	{"long target", "POST %s?" + strings.Repeat("x", 9000) + " HTTP/1.1\r\nHost: a\r\n\r\n", 414, 0, "invalid_request_error", "invalid_request_error", "", "8 KiB", false},
	{"many fields", "POST %s HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("a: b\r\n", 101) + "\r\n", 431, 0, "invalid_request_error", "invalid_request_error", "", "100", false},
	{"large head", "POST %s HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("a: "+strings.Repeat("b", 8000)+"\r\n", 9) + "\r\n", 431, 0, "invalid_request_error", "invalid_request_error", "", "64 KiB", false},
	{"unknown coding", "POST %s HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501, 0, "invalid_request_error", "invalid_request_error", "", "coding", false},
	{"two lengths", "POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc", 400, 0, "invalid_request_error", "invalid_request_error", "", "Content-Length", false},
	{"expectation", "POST %s HTTP/1.1\r\nHost: a\r\nExpect: wonders\r\nContent-Length: 2\r\n\r\n{}", 417, 0, "invalid_request_error", "invalid_request_error", "", "100-continue", false},
}

// follower is a request that would be answered by 200.
var follower = head("GET", "/v1/models")

func TestRefusals(t *testing.T) {
	for _, tt := range refusals {
		for _, path := range []string{chatPath, messagePath} {
			t.Run(tt.name+" on "+path, func(t *testing.T) {
				r := newRig(t)
				defer r.end()
				c := r.accept()
				c.send(strings.Replace(tt.request, "%s", path, 1) + follower)
				all := c.replies()
				if tt.keep != (len(all) == 2 && all[1].status == 200) || !tt.keep && len(all) != 1 {
					t.Fatalf("%d answers, kept alive is to be %t: %.200q", len(all), tt.keep, c.out)
				}
				wantError(t, all[0], tt.status, tt.other, path == messagePath, tt.kind, tt.kindA, tt.code, tt.text)
				if all[0].keep != tt.keep || c.fin == tt.keep {
					t.Errorf("kept alive is %t, FIN is %t", all[0].keep, c.fin)
				}
				if len(r.dials) != 0 {
					t.Error("a refused request reached for a host")
				}
			})
		}
	}
}

// wantError holds an answer against what a caller of the shape is to be told.
func wantError(t *testing.T, a reply, status, other int, anthropic bool, kind, kindA, code, text string) {
	t.Helper()
	want := status
	if anthropic && other != 0 {
		want = other
	}
	id := a.fields["x-request-id"]
	if a.status != want || !a.whole || a.fields["content-type"] != "application/json" || len(id) != 36 {
		t.Errorf("status %d, want %d; fields %v", a.status, want, a.fields)
	}
	start := `{"error":{"message":"`
	ends := fmt.Sprintf(`,"code":%q}}`, code)
	if code == "" {
		ends = `,"code":null}}`
	}
	if anthropic {
		kind = kindA
		start = fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":"`, kind)
		ends = fmt.Sprintf(`"},"request_id":%q}`, id)
		if a.fields["request-id"] != id {
			t.Errorf("fields %v have no request-id %s", a.fields, id)
		}
	}
	if !strings.HasPrefix(a.body, start) || !strings.HasSuffix(a.body, ends) || !strings.Contains(a.body, text) || !strings.Contains(a.body, fmt.Sprintf(`"type":%q`, kind)) {
		t.Errorf("body %s\nwant %s … %s … %s", a.body, start, text, ends)
	}
}

// TestRefusedOverload: what is refused for want of room, in both shapes.
func TestRefusedOverload(t *testing.T) {
	for _, tt := range []struct {
		name string
		full func(*rig)
		key  string
		text string
		shed Shed
		keep bool
	}{
		{"in flight", func(r *rig) {
			for r.inflight.Acquire() {
			}
		}, "rk-free", "overloaded", ShedInflight, true},
		{"memory", func(r *rig) { r.loop.buffers.budget = 1000 }, "rk-free", "overloaded", ShedMemory, true},
		{"dialer", func(r *rig) { r.dialFull = true }, "rk-free", "overloaded", ShedMailbox, true},
		{"lane", func(r *rig) { r.laneFull = true }, "rk-rated", "overloaded", ShedMailbox, true},
		{"spool", func(r *rig) { r.spool.full = true }, "rk-free", "Usage cannot be recorded", ShedSpool, true},
	} {
		for _, path := range []string{chatPath, messagePath} {
			t.Run(tt.name+" on "+path, func(t *testing.T) {
				r := newRig(t)
				tt.full(r)
				c := r.accept()
				body := chatAsk
				if path == messagePath {
					body = messageAsk
				}
				c.send(post(path, body, "Authorization: Bearer "+tt.key))
				a := c.reply()
				wantError(t, a, 503, 529, path == messagePath, "service_unavailable_error", "overloaded_error", "server_is_overloaded", tt.text)
				if a.fields["retry-after"] != "1" || a.keep != tt.keep {
					t.Errorf("retry-after %q, kept alive is %t", a.fields["retry-after"], a.keep)
				}
				if n := r.loop.metrics.Shed[tt.shed]; n != 1 {
					t.Errorf("shed %d times for %s", n, Sheds[tt.shed])
				}
				for n, _ := r.inflight.Load(); tt.shed == ShedInflight && n > 0; n-- {
					r.inflight.Release()
				}
				r.end()
			})
		}
	}
}

// TestRefusedUnread: a body that is refused before its end ends the connection,
// a body that has come whole does not, in whatever pieces.
func TestRefusedUnread(t *testing.T) {
	const bad = `{"model":"gpt","stream":7}`
	byChunks := head("POST", chatPath, "Transfer-Encoding: chunked") + chunk(bad)
	for _, tt := range []struct {
		name, sent string
		keep       bool
	}{
		{"by length", post(chatPath, bad), true},
		{"by chunks", byChunks + lastChunk, true},
		{"by chunks, with a trailer", byChunks + "0\r\nA: b\r\n\r\n", true},
		{"no JSON, most of the body to come", head("POST", chatPath, "Content-Length: 90") + "{]", false},
		{"no JSON, a byte of the body to come", head("POST", chatPath, "Content-Length: 3") + "{]", false},
		{"no JSON, last chunk to come", head("POST", chatPath, "Transfer-Encoding: chunked") + chunk("{]"), false},
		{"no JSON, end of the last chunk to come", head("POST", chatPath, "Transfer-Encoding: chunked") + chunk("{]") + "0\r\n", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, piece := range []int{1, len(tt.sent)} {
				r := newRig(t)
				c := r.accept()
				c.sendEach(tt.sent, piece)
				a := c.reply()
				if a.status != 400 || a.keep != tt.keep || c.fin == tt.keep {
					t.Errorf("in pieces of %d: %d, kept alive is %t, FIN is %t", piece, a.status, a.keep, c.fin)
				}
				if tt.keep {
					c.send(follower)
					if all := c.replies(); len(all) != 2 || all[1].status != 200 {
						t.Errorf("in pieces of %d: the next request got %v", piece, all)
					}
				}
				r.end()
			}
		})
	}
}

// TestRefusedAllow: a 405 says what is allowed.
func TestRefusedAllow(t *testing.T) {
	for _, tt := range []struct{ method, path, allow string }{
		{"GET", chatPath, "POST"},
		{"DELETE", messagePath, "POST"},
		{"HEAD", chatPath, "POST"},
		{"POST", "/v1/models", "GET"},
		{"OPTIONS", "/v1/models/gpt", "GET"},
	} {
		r := newRig(t)
		c := r.accept()
		c.send(head(tt.method, tt.path))
		bodiless := tt.method == "HEAD"
		if bodiless == strings.Contains(c.out, "{") || !strings.HasPrefix(c.out, "HTTP/1.1 405 ") || !strings.Contains(c.out, "\r\nallow: "+tt.allow+"\r\n") {
			t.Errorf("%s %s got %.200q", tt.method, tt.path, c.out)
		}
		r.end()
	}
}

// TestRequestIDs: the caller's id is echoed if it is fit to be, else a UUIDv7
// is made; the host gets the same.
func TestRequestIDs(t *testing.T) {
	for _, tt := range []struct {
		name, sent string
		echoed     bool
	}{
		{"plain", "abc-123", true},
		{"longest", strings.Repeat("x", 128), true},
		{"too long", strings.Repeat("x", 129), false},
		{"blank inside", "a b", true},
		{"tab inside", "a\tb", false},
		{"not ASCII", "é", false},
		{"empty", "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			defer r.end()
			c, u := r.exchange(post(chatPath, chatAsk, "X-Request-ID: "+tt.sent))
			serve(u)
			got := c.reply().fields["x-request-id"]
			if (got == tt.sent) != tt.echoed || !tt.echoed && (len(got) != 36 || got[14] != '7') {
				t.Errorf("the caller got id %q", got)
			}
			if sent := u.requests()[0].fields["x-request-id"]; sent != got {
				t.Errorf("the host got id %q", sent)
			}
			if row := r.row(0); row.CallerID != tt.sent && tt.echoed || row.RequestID[6]>>4 != 7 {
				t.Errorf("row has ids %q, %x", row.CallerID, row.RequestID)
			}
		})
	}
}

// TestSlowHead: a head has a deadline that single bytes do not move, and is
// refused in the shape of its own path.
func TestSlowHead(t *testing.T) {
	for _, tt := range []struct {
		path string
		kind string
	}{
		{chatPath, `{"error":{"message":`},
		{messagePath, `{"type":"error",`},
		{"/anthropic/v1/models", `{"type":"error",`},
	} {
		t.Run(tt.path, func(t *testing.T) {
			r := newRig(t)
			defer r.end()
			// Another client's request of the other shape lies behind.
			other := r.accept()
			if tt.path == chatPath {
				other.send(post("/anthropic/v1/nothing", ""))
			} else {
				other.send(post("/v1/nothing", ""))
			}
			c := r.accept()
			c.send("POST " + tt.path + " HTTP/1.1\r\nHost: h\r\nX-Long: ")
			for range 9 {
				r.pass(time.Second)
				c.send("x")
			}
			if c.out != "" {
				t.Fatal("refused too early")
			}
			r.pass(1100 * time.Millisecond)
			a := c.reply()
			if a.status != 408 || a.keep || !strings.HasPrefix(a.body, tt.kind) || !c.fin {
				t.Errorf("status %d, FIN is %t, body %s", a.status, c.fin, a.body)
			}
			r.pass(lingerTime)
			if !c.dropped {
				t.Error("the connection is not closed")
			}
		})
	}
}

// TestBadHeadShape: a head that cannot be understood is refused in the shape of
// its own target, not of the last good one.
func TestBadHeadShape(t *testing.T) {
	r := newRig(t)
	defer r.end()
	r.accept().send(post("/anthropic/v1/nothing", ""))
	c := r.accept()
	c.send("POST /v1/chat/completions HTTP/9.9\r\n\r\n")
	if a := c.reply(); a.status != 505 || !strings.HasPrefix(a.body, `{"error":{"message":`) {
		t.Errorf("status %d, body %s", a.status, a.body)
	}
	c = r.accept()
	c.send("POST /v1/messages HTTP/9.9\r\n\r\n")
	if a := c.reply(); a.status != 505 || !strings.HasPrefix(a.body, `{"type":"error",`) {
		t.Errorf("status %d, body %s", a.status, a.body)
	}
}

// TestSilentClient: a connection without a request is closed without a word.
func TestSilentClient(t *testing.T) {
	r := newRig(t)
	defer r.end()
	c := r.accept()
	r.pass(clientSilent - time.Second)
	if c.fin {
		t.Fatal("closed too early")
	}
	r.pass(2 * time.Second)
	if !c.fin || c.out != "" {
		t.Errorf("FIN is %t, written %q", c.fin, c.out)
	}
	r.pass(lingerTime)
	if !c.dropped || r.loop.metrics.Clients != 0 {
		t.Error("the connection is not closed")
	}
}
