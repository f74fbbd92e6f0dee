package loop

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestUnreadBodies: the bytes of a body that is not wanted are never a request,
// however they come.
func TestUnreadBodies(t *testing.T) {
	inner := head("GET", "/v1/models")
	for _, tt := range []struct {
		name  string
		reads []string
		want  []int // statuses
	}{
		{"whole body with the head", []string{head("POST", "/nope", fmt.Sprintf("Content-Length: %d", len(inner))) + inner + follower}, []int{404, 200}},
		{"part of the body with the head", []string{head("POST", "/nope", fmt.Sprintf("Content-Length: %d", len(inner)+10)) + inner, follower}, []int{404}},
		{"body behind the head", []string{head("POST", "/nope", fmt.Sprintf("Content-Length: %d", len(inner))), inner + follower}, []int{404}},
		{"chunked", []string{head("POST", "/nope", "Transfer-Encoding: chunked") + chunk(inner) + lastChunk + follower}, []int{404}},
		{"no body", []string{head("POST", "/nope") + follower}, []int{404, 200}},
		{"GET with a body", []string{head("GET", "/v1/models", fmt.Sprintf("Content-Length: %d", len(inner))) + inner + follower}, []int{200, 200}},
		{"GET with a body to come", []string{head("GET", "/v1/models", "Content-Length: 500"), inner}, []int{200}},
		{"GET chunked", []string{head("GET", "/v1/models", "Transfer-Encoding: chunked") + chunk(inner) + lastChunk}, []int{200}},
		{"DELETE with a body", []string{head("DELETE", chatPath, fmt.Sprintf("Content-Length: %d", len(inner))) + inner + follower}, []int{405, 200}},
		{"refused in the middle", []string{head("POST", chatPath, "Content-Length: 900") + "{]", inner}, []int{400}},
		{"too long in the middle", []string{head("POST", chatPath, "Transfer-Encoding: chunked"), "200001\r\n" + strings.Repeat(" ", 2<<20), " \r\n" + inner}, []int{413}},
		{"bad framing", []string{head("POST", chatPath, "Transfer-Encoding: chunked") + "3\r\n{\"mX" + inner, inner}, []int{400}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			defer r.end()
			c := r.accept()
			for _, p := range tt.reads {
				c.send(p)
			}
			var got []int
			all := c.replies()
			for _, a := range all {
				got = append(got, a.status)
			}
			if fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Fatalf("answers %v, want %v", got, tt.want)
			}
			one := len(tt.want) == 1
			if all[len(all)-1].keep == one || c.fin != one {
				t.Errorf("the last answer keeps alive: %t, FIN: %t", !one, c.fin)
			}
		})
	}
}

// TestLinger: after a refusal before the body what comes is thrown away, for a
// second and 256 KiB at most, so that no reset eats the answer.
func TestLinger(t *testing.T) {
	r := newRig(t)
	defer r.end()
	c := r.accept()
	c.send(head("POST", chatPath, "Content-Length: 2000000", "Authorization: Bearer rk-none"))
	if c.reply().status != 401 || !c.fin || c.dropped {
		t.Fatal("no answer and FIN")
	}
	for range 4 {
		c.send(strings.Repeat("x", 64<<10))
	}
	if c.paused || c.dropped {
		t.Fatal("not read on")
	}
	c.send("x")
	if !c.paused {
		t.Error("read on without a bound")
	}
	if r.loop.buffers.used != 0 {
		t.Errorf("%d bytes are kept", r.loop.buffers.used)
	}
	r.pass(lingerTime + TickEvery)
	if !c.dropped {
		t.Error("not closed")
	}
}

