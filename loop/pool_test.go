package loop

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// serve answers what an upstream was asked.
func serve(u *scriptSocket) { u.send(given(200, asJSON, chatReply)) }

// TestPoolLastUsedFirst: idle connections are taken from the end.
func TestPoolLastUsedFirst(t *testing.T) {
	r := newRig(t)
	defer r.end()
	c1, u1 := r.exchange(post(chatPath, chatAsk))
	c2, u2 := r.exchange(post(chatPath, chatAsk))
	serve(u1)
	serve(u2) // used last
	c1.send(post(chatPath, chatAsk))
	if len(u1.requests()) != 1 || len(u2.requests()) != 2 {
		t.Fatalf("the first got %d requests, the second %d", len(u1.requests()), len(u2.requests()))
	}
	c2.send(post(chatPath, chatAsk))
	if len(u1.requests()) != 2 {
		t.Error("the other idle connection is not used")
	}
	serve(u1)
	serve(u2)
	if m := &r.loop.metrics; m.Dialed != 2 || m.Reused != 2 || m.IdleUpstreams != 2 || len(r.dials) != 0 {
		t.Errorf("%d dialed, %d reused, %d idle", m.Dialed, m.Reused, m.IdleUpstreams)
	}
}

func TestPoolIdleCap(t *testing.T) {
	r := newRigWith(t, func(c *Config) { c.IdlePerHostMax = 2 })
	defer r.end()
	var ups []*scriptSocket
	for range 4 {
		_, u := r.exchange(post(chatPath, chatAsk))
		ups = append(ups, u)
	}
	for _, u := range ups {
		serve(u)
	}
	for i, u := range ups {
		if u.dropped != (i >= 2) {
			t.Errorf("connection %d: closed is %t", i, u.dropped)
		}
	}
	if r.loop.metrics.IdleUpstreams != 2 {
		t.Errorf("%d idle", r.loop.metrics.IdleUpstreams)
	}
}

func TestPoolExpiry(t *testing.T) {
	r := newRig(t)
	defer r.end()
	c, u := r.exchange(post(chatPath, chatAsk))
	serve(u)
	r.pass(upstreamIdle - time.Second)
	c.send(post(chatPath, chatAsk))
	serve(u)
	r.pass(upstreamIdle - time.Second)
	if u.dropped {
		t.Fatal("closed before its time")
	}
	r.pass(2 * time.Second)
	if !u.dropped || r.loop.metrics.Upstreams != 0 {
		t.Error("an idle connection is kept for ever")
	}
	if len(r.loop.pools) != 0 {
		t.Error("a pool that nothing uses is kept")
	}
}

// TestPoolFreedBeforeDial: who waits for a dial gets a connection that becomes
// free first, the oldest waiter first; the dial's own connection serves the
// next one.
func TestPoolFreedBeforeDial(t *testing.T) {
	r := newRig(t)
	defer r.end()
	_, u := r.exchange(post(chatPath, chatAsk))
	var waiting []*scriptSocket
	for i := range 3 {
		c := r.accept()
		c.send(post(chatPath, chatAsk, fmt.Sprintf("X-Request-ID: r%d", i)))
		waiting = append(waiting, c)
	}
	serve(u)
	if got := u.requests(); len(got) != 2 || got[1].fields["x-request-id"] != "r0" {
		t.Fatalf("the freed connection has %d requests", len(got))
	}
	late := r.open() // asked for by the waiter that has been served
	if got := late.requests(); len(got) != 1 || got[0].fields["x-request-id"] != "r1" {
		t.Fatalf("the late dial serves %v", got)
	}
	serve(u)
	if got := u.requests(); len(got) != 3 || got[2].fields["x-request-id"] != "r2" {
		t.Fatalf("the freed connection serves %v", got)
	}
	serve(u)
	serve(late)
	for i, c := range waiting {
		if got := c.reply(); got.status != 200 || got.fields["x-request-id"] != fmt.Sprintf("r%d", i) {
			t.Errorf("waiter %d got %d", i, got.status)
		}
	}
	idle := []*scriptSocket{r.open(), r.open()}
	if r.loop.metrics.IdleUpstreams != 4 {
		t.Errorf("%d idle, dials that nobody waits for are to be kept", r.loop.metrics.IdleUpstreams)
	}
	idle[0].close(EOF)
	idle[1].close(Reset)
	if r.loop.metrics.IdleUpstreams != 2 || r.loop.metrics.Upstreams != 2 {
		t.Error("idle connections that died are kept")
	}
}

