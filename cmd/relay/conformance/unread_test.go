//go:build integration

package conformance

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// A request that the relay answers by itself may have a body: its bytes are
// never the next request.
func TestUnreadBody(t *testing.T) {
	t.Parallel()
	at := func(method, path string) string {
		return method + " " + path + " HTTP/1.1\r\n" + hostLine + keyLine
	}
	for _, tt := range []struct {
		name, head string
		status     int
	}{
		{"GET models", at("GET", "/v1/models"), 200},
		{"GET one model", at("GET", "/v1/models/echo"), 200},
		{"GET no model", at("GET", "/v1/models/none"), 404},
		{"HEAD models", at("HEAD", "/v1/models"), 405},
		{"OPTIONS", at("OPTIONS", "/v1/chat/completions"), 405},
		{"OPTIONS of all", at("OPTIONS", "*"), 404},
		{"DELETE", at("DELETE", "/v1/chat/completions"), 405},
		{"PUT", at("PUT", "/v1/chat/completions"), 405},
		{"PATCH", at("PATCH", "/v1/chat/completions"), 405},
		{"TRACE", at("TRACE", "/v1/chat/completions"), 405},
		{"GET of a POST route", at("GET", "/v1/chat/completions"), 405},
		{"POST of a GET route", at("POST", "/v1/models"), 405},
		{"method in small letters", at("post", "/v1/chat/completions"), 405},
		{"method of its own", at("BREW", "/v1/chat/completions"), 405},
		{"unknown path", at("POST", "/none"), 404},
		{"root", at("GET", "/"), 404},
		{"dots in the path", at("POST", "/v1/../v1/chat/completions"), 404},
		{"encoded slash in the path", at("POST", "/v1/chat%2fcompletions"), 404},
		{"two slashes in the path", at("POST", "//v1/chat/completions"), 404},
		{"control routes", at("GET", "/metrics"), 404},
		{"no key", "POST /v1/chat/completions HTTP/1.1\r\n" + hostLine, 401},
		{"unknown key", strings.Replace(start, relayKey, "rk-unknown-key", 1), 401},
		{"two keys", start + "Authorization: Bearer rk-other-key\r\n", 401},
		{"no key for the models", "GET /v1/models HTTP/1.1\r\n" + hostLine, 401},
	} {
		for _, kind := range []string{"length", "length, half of it", "length, later", "chunked", "none"} {
			t.Run(tt.name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				name := t.Name()
				smuggled := whole(name, "echo")
				c := dial(t)
				c.send(strings.ReplaceAll(tt.head, "CASE", name) + unread(kind, smuggled))
				a, err := c.read(soon, strings.HasPrefix(tt.head, "HEAD"))
				if err != nil || a.status != tt.status || a.cut {
					t.Fatalf("%v, the answer is %q", err, a.head)
				}
				if tt.status == 405 && a.field("allow") == "" {
					t.Error("a 405 does not tell what is allowed")
				}
				if kind == "length, later" {
					c.send(smuggled)
				}
				if a.closes() {
					if kind == "none" {
						t.Error("the connection closes although there is no body")
					}
					c.ends(t)
				} else if kind != "length, half of it" {
					c.lives(t, name)
				}
				nothing(t, name)
			})
		}
	}
}

// unread is the rest of a request whose body is not wanted.
func unread(kind, body string) string {
	length := fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body))
	switch kind {
	case "length":
		return length + body
	case "length, half of it":
		return length + body[:len(body)/2]
	case "length, later":
		return length
	case "chunked":
		return chunked + "\r\n" + chunk(body) + "0\r\n\r\n"
	}
	return "\r\n"
}

// The answer to a body that is refused reaches a client that goes on sending:
// no reset eats it.
func TestUnreadAnswerKept(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, head string
		status     int
	}{
		{"too large", start + "Content-Length: 8000000\r\n\r\n", 413},
		{"too large, chunked", start + chunked + "\r\n7fffff\r\n", 413},
		{"no key", line + hostLine + "Content-Length: 1000000\r\n\r\n", 401},
		{"unknown path", "POST /none HTTP/1.1\r\n" + hostLine + "Content-Length: 1000000\r\n\r\n", 404},
		{"malformed", "POST  /none HTTP/1.1\r\n" + hostLine + "Content-Length: 1000000\r\n\r\n", 400},
		{"malformed chunk", start + chunked + "\r\nzz\r\n", 400},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := dial(t)
			c.send(strings.ReplaceAll(tt.head, "CASE", t.Name()))
			for range 50 { // while the answer is on its way
				c.send(strings.Repeat(" ", 4<<10))
				time.Sleep(time.Millisecond)
			}
			a := c.answer(t)
			if a.status != tt.status || a.cut || !a.closes() {
				t.Errorf("the answer is %q", a.head+a.body)
			}
			c.ends(t)
			nothing(t, t.Name())
		})
	}
}
