package loop

import (
	"fmt"
	"testing"
	"time"

	"relay/usage"
)

// TestClientGone: whenever a client leaves, what works for it stops at once,
// one row says so, and what it had is charged.
func TestClientGone(t *testing.T) {
	stages := []struct {
		name     string
		act      func(r *rig, c *scriptSocket) *scriptSocket // up to the stage
		sent     bool                                        // the host may have worked
		status   int
		source   usage.Source
		in, out  int64 // tokens
		attempts int
	}{
		{"arriving", func(_ *rig, c *scriptSocket) *scriptSocket {
			c.send(post(chatPath, chatAsk, narrowKey)[:160])
			return nil
		}, false, 0, usage.NoTokens, 0, 0, 0},
		{"parked", func(r *rig, c *scriptSocket) *scriptSocket {
			r.holdLane = true
			c.send(post(chatPath, chatAsk, narrowKey))
			return nil
		}, false, 0, usage.NoTokens, 0, 0, 0},
		{"dialing", func(_ *rig, c *scriptSocket) *scriptSocket {
			c.send(post(chatPath, chatAsk, narrowKey))
			return nil
		}, false, 0, usage.NoTokens, 0, 0, 1},
		{"sending", func(r *rig, c *scriptSocket) *scriptSocket {
			c.send(post(chatPath, largeAsk(1<<20), narrowKey))
			return r.openStuck(true)
		}, true, 0, usage.NoTokens, 0, 0, 1},
		{"waiting for the head", func(r *rig, c *scriptSocket) *scriptSocket {
			c.send(post(chatPath, chatAsk, narrowKey))
			return r.open()
		}, true, 0, usage.Estimated, 15, 0, 1},
		{"waiting behind the head", func(r *rig, c *scriptSocket) *scriptSocket {
			c.send(post(chatPath, streamAsk, narrowKey))
			u := r.open()
			u.send(eventsHead)
			return u
		}, true, 0, usage.Estimated, 19, 0, 1},
		{"holding", func(r *rig, c *scriptSocket) *scriptSocket {
			c.send(post(chatPath, chatAsk, narrowKey))
			u := r.open()
			u.send(given(200, asJSON, chatReply)[:150])
			return u
		}, true, 0, usage.Estimated, 15, 0, 1},
		{"holding an error", func(r *rig, c *scriptSocket) *scriptSocket {
			c.send(post(chatPath, chatAsk, narrowKey))
			u := r.open()
			u.send(given(500, asJSON, `{"error":{"message":"x"}}`)[:90])
			return u
		}, true, 0, usage.NoTokens, 0, 0, 1},
		{"relaying", func(r *rig, c *scriptSocket) *scriptSocket {
			c.send(post(chatPath, streamAsk, narrowKey))
			u := r.open()
			u.send(eventsHead + chunk(token) + chunk(token))
			return u
		}, true, 200, usage.Estimated, 19, 2, 1},
		{"relaying, input known", func(r *rig, c *scriptSocket) *scriptSocket {
			c.send(post(messagePath, messageStreamAsk, narrowKey))
			u := r.open()
			u.send(eventsHead + chunk(startMessage) + chunk(deltaMessage) + chunk(deltaMessage) + chunk(deltaMessage) + chunk(deltaMessage))
			return u
		}, true, 200, usage.Partial, 25, 3, 1},
		{"stalled", func(r *rig, c *scriptSocket) *scriptSocket {
			c.stuck = true
			c.send(post(messagePath, messageStreamAsk, narrowKey))
			u := r.open()
			u.send(eventsHead + chunk(startMessage))
			for !u.paused {
				u.send(chunk(deltaMessage))
			}
			return u
		}, true, 200, usage.Partial, 25, -1, 1},
	}
	for _, tt := range stages {
		for _, cause := range []Cause{EOF, Reset, Broken} {
			t.Run(fmt.Sprintf("%s, cause %d", tt.name, cause), func(t *testing.T) {
				r := newRig(t)
				defer r.end()
				c := r.accept()
				u := tt.act(r, c)
				c.close(cause)
				if u != nil && !u.dropped {
					t.Error("the host works on for nobody")
				}
				row := r.row(0)
				if row.Outcome != usage.Cancelled || !row.HungUp || row.Key != "narrow" || row.Account != "acc" || row.Error != "" ||
					row.Status != tt.status || row.Attempts != tt.attempts || row.Source != tt.source {
					t.Errorf("row %+v", row)
				}
				if row.Tokens.Input != tt.in || tt.out >= 0 && row.Tokens.Output != tt.out || tt.out < 0 && row.Tokens.Output < 1000 {
					t.Errorf("row has %+v", row.Tokens)
				}
				if (row.Cost.Total > 0) != (tt.source != usage.NoTokens) {
					t.Errorf("row costs %d", row.Cost.Total)
				}
				if r.loop.metrics.HungUp != 1 || len(r.spool.rows) != 1 {
					t.Errorf("%d hung up, %d rows", r.loop.metrics.HungUp, len(r.spool.rows))
				}
				r.holdLane = false
				r.settle()
			})
		}
	}
}

// TestGoneBetweenRequests leaves no row, and a half head neither.
func TestGoneBetweenRequests(t *testing.T) {
	r := newRig(t)
	defer r.end()
	r.accept().close(EOF)
	c := r.accept()
	c.send("POST /v1/chat/completions HTTP/1.1\r\nAuth")
	c.close(Reset)
	stranger := r.accept()
	stranger.send(head("POST", chatPath, "Content-Length: 500", "Authorization: Bearer rk-none"))
	stranger.close(EOF)
	if len(r.spool.rows) != 0 {
		t.Errorf("rows %+v", r.spool.rows)
	}
}

// TestGoneWhileDialing: the connection that comes is kept, and a dial that fails
// is nobody's.
func TestGoneWhileDialing(t *testing.T) {
	for _, fails := range []bool{false, true} {
		r := newRig(t)
		c := r.accept()
		c.send(post(chatPath, chatAsk))
		c.close(EOF)
		if fails {
			r.failDial(DialRefused)
			if len(r.loop.pools) != 0 {
				t.Error("a pool without use is kept")
			}
		} else {
			u := r.open()
			if u.out != "" || r.loop.metrics.IdleUpstreams != 1 {
				t.Errorf("the host got %q", u.out)
			}
		}
		r.end()
	}
}

// TestGoneWhileAnswerDrains: a client that leaves behind its whole answer was
// served.
func TestGoneWhileAnswerDrains(t *testing.T) {
	r := newRig(t)
	defer r.end()
	c, u := r.exchange(post(chatPath, chatAsk))
	c.stuck = true
	serve(u)
	r.pass(time.Second)
	c.close(Reset)
	if row := r.row(0); row.Outcome != usage.Completed || row.HungUp || row.Tokens.Input != 100 {
		t.Errorf("row %+v", row)
	}
}
