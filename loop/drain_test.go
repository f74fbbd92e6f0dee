package loop

import (
	"strings"
	"testing"
	"time"

	"relay/usage"
)

const drainTime = 15 * time.Second

// TestDrainIdle: idle clients are closed once the quiet time is over; a request
// that was on its way is still answered, and told that it is the last.
func TestDrainIdle(t *testing.T) {
	r := newRig(t)
	defer r.end()
	idle, late, half := r.accept(), r.accept(), r.accept()
	half.send("GET /v1/models HTTP/1.1\r\nHost: h\r\n")
	r.post(Drain{int64(drainTime)})
	r.pass(500 * time.Millisecond)
	late.send(follower)
	if a := late.reply(); a.status != 200 || a.keep || !late.fin {
		t.Errorf("status %d, kept alive: %t", a.status, a.keep)
	}
	if idle.fin {
		t.Error("an idle client was closed at once: its request may be on its way")
	}
	r.pass(600 * time.Millisecond)
	if !idle.fin || idle.out != "" {
		t.Errorf("the idle client has FIN: %t, %q", idle.fin, idle.out)
	}
	half.send("Authorization: Bearer rk-free\r\n\r\n")
	if a := half.reply(); a.status != 200 || a.keep || !half.fin {
		t.Errorf("half a head: status %d, kept alive: %t", a.status, a.keep)
	}
	r.pass(lingerTime + TickEvery)
	if r.loop.metrics.Clients != 0 {
		t.Errorf("%d clients are left", r.loop.metrics.Clients)
	}
	var drained bool
	r.post(&Scrape{Reply: func(s *Scrape) { drained = s.Drained }})
	if !drained {
		t.Error("not told as drained")
	}
}

// TestDrainLate: whatever is asked during a drain, the answer closes.
func TestDrainLate(t *testing.T) {
	for _, tt := range []struct {
		name, ask string
		status    int
	}{
		{"answered", post(chatPath, chatAsk), 200},
		{"refused", post("/v1/nothing", ""), 404},
		{"models", follower, 200},
		{"HTTP/1.0 keep-alive", oldAsk(chatPath, chatAsk, "Connection: keep-alive"), 200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			defer r.end()
			r.post(Drain{int64(drainTime)})
			c := r.accept()
			c.send(tt.ask + follower)
			if len(r.dials) > 0 {
				serve(r.open())
			}
			a := c.reply()
			if a.status != tt.status || a.keep || a.fields["connection"] != "close" || !c.fin {
				t.Errorf("status %d, connection %q, FIN: %t", a.status, a.fields["connection"], c.fin)
			}
		})
	}
}

// TestDrainRunning: what runs may finish.
func TestDrainRunning(t *testing.T) {
	r := newRig(t)
	defer r.end()
	c, u := r.exchange(post(chatPath, streamAsk))
	u.send(eventsHead + chunk(token))
	plain, u2 := r.exchange(post(chatPath, chatAsk))
	r.post(Drain{int64(drainTime)})
	for range 7 {
		r.pass(2 * time.Second)
		u.send(chunk(token))
	}
	serve(u2)
	if a := plain.reply(); a.status != 200 || a.keep || !plain.fin {
		t.Errorf("status %d, kept alive: %t", a.status, a.keep)
	}
	u.send(chunk(stopEvent+doneEvent) + lastChunk)
	if a := c.reply(); !a.whole || strings.Count(a.body, "tok") != 8 || !c.fin {
		t.Errorf("whole: %t, %d tokens, FIN: %t", a.whole, strings.Count(a.body, "tok"), c.fin)
	}
}

