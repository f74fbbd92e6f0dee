package loop

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"relay/usage"
)

// TestSlowReader: a client that does not read pauses its host above the high
// mark, lets it go on below a quarter, and loses nothing.
func TestSlowReader(t *testing.T) {
	for _, tt := range []struct{ name, ask, head, piece, tail string }{
		{"stream", streamAsk, eventsHead, chunk(strings.Repeat(token, 300)), chunk(stopEvent+doneEvent) + lastChunk},
		{"bytes", chatAsk, "HTTP/1.1 200 OK\r\nContent-Type: audio/mpeg\r\nTransfer-Encoding: chunked\r\n\r\n", chunk(strings.Repeat("b", 27_000)), lastChunk},
		{"large JSON", chatAsk, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n", chunk(strings.Repeat(" ", 27_000)), chunk(chatReply) + lastChunk},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			defer r.end()
			c, u := r.exchange(post(chatPath, tt.ask))
			c.stuck = true
			u.send(tt.head)
			sent, peak := 0, int64(0)
			for range 200 {
				for !u.paused && sent < 60 {
					u.send(tt.piece)
					sent++
				}
				peak = max(peak, r.loop.buffers.used)
				if c.waiting > outHigh+2*len(tt.piece) {
					t.Fatalf("%d bytes wait in front of the client", c.waiting)
				}
				c.read(40 << 10)
				if u.paused && c.waiting <= outHigh/4 || sent < 60 && !u.paused && c.waiting > outHigh {
					t.Fatalf("paused: %t with %d bytes in front of the client", u.paused, c.waiting)
				}
			}
			if sent != 60 || peak > 3*outHigh {
				t.Fatalf("%d pieces sent, %d bytes charged at most", sent, peak)
			}
			c.readAll()
			u.send(tt.tail)
			if a := c.reply(); !a.whole || !a.keep || len(a.body) < 60*len(tt.piece)*9/10 {
				t.Errorf("whole: %t, %d bytes", a.whole, len(a.body))
			}
		})
	}
}

// TestSlowReaderAtTheEnd: a host that was paused by its last bytes serves on,
// while the client still reads.
func TestSlowReaderAtTheEnd(t *testing.T) {
	r := newRig(t)
	defer r.end()
	c, u := r.exchange(post(chatPath, streamAsk))
	c.stuck = true
	u.send(eventsHead)
	for c.waiting <= outHigh-9*len(token) {
		u.send(chunk(token))
	}
	u.send(chunk(strings.Repeat(token, 20)) + chunk(stopEvent+doneEvent) + lastChunk)
	if u.paused || u.dropped || r.loop.metrics.IdleUpstreams != 1 || len(r.spool.rows) != 1 {
		t.Errorf("paused: %t, closed: %t, %d rows", u.paused, u.dropped, len(r.spool.rows))
	}
	other := r.accept()
	other.send(post(chatPath, chatAsk))
	serve(u)
	if other.reply().status != 200 {
		t.Error("the connection does not serve on")
	}
	c.send(follower) // waits until the answer is taken
	for c.waiting > 0 {
		c.read(30 << 10)
	}
	c.stuck = false
	if all := c.replies(); len(all) != 2 || !all[0].whole || all[1].status != 200 {
		t.Errorf("%d answers", len(all))
	}
}

// TestStuckReader: a client that reads nothing costs bounded memory, and after
// its time is closed with its host; others are not harmed.
func TestStuckReader(t *testing.T) {
	r := newRig(t)
	defer r.end()
	c, u := r.exchange(post(chatPath, streamAsk))
	other, u2 := r.exchange(post(chatPath, streamAsk))
	c.stuck = true
	u.send(eventsHead)
	u2.send(eventsHead)
	piece := chunk(strings.Repeat(token, 300))
	for range 8000 { // 200 MB, as far as it is read
		u.send(piece)
		if u.paused {
			break
		}
	}
	u.unread = nil
	if !u.paused || r.loop.buffers.used > 3*outHigh {
		t.Fatalf("paused: %t, %d bytes charged", u.paused, r.loop.buffers.used)
	}
	for range 59 {
		r.pass(time.Second)
		u2.send(chunk(token))
	}
	if u.dropped || c.dropped {
		t.Fatal("closed too early: the limits of the host's silence do not count while it is paused")
	}
	r.pass(2 * time.Second)
	if !u.dropped || !c.dropped {
		t.Errorf("closed: host %t, client %t", u.dropped, c.dropped)
	}
	if row := r.row(0); row.Outcome != usage.Cancelled || !row.HungUp || row.Tokens.Output == 0 || row.Status != 200 {
		t.Errorf("row %+v", row)
	}
	u2.send(chunk(stopEvent+doneEvent) + lastChunk)
	if a := other.reply(); !a.whole || strings.Count(a.body, "tok") != 59 {
		t.Errorf("the other stream is whole: %t, %d tokens", a.whole, strings.Count(a.body, "tok"))
	}
}

// TestReaderThatReadsLittle is not given up as long as it takes something.
func TestReaderThatReadsLittle(t *testing.T) {
	r := newRig(t)
	defer r.end()
	c, u := r.exchange(post(chatPath, streamAsk))
	c.stuck = true
	u.send(eventsHead)
	for !u.paused {
		u.send(chunk(strings.Repeat(token, 300)))
	}
	for range 5 {
		r.pass(50 * time.Second)
		c.read(1000)
	}
	if c.dropped {
		t.Fatal("given up although it reads")
	}
	r.pass(130 * time.Second)
	if !c.dropped {
		t.Error("not given up although it has stopped")
	}
}

