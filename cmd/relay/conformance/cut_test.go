//go:build integration

package conformance

import (
	"fmt"
	"strings"
	"testing"
)

// events is a whole stream of a chat completion.
const events = `data: {"id":"x","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}

data: {"id":"x","choices":[{"index":0,"delta":{"content":"hello"},"finish_reason":null}]}

data: {"id":"x","choices":[{"index":0,"delta":{"content":" you"},"finish_reason":null}]}

data: {"id":"x","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}

data: [DONE]

`

// A form is a way to send a whole answer. Cut at any byte before whole, it must
// not look whole; the bytes from whole on are the end of the message.
type form struct {
	name, out string
	whole     int // bytes from which on a FIN is no cut
}

func forms() []form {
	head := func(contentType, lines string) string {
		return "HTTP/1.1 200 OK\r\nContent-Type: " + contentType + "\r\n" + lines + "\r\n"
	}
	large := `{"id":"` + strings.Repeat("x", 400<<10) + `"}`
	text := strings.Repeat("hello ", 20)
	half := func(s string) string { return chunk(s[:len(s)/2]) + chunk(s[len(s)/2:]) + "0\r\n\r\n" }
	list := []form{
		{name: "JSON, length", out: sized("200 OK", "", completion)},
		{name: "JSON, chunked", out: head("application/json", chunked) + half(completion)},
		{name: "JSON, until close", out: head("application/json", "") + completion},
		{name: "large JSON, length", out: sized("200 OK", "", large)},
		{name: "large JSON, chunked", out: head("application/json", chunked) + half(large)},
		{name: "error, length", out: sized("400 Bad Request", "", `{"error":{"message":"x"}}`)},
		{name: "text, length", out: head("text/plain", fmt.Sprintf("Content-Length: %d\r\n", len(text))) + text},
		{name: "text, chunked", out: head("text/plain", chunked) + half(text)},
		{name: "text, chunked with trailer", out: head("text/plain", chunked) + chunk(text) + "0\r\nX-T: u\r\n\r\n"},
		{name: "events, length", out: head("text/event-stream", fmt.Sprintf("Content-Length: %d\r\n", len(events))) + events},
		{name: "events, chunked", out: head("text/event-stream", chunked) + half(events)},
	}
	for i := range list {
		list[i].whole = len(list[i].out)
	}
	untilClose := head("text/event-stream", "") + events
	return append(list, form{"events, until close", untilClose, strings.Index(untilClose, `"stop"`)})
}

// points are the places at which an answer is cut: all about the head's end and
// the message's end, and some between.
func (f *form) points() (list []int) {
	headEnd := strings.Index(f.out, "\r\n\r\n") + 4
	for i := range f.whole {
		near := i > f.whole-9 || i >= headEnd-2 && i < headEnd+3
		if near || i%(f.whole/7+1) == 3 {
			list = append(list, i)
		}
	}
	return list
}

// A cut answer looks cut, at whatever byte it is cut and however.
func TestCut(t *testing.T) {
	t.Parallel()
	for _, f := range forms() {
		for _, how := range []string{"FIN", "RST"} {
			t.Run(f.name+"/"+how, func(t *testing.T) {
				t.Parallel()
				o := take(t, "open")
				for _, at := range f.points() {
					c := dial(t)
					c.send(whole(fmt.Sprintf("%s/%d", t.Name(), at), o.model))
					l := o.accept(t)
					l.request(t)
					l.send(f.out[:at])
					if how == "FIN" {
						_ = l.Close()
					} else {
						reset(l.Conn)
					}
					looksCut(t, c, f.out, at)
				}
				o.lonely(t)
			})
		}
	}
}

// looksCut fails the test if an answer cut at a byte cannot be told from a
// whole one.
func looksCut(t *testing.T, c *client, out string, at int) {
	t.Helper()
	a, err := c.read(soon, false)
	if err != nil {
		t.Fatalf("cut at %d: %v", at, err)
	}
	switch {
	case a.status == 502 && !a.cut:
	case !a.cut:
		t.Errorf("cut at %d of %d: looks whole: %.300q", at, len(out), a.head+a.body)
	case strings.Contains(out, "event-stream") && !strings.Contains(a.body, `"error"`):
		t.Errorf("cut at %d: no error event in %q", at, a.body)
	case strings.Contains(a.body, "[DONE]") && !strings.Contains(out[:at], "[DONE]"):
		t.Errorf("cut at %d: [DONE] in %q", at, a.body)
	}
}

// A body that breaks the rules of its framing looks cut as well.
func TestCutMalformed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, out string }{
		{"bad size", "zz\r\n"},
		{"negative size", "-1\r\n"},
		{"size too large", "ffffffffffffffff1\r\n"},
		{"size far beyond all bounds", "fffffffffffffff\r\n"},
		{"LF behind the size", "5\nhello\r\n"},
		{"no line end behind the data", "5\r\nhelloX"},
		{"LF behind the data", "5\r\nhello\n"},
		{"LF in an extension", "5;a=\"\n\"\r\nhello\r\n"},
		{"endless extension", "5;" + strings.Repeat("a", 70000)},
		{"LF for the end", "0\r\n\n"},
		{"bad trailer", "0\r\nX A: b\r\n\r\n"},
		{"trailer with a control byte", "0\r\nX-A: \x01\r\n\r\n"},
		{"endless trailer", "0\r\n" + strings.Repeat("X-A: b\r\n", 5000)},
		{"a head for a chunk", "HTTP/1.1 200 OK\r\n\r\n"},
	} {
		for _, kind := range []string{"application/json", "text/plain", "text/event-stream"} {
			t.Run(tt.name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				o := take(t, "open")
				c := dial(t)
				c.send(whole(t.Name(), o.model))
				l := o.accept(t)
				l.request(t)
				head := "HTTP/1.1 200 OK\r\nContent-Type: " + kind + "\r\n" + chunked + "\r\n"
				first := map[string]string{"application/json": `{"a":1}`, "text/plain": "hello", "text/event-stream": events[:110]}[kind]
				l.send(head + chunk(first) + tt.out)
				looksCut(t, c, head+first, len(head+first))
				l.ends(t, goneTime)
				o.lonely(t)
			})
		}
	}
}
