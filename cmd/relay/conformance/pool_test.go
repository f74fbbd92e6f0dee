//go:build integration

package conformance

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// good is an answer that leaves its connection usable.
var good = sized("200 OK", "", completion)

// An upstream connection serves again exactly if its answer was whole, nothing
// follows it, and neither side wants to close.
func TestPoolReuse(t *testing.T) {
	t.Parallel()
	typedAs := func(lines string) string { return "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n" + lines + "\r\n" }
	for _, tt := range []struct {
		name, out string
		reused    bool
	}{
		{"length", good, true},
		{"length 0", typedAs("Content-Length: 0\r\n"), true},
		{"chunked", typedAs(chunked) + chunk("hello") + "0\r\n\r\n", true},
		{"chunked, trailer", typedAs(chunked) + chunk("hello") + "0\r\nX-T: u\r\n\r\n", true},
		{"events", "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" + chunked + "\r\n" + chunk(events) + "0\r\n\r\n", true},
		{"204", "HTTP/1.1 204 No Content\r\n\r\n", true},
		{"100 first", "HTTP/1.1 100 Continue\r\n\r\n" + good, true},
		{"error", sized("400 Bad Request", "", `{"error":{}}`), true},
		{"server error", sized("500 Internal Server Error", "", `{"error":{}}`), true},
		{"keep-alive", sized("200 OK", "Connection: keep-alive\r\nKeep-Alive: timeout=5\r\n", completion), true},
		{"HTTP/1.0 that stays", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n" + typed + "\r\n" + completion, true},
		{"Connection: close", sized("200 OK", "Connection: close\r\n", completion), false},
		{"Connection: Close in a list", sized("200 OK", "Connection: x-a, CLOSE\r\n", completion), false},
		{"close and keep-alive", sized("200 OK", "Connection: keep-alive\r\nConnection: close\r\n", completion), false},
		{"chunked, close", typedAs(chunked+"Connection: close\r\n") + chunk("hello") + "0\r\n\r\n", false},
		{"HTTP/1.0", "HTTP/1.0 200 OK\r\n" + typed + "\r\n" + completion, false},
		{"204 with a length", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", false},
		{"204 with chunks", "HTTP/1.1 204 No Content\r\n" + chunked + "\r\n", false},
		{"204 with a body", "HTTP/1.1 204 No Content\r\n\r\nhello", false},
		{"byte behind", good + "x", false},
		{"line end behind", good + "\r\n", false},
		{"answer behind", good + sized("200 OK", "", `{"evil":true}`), false},
		{"byte behind the chunks", typedAs(chunked) + chunk("hello") + "0\r\n\r\nx", false},
		{"answer behind the chunks", typedAs(chunked) + chunk("hello") + "0\r\n\r\n" + sized("200 OK", "", `{"evil":true}`), false},
		{"answer behind a 204", "HTTP/1.1 204 No Content\r\n\r\n" + sized("200 OK", "", `{"evil":true}`), false},
		{"answer behind an error", sized("400 Bad Request", "", `{"error":{}}`) + sized("200 OK", "", `{"evil":true}`), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := take(t, "open")
			c := dial(t) // both requests on one client connection: one loop
			c.send(whole(t.Name()+"/1", o.model))
			l := o.accept(t)
			l.request(t)
			l.send(tt.out)
			if a := c.answer(t); a.cut || a.closes() {
				t.Fatalf("the first answer is %q", a.head)
			}
			if !tt.reused {
				l.ends(t, goneTime)
			}
			c.send(whole(t.Name()+"/2", o.model))
			if !tt.reused {
				l = o.accept(t)
			}
			l.request(t)
			l.send(sized("200 OK", "", `{"second":true}`))
			if a := c.answer(t); a.status != 200 || a.body != `{"second":true}` {
				t.Errorf("the second answer is %q", a.head+a.body)
			}
			o.lonely(t)
		})
	}
}

// Whatever comes on an idle connection is thrown away with it, and is never an
// answer.
func TestPoolIdle(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, out, end string }{
		{"FIN", "", "FIN"},
		{"RST", "", "RST"},
		{"408", "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", ""},
		{"408 and FIN", "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", "FIN"},
		{"answer", sized("200 OK", "", `{"evil":true}`), ""},
		{"answer and FIN", sized("200 OK", "", `{"evil":true}`), "FIN"},
		{"half an answer", "HTTP/1.1 200 OK\r\nContent-Le", ""},
		{"100", "HTTP/1.1 100 Continue\r\n\r\n", ""},
		{"line end", "\r\n", ""},
		{"one byte", "x", ""},
		{"garbage", strings.Repeat("\x00garbage", 2000), ""},
		{"garbage and RST", strings.Repeat("\x00garbage", 20), "RST"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := take(t, "open")
			c := dial(t)
			c.send(whole(t.Name()+"/1", o.model))
			l := o.accept(t)
			l.request(t)
			l.send(good)
			c.answer(t)
			l.stays(t)
			l.send(tt.out)
			switch tt.end {
			case "FIN":
				_ = l.Close()
			case "RST":
				reset(l.Conn)
			default:
				l.ends(t, goneTime)
			}
			time.Sleep(quiet) // it is with the relay
			c.send(whole(t.Name()+"/2", o.model))
			l = o.accept(t)
			l.request(t)
			l.send(sized("200 OK", "", `{"second":true}`))
			if a := c.answer(t); a.status != 200 || a.body != `{"second":true}` {
				t.Errorf("the second answer is %q", a.head+a.body)
			}
			o.lonely(t)
		})
	}
}

// Answers go to those who asked: requests of two clients over shared upstream
// connections never get each other's.
func TestPoolShared(t *testing.T) {
	t.Parallel()
	o := take(t, "open")
	go func() {
		for l := range o.links {
			go func() {
				for {
					s, err := readSent(l.r)
					if err != nil {
						return
					}
					l.send(sized("200 OK", "", fmt.Sprintf(`{"for":%q}`, s.fields("x-case"))))
				}
			}()
		}
	}()
	done := make(chan error, 20)
	for i := range cap(done) {
		go func() { done <- askMany(fmt.Sprintf("%s/%d", t.Name(), i), o.model, 30) }()
	}
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// askMany makes requests one after the other and wants its own answers.
func askMany(name, model string, n int) error {
	c, err := connect(judged.inference)
	if err != nil {
		return err
	}
	defer c.Close()
	for i := range n {
		mine := fmt.Sprintf("%s-%d", name, i)
		c.send(whole(mine, model))
		a, err := c.read(soon, false)
		if err != nil || !strings.Contains(a.body, `["`+mine+`"]`) {
			return fmt.Errorf("%s: %v, %q", mine, err, a.body)
		}
	}
	return nil
}