// TestDrainDeadline: what still runs then gets an error: a frame in a stream,
// else a status; no connection is left.
func TestDrainDeadline(t *testing.T) {
	r := newRig(t)
	defer r.end()
	stream, u1 := r.exchange(post(chatPath, streamAsk))
	u1.send(eventsHead + chunk(token))
	streamA, u2 := r.exchange(post(messagePath, messageStreamAsk))
	u2.send(eventsHead + chunk(startMessage))
	waiting, u3 := r.exchange(post(chatPath, chatAsk))
	holding, u4 := r.exchange(post(messagePath, messageAsk))
	u4.send(given(200, asJSON, messageReply)[:120])
	dialing, arriving, headless, parked := r.accept(), r.accept(), r.accept(), r.accept()
	dialing.send(post(chatPath, chatAsk))
	arriving.send(post(chatPath, chatAsk)[:150])
	headless.send("GET /v1/mod")
	r.holdLane = true
	parked.send(post(chatPath, chatAsk, narrowKey))

	r.post(Drain{int64(4 * time.Second)})
	r.pass(3900 * time.Millisecond)
	for i, c := range []*scriptSocket{waiting, holding, dialing, arriving, parked} {
		if c.out != "" {
			t.Errorf("client %d is ended before the deadline: %q", i, c.out)
		}
	}
	r.pass(200 * time.Millisecond)
	for i, c := range []*scriptSocket{waiting, holding, dialing, arriving, parked} {
		if a := c.reply(); a.status != 503 || a.keep || !c.fin || !strings.Contains(a.body, "shut down") {
			t.Errorf("client %d got %d: %s", i, a.status, a.body)
		}
	}
	if !headless.dropped || headless.out != "" {
		t.Error("a client without a request is left")
	}
	r.pass(failureDelay + 2*TickEvery)
	if a := stream.reply(); a.whole || !strings.Contains(a.body, `"code":"shutting_down"`) || !stream.fin {
		t.Errorf("whole: %t, FIN: %t, body %q", a.whole, stream.fin, a.body)
	}
	if a := streamA.reply(); a.whole || !strings.Contains(a.body, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\"") || !streamA.fin {
		t.Errorf("whole: %t, FIN: %t, body %q", a.whole, streamA.fin, a.body)
	}
	for i, u := range []*scriptSocket{u1, u2, u3, u4} {
		if !u.dropped {
			t.Errorf("host %d works on", i)
		}
	}
	for _, row := range r.spool.rows {
		want := usage.Refused
		switch {
		case row.Status == 200:
			want = usage.Cut
		case row.Attempts > 0:
			want = usage.Failed
		}
		if row.Outcome != want || row.Error != "shutting_down" || row.HungUp {
			t.Errorf("row %+v", row)
		}
	}
	if len(r.spool.rows) != 7 {
		t.Errorf("%d rows for 7 requests", len(r.spool.rows))
	}
	r.pass(lingerTime + TickEvery)
	if r.loop.metrics.Clients != 0 {
		t.Errorf("%d clients are left", r.loop.metrics.Clients)
	}
	r.holdLane = false
	r.settle()
}

// TestDrainPanic: a panic while one exchange is ended at the deadline keeps no
// other from being ended.
func TestDrainPanic(t *testing.T) {
	r := newRig(t)
	defer r.end()
	var all []*scriptSocket
	for range 3 {
		c, u := r.exchange(post(chatPath, streamAsk))
		u.send(eventsHead + chunk(token))
		all = append(all, c)
	}
	r.post(Drain{int64(2 * time.Second)})
	r.pass(1900 * time.Millisecond)
	r.spool.panics = true
	r.pass(2 * time.Second)
	for i, c := range all {
		if !c.fin && !c.dropped {
			t.Errorf("client %d is left", i)
		}
	}
	if r.panics != 1 || len(r.spool.rows) != 2 {
		t.Errorf("%d panics, %d rows", r.panics, len(r.spool.rows))
	}
}

// TestDrainAgain: a second drain moves the deadline.
func TestDrainAgain(t *testing.T) {
	r := newRig(t)
	defer r.end()
	c, _ := r.exchange(post(chatPath, chatAsk))
	r.post(Drain{int64(20 * time.Second)})
	r.pass(time.Second)
	r.post(Drain{int64(2 * time.Second)})
	r.pass(1900 * time.Millisecond)
	if c.out != "" {
		t.Error("too early")
	}
	r.pass(200 * time.Millisecond)
	if a := c.reply(); a.status != 503 {
		t.Errorf("status %d", a.status)
	}
}
