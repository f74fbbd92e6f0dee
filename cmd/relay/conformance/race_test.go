//go:build integration

package conformance

import (
	"strings"
	"testing"
)

// What an upstream says on an idle connection is never an answer, even when the
// next request is on its way at that moment: it was said before the upstream
// could have seen the request.
func TestPoolRace(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, out string
		fin       bool
	}{
		{"408", "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", false},
		{"408 and FIN", "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", true},
		{"answer", sized("200 OK", "", `{"evil":true}`), false},
		{"FIN", "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := take(t, "open")
			c := dial(t)
			stale := 0
			for i := range 100 {
				c.send(whole(t.Name()+"/"+itoa(i), o.model))
				l := o.accept(t)
				l.request(t)
				l.send(good)
				if a := c.answer(t); a.status != 200 {
					t.Fatalf("round %d: %q", i, a.head)
				}
				l.send(tt.out)
				if tt.fin {
					_ = l.Close()
				}
				c.send(whole(t.Name()+"/"+itoa(i)+"-", o.model))
				served := make(chan bool)
				go func() {
					defer close(served)
					if s := <-o.links; s != nil {
						if _, err := readSent(s.r); err == nil {
							s.send(sized("200 OK", "Connection: close\r\n", `{"second":true}`))
						}
					}
				}()
				a := c.answer(t)
				if a.status == 408 || strings.Contains(a.body, "evil") {
					stale++
					o.links <- nil
				} else if a.status != 200 {
					t.Errorf("round %d: %q", i, a.head)
					o.links <- nil
				}
				<-served
				_ = l.Close()
			}
			if stale > 0 {
				t.Errorf("%d of 100 clients got what was said before their request", stale)
			}
		})
	}
}
