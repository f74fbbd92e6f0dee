//go:build integration

package conformance

import (
	"strings"
	"testing"
	"time"
)

// A request that has reached a live connection is made once, whatever becomes
// of the connection.
func TestRetryOnce(t *testing.T) {
	t.Parallel()
	half := good[:len(good)/2]
	for _, tt := range []struct {
		name  string
		used  bool // the connection has served before
		out   string
		end   string
		pause time.Duration // from the request to the end
	}{
		{"new, FIN", false, "", "FIN", 0},
		{"new, RST", false, "", "RST", 0},
		{"new, FIN later", false, "", "FIN", quiet},
		{"new, RST later", false, "", "RST", quiet},
		{"new, FIN in the head", false, "HTTP/1.1 200", "FIN", 0},
		{"new, FIN in the body", false, half, "FIN", 0},
		{"new, RST in the body", false, half, "RST", quiet},
		{"new, FIN behind 100", false, "HTTP/1.1 100 Continue\r\n\r\n", "FIN", 0},
		{"new, garbage", false, "garbage\r\n\r\n", "", 0},
		{"used, FIN", true, "", "FIN", 0},
		{"used, RST", true, "", "RST", 0},
		{"used, FIN later", true, "", "FIN", quiet},
		{"used, RST later", true, "", "RST", quiet},
		{"used, FIN after long", true, "", "FIN", 1500 * time.Millisecond},
		{"used, FIN in the head", true, "HTTP/1.1 200", "FIN", 0},
		{"used, FIN in the body", true, half, "FIN", 0},
		{"used, RST in the body", true, half, "RST", quiet},
		{"used, FIN behind 100", true, "HTTP/1.1 100 Continue\r\n\r\n", "FIN", 0},
		{"used, garbage", true, "garbage\r\n\r\n", "", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := take(t, "open")
			c := dial(t)
			c.send(whole(t.Name()+"/1", o.model))
			l := o.accept(t)
			l.request(t)
			if tt.used {
				l.send(good)
				c.answer(t)
				c.send(whole(t.Name()+"/2", o.model))
				l.request(t)
			}
			time.Sleep(tt.pause)
			l.send(tt.out)
			switch tt.end {
			case "FIN":
				_ = l.Close()
			case "RST":
				time.Sleep(quiet / 5) // what was sent is with the relay
				reset(l.Conn)
			}
			a := c.answer(t)
			if a.status != 502 || a.cut {
				t.Errorf("the answer is %q", a.head+a.body)
			}
			o.lonely(t)
		})
	}
}

// An answer of the upstream is an answer: it is not asked again.
func TestRetryAnswered(t *testing.T) {
	t.Parallel()
	fault := `{"error":{"message":"x","type":"y"}}`
	for _, status := range []string{"400 Bad Request", "404 Not Found", "408 Request Timeout", "409 Conflict", "429 Too Many Requests",
		"500 Internal Server Error", "502 Bad Gateway", "503 Service Unavailable", "504 Gateway Timeout", "529 Overloaded"} {
		t.Run(status, func(t *testing.T) {
			t.Parallel()
			o := take(t, "open")
			c := dial(t)
			c.send(whole(t.Name(), o.model))
			l := o.accept(t)
			l.request(t)
			l.send(sized(status, "", fault))
			a := c.answer(t)
			if !strings.HasPrefix(status, itoa(a.status)) || a.body != fault {
				t.Errorf("the answer is %q", a.head+a.body)
			}
			if len(l.rest(quiet)) > 0 {
				t.Error("the request was made again")
			}
			o.lonely(t)
		})
	}
}

// Where the upstream cannot have seen the request, the client does not see that
// a kept connection had died.
func TestRetryStale(t *testing.T) {
	t.Parallel()
	o := take(t, "open")
	for i := range 5 {
		c := dial(t)
		c.send(whole(t.Name()+"/"+itoa(i), o.model))
		l := o.accept(t)
		l.request(t)
		l.send(good)
		if a := c.answer(t); a.status != 200 {
			t.Errorf("the answer is %q", a.head)
		}
		_ = l.Close() // as the next request goes out
	}
}

// An upstream that cannot be reached is a 502, soon.
func TestRetryRefused(t *testing.T) {
	t.Parallel()
	o := take(t, "open")
	_ = o.listener.Close()
	c := dial(t)
	for i := range 3 {
		c.send(whole(t.Name()+"/"+itoa(i), o.model))
		if a := c.answer(t); a.status != 502 || a.closes() {
			t.Errorf("the answer is %q", a.head)
		}
	}
	c.lives(t, t.Name()+"/")
}

// An upstream that does not answer, or stops in the middle, is given up.
func TestRetrySilent(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, out, drip string
		status          int
	}{
		{"nothing", "", "", 504},
		{"half a head", "HTTP/1.1 200 OK\r\nX-A:", "", 504},
		{"head that drips", "HTTP/1.1 200 OK\r\nX-A:", "b", 504},
		{"head lines that drip", "HTTP/1.1 200 OK\r\n", "X:y\r\n", 504},
		{"1xx that drip", "", "HTTP/1.1 102 Processing\r\n\r\n", 0},
		{"half a body", good[:len(good)-5], "", 504},
		{"head alone", good[:len(good)-len(completion)], "", 504},
		{"stream that never begins", "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" + chunked + "\r\n", "", 504},
		{"stream of comments", "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" + chunked + "\r\n", chunk(": x\n\n"), 0},
		{"stream that stops", "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" + chunked + "\r\n" + chunk(events[:110]), "", 200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := take(t, "hasty")
			c := dial(t)
			began := time.Now()
			c.send(whole(t.Name(), o.model))
			l := o.accept(t)
			l.request(t)
			l.send(tt.out)
			drip := &client{Conn: l.Conn}
			defer drip.drip(tt.drip)()
			a := c.answer(t)
			if tt.status != 0 && a.status != tt.status || (a.status == 200 && (!a.cut || !strings.Contains(a.body, `"error"`))) {
				t.Errorf("the answer is %q", a.head+a.body)
			}
			if took := time.Since(began); took > 2*time.Second+soon {
				t.Errorf("it took %v", took)
			}
			o.lonely(t)
		})
	}
}
