package loop

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"relay/upstream"
	"relay/usage"
)

// reusedPair is a client and its host's connection after one exchange.
func reusedPair(r *rig) (c, u *scriptSocket) {
	c, u = r.exchange(post(chatPath, chatAsk))
	serve(u)
	c.out, u.out = "", ""
	return c, u
}

// goodbye408 is what some hosts send before they close an idle connection.
const goodbye408 = "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

// TestStaleReuse: a request on a reused connection that was dead already is
// made again, once, on a new connection, and only when no host can have seen it.
func TestStaleReuse(t *testing.T) {
	for _, tt := range []struct {
		name  string
		act   func(r *rig, u *scriptSocket)
		again bool
		fault upstream.Fault
	}{
		{"FIN", func(_ *rig, u *scriptSocket) { u.close(EOF) }, true, upstream.StaleReuse},
		{"reset", func(_ *rig, u *scriptSocket) { u.close(Reset) }, true, upstream.StaleReuse},
		{"FIN after it was acknowledged", func(_ *rig, u *scriptSocket) { u.reached = true; u.close(EOF) }, false, upstream.ResetAfterSend},
		{"reset after it was acknowledged", func(_ *rig, u *scriptSocket) { u.reached = true; u.close(Reset) }, false, upstream.ResetAfterSend},
		{"late reset", func(r *rig, u *scriptSocket) { r.pass(2 * time.Second); u.close(Reset) }, false, upstream.ResetAfterSend},
		{"408 said to an idle connection", func(_ *rig, u *scriptSocket) { u.send(goodbye408) }, true, upstream.StaleReuse},
		{"408 after it was acknowledged", func(_ *rig, u *scriptSocket) { u.reached = true; u.send(goodbye408) }, false, upstream.BadAnswer},
		{"after one byte", func(_ *rig, u *scriptSocket) { u.send("H"); u.close(Reset) }, false, upstream.Truncated},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			defer r.end()
			c, u := reusedPair(r)
			ask := post(chatPath, chatAsk, "X-Request-ID: one")
			c.send(ask)
			sent := u.out
			if len(u.requests()) != 1 {
				t.Fatal("the idle connection is not used")
			}
			tt.act(r, u)
			if r.loop.metrics.Attempts[tt.fault] != 1 {
				t.Errorf("attempts %v", r.loop.metrics.Attempts)
			}
			if !tt.again {
				if a := c.reply(); a.status != 502 || !a.keep || len(r.dials) != 0 {
					t.Errorf("status %d, %d dials", a.status, len(r.dials))
				}
				if row := r.row(1); row.Attempts != 1 || row.Outcome != usage.Failed || row.Cost.Total != 0 {
					t.Errorf("row %+v", row)
				}
				return
			}
			fresh := r.open()
			if fresh.out != sent {
				t.Errorf("the second attempt sent %q\nthe first %q", fresh.out, sent)
			}
			serve(fresh)
			if a := c.reply(); a.status != 200 || a.fields["x-request-id"] != "one" {
				t.Errorf("status %d", a.status)
			}
			if row := r.row(1); row.Attempts != 2 || row.Outcome != usage.Completed || row.Tokens.Input != 100 {
				t.Errorf("row %+v", row)
			}
			if len(r.spool.admitted) != 2 {
				t.Errorf("%d admitted records for two requests", len(r.spool.admitted))
			}
		})
	}
}

// TestStaleReuseThenReset: the new connection is no reused one: its end is final.
func TestStaleReuseThenReset(t *testing.T) {
	r := newRig(t)
	defer r.end()
	c1, u1 := r.exchange(post(chatPath, chatAsk))
	_, u2 := r.exchange(post(chatPath, chatAsk))
	serve(u1)
	serve(u2)
	c1.out = ""
	c1.send(post(chatPath, chatAsk))
	u2.close(Reset) // used last, so taken first
	if len(u1.requests()) != 1 {
		t.Fatal("the second attempt took another idle connection")
	}
	fresh := r.open()
	fresh.reached = true
	fresh.close(Reset)
	if a := c1.reply(); a.status != 502 || len(r.dials) != 0 {
		t.Errorf("status %d, %d dials", a.status, len(r.dials))
	}
}

