package loop

import (
	"strings"
	"testing"
	"time"

	"relay/usage"
)

// bystanders are exchanges that must not notice anything: one of each stage.
type bystanders struct {
	r                      *rig
	waiting, stream, plain *scriptSocket
	uWaiting, uStream      *scriptSocket
}

func newBystanders(r *rig) *bystanders {
	b := &bystanders{r: r}
	b.waiting, b.uWaiting = r.exchange(post(chatPath, chatAsk))
	b.stream, b.uStream = r.exchange(post(chatPath, streamAsk))
	b.uStream.send(eventsHead + chunk(token))
	b.plain = r.accept()
	return b
}

// check wants that all of them go on.
func (b *bystanders) check() {
	b.r.t.Helper()
	serve(b.uWaiting)
	b.uStream.send(chunk(stopEvent+doneEvent) + lastChunk)
	b.plain.send(follower)
	for i, c := range []*scriptSocket{b.waiting, b.stream, b.plain} {
		if a := c.reply(); a.status != 200 || !a.whole || !a.keep {
			b.r.t.Errorf("bystander %d got %d, whole: %t", i, a.status, a.whole)
		}
	}
}

// panicCases are the calls out of a callback that may panic.
var panicCases = []struct {
	name   string
	act    func(r *rig) *scriptSocket // the client that is hit
	status int                        // that it gets; 0 = the connection just ends
	rows   int                        // of the exchange that was hit
	partly bool                       // some of a good answer was at the client
}{
	{"writing to the host", func(r *rig) *scriptSocket {
		c := r.accept()
		c.send(post(chatPath, chatAsk))
		d := r.nextDial()
		u := r.newSocket()
		u.panicOn = "POST"
		r.do(nil, func() { u.conn = r.loop.Opened(u, d) })
		return c
	}, 500, 1, false},
	{"writing to a reused host connection", func(r *rig) *scriptSocket {
		c, u := r.exchange(post(chatPath, chatAsk))
		serve(u)
		c.out, u.panicOn = "", "POST"
		c.send(post(chatPath, chatAsk))
		return c // whose callback it was
	}, 0, 2, false},
	{"writing a large body", func(r *rig) *scriptSocket {
		c := r.accept()
		c.send(post(chatPath, largeAsk(300<<10)))
		d := r.nextDial()
		u := r.newSocket()
		u.panicOn = "0123456789"
		r.do(nil, func() { u.conn = r.loop.Opened(u, d) })
		return c
	}, 500, 1, false},
	{"writing an answer", func(r *rig) *scriptSocket {
		c, u := r.exchange(post(chatPath, chatAsk))
		c.panicOn = "HTTP/1.1"
		serve(u)
		return c
	}, 0, 1, false},
	{"writing a large answer", func(r *rig) *scriptSocket {
		c, u := r.exchange(post(chatPath, chatAsk))
		c.panicOn = "0123456789"
		u.sendEach(given(200, asJSON, large(100<<10)), 10_000)
		return c
	}, 0, 1, true},
	{"writing an event", func(r *rig) *scriptSocket {
		c, u := r.exchange(post(chatPath, streamAsk))
		u.send(eventsHead + chunk(token))
		c.panicOn = "tok"
		u.send(chunk(token))
		return c
	}, 0, 1, true},
	{"writing a refusal", func(r *rig) *scriptSocket {
		c := r.accept()
		c.panicOn = "404"
		c.send(post("/v1/nothing", ""))
		return c
	}, 0, 0, false},
	{"the row of an answer", func(r *rig) *scriptSocket {
		c, u := r.exchange(post(chatPath, chatAsk))
		r.spool.panics = true
		serve(u)
		return c
	}, 0, 0, false},
	{"the row of a stream", func(r *rig) *scriptSocket {
		c, u := r.exchange(post(chatPath, streamAsk))
		u.send(eventsHead + chunk(token))
		r.spool.panics = true
		u.send(chunk(stopEvent+doneEvent) + lastChunk)
		return c
	}, 0, 0, true},
	{"the row of a refusal", func(r *rig) *scriptSocket {
		c := r.accept()
		r.spool.panics = true
		c.send(post(chatPath, `{"model":"nope"}`))
		return c
	}, 0, 0, false},
	{"the row of a client that left", func(r *rig) *scriptSocket {
		c, _ := r.exchange(post(chatPath, chatAsk))
		r.spool.panics = true
		c.close(EOF)
		return c
	}, 0, 0, false},
	{"the row of a timeout", func(r *rig) *scriptSocket {
		c, u := r.exchange(post(messagePath, messageStreamAsk))
		u.send(eventsHead + chunk(startMessage))
		r.pass(8 * time.Second)
		for _, s := range r.sockets { // the bystanders are heard
			if s != u && strings.HasPrefix(s.out, "POST") && strings.Contains(s.out, "stream\":true") {
				s.send(chunk(token))
			}
		}
		r.spool.panics = true
		r.pass(2100 * time.Millisecond)
		return c
	}, 0, 0, true},
	{"decoding", func(r *rig) *scriptSocket {
		c, u := r.exchange(post(chatPath, chatAsk))
		u.send(encoded(200, asJSON, "gzip"))
		r.inflaters[0].panics = true
		u.send(chunk("coded"))
		return c
	}, 500, 1, false},
	{"the row of a decoded answer", func(r *rig) *scriptSocket {
		c, u := r.exchange(post(chatPath, chatAsk))
		u.send(encoded(200, asJSON, "gzip") + chunk("coded") + lastChunk)
		r.spool.panics = true
		r.inflaters[0].give(Inflated{Data: []byte(chatReply)})
		r.inflaters[0].give(Inflated{Done: true})
		return c
	}, 0, 0, false},
	{"a decoded piece", func(r *rig) *scriptSocket {
		c, u := r.exchange(post(chatPath, streamAsk))
		u.send(encoded(200, asEvents, "gzip") + chunk("coded"))
		c.panicOn = "tok"
		r.inflaters[0].give(Inflated{Data: []byte(token)})
		return c
	}, 0, 1, true},
}

