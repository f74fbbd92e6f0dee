package loop

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestUploadBytes: what a host gets differs from what the caller sent in the
// model's name and in stream_options, and in nothing else.
func TestUploadBytes(t *testing.T) {
	const odd = `"z":1,"seed":9007199254740993,"big":12345678901234567890,"f":1e400,"s":"<b>&amp;</b> \u003c \ud83d 你好 🎈\u2028",  "a" : [ 1 ,2]`
	for _, tt := range []struct {
		name, path, sent, want string
	}{
		{"alias at the end", chatPath, `{` + odd + `,"model":"gpt-alias"}`, `{` + odd + `,"model":"gpt-real-with-a-long-name"}`},
		{"alias by glob, first", chatPath, `{"model":"gpt-alias-7",` + odd + `}`, `{"model":"gpt-real-with-a-long-name",` + odd + `}`},
		{"name with an escape", chatPath, `{"model" : "g\u0070t",` + odd + `}`, `{"model" : "gpt-real-with-a-long-name",` + odd + `}`},
		{"same name", "/v1/chat/completions", `{"model":"bare",` + odd + `}`, `{"model":"bare",` + odd + `}`},
		{"messages", messagePath, `{"model":"claude",` + odd + `,"stream":true}`, `{"model":"claude-real",` + odd + `,"stream":true}`},
		{"inner names stay", chatPath, `{"messages":[{"model":"gpt","stream":true}],"model":"gpt"}`, `{"messages":[{"model":"gpt","stream":true}],"model":"gpt-real-with-a-long-name"}`},
		{"usage is asked for", chatPath, `{"model":"gpt","stream":true}`, `{"model":"gpt-real-with-a-long-name","stream":true,"stream_options":{"include_usage":true}}`},
		{"usage is asked for already", chatPath, `{"model":"gpt","stream":true,"stream_options":{"include_usage":true}}`, `{"model":"gpt-real-with-a-long-name","stream":true,"stream_options":{"include_usage":true}}`},
		{"not by a host that knows no options", chatPath, `{"model":"bare","stream":true}`, `{"model":"bare","stream":true}`},
		{"blanks around", chatPath, "\r\n {\"model\":\"gpt\"}\n\n", "\r\n {\"model\":\"gpt-real-with-a-long-name\"}\n\n"},
	} {
		for _, framing := range []string{"length", "chunks", "bytes"} {
			t.Run(tt.name+" by "+framing, func(t *testing.T) {
				r := newRig(t)
				defer r.end()
				c := r.accept()
				switch framing {
				case "length":
					c.send(post(tt.path, tt.sent))
				case "chunks":
					c.send(head("POST", tt.path, "Transfer-Encoding: chunked") + chunk(tt.sent[:9]) + chunk(tt.sent[9:]) + lastChunk)
				default:
					c.sendEach(post(tt.path, tt.sent), 1)
				}
				u := r.open()
				got := u.requests()
				if len(got) != 1 || got[0].body != tt.want || got[0].fields["content-length"] != fmt.Sprint(len(tt.want)) {
					t.Errorf("the host got %+v\nwant %d bytes: %s", got, len(tt.want), tt.want)
				}
				u.close(EOF)
			})
		}
	}
}

// TestUploadOptionsMerged: the other members of stream_options stay.
func TestUploadOptionsMerged(t *testing.T) {
	for _, options := range []string{`null`, `{}`, `{"include_usage":false}`, `{"include_obfuscation":false}`} {
		r := newRig(t)
		c := r.accept()
		c.send(post(chatPath, `{"model":"gpt","stream":true,"stream_options":`+options+`,"x":"y"}`))
		u := r.open()
		body := u.requests()[0].body
		if strings.Count(body, `"include_usage":true`) != 1 || strings.Contains(body, `"include_usage":false`) ||
			strings.Contains(options, "obfuscation") != strings.Contains(body, `"include_obfuscation":false`) || !strings.HasSuffix(body, `,"x":"y"}`) {
			t.Errorf("%s became %s", options, body)
		}
		u.close(EOF)
		r.end()
	}
}