// TestExpect: 100 at once when the body is wanted, the final answer without it
// when it is not.
func TestExpect(t *testing.T) {
	for _, tt := range []struct {
		name   string
		head   string
		body   string // sent behind the answer to the head
		first  int    // answer to the head
		second int    // answer to the body; 0 = none
	}{
		{"accepted", head("POST", chatPath, "Expect: 100-continue", fmt.Sprintf("Content-Length: %d", len(chatAsk))), chatAsk, 100, 200},
		{"accepted, any case", head("POST", chatPath, "EXPECT: 100-Continue", fmt.Sprintf("Content-Length: %d", len(chatAsk))), chatAsk, 100, 200},
		{"accepted, chunked", head("POST", chatPath, "Expect: 100-continue", "Transfer-Encoding: chunked"), chunk(chatAsk) + lastChunk, 100, 200},
		{"unknown key", head("POST", chatPath, "Expect: 100-continue", "Content-Length: 900", "Authorization: Bearer rk-none"), follower, 401, 0},
		{"oversize", head("POST", chatPath, "Expect: 100-continue", "Content-Length: 99999999"), follower, 413, 0},
		{"unknown path", head("POST", "/nope", "Expect: 100-continue", "Content-Length: 900"), follower, 404, 0},
		{"another expectation", head("POST", chatPath, "Expect: 200-ok", "Content-Length: 900"), follower, 417, 0},
		{"nothing to come", head("POST", chatPath, "Expect: 100-continue", "Content-Length: 0"), "", 400, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			defer r.end()
			c := r.accept()
			c.send(tt.head)
			if got := c.reply(); got.status != tt.first {
				t.Fatalf("the head got %d, want %d", got.status, tt.first)
			}
			c.send(tt.body)
			if tt.second == 0 {
				if got := c.reply(); tt.body != "" && (got.keep || !c.fin) {
					t.Error("the connection goes on with an announced body unread")
				}
				return
			}
			serve(r.open())
			all := c.replies()
			if len(all) != 2 || all[1].status != tt.second || !all[1].keep {
				t.Errorf("answers %v", all)
			}
		})
	}
}

// TestExpectWithBody: whoever sends the body with the head waits for no 100,
// and HTTP/1.0 knows none (RFC 9110 §10.1.1).
func TestExpectWithBody(t *testing.T) {
	for _, text := range []string{
		post(chatPath, chatAsk, "Expect: 100-continue"),
		strings.Replace(post(chatPath, chatAsk, "Expect: 100-continue"), "HTTP/1.1", "HTTP/1.0", 1),
	} {
		r := newRig(t)
		c := r.accept()
		c.send(text)
		serve(r.open())
		if a := c.reply(); a.status != 200 {
			t.Errorf("status %d", a.status)
		}
		r.end()
	}
	r := newRig(t)
	defer r.end()
	c := r.accept()
	text := strings.Replace(post(chatPath, chatAsk, "Expect: 100-continue"), "HTTP/1.1", "HTTP/1.0", 1)
	c.send(strings.TrimSuffix(text, chatAsk))
	if c.out != "" {
		t.Errorf("an HTTP/1.0 client got %q", c.out)
	}
	c.send(chatAsk)
	serve(r.open())
}

// TestBodyRate: a body has 30 s, and more at 4 KiB/s; single bytes buy nothing.
func TestBodyRate(t *testing.T) {
	for _, tt := range []struct {
		name    string
		pieces  string        // sent each second
		refused time.Duration // about; 0 = never within the run
	}{
		{"single bytes", " ", 30 * time.Second},
		{"half the rate", strings.Repeat(" ", 2<<10), 60 * time.Second},
		{"the rate", strings.Repeat(" ", 4<<10), 0},
	} {
		for _, framing := range []string{"Content-Length: 1000000", "Transfer-Encoding: chunked"} {
			t.Run(tt.name+", "+framing, func(t *testing.T) {
				r := newRig(t)
				defer r.end()
				c := r.accept()
				c.send(head("POST", chatPath, framing))
				var at time.Duration
				for at = 0; at < 100*time.Second && c.out == ""; at += time.Second {
					if strings.HasPrefix(framing, "C") {
						c.send(tt.pieces)
					} else {
						c.send(chunk(tt.pieces))
					}
					r.pass(time.Second)
				}
				if tt.refused == 0 {
					if c.out != "" {
						t.Errorf("refused after %s: %.80q", at, c.out)
					}
					c.close(EOF)
					return
				}
				if a := c.reply(); a.status != 408 || a.keep || (at-tt.refused).Abs() > 2*time.Second {
					t.Errorf("status %d after %s, kept alive: %t", a.status, at, a.keep)
				}
				if row := r.row(0); row.Status != 408 || row.Error != "request_timeout" || row.Cost.Total != 0 {
					t.Errorf("row has status %d, error %q", row.Status, row.Error)
				}
			})
		}
	}
}