// TestTightBudget: with half of the budget out, the marks are lower.
func TestTightBudget(t *testing.T) {
	r := newRigWith(t, func(c *Config) { c.BudgetBytes = 1 << 20 })
	defer r.end()
	hog := r.accept()
	hog.send(head("POST", chatPath, "Content-Length: 2000000") + strings.Repeat(" ", 530<<10))
	c, u := r.exchange(post(chatPath, streamAsk))
	c.stuck = true
	u.send(eventsHead)
	for range 100 {
		if u.paused {
			break
		}
		u.send(chunk(strings.Repeat(token, 50)))
	}
	if c.waiting > outHighTight+2*50*len(token) {
		t.Errorf("%d bytes wait in front of the client", c.waiting)
	}
	c.readAll()
	u.send(chunk(stopEvent+doneEvent) + lastChunk)
	if !c.reply().whole {
		t.Error("not whole")
	}
	hog.close(EOF)
}

// TestPipelining: answers come in order, one request at a time.
func TestPipelining(t *testing.T) {
	r := newRig(t)
	defer r.end()
	c := r.accept()
	var text string
	for i := range 5 {
		text += post(chatPath, chatAsk, fmt.Sprintf("X-Request-ID: r%d", i))
		if i%2 == 1 {
			text += head("GET", "/v1/models", fmt.Sprintf("X-Request-ID: m%d", i))
		}
	}
	c.sendEach(text, 100)
	u := r.open()
	for i := range 5 {
		if got := u.requests(); len(got) != i+1 {
			t.Fatalf("%d requests are at the host, want %d", len(got), i+1)
		}
		serve(u)
	}
	var ids []string
	for _, a := range c.replies() {
		ids = append(ids, a.fields["x-request-id"])
	}
	if fmt.Sprint(ids) != "[r0 r1 m1 r2 r3 m3 r4]" {
		t.Errorf("answers %v", ids)
	}
}

// TestPipelineBounded: what is sent behind a running request is bounded, and
// the client's going away is seen all the same.
func TestPipelineBounded(t *testing.T) {
	for _, leaves := range []bool{false, true} {
		r := newRig(t)
		c, u := r.exchange(post(chatPath, chatAsk))
		one := post(chatPath, chatAsk)
		for range 100 {
			c.send(strings.Repeat(one, 10))
		}
		if !c.paused || !c.watch || r.loop.buffers.used > 3*pipelineBytesMax {
			t.Fatalf("paused: %t, watched: %t, %d bytes charged", c.paused, c.watch, r.loop.buffers.used)
		}
		if leaves {
			c.close(EOF)
			if !u.dropped {
				t.Error("the host works on for nobody")
			}
			r.end()
			continue
		}
		for range 1001 {
			serve(u)
		}
		all := c.replies()
		if len(all) != 1001 || !all[1000].keep || c.paused {
			t.Errorf("%d answers, paused: %t", len(all), c.paused)
		}
		r.end()
	}
}

// TestPipelineThenEnd: bytes behind a last answer are read and thrown away, so
// that no reset eats the answer, however it ended.
func TestPipelineThenEnd(t *testing.T) {
	for name, end := range map[string]func(u *scriptSocket){
		"whole": func(u *scriptSocket) { u.send(chunk(stopEvent+doneEvent) + lastChunk) },
		"cut":   func(u *scriptSocket) { u.close(Reset) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			defer r.end()
			c, u := r.exchange(post(chatPath, streamAsk, "Connection: close"))
			u.send(eventsHead + chunk(token))
			for !c.paused {
				c.send(follower)
			}
			c.send(follower)
			end(u)
			r.pass(failureDelay + 2*TickEvery)
			if c.paused || len(c.unread) > 0 || !c.fin {
				t.Errorf("paused: %t, %d bytes unread, FIN: %t", c.paused, len(c.unread), c.fin)
			}
			if got := len(c.replies()); got != 1 {
				t.Errorf("%d answers", got)
			}
		})
	}
}

// TestPipelineUnread: a client that sends requests and reads no answers does
// not fill the memory with them.
func TestPipelineUnread(t *testing.T) {
	for _, tt := range []struct{ name, one string }{
		{"refused", post("/v1/nothing", "")},
		{"models", follower},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			defer r.end()
			c := r.accept()
			c.stuck = true
			block := strings.Repeat(tt.one, 60<<10/len(tt.one))
			sent := 0
			for range 200 {
				if !c.paused {
					c.send(block)
					sent += 60 << 10 / len(tt.one)
				}
			}
			if !c.paused || c.waiting > 3*outHigh || r.loop.buffers.used > 4*outHigh {
				t.Fatalf("paused: %t, %d bytes wait in front of the client, %d charged", c.paused, c.waiting, r.loop.buffers.used)
			}
			c.readAll()
			r.settle()
			if got := len(c.replies()); got != sent || c.paused {
				t.Errorf("%d answers to %d requests, paused: %t", got, sent, c.paused)
			}
			c.send(tt.one)
			if got := len(c.replies()); got != sent+1 {
				t.Error("the connection does not go on")
			}
		})
	}
}

// TestClosingReader: the last answer of a connection waits for its reader, but
// not for ever.
func TestClosingReader(t *testing.T) {
	for _, reads := range []bool{false, true} {
		r := newRig(t)
		c := r.accept()
		c.stuck = true
		c.send(post(chatPath, chatAsk, "Connection: close"))
		serve(r.open())
		r.pass(50 * time.Second)
		if c.fin || c.dropped {
			t.Fatal("closed before the answer was taken")
		}
		if reads {
			c.readAll()
			if !c.fin {
				t.Error("no FIN behind the answer")
			}
		} else {
			r.pass(80 * time.Second)
			if !c.dropped || c.fin {
				t.Error("a reader that takes nothing is waited for")
			}
		}
		r.end()
	}
}
