//go:build integration

package conformance

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

// ways are the ways in which a client goes.
var ways = []struct {
	name  string
	leave func(c net.Conn)
}{
	{"close", func(c net.Conn) { _ = c.Close() }},
	{"FIN", func(c net.Conn) { _ = c.(*net.TCPConn).CloseWrite() }},
	{"RST", reset},
}

// A client that goes before its answer is whole takes its upstream request with
// it, within three seconds, and the upstream connection is not used again.
func TestGone(t *testing.T) {
	t.Parallel()
	typedAs := func(kind string) string { return "HTTP/1.1 200 OK\r\nContent-Type: " + kind + "\r\n" }
	for _, tt := range []struct{ name, out string }{
		{"before the answer", ""},
		{"in the answer's head", "HTTP/1.1 200 OK\r\nX-A:"},
		{"behind 100", "HTTP/1.1 100 Continue\r\n\r\n"},
		{"behind the head", typedAs("application/json") + "Content-Length: 50\r\n\r\n"},
		{"in JSON", typedAs("application/json") + "Content-Length: 50\r\n\r\n{"},
		{"in chunked JSON", typedAs("application/json") + chunked + "\r\n" + chunk("{")},
		{"in text", typedAs("text/plain") + "Content-Length: 50\r\n\r\nhello"},
		{"in text until close", typedAs("text/plain") + "\r\nhello"},
		{"behind the head of events", typedAs("text/event-stream") + chunked + "\r\n"},
		{"in events", typedAs("text/event-stream") + chunked + "\r\n" + chunk(events[:110])},
		{"in an event", typedAs("text/event-stream") + chunked + "\r\n" + chunk(events[:150])},
	} {
		for _, way := range ways {
			t.Run(tt.name+"/"+way.name, func(t *testing.T) {
				t.Parallel()
				o := take(t, "open")
				c := dial(t)
				c.send(whole(t.Name(), o.model))
				l := o.accept(t)
				l.request(t)
				l.send(tt.out)
				time.Sleep(quiet / 3)
				way.leave(c.Conn)
				if rest := l.ends(t, goneTime); rest != "" {
					t.Errorf("more of the request came: %q", rest)
				}
				o.lonely(t)
			})
		}
	}
}

// A client that goes with pipelined requests behind the running one takes them
// with it.
func TestGonePipelined(t *testing.T) {
	t.Parallel()
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			o := take(t, "open")
			c := dial(t)
			c.send(whole(t.Name()+"/1", o.model) + strings.Repeat(whole(t.Name()+"/2", "echo"), 500))
			l := o.accept(t)
			l.request(t)
			way.leave(c.Conn)
			l.ends(t, goneTime)
			nothing(t, t.Name()+"/2")
		})
	}
}

// A body that does not come whole is never made whole upstream.
func TestGoneInBody(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, in string }{
		{"length", start + bodyLine + "\r\n" + body[:len(body)-1]},
		{"length, nothing came", start + bodyLine + "\r\n"},
		{"chunked", inChunks(chunk(body))},
		{"chunked, in a chunk", inChunks("ff\r\n" + body)},
		{"chunked, in the last line", inChunks(chunk(body) + "0\r\n")},
		{"chunked, in a trailer", inChunks(chunk(body) + "0\r\nX-A: b\r\n")},
		{"expected", start + "Expect: 100-continue\r\n" + bodyLine + "\r\n"},
		{"in the head", start + bodyLine},
	} {
		for _, way := range ways {
			t.Run(tt.name+"/"+way.name, func(t *testing.T) {
				t.Parallel()
				c := dial(t)
				c.send(strings.ReplaceAll(tt.in, "CASE", t.Name()))
				time.Sleep(quiet / 3)
				way.leave(c.Conn)
				if way.name == "FIN" {
					if rest, _ := c.end(soon); strings.Contains(rest, "HTTP/1.1 200") {
						t.Errorf("half a request is answered: %q", rest)
					}
				}
				time.Sleep(quiet)
				nothing(t, t.Name())
			})
		}
	}
}

// A large request that is on its way to an upstream that does not read is not
// made whole when its client goes.
func TestGoneWhileSending(t *testing.T) {
	t.Parallel()
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			o := take(t, "narrow")
			c := dialTo(t, besieged)
			text := large(o.model)
			c.send(strings.ReplaceAll(start, "CASE", t.Name()) + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(text)) + text)
			l := o.accept(t)
			time.Sleep(quiet)
			way.leave(c.Conn)
			time.Sleep(2 * quiet)
			if got := l.ends(t, goneTime); len(got) >= len(text) {
				t.Error("the upstream got the whole request")
			}
			o.lonely(t)
		})
	}
}

// large is a body of more bytes than sockets hold.
func large(model string) string {
	return strings.Replace(strings.Replace(body, "echo", model, 1), "hello", strings.Repeat("x", bodyMaxBesieged-200), 1)
}

// Many clients that go at once leave nothing behind.
func TestGoneMany(t *testing.T) {
	t.Parallel()
	o := take(t, "open")
	const many = 60
	for i := range many {
		c := dial(t)
		c.send(whole(fmt.Sprintf("%s/%d", t.Name(), i), o.model))
		defer ways[i%len(ways)].leave(c.Conn)
	}
	var links []*link
	for range many {
		l := o.accept(t)
		l.request(t)
		links = append(links, l)
	}
	t.Cleanup(func() {
		for _, l := range links {
			_ = l.SetReadDeadline(time.Now().Add(goneTime))
			if _, err := l.r.ReadByte(); isTimeout(err) {
				t.Error("an upstream connection of a client that has gone is open")
				return
			}
		}
	})
}
