//go:build integration

package conformance

import (
	"strings"
	"testing"
	"time"
)

// Times that clients have, and how much later the end may be seen.
const (
	headTime  = 10 * time.Second
	bodyTime  = 30 * time.Second
	headEarly = headTime - time.Second
	headLate  = headTime + 8*time.Second
	bodyLate  = bodyTime + 8*time.Second
)

// A head has an absolute deadline, and a body a rate, that single bytes do not
// put off. Each case sends some bytes and then single ones for ever.
func TestSlow(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, in, drip string
		early, late    time.Duration
		status         int
	}{
		{"request line, silent", "POST /v1", "", headEarly, headLate, 408},
		{"request line", "POST /v1", "a", headEarly, headLate, 408},
		{"fields, silent", start + "X-A: b", "", headEarly, headLate, 408},
		{"field value", start + "X-A: b", "b", headEarly, headLate, 408},
		{"field lines", start, "a:b\r\n", headEarly, headLate, 408},
		{"one byte before the end", start + bodyLine + "\r", "", headEarly, headLate, 408},
		{"empty line alone", "\r\n", "", headEarly, headLate, 408},
		{"second request", list + "\r\n" + "GET /", "x", headEarly, headLate, 408},
		{"body, silent", start + "Content-Length: 5000\r\n\r\n{", "", bodyTime - 2*time.Second, bodyLate, 408},
		{"body", start + "Content-Length: 5000\r\n\r\n{", " ", bodyTime - 2*time.Second, bodyLate, 408},
		{"body that never begins", start + "Content-Length: 5000\r\n\r\n", "", bodyTime - 2*time.Second, bodyLate, 408},
		{"body after 100", start + "Expect: 100-continue\r\nContent-Length: 5000\r\n\r\n", " ", bodyTime - 2*time.Second, bodyLate, 408},
		{"chunks of one byte", start + chunked + "\r\n1\r\n{\r\n", "1\r\n \r\n", bodyTime - 2*time.Second, bodyLate, 408},
		{"chunk line", start + chunked + "\r\n1", ";a", 0, bodyLate, 408},
		{"trailers", start + chunked + "\r\n" + chunk(body) + "0\r\n", "X-A: b\r\n", bodyTime - 2*time.Second, bodyLate, 408},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := dial(t)
			c.send(strings.ReplaceAll(tt.in, "CASE", t.Name()))
			began := time.Now()
			stop := c.drip(tt.drip)
			defer stop()
			if strings.HasPrefix(tt.in, "GET") {
				c.answer(t)
			}
			a, err := c.read(tt.late, false)
			took := time.Since(began)
			if err != nil || a.status != tt.status || !a.closes() || a.cut {
				t.Errorf("after %v: %v, %q", took, err, a.head)
			}
			if took < tt.early {
				t.Errorf("refused after %v", took)
			}
			stop()
			c.ends(t)
			nothing(t, t.Name())
		})
	}
}

// drip sends a text every 300 ms until it is stopped.
func (c *client) drip(text string) (stop func()) {
	stopped, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for text != "" {
			select {
			case <-stopped:
				return
			case <-time.After(300 * time.Millisecond):
				c.send(text)
			}
		}
	}()
	once := false
	return func() {
		if !once {
			once = true
			close(stopped)
			<-done
		}
	}
}

// A body that keeps its rate is served although it takes its time.
func TestSlowButFastEnough(t *testing.T) {
	t.Parallel()
	text := strings.Replace(body, "hello", strings.Repeat("x", 40<<10), 1)
	c := dial(t)
	c.send(strings.ReplaceAll(start, "CASE", t.Name()+"/rate") + "Content-Length: " + itoa(len(text)) + "\r\n\r\n")
	c.sendSlowly(text, len(text)/30+1, 100*time.Millisecond)
	if a := c.answer(t); a.status != 200 {
		t.Errorf("the answer is %q", a.head)
	}
}