// TestBodySizes: the limit counts bytes of the body, announced or not.
func TestBodySizes(t *testing.T) {
	pad := func(n int) string { return chatAsk + strings.Repeat(" ", n-len(chatAsk)) }
	const most = 2 << 20
	for _, tt := range []struct {
		name    string
		n       int
		chunked bool
		status  int
	}{
		{"largest", most, false, 200},
		{"one more", most + 1, false, 413},
		{"largest chunked", most, true, 200},
		{"one more chunked", most + 1, true, 413},
	} {
		for _, step := range []int{1000, 64 << 10, 3 << 20} {
			t.Run(fmt.Sprintf("%s in reads of %d", tt.name, step), func(t *testing.T) {
				r := newRig(t)
				defer r.end()
				c := r.accept()
				if tt.chunked {
					c.send(head("POST", chatPath, "Transfer-Encoding: chunked"))
					body := pad(tt.n)
					c.sendEach(chunk(body[:tt.n/3])+chunk(body[tt.n/3:])+lastChunk, step)
				} else {
					c.sendEach(post(chatPath, pad(tt.n)), step)
				}
				if used := r.loop.buffers.used; used > 9*most {
					t.Errorf("%d bytes are charged for a body of %d", used, tt.n)
				}
				if tt.status == 200 {
					serve(r.open())
				}
				if a := c.reply(); a.status != tt.status {
					t.Errorf("status %d, want %d", a.status, tt.status)
				}
			})
		}
	}
}

// TestBodyBudget: a body that does not fit in the loop's budget is shed, and
// what it took comes back; a larger budget share of another client stays.
func TestBodyBudget(t *testing.T) {
	r := newRigWith(t, func(c *Config) { c.BudgetBytes = 1 << 20 })
	defer r.end()
	a := r.accept()
	a.send(head("POST", chatPath, "Content-Length: 2000000") + strings.Repeat(" ", 600<<10))
	held := r.loop.buffers.used
	if held < 600<<10 || held > 1<<20 {
		t.Fatalf("%d bytes are charged", held)
	}
	b := r.accept()
	b.sendEach(post(chatPath, chatAsk+strings.Repeat(" ", 700<<10)), 64<<10)
	if got := b.reply(); got.status != 503 || got.keep || r.loop.metrics.Shed[ShedMemory] != 1 {
		t.Errorf("status %d, kept alive: %t", got.status, got.keep)
	}
	b = r.accept()
	b.send(head("POST", chatPath, "Transfer-Encoding: chunked"))
	b.sendEach(chunk(chatAsk)+chunk(strings.Repeat(" ", 700<<10))+lastChunk, 64<<10)
	if got := b.reply(); got.status != 503 || got.keep || r.loop.metrics.Shed[ShedMemory] != 2 {
		t.Errorf("chunked: status %d, kept alive: %t", got.status, got.keep)
	}
	if got := r.loop.buffers.used; got != held {
		t.Errorf("%d bytes are charged, %d before", got, held)
	}
	a.close(Reset)
}

// TestHeadBudget: a head that does not end is shed once the loop's budget is
// used up, and what it took comes back.
func TestHeadBudget(t *testing.T) {
	r := newRigWith(t, func(c *Config) { c.BudgetBytes = 100 << 10 })
	defer r.end()
	part := strings.TrimSuffix(head("POST", chatPath, "X-A: "+strings.Repeat("b", 12000), "X-B: "+strings.Repeat("b", 12000)), "\r\n")
	var clients []*scriptSocket
	for range 3 {
		c := r.accept()
		c.send(part)
		clients = append(clients, c)
	}
	held := r.loop.buffers.used
	c := r.accept()
	c.send(part)
	if got := c.reply(); got.status != 503 || got.keep || r.loop.metrics.Shed[ShedMemory] != 1 {
		t.Errorf("status %d, kept alive: %t", got.status, got.keep)
	}
	if got := r.loop.buffers.used; got != held {
		t.Errorf("%d bytes are charged, %d before", got, held)
	}
	for _, c := range clients {
		c.close(Reset)
	}
}