// TestPoolUnaskedBytes: bytes on an idle connection end it, a 408 is no answer.
func TestPoolUnaskedBytes(t *testing.T) {
	r := newRig(t)
	defer r.end()
	c, u := r.exchange(post(chatPath, chatAsk))
	serve(u)
	u.send("HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
	if !u.dropped {
		t.Error("a connection with unasked bytes is kept")
	}
	c.send(post(chatPath, chatAsk))
	serve(r.open())
	if all := c.replies(); len(all) != 2 || all[1].status != 200 {
		t.Errorf("the next request got %v", all)
	}
}

// TestPoolNotReused: which answers end their connection.
func TestPoolNotReused(t *testing.T) {
	for _, tt := range []struct {
		name, answer string
		reused       bool
	}{
		{"sound", given(200, asJSON, chatReply), true},
		{"error of the request", given(400, asJSON, `{"error":{"message":"no"}}`), true},
		{"close", given(200, asJSON, chatReply, "Connection: close"), false},
		{"HTTP/1.0", strings.Replace(given(200, asJSON, chatReply), "HTTP/1.1", "HTTP/1.0", 1), false},
		{"HTTP/1.0 keep-alive", strings.Replace(given(200, asJSON, chatReply, "Connection: keep-alive"), "HTTP/1.1", "HTTP/1.0", 1), true},
		{"bytes behind it", given(200, asJSON, chatReply) + "HTTP/1.1 200 OK\r\n", false},
		{"one byte behind it", given(200, asJSON, chatReply) + "\n", false},
		{"204 with a length", "HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\n", false},
		{"204", "HTTP/1.1 204 No Content\r\n\r\n", true},
		{"chunked", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(chatReply) + lastChunk, true},
		{"refused credential", given(401, asJSON, `{"error":{}}`), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			defer r.end()
			c, u := r.exchange(post(chatPath, chatAsk))
			u.send(tt.answer)
			if u.dropped == tt.reused {
				t.Errorf("closed is %t", u.dropped)
			}
			if !c.reply().whole {
				t.Error("the client's answer is not whole")
			}
		})
	}
}

func TestPoolYield(t *testing.T) {
	r := newRig(t)
	defer r.end()
	host := r.loop.tables.Hosts[0]
	r.post(Yield{host}) // nothing to give
	c1, u1 := r.exchange(post(chatPath, chatAsk))
	_, u2 := r.exchange(post(chatPath, chatAsk))
	serve(u1)
	serve(u2)
	r.post(Yield{host})
	if !u1.dropped || u2.dropped {
		t.Fatal("the connection that was idle longest is not the one given up")
	}
	c1.send(post(chatPath, chatAsk))
	r.post(Yield{host}) // the other one is busy
	if u2.dropped {
		t.Fatal("a busy connection was given up")
	}
	serve(u2)
}

// idleCrowd is a loop with n idle connections to one host, oldest first.
func idleCrowd(tb testing.TB, n int) (e *bench, crowd []*upstreamConn) {
	e = newBench(tb, "")
	e.loop.config.IdlePerHostMax = n
	host := e.loop.tables.Hosts[0]
	for range n {
		e.do(func() {
			e.loop.pool(host).dialing++
			crowd = append(crowd, e.loop.Opened(&nullSocket{}, &Dial{Host: host}).(*upstreamConn))
		})
	}
	return e, crowd
}

// TestPoolMassClose: of many connections that close in any order, those that
// stay are taken in theirs, the last used first.
func TestPoolMassClose(t *testing.T) {
	const n = 20000
	e, crowd := idleCrowd(t, n)
	p := e.loop.pool(e.loop.tables.Hosts[0])
	if e.loop.metrics.IdleUpstreams != n {
		t.Fatalf("%d idle", e.loop.metrics.IdleUpstreams)
	}
	kept := map[*upstreamConn]bool{}
	for i, j := range rand.New(rand.NewPCG(1, 2)).Perm(n) {
		if i < 100 {
			kept[crowd[j]] = true
			continue
		}
		e.do(func() { crowd[j].OnClosed(EOF) })
	}
	if e.loop.metrics.IdleUpstreams != 100 || p.idle.n != 100 || p.open != 100 {
		t.Fatalf("%d idle, %d in the pool, %d open", e.loop.metrics.IdleUpstreams, p.idle.n, p.open)
	}
	for i := n - 1; i >= 0; i-- {
		if kept[crowd[i]] && p.take() != crowd[i] {
			t.Fatalf("connection %d is not the next one", i)
		}
	}
	if p.take() != nil || p.idle.n != 0 || e.loop.metrics.IdleUpstreams != 0 || e.loop.wheel.armed != 1 {
		t.Errorf("%d idle, %d timers run beside the client's", p.idle.n, e.loop.wheel.armed-1)
	}
}

// BenchmarkPoolMassClose closes 20,000 idle connections in random order.
func BenchmarkPoolMassClose(b *testing.B) {
	const n = 20000
	for b.Loop() {
		b.StopTimer()
		e, crowd := idleCrowd(b, n)
		order := rand.New(rand.NewPCG(1, 2)).Perm(n)
		b.StartTimer()
		for _, j := range order {
			e.do(func() { crowd[j].OnClosed(EOF) })
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/close")
}
