//go:build integration

package conformance

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// list asks for the models; it is answered by the relay itself.
const list = "GET /v1/models HTTP/1.1\r\nHost: relay.test\r\nAuthorization: Bearer " + relayKey + "\r\n"

// Requests sent at once are answered one after the other. Each is a pair of
// bytes and the status of its answer; the last answer closes where it says so.
func TestPipelineOrder(t *testing.T) {
	t.Parallel()
	good := request("echo")
	type step struct {
		in     string
		status int
	}
	models, unknown := step{list + "\r\n", 200}, step{"GET /none HTTP/1.1\r\nHost: a\r\n\r\n", 404}
	served := step{good, 200}
	inBits := step{inChunks(chunk(body) + "0\r\n\r\n"), 200}
	withBody := step{list + "Content-Length: 5\r\n\r\nhello", 200}
	closing := step{list + "Connection: close\r\n\r\n", 200}
	old := step{strings.Replace(list, "HTTP/1.1", "HTTP/1.0", 1) + "\r\n", 200}
	kept := step{strings.Replace(list, "HTTP/1.1", "HTTP/1.0", 1) + "Connection: keep-alive\r\n\r\n", 200}
	bad := step{"GET /v1/models HTTP/1.1\r\n\r\n", 400}
	for _, tt := range []struct {
		name  string
		steps []step
		ends  bool
	}{
		{"two served", []step{served, served}, false},
		{"eight served", []step{served, served, served, served, served, served, served, served}, false},
		{"served, local, served", []step{served, models, served}, false},
		{"local, served, unknown, served", []step{models, served, unknown, served}, false},
		{"chunked, local, chunked", []step{inBits, models, inBits}, false},
		{"GET with a body between", []step{models, withBody, served, withBody, models}, false},
		{"unknown ones", []step{unknown, unknown, unknown, models}, false},
		{"empty lines between", []step{served, {"\r\n" + good, 200}, {"\r\n\r\n" + list + "\r\n", 200}}, false},
		{"close in the middle", []step{served, closing, served, models}, true},
		{"close first", []step{closing, served}, true},
		{"HTTP/1.0 in the middle", []step{served, old, served}, true},
		{"HTTP/1.0 that stays in the middle", []step{served, kept, served}, false},
		{"malformed in the middle", []step{served, models, bad, served}, true},
		{"malformed behind local", []step{models, bad, models}, true},
		{"close behind served", []step{served, served, {request("echo", "Connection: close\r\n"), 200}, served}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := dial(t)
			text := ""
			for i, s := range tt.steps {
				text += strings.ReplaceAll(s.in, "CASE", fmt.Sprintf("%s/%d", t.Name(), i))
			}
			c.send(text)
			for i, s := range tt.steps {
				a := c.answer(t)
				if a.status != s.status || a.cut {
					t.Fatalf("answer %d is %q, want %d", i, a.head, s.status)
				}
				if strings.Contains(s.in, "/chat/") && a.body != completion || s == models && !strings.Contains(a.body, `"list"`) {
					t.Fatalf("answer %d is that of another request: %q", i, a.body)
				}
				if a.closes() {
					if !tt.ends {
						t.Errorf("answer %d closes", i)
					}
					c.ends(t)
					return
				}
			}
			if tt.ends {
				t.Error("no answer closes")
			}
			c.lives(t, t.Name())
		})
	}
}

// Nothing is forwarded behind an answer that closes.
func TestPipelineBehindClose(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, in string }{
		{"Connection: close", list + "Connection: close\r\n\r\n"},
		{"HTTP/1.0", strings.Replace(list, "HTTP/1.1", "HTTP/1.0", 1) + "\r\n"},
		{"served, Connection: close", whole("TestPipelineBehindClose/before", "echo", "Connection: close\r\n")},
		{"CONNECT", "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := dial(t)
			c.send(tt.in + whole(t.Name(), "echo"))
			if a := c.answer(t); !a.closes() {
				t.Errorf("the answer is %q", a.head)
			}
			c.ends(t)
			nothing(t, t.Name())
		})
	}
}

// Many requests in one go, more bytes than are read ahead.
func TestPipelineDeep(t *testing.T) {
	t.Parallel()
	const deep = 400
	c := dial(t)
	go func() {
		for i := range deep {
			c.send(whole(fmt.Sprintf("%s/%d", t.Name(), i), "echo"))
		}
	}()
	for i := range deep {
		if a := c.answer(t); a.status != 200 || a.body != completion {
			t.Fatalf("answer %d is %q", i, a.head+a.body)
		}
	}
	for i := range deep {
		if n := len(echo.requests(fmt.Sprintf("%s/%d", t.Name(), i))); n != 1 {
			t.Errorf("request %d was forwarded %d times", i, n)
		}
	}
}

// A request that waits behind a running one is not begun before it.
func TestPipelineWaits(t *testing.T) {
	t.Parallel()
	o := take(t, "open")
	c := dial(t)
	c.send(whole(t.Name()+"/1", o.model) + whole(t.Name()+"/2", "echo"))
	l := o.accept(t)
	l.request(t)
	_ = c.SetReadDeadline(time.Now().Add(quiet))
	if b, err := c.r.Peek(1); len(b) > 0 || !isTimeout(err) {
		t.Errorf("%q, %v overtakes", b, err)
	}
	nothing(t, t.Name()+"/2")
	l.send(sized("200 OK", "", `{"first":true}`))
	if a := c.answer(t); a.body != `{"first":true}` {
		t.Errorf("the first answer is %q", a.body)
	}
	if a := c.answer(t); a.body != completion {
		t.Errorf("the second answer is %q", a.body)
	}
}