// TestSentOnce: once a host may have the request, it is not sent again, however
// the attempt ends.
func TestSentOnce(t *testing.T) {
	for name, act := range map[string]func(r *rig, u *scriptSocket){
		"FIN":         func(_ *rig, u *scriptSocket) { u.close(EOF) },
		"reset":       func(_ *rig, u *scriptSocket) { u.close(Reset) },
		"half a head": func(_ *rig, u *scriptSocket) { u.send("HTTP/1.1 200"); u.close(EOF) },
		"junk":        func(_ *rig, u *scriptSocket) { u.send("junk\r\n") },
		"silence":     func(r *rig, u *scriptSocket) { r.pass(31 * time.Second) },
		"cut body":    func(_ *rig, u *scriptSocket) { u.send(given(200, asJSON, chatReply)[:150]); u.close(EOF) },
		"1xx and FIN": func(_ *rig, u *scriptSocket) { u.send("HTTP/1.1 100 Continue\r\n\r\n"); u.close(EOF) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			defer r.end()
			c, u := r.exchange(post(chatPath, chatAsk))
			u.reached = true
			act(r, u)
			want := 502
			if name == "silence" {
				want = 504
			}
			if a := c.reply(); a.status != want || !a.keep || len(r.dials) != 0 || !u.closed {
				t.Errorf("status %d, kept alive: %t, %d dials", a.status, a.keep, len(r.dials))
			}
			if row := r.row(0); row.Attempts != 1 || row.Outcome != usage.Failed || row.Cost.Total != 0 || row.Source != usage.NoTokens {
				t.Errorf("row %+v", row)
			}
			c.send(follower)
			if all := c.replies(); len(all) != 2 || all[1].status != 200 {
				t.Error("the client's connection does not go on")
			}
		})
	}
}

// TestDialFaults: what a caller is told when no connection comes.
func TestDialFaults(t *testing.T) {
	for _, tt := range []struct {
		fault  DialFault
		status int
		other  int
		code   string
		label  string
	}{
		{DialRefused, 502, 0, "bad_gateway", "bad_gateway"},
		{DialTimeout, 504, 0, "timeout", "upstream_timeout"},
		{DialTLS, 502, 0, "bad_gateway", "bad_gateway"},
		{DialFull, 503, 529, "server_is_overloaded", "no_host"},
		{DialExhausted, 503, 529, "server_is_overloaded", "overloaded"},
	} {
		for _, path := range []string{chatPath, messagePath} {
			t.Run(fmt.Sprintf("fault %d on %s", tt.fault, path), func(t *testing.T) {
				r := newRig(t)
				defer r.end()
				c := r.accept()
				ask := chatAsk
				if path == messagePath {
					ask = messageAsk
				}
				c.send(post(path, ask))
				r.failDial(tt.fault)
				a := c.reply()
				want := tt.status
				if path == messagePath && tt.other != 0 {
					want = tt.other
				}
				if a.status != want || !a.keep || path == chatPath && !strings.Contains(a.body, tt.code) || strings.Contains(a.body, "dial failed") {
					t.Errorf("status %d, body %s", a.status, a.body)
				}
				if (want == 503 || want == 529) != (a.fields["retry-after"] != "") {
					t.Errorf("retry-after %q", a.fields["retry-after"])
				}
				if row := r.row(0); row.Outcome != usage.Failed || row.Error != tt.label || row.Attempts < 1 || row.Cost.Total != 0 {
					t.Errorf("row %+v", row)
				}
			})
		}
	}
}

// TestDialNeverAnswers: the loop does not wait for the dialer for ever, and the
// connection that comes after all is kept for others.
func TestDialNeverAnswers(t *testing.T) {
	r := newRig(t)
	defer r.end()
	c := r.accept()
	c.send(post(chatPath, chatAsk))
	r.pass(3*time.Second + connectSlack - 100*time.Millisecond)
	if c.out != "" {
		t.Fatal("given up too early")
	}
	r.pass(200 * time.Millisecond)
	if a := c.reply(); a.status != 504 {
		t.Errorf("status %d", a.status)
	}
	u := r.open()
	if r.loop.metrics.IdleUpstreams != 1 || u.out != "" {
		t.Error("the late connection is not kept")
	}
}

// TestRefusedCredential counts a key that is down and tells nothing of it.
func TestRefusedCredential(t *testing.T) {
	r := newRig(t)
	defer r.end()
	c, u := r.exchange(post(chatPath, chatAsk))
	u.send(given(401, asJSON, `{"error":{"message":"Incorrect API key provided: host-secret-o"}}`))
	if a := c.reply(); a.status != 502 || strings.Contains(c.out, "host-secret") || r.loop.metrics.KeysDown != 1 {
		t.Errorf("status %d, %d keys down, %q", a.status, r.loop.metrics.KeysDown, c.out)
	}
}
