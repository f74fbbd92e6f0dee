package loop

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"relay/usage"
)

// oldAsk is a request of HTTP/1.0.
func oldAsk(path, body string, fields ...string) string {
	return strings.Replace(post(path, body, fields...), "HTTP/1.1", "HTTP/1.0", 1)
}

// TestFraming: how an answer's end is told to each kind of client, whatever it
// was to us.
func TestFraming(t *testing.T) {
	const text = "plain text, not JSON"
	frames := map[string]string{
		"length": given(200, "text/plain", text),
		"chunks": "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(text[:5]) + chunk(text[5:]) + "0\r\nX-Trailer: t\r\n\r\n",
		"close":  "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n" + text,
		"old":    "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\n" + text,
		"events": "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + token + stopEvent + doneEvent,
	}
	for frame, bytes := range frames {
		for _, tt := range []struct {
			name, ask    string
			old, keepOld bool
			closes       bool
		}{
			{"HTTP/1.1", post(chatPath, chatAsk), false, false, false},
			{"HTTP/1.1 close", post(chatPath, chatAsk, "Connection: close"), false, false, true},
			{"HTTP/1.0", oldAsk(chatPath, chatAsk), true, false, true},
			{"HTTP/1.0 keep-alive", oldAsk(chatPath, chatAsk, "Connection: keep-alive"), true, true, false},
		} {
			for _, step := range []int{1, 1 << 20} {
				t.Run(fmt.Sprintf("%s to %s in reads of %d", frame, tt.name, step), func(t *testing.T) {
					r := newRig(t)
					defer r.end()
					c, u := r.exchange(tt.ask)
					u.sendEach(bytes, step)
					u.close(EOF)
					a := c.reply()
					want := text
					if frame == "events" {
						want = token + stopEvent + doneEvent
					}
					if a.status != 200 || a.body != want || !a.whole {
						t.Fatalf("status %d, whole: %t, body %q", a.status, a.whole, a.body)
					}
					if a.chunks && tt.old {
						t.Error("chunks for HTTP/1.0")
					}
					ends := tt.closes || tt.old && frame != "length"
					if c.fin != ends || ends != (a.fields["connection"] == "close") {
						t.Errorf("FIN: %t, want %t; connection: %s", c.fin, ends, a.fields["connection"])
					}
					if tt.keepOld && !ends && a.fields["connection"] != "keep-alive" {
						t.Error("kept alive without a word")
					}
					if a.fields["x-trailer"] != "" {
						t.Error("a trailer became a field")
					}
				})
			}
		}
	}
}

// TestNoContent: 204 has no body and no length.
func TestNoContent(t *testing.T) {
	r := newRig(t)
	defer r.end()
	c, u := r.exchange(post(chatPath, chatAsk))
	u.send("HTTP/1.1 204 No Content\r\nX-Kept: yes\r\n\r\n")
	a := c.reply()
	if a.status != 204 || a.fields["content-length"] != "" || a.fields["transfer-encoding"] != "" || a.fields["x-kept"] != "yes" || !a.keep {
		t.Errorf("status %d, fields %v", a.status, a.fields)
	}
	c.send(follower)
	if all := c.replies(); len(all) != 2 || all[1].status != 200 {
		t.Errorf("answers %v", all)
	}
}

