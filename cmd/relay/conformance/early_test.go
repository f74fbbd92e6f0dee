//go:build integration

package conformance

import (
	"fmt"
	"strings"
	"testing"
)

// An upstream may answer before it has read the request. The answer gets to the
// client, and the connection is not used again.
func TestEarly(t *testing.T) {
	t.Parallel()
	fault := `{"error":{"message":"too large","type":"x"}}`
	for _, tt := range []struct {
		name, out string
		status    int
		end       string
	}{
		{"413", sized("413 Content Too Large", "", fault), 413, ""},
		{"413, close", sized("413 Content Too Large", "Connection: close\r\n", fault), 413, ""},
		{"413 and FIN", sized("413 Content Too Large", "Connection: close\r\n", fault), 413, "FIN"},
		{"413 and reset", sized("413 Content Too Large", "Connection: close\r\n", fault), 413, "RST"},
		{"429", sized("429 Too Many Requests", "", fault), 429, ""},
		{"200", good, 200, ""},
		{"200 chunked", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" + chunked + "\r\n" + chunk(completion) + "0\r\n\r\n", 200, ""},
		{"events", "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" + chunked + "\r\n" + chunk(events) + "0\r\n\r\n", 200, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := take(t, "narrow")
			c := dialTo(t, besieged)
			text := large(o.model)
			c.send(strings.ReplaceAll(start, "CASE", t.Name()) + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(text)) + text)
			l := o.accept(t)
			if _, err := l.r.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
			l.send(tt.out)
			switch tt.end {
			case "FIN":
				_ = l.Conn.(interface{ CloseWrite() error }).CloseWrite()
			case "RST":
				_ = l.Close() // with unread bytes
			}
			a := c.answer(t)
			if a.status != tt.status || a.cut {
				t.Errorf("the answer is %q", a.head+a.body)
			}
			o.lonely(t)
			if !a.closes() {
				c.send(whole(t.Name()+"/next", o.model))
				l = o.accept(t)
				l.request(t)
				l.send(good)
				if a := c.answer(t); a.status != 200 {
					t.Errorf("the next answer is %q", a.head)
				}
			}
		})
	}
}