// form is a multipart body with a file and, if there is one, a model.
func form(model string, modelFirst bool) string {
	file := "--b0\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\nContent-Type: audio/wav\r\n\r\n\x00\x01{\"model\":\"x\"}\r\n"
	field := ""
	if model != "" {
		field = "--b0\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\n" + model + "\r\n"
	}
	if modelFirst {
		return field + file + "--b0--\r\n"
	}
	return file + field + "--b0--\r\n"
}

// TestUploadForms: the model of a form is found and replaced, the file is not
// touched.
func TestUploadForms(t *testing.T) {
	const path, kind = "/v1/audio/transcriptions", "Content-Type: multipart/form-data; boundary=b0"
	for _, first := range []bool{false, true} {
		for _, step := range []int{1, 1 << 20} {
			r := newRig(t)
			c := r.accept()
			c.sendEach(post(path, form("gpt-alias", first), kind), step)
			u := r.open()
			got, want := u.requests()[0], form("gpt-real-with-a-long-name", first)
			if got.body != want || got.fields["content-type"] != kind[14:] || got.fields["content-length"] != fmt.Sprint(len(want)) {
				t.Errorf("the host got %v %q\nwant %q", got.fields, got.body, want)
			}
			u.send(given(200, "text/plain", "hello"))
			if a := c.reply(); a.status != 200 || a.body != "hello" {
				t.Errorf("status %d, body %q", a.status, a.body)
			}
			if row := r.row(0); row.Route != "audio" || row.ModelAsked != "gpt-alias" || row.Model != "gpt" {
				t.Errorf("row %+v", row)
			}
			r.end()
		}
	}
	for _, tt := range []struct {
		name, path, body, kind string
		status                 int
		text                   string
	}{
		{"no model", path, form("", true), kind, 400, "model"},
		{"broken form", path, form("gpt", true)[:150], kind, 400, "multipart"},
		{"no boundary", path, form("gpt", true), "Content-Type: multipart/form-data", 400, "boundary"},
		{"two models", path, strings.TrimSuffix(form("gpt", true), "--b0--\r\n") + form("gpt", true), kind, 400, "once"},
		{"model of an image left out", "/v1/images/generations", `{"prompt":"x"}`, "Content-Type: application/json", 404, "does not exist"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			defer r.end()
			c := r.accept()
			c.send(post(tt.path, tt.body, tt.kind))
			if a := c.reply(); a.status != tt.status || !strings.Contains(a.body, tt.text) || !a.keep {
				t.Errorf("status %d, kept alive: %t, body %s", a.status, a.keep, a.body)
			}
		})
	}
}

// TestUploadHead: path, query and fields of the upstream request.
func TestUploadHead(t *testing.T) {
	r := newRig(t)
	defer r.end()
	_, u := r.exchange(post("/openai/v1/chat/completions?x=1", chatAsk, "Idempotency-Key: i", "Accept-Encoding: gzip",
		"Connection: x-hop", "X-Hop: 1", "TE: trailers", "Cookie: a=b", "X-Forwarded-For: 1.2.3.4", "OpenAI-Beta: b", "Expect: 100-continue"))
	got := u.requests()[0]
	if got.line != "POST /v1/chat/completions?x=1" || got.fields["host"] != "o.test" || got.fields["idempotency-key"] != "i" || got.fields["openai-beta"] != "b" {
		t.Errorf("the host got %s %v", got.line, got.fields)
	}
	for _, name := range []string{"connection", "x-hop", "cookie", "x-forwarded-for", "expect", "transfer-encoding"} {
		if v, there := got.fields[name]; there {
			t.Errorf("the host got %s: %s", name, v)
		}
	}
	if got.fields["accept-encoding"] != "identity" || got.fields["authorization"] != "Bearer host-secret-o" {
		t.Errorf("fields %v", got.fields)
	}
	u.close(EOF)
	_, u = r.exchange(post("/anthropic/v1/messages?beta=true", messageAsk, "anthropic-version: 2026-10-21", "anthropic-beta: q"))
	got = u.requests()[0]
	if got.line != "POST /v1/messages?beta=true" || got.fields["x-api-key"] != "host-secret-a" || got.fields["anthropic-version"] != "2026-10-21" || got.fields["anthropic-beta"] != "q" {
		t.Errorf("the host got %s %v", got.line, got.fields)
	}
	u.close(EOF)
}