// TestInformational: 1xx answers are dropped, in bounded number, and never with
// a change of protocol.
func TestInformational(t *testing.T) {
	const early = "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
	for _, tt := range []struct {
		name, before string
		status       int
	}{
		{"none", "", 200},
		{"100", "HTTP/1.1 100 Continue\r\n\r\n", 200},
		{"as many as may be", strings.Repeat(early, informationalMax), 200},
		{"one more", strings.Repeat(early, informationalMax+1), 502},
		{"101", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", 502},
		{"100 with a body", "HTTP/1.1 100 Continue\r\nContent-Length: 3\r\n\r\nabc", 502},
	} {
		for _, step := range []int{1, 50, 1 << 20} {
			t.Run(fmt.Sprintf("%s in reads of %d", tt.name, step), func(t *testing.T) {
				r := newRig(t)
				defer r.end()
				c, u := r.exchange(post(chatPath, chatAsk))
				u.sendEach(tt.before+given(200, asJSON, chatReply), step)
				if a := c.reply(); a.status != tt.status || a.fields["link"] != "" || u.dropped != (tt.status == 502) {
					t.Errorf("status %d, host's connection closed: %t", a.status, u.dropped)
				}
			})
		}
	}
}

// TestBadAnswers: what is not HTTP/1 is a 502 at once, and its connection ends.
func TestBadAnswers(t *testing.T) {
	for name, text := range map[string]string{
		"HTTP/0.9":          "<html>hello</html>",
		"HTTP/2":            "HTTP/2.0 200 OK\r\n\r\n",
		"status of 2":       "HTTP/1.1 20 OK\r\n\r\n",
		"status of 600":     "HTTP/1.1 600 No\r\n\r\n",
		"two lengths":       "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
		"length and chunks": "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabcd",
		"negative length":   "HTTP/1.1 200 OK\r\nContent-Length: -3\r\n\r\nabcd",
		"unknown coding":    "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nabcd",
		"control byte":      "HTTP/1.1 200 OK\r\nX: a\x00b\r\n\r\n",
		"bare LF":           "HTTP/1.1 200 OK\nX: a\n\n",
		"endless line":      "HTTP/1.1 200 " + strings.Repeat("x", 9000),
		"endless head":      "HTTP/1.1 200 OK\r\n" + strings.Repeat("a: "+strings.Repeat("b", 8000)+"\r\n", 9),
	} {
		for _, step := range []int{11, 1 << 20} {
			t.Run(fmt.Sprintf("%s in reads of %d", name, step), func(t *testing.T) {
				r := newRig(t)
				defer r.end()
				c, u := r.exchange(post(chatPath, chatAsk))
				u.sendEach(text, step)
				if a := c.reply(); a.status != 502 || !a.keep || !u.dropped {
					t.Errorf("status %d, kept alive: %t, host's connection closed: %t", a.status, a.keep, u.dropped)
				}
				if row := r.row(0); row.Outcome != usage.Failed || row.Error != "bad_gateway" || row.Cost.Total != 0 {
					t.Errorf("row %+v", row)
				}
			})
		}
	}
}

// TestBadChunks: framing that breaks off in the body is a cut.
func TestBadChunks(t *testing.T) {
	r := newRig(t)
	defer r.end()
	c, u := r.exchange(post(chatPath, chatAsk))
	u.send("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk("abc"))
	u.send("xyz\r\n")
	r.pass(failureDelay + TickEvery)
	if a := c.reply(); a.body != "abc" || a.whole || !c.fin || !u.dropped {
		t.Errorf("body %q, whole: %t, FIN: %t", a.body, a.whole, c.fin)
	}
}

// TestLateHead: a head that comes after the first-token time, but within the
// first-byte time, finds the exchange ended in good order.
func TestLateHead(t *testing.T) {
	for _, body := range []string{"", chunk(token), chunk(token) + chunk(stopEvent+doneEvent) + lastChunk} {
		r := newRig(t)
		c, u := r.exchange(post(chatPath, streamAsk))
		r.pass(25 * time.Second) // first_token is 20 s, first_byte 30 s
		u.send(eventsHead + body)
		if a := c.reply(); a.status != 504 && body == "" || !a.whole {
			t.Errorf("status %d, whole: %t, body %q", a.status, a.whole, a.body)
		}
		r.end()
	}
}

// TestAnswerHead: fields of the host's head that reach the caller, or do not.
func TestAnswerHead(t *testing.T) {
	r := newRig(t)
	defer r.end()
	c, u := r.exchange(post(messagePath, messageAsk))
	u.send(given(200, asJSON, messageReply, "Server: s", "X-Custom: c", "Set-Cookie: x=y", "Connection: x-hop", "X-Hop: h",
		"Keep-Alive: timeout=3", "request-id: req_theirs", "anthropic-ratelimit-requests-limit: 5", "anthropic-organization-id: org"))
	a := c.reply()
	if a.fields["x-custom"] != "c" || a.fields["x-relay-upstream-request-id"] != "req_theirs" || a.fields["request-id"] != a.fields["x-request-id"] {
		t.Errorf("fields %v", a.fields)
	}
	for _, name := range []string{"server", "set-cookie", "connection", "x-hop", "keep-alive", "anthropic-ratelimit-requests-limit", "anthropic-organization-id"} {
		if v, there := a.fields[name]; there {
			t.Errorf("the caller got %s: %s", name, v)
		}
	}
	if row := r.row(0); row.UpstreamRequestID != "req_theirs" {
		t.Errorf("row has upstream id %q", row.UpstreamRequestID)
	}
}

// TestUntilCloseCut: an answer whose end is the end of the connection, and that
// is broken off, ends in a reset: a FIN would make it look whole.
func TestUntilCloseCut(t *testing.T) {
	for _, cause := range []Cause{EOF, Reset} {
		r := newRig(t)
		c, u := r.exchange(oldAsk(chatPath, chatAsk))
		u.send("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk("half"))
		u.close(cause)
		if c.fin || c.closed {
			t.Errorf("cause %d: the connection ended before its client could read", cause)
		}
		r.pass(failureDelay + 2*TickEvery)
		if !c.aborted || c.fin || !strings.HasSuffix(c.out, "half") {
			t.Errorf("cause %d: reset %t, FIN %t, %q", cause, c.aborted, c.fin, c.out)
		}
		r.end()
	}
}
