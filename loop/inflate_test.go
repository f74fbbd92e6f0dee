package loop

import (
	"fmt"
	"strings"
	"testing"

	"relay/usage"
)

// encoded is the head of an answer with an encoding that nobody asked for.
func encoded(status int, kind, encoding string) string {
	return fmt.Sprintf("HTTP/1.1 %d Text\r\nContent-Type: %s\r\nContent-Encoding: %s\r\nTransfer-Encoding: chunked\r\n\r\n", status, kind, encoding)
}

// TestInflate: what the caller gets is not encoded, and says so, on every path.
func TestInflate(t *testing.T) {
	stream := token + stopEvent + usageEvent + doneEvent
	for _, tt := range []struct {
		name, encoding string
		status         int
		kind, body     string
		want           string // body; "" = body
	}{
		{"gzip", "gzip", 200, asJSON, chatReply, ""},
		{"deflate, any case", "Deflate", 200, asJSON, chatReply, ""},
		{"x-gzip", "x-gzip", 200, asJSON, chatReply, ""},
		{"error", "gzip", 404, asJSON, `{"error":{"message":"none"}}`, ""},
		{"stream", "gzip", 200, asEvents, stream, token + stopEvent + doneEvent},
		{"text", "gzip", 200, "text/plain", "hello", ""},
		{"large", "gzip", 200, asJSON, large(2 * heldBytesMax), ""},
	} {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, decoded late: %t", tt.name, late), func(t *testing.T) {
				r := newRig(t)
				defer r.end()
				c, u := r.exchange(post(chatPath, streamAsk))
				u.send(encoded(tt.status, tt.kind, tt.encoding))
				if len(r.inflaters) != 1 || r.inflaters[0].encoding != strings.ToLower(tt.encoding) {
					t.Fatalf("%d inflaters", len(r.inflaters))
				}
				f := r.inflaters[0]
				u.send(chunk("coded bytes"))
				half := len(tt.body) / 2
				pieces := []string{tt.body[:half], tt.body[half:]}
				if !late {
					f.give(Inflated{Data: []byte(pieces[0])})
					pieces = pieces[1:]
				}
				u.send(lastChunk)
				if !f.ended || f.in != "coded bytes" || u.dropped {
					t.Fatalf("ended: %t, coded %q, host's connection closed: %t", f.ended, f.in, u.dropped)
				}
				last := len(pieces) - 1
				for _, p := range pieces[:last] {
					f.give(Inflated{Data: []byte(p)})
				}
				if late { // the end comes with the last piece, or behind it
					f.give(Inflated{Data: []byte(pieces[last]), Done: true})
				} else {
					f.give(Inflated{Data: []byte(pieces[last])})
					f.give(Inflated{Done: true})
				}
				a := c.reply()
				want := tt.want
				if want == "" {
					want = tt.body
				}
				if a.status != tt.status || a.body != want || !a.whole || !a.keep || a.fields["content-encoding"] != "" {
					t.Errorf("status %d, %d bytes of %d, whole: %t, fields %v", a.status, len(a.body), len(want), a.whole, a.fields)
				}
				if row := r.row(0); tt.kind != "text/plain" && tt.status == 200 && row.Source != usage.Reported {
					t.Errorf("row has %+v by %s", row.Tokens, row.Source)
				}
			})
		}
	}
}