// largeAsk has a body of about n bytes whose model comes last.
func largeAsk(n int) string {
	return `{"messages":"` + strings.Repeat("0123456789abcdef", n/16) + `","model":"gpt"}`
}

// TestUploadPieces: a large body waits in front of a slow host in bounded
// pieces, and arrives whole.
func TestUploadPieces(t *testing.T) {
	r := newRig(t)
	defer r.end()
	body := largeAsk(1500 << 10)
	c := r.accept()
	c.sendEach(post(chatPath, body), 64<<10)
	u := r.openStuck(true)
	for rounds := 0; u.waiting > 0 && rounds < 1000; rounds++ {
		if u.waiting > 2*sendPiece {
			t.Fatalf("%d bytes wait in front of the host", u.waiting)
		}
		u.read(50 << 10)
	}
	got := u.requests()
	if want := strings.Replace(body, `"gpt"`, `"gpt-real-with-a-long-name"`, 1); len(got) != 1 || got[0].body != want {
		t.Fatalf("the host got %d requests, %d bytes, want %d", len(got), len(got[0].body), len(want))
	}
	serve(u)
	if c.reply().status != 200 {
		t.Errorf("status %d", c.reply().status)
	}
}

// TestUploadStall: a host that does not take the request has its first-byte
// time, from the last bytes that it took.
func TestUploadStall(t *testing.T) {
	r := newRig(t)
	defer r.end()
	c := r.accept()
	c.send(post(chatPath, largeAsk(1500<<10)))
	u := r.openStuck(true)
	for range 3 {
		r.pass(29 * time.Second)
		u.read(450 << 10)
	}
	if c.out != "" {
		t.Fatalf("given up while the host reads: %q", c.out)
	}
	r.pass(31 * time.Second)
	if a := c.reply(); a.status != 504 || !u.dropped {
		t.Errorf("status %d, the host's connection closed: %t", a.status, u.dropped)
	}
	if row := r.row(0); row.Error != "upstream_timeout" || row.Cost.Total != 0 {
		t.Errorf("row has error %q, cost %d", row.Error, row.Cost.Total)
	}
}

// TestUploadEarlyAnswer: an answer that comes before the request is out is
// passed on, and its connection is not used again.
func TestUploadEarlyAnswer(t *testing.T) {
	for _, tt := range []struct{ name, early, then string }{
		{"whole error", given(413, asJSON, `{"error":{"message":"large"}}`), ""},
		{"error with close", given(413, asJSON, `{"error":{"message":"large"}}`, "Connection: close"), ""},
		{"stream", eventsHead + chunk(token), chunk(stopEvent+doneEvent) + lastChunk},
		{"bytes", "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 6\r\n\r\nabc", "def"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			defer r.end()
			c := r.accept()
			c.send(post(chatPath, largeAsk(1500<<10)))
			u := r.openStuck(true)
			u.send(tt.early)
			for range 3 { // the host reads on meanwhile
				u.read(200 << 10)
			}
			u.send(tt.then)
			if a := c.reply(); !a.whole || !a.keep || a.status == 502 {
				t.Errorf("status %d, whole: %t, kept alive: %t, body %q", a.status, a.whole, a.keep, a.body)
			}
			if !u.dropped {
				t.Error("a connection with half a request is kept")
			}
		})
	}
}

// TestUploadEarlySilence: an early answer that falls silent is not kept alive
// by the request that still goes out.
func TestUploadEarlySilence(t *testing.T) {
	r := newRig(t)
	defer r.end()
	c := r.accept()
	c.send(post(chatPath, strings.Replace(largeAsk(1500<<10), "{", `{"stream":true,`, 1)))
	u := r.openStuck(true)
	u.send(eventsHead + chunk(token))
	for range 12 {
		r.pass(time.Second)
		u.read(40 << 10)
	}
	if !u.dropped || !strings.Contains(c.out, `"code":"timeout"`) {
		t.Errorf("closed: %t, the client got %q", u.dropped, c.out)
	}
}
