//go:build integration

package conformance

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// expecting is the head of a request whose body waits to be asked for.
func expecting(lines string) string {
	return start + "Expect: 100-continue\r\n" + bodyLine + lines + "\r\n"
}

// A client that waits gets 100 at once, and the body is then served.
func TestExpectContinue(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, head, body string }{
		{"length", expecting(""), body},
		{"letter case", start + "eXPECT: 100-Continue\r\n" + bodyLine + "\r\n", body},
		{"chunked", start + "Expect: 100-continue\r\n" + chunked + "\r\n", chunk(body) + "0\r\n\r\n"},
		{"twice", start + "Expect: 100-continue\r\nExpect: 100-continue\r\n" + bodyLine + "\r\n", body},
		{"with Connection: close", expecting("Connection: close\r\n"), body},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := dial(t)
			began := time.Now()
			c.send(strings.ReplaceAll(tt.head, "CASE", t.Name()))
			var interim answer
			_ = c.SetReadDeadline(time.Now().Add(soon))
			if err := interim.readHead(c.r); err != nil || interim.status != 100 || len(interim.fields) > 0 {
				t.Fatalf("no 100: %v, %q", err, interim.head)
			}
			if waited := time.Since(began); waited > soon/2 {
				t.Errorf("the 100 came after %v", waited)
			}
			c.send(tt.body)
			c.passed(t, &passage{closes: strings.Contains(tt.head, "close")})
		})
	}
}

// A body that comes without being asked for is served all the same.
func TestExpectUnasked(t *testing.T) {
	t.Parallel()
	passAll(t, []passage{
		{name: "with the head", in: expecting("") + body},
		{name: "chunked", in: start + "Expect: 100-continue\r\n" + chunked + "\r\n" + chunk(body) + "0\r\n\r\n"},
		{name: "HTTP/1.0", in: strings.Replace(expecting(""), "HTTP/1.1", "HTTP/1.0", 1) + body, closes: true},
	})
}

// An HTTP/1.0 client never gets 100.
func TestExpectOld(t *testing.T) {
	t.Parallel()
	c := dial(t)
	name := t.Name() + "/old"
	c.send(strings.ReplaceAll(strings.Replace(expecting(""), "HTTP/1.1", "HTTP/1.0", 1), "CASE", name))
	_ = c.SetReadDeadline(time.Now().Add(quiet))
	if b, err := c.r.Peek(1); len(b) > 0 || !isTimeout(err) {
		t.Errorf("%q, %v comes before the body", b, err)
	}
	c.send(body)
	if a := c.answer(t); a.status != 200 || len(a.interim) > 0 || !a.closes() {
		t.Errorf("%v %q", a.interim, a.head)
	}
	c.ends(t)
}

func TestExpectRefused(t *testing.T) {
	t.Parallel()
	refuseAll(t, []refusal{
		{"unknown", start + bodyLine + "Expect: 200-ok\r\n\r\n" + body, "417"},
		{"empty", start + bodyLine + "Expect:\r\n\r\n" + body, "417"},
		{"list", start + bodyLine + "Expect: 100-continue, x\r\n\r\n" + body, "417"},
		{"another field", start + bodyLine + "Expect: 100-continue\r\nExpect: x\r\n\r\n" + body, "417"},
		{"with parameters", start + bodyLine + "Expect: 100-continue;a=b\r\n\r\n" + body, "417"},
	})
}

// A request that is refused gets its answer without 100 and without delay, and
// the body that was announced is never a request, whether it comes or not.
func TestExpectFinal(t *testing.T) {
	t.Parallel()
	smuggled := whole("CASE", "echo")
	announced := fmt.Sprintf("Content-Length: %d\r\nExpect: 100-continue\r\n\r\n", len(smuggled))
	stranger := strings.Replace(start, relayKey, "rk-unknown-key", 1)
	for _, tt := range []struct{ name, head, status string }{
		{"no key", line + hostLine + announced, "401"},
		{"unknown key", stranger + announced, "401"},
		{"unknown path", strings.Replace(start, "/v1/chat/completions", "/v1/none", 1) + announced, "404"},
		{"wrong method", strings.Replace(start, "POST", "PUT", 1) + announced, "405"},
		{"encoded body", start + "Content-Encoding: gzip\r\n" + announced, "400 415"},
		{"body too large", start + "Content-Length: 10000000\r\nExpect: 100-continue\r\n\r\n", "413"},
		{"chunked, no key", line + hostLine + chunked + "Expect: 100-continue\r\n\r\n", "401"},
	} {
		for _, late := range []bool{false, true} {
			name := tt.name
			if late {
				name += ", the body comes"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				c := dial(t)
				c.send(strings.ReplaceAll(tt.head, "CASE", t.Name()))
				a := c.answer(t)
				if fmt.Sprint(a.status) != tt.status && !strings.Contains(tt.status, fmt.Sprint(a.status)) || len(a.interim) > 0 {
					t.Errorf("%v %q", a.interim, a.head)
				}
				if late {
					c.send(strings.ReplaceAll(smuggled, "CASE", t.Name()))
				}
				if a.closes() {
					c.ends(t)
				} else {
					_ = c.SetReadDeadline(time.Now().Add(quiet))
					if b, err := c.r.Peek(1); len(b) > 0 || !isTimeout(err) {
						t.Errorf("%q, %v comes after the answer", b, err)
					}
				}
				nothing(t, t.Name())
			})
		}
	}
}