// TestInflateBad: a broken or unknown encoding is a 502, or a visible cut when
// something is at the client.
func TestInflateBad(t *testing.T) {
	for _, tt := range []struct {
		name, encoding string
		status         int
		full           bool // no inflater is free
	}{
		{"unknown", "br", 200, false},
		{"two of them", "gzip, gzip", 200, false},
		{"unknown, of an error", "zstd", 404, false},
		{"no inflater", "gzip", 200, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			defer r.end()
			r.noInflater = tt.full
			c, u := r.exchange(post(chatPath, chatAsk))
			u.send(encoded(tt.status, asJSON, tt.encoding) + chunk("coded bytes") + lastChunk)
			if a := c.reply(); a.status != 502 || !a.keep || strings.Contains(c.out, "coded") || !u.dropped {
				t.Errorf("status %d, body %s", a.status, a.body)
			}
		})
	}
	t.Run("broken before output", func(t *testing.T) {
		r := newRig(t)
		defer r.end()
		c, u := r.exchange(post(chatPath, chatAsk))
		u.send(encoded(200, asJSON, "gzip") + chunk("coded"))
		r.inflaters[0].give(Inflated{Data: []byte(chatReply[:9])})
		r.inflaters[0].give(Inflated{Bad: true})
		if a := c.reply(); a.status != 502 || !a.keep || !u.dropped || !r.inflaters[0].stopped {
			t.Errorf("status %d, kept alive: %t", a.status, a.keep)
		}
	})
	t.Run("broken in a stream", func(t *testing.T) {
		r := newRig(t)
		defer r.end()
		c, u := r.exchange(post(chatPath, streamAsk))
		u.send(encoded(200, asEvents, "gzip") + chunk("coded") + lastChunk)
		r.inflaters[0].give(Inflated{Data: []byte(token)})
		r.inflaters[0].give(Inflated{Bad: true})
		r.pass(failureDelay + TickEvery)
		if a := c.reply(); a.status != 200 || a.whole || !strings.Contains(a.body, `"code":"upstream_disconnected"`) || !c.fin {
			t.Errorf("status %d, whole: %t, body %q", a.status, a.whole, a.body)
		}
		if row := r.row(0); row.Outcome != usage.Cut || row.Cost.Total == 0 {
			t.Errorf("row %+v", row)
		}
	})
}

// TestInflateGone: a decoder is stopped when its answer is not wanted any more,
// and what it still hands over goes nowhere.
func TestInflateGone(t *testing.T) {
	for name, end := range map[string]func(c, u *scriptSocket){
		"client": func(c, _ *scriptSocket) { c.close(EOF) },
		"host":   func(_, u *scriptSocket) { u.close(Reset) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			defer r.end()
			c, u := r.exchange(post(chatPath, chatAsk))
			u.send(encoded(200, asJSON, "gzip") + chunk("coded"))
			f := r.inflaters[0]
			end(c, u)
			if !f.stopped || !u.closed {
				t.Errorf("stopped: %t, host's connection closed: %t", f.stopped, u.closed)
			}
			f.give(Inflated{Data: []byte(chatReply)})
			// The exchange object serves another client meanwhile.
			c2, u2 := r.exchange(post(chatPath, chatAsk))
			f.wanted = true
			f.give(Inflated{Done: true})
			serve(u2)
			if a := c2.reply(); a.status != 200 || a.body != chatReply {
				t.Errorf("another client got %d %q", a.status, a.body)
			}
		})
	}
}

// TestInflatePace: the host is paused while too much waits to be decoded, the
// decoder while too much waits in front of the client.
func TestInflatePace(t *testing.T) {
	r := newRig(t)
	defer r.end()
	c, u := r.exchange(post(chatPath, streamAsk))
	c.stuck = true
	u.send(encoded(200, asEvents, "gzip"))
	f := r.inflaters[0]
	for range outHigh/(32<<10) + 1 {
		u.send(chunk(strings.Repeat("z", 32<<10)))
	}
	if !u.paused {
		t.Fatal("the host is not paused while the decoder lags")
	}
	f.give(Inflated{Data: []byte(token)})
	if u.paused || !f.wanted {
		t.Fatal("the host is not read on once the decoder has caught up")
	}
	for range 3 * outHigh / len(token) {
		if !f.wanted {
			break
		}
		f.give(Inflated{Data: []byte(strings.Repeat(token, 10))})
	}
	if f.wanted || c.waiting > outHigh+20*len(token) {
		t.Fatalf("the decoder goes on with %d bytes in front of the client", c.waiting)
	}
	u.send(chunk("zz") + lastChunk)
	c.readAll()
	if !f.wanted {
		t.Fatal("the decoder is not asked again")
	}
	f.give(Inflated{Data: []byte(stopEvent + doneEvent)})
	f.give(Inflated{Done: true})
	if a := c.reply(); !a.whole || !strings.HasSuffix(a.body, doneEvent) {
		t.Errorf("whole: %t", a.whole)
	}
}