// TestPanics: a panic in whatever a callback calls ends the exchange that it
// came from, with an error while that can be told, and nothing else.
func TestPanics(t *testing.T) {
	for _, tt := range panicCases {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			defer r.end()
			b := newBystanders(r)
			c := tt.act(r)
			if r.panics != 1 {
				t.Fatalf("%d panics came", r.panics)
			}
			if len(r.spool.rows) != tt.rows {
				t.Errorf("%d rows, want %d", len(r.spool.rows), tt.rows)
			}
			if tt.status != 0 {
				if a := c.reply(); a.status != tt.status || a.keep || !c.fin {
					t.Errorf("the client got %d, kept alive: %t", a.status, a.keep)
				}
			} else if !c.closed || strings.HasSuffix(c.out, lastChunk) {
				t.Errorf("the client's connection is open: %t, %q", !c.closed, c.out)
			}
			if n := len(r.spool.rows); n > 0 {
				row := r.row(n - 1)
				charged := row.Outcome == usage.Cut && row.Cost.Total > 0 || row.Outcome == usage.Completed
				if tt.partly && !charged || tt.status == 500 && (row.Outcome != usage.Failed || row.Error != "internal_error" || row.Cost.Total != 0) {
					t.Errorf("row %+v", row)
				}
			}
			b.check()
		})
	}
}

// TestPanicWithoutCulprit: a panic of which nobody is to blame harms nobody.
func TestPanicWithoutCulprit(t *testing.T) {
	r := newRig(t)
	defer r.end()
	b := newBystanders(r)
	r.do(nil, func() { panic(planted) })
	r.post(&Scrape{Reply: func(*Scrape) { panic(planted) }})
	if r.panics != 2 {
		t.Errorf("%d panics came", r.panics)
	}
	b.check()
}

// TestPanicLosesNoMessage: messages behind the one that panicked are delivered.
func TestPanicLosesNoMessage(t *testing.T) {
	r := newRig(t)
	defer r.end()
	told := 0
	r.loop.Post(&Scrape{Reply: func(*Scrape) { told++ }})
	r.loop.Post(&Scrape{Reply: func(*Scrape) { panic(planted) }})
	r.loop.Post(&Scrape{Reply: func(*Scrape) { told++ }})
	r.loop.Post(&Scrape{Reply: func(*Scrape) { told++ }})
	r.settle()
	if told != 3 || r.panics != 1 {
		t.Errorf("%d of 3 messages delivered, %d panics", told, r.panics)
	}
}

// TestPanicHoldsNoSlot: the slots of an exchange that panicked come back.
func TestPanicHoldsNoSlot(t *testing.T) {
	r := newRig(t)
	defer r.end()
	for range 5 {
		c, u := r.exchange(post(chatPath, streamAsk, narrowKey))
		u.send(eventsHead)
		c.panicOn = "tok"
		u.send(chunk(token))
		r.idle()
	}
	if r.panics != 5 {
		t.Errorf("%d panics came", r.panics)
	}
}
