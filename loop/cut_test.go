package loop

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"relay/upstream"
	"relay/usage"
)

// TestStreamCut: a stream that its host breaks off looks broken: an error frame
// in the shape, no terminal event, no last chunk, and after a pause the end of
// the connection. Before the first event it is a plain 502.
func TestStreamCut(t *testing.T) {
	const frame = `data: {"error":{"message":"The upstream broke off in the middle of its answer.","type":"server_error","param":null,"code":"upstream_disconnected"}}` + "\n\n"
	const frameA = `event: error` + "\n" + `data: {"type":"error","error":{"type":"api_error","message":"The upstream broke off in the middle of its answer."},"request_id":"`
	for _, tt := range []struct {
		name, path, ask, sent string
		body                  string // before the error frame
		early                 bool   // nothing was at the client
		complete              bool   // EOF then is the end
	}{
		{"nothing", chatPath, streamAsk, "", "", true, false},
		{"half a head", chatPath, streamAsk, eventsHead[:40], "", true, false},
		{"the head", chatPath, streamAsk, eventsHead, "", true, false},
		{"half an event", chatPath, streamAsk, eventsHead + chunk(token[:30]), "", true, false},
		{"an event", chatPath, streamAsk, eventsHead + chunk(token), token, false, false},
		{"an event and a half", chatPath, streamAsk, eventsHead + chunk(token+token[:30]), token, false, false},
		{"inside a chunk", chatPath, streamAsk, eventsHead + chunk(token) + "ff\r\n" + token[:9], token, false, false},
		{"inside a chunk line", chatPath, streamAsk, eventsHead + chunk(token) + "f", token, false, false},
		{"ended by chunks, not by an event", chatPath, streamAsk, eventsHead + chunk(token) + lastChunk, token, false, false},
		{"messages", messagePath, messageStreamAsk, eventsHead + chunk(startMessage+deltaMessage), startMessage + deltaMessage, false, false},
		{"messages, the head", messagePath, messageStreamAsk, eventsHead, "", true, false},
		{"until close", chatPath, streamAsk, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + token, token, false, false},
		{"until close, whole", chatPath, streamAsk, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + token + stopEvent, token + stopEvent, false, true},
	} {
		for _, cause := range []Cause{EOF, Reset} {
			for _, old := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, cause %d, HTTP/1.0: %t", tt.name, cause, old), func(t *testing.T) {
					r := newRig(t)
					defer r.end()
					ask := post(tt.path, tt.ask)
					if old {
						ask = oldAsk(tt.path, tt.ask)
					}
					c, u := r.exchange(ask)
					u.reached = true
					if tt.sent != "" {
						u.send(tt.sent)
					}
					u.close(cause)
					if tt.complete && cause == EOF {
						if a := c.reply(); a.body != tt.body || !a.whole && !old {
							t.Errorf("whole: %t, body %q", a.whole, a.body)
						}
						return
					}
					if tt.early {
						wantError(t, c.reply(), 502, 0, tt.path == messagePath, "server_error", "api_error", "bad_gateway", "")
						if row := r.row(0); row.Outcome != usage.Failed || row.Cost.Total != 0 {
							t.Errorf("row %+v", row)
						}
						return
					}
					if c.fin {
						t.Error("the connection ends with the error frame: it may not be read")
					}
					r.pass(failureDelay + TickEvery)
					a := c.reply()
					end := strings.TrimPrefix(a.body, tt.body)
					if tt.path == chatPath && end != frame || tt.path == messagePath && !(strings.HasPrefix(end, frameA) && strings.HasSuffix(end, "\"}\n\n")) {
						t.Errorf("body %q", a.body)
					}
					if a.whole && !old || !c.fin || strings.Contains(c.out, "[DONE]") || strings.Contains(c.out, "message_stop") {
						t.Errorf("whole: %t, FIN: %t", a.whole, c.fin)
					}
					row := r.row(0)
					if row.Outcome != usage.Cut || row.Error != "upstream_cut" || row.Status != 200 || row.Cost.Total == 0 {
						t.Errorf("row %+v", row)
					}
				})
			}
		}
	}
}

// TestStreamLimits: silence ends a stream, before the first event and between
// events; the frame says that it was time.
func TestStreamLimits(t *testing.T) {
	for _, tt := range []struct {
		name, path, ask, sent string
		after                 time.Duration
		frame                 string
		fault                 upstream.Fault
	}{
		{"no head", chatPath, streamAsk, "", 30 * time.Second, "", upstream.FirstByteTimeout},
		{"no event, kept alive", chatPath, streamAsk, eventsHead, 10 * time.Second, `"code":"timeout"`, upstream.IdleTimeout},
		{"no event but comments", chatPath, streamAsk, eventsHead + chunk(": wait\n\n"), 20 * time.Second, `"code":"timeout"`, upstream.FirstTokenTimeout},
		{"silence behind events", chatPath, streamAsk, eventsHead + chunk(token), 10 * time.Second, `"code":"timeout"`, upstream.IdleTimeout},
		{"silence behind events, messages", messagePath, messageStreamAsk, eventsHead + chunk(startMessage), 10 * time.Second, `"type":"timeout_error"`, upstream.IdleTimeout},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			defer r.end()
			c, u := r.exchange(post(tt.path, tt.ask))
			if tt.sent != "" {
				u.send(tt.sent)
			}
			step := 2 * time.Second
			for at := step; at < tt.after; at += step {
				r.pass(step)
				if tt.fault == upstream.FirstTokenTimeout {
					u.send(chunk(": wait\n\n"))
				}
			}
			if u.dropped {
				t.Fatal("ended too early")
			}
			r.pass(step + 20*time.Millisecond)
			if !u.dropped || r.loop.metrics.Attempts[tt.fault] != 1 {
				t.Fatalf("the host's connection closed: %t, attempts %v", u.dropped, r.loop.metrics.Attempts)
			}
			r.pass(failureDelay + TickEvery)
			a := c.reply()
			if tt.frame == "" {
				if a.status != 504 || !a.keep {
					t.Errorf("status %d, kept alive: %t", a.status, a.keep)
				}
				return
			}
			if a.status != 200 || a.whole || !strings.Contains(a.body, tt.frame) || !c.fin {
				t.Errorf("status %d, whole: %t, body %q", a.status, a.whole, a.body)
			}
			if row := r.row(0); row.Outcome != usage.Cut || row.Error != "stream_idle" {
				t.Errorf("row %+v", row)
			}
		})
	}
}

// TestHeldIdle: silence inside a JSON answer is a 504.
func TestHeldIdle(t *testing.T) {
	r := newRig(t)
	defer r.end()
	c, u := r.exchange(post(chatPath, chatAsk))
	u.send(given(200, asJSON, chatReply)[:100])
	r.pass(9900 * time.Millisecond)
	if c.out != "" {
		t.Fatal("ended too early")
	}
	r.pass(200 * time.Millisecond)
	if a := c.reply(); a.status != 504 || !a.keep || !u.dropped {
		t.Errorf("status %d, kept alive: %t", a.status, a.keep)
	}
}

// TestStreamErrorEvent: an error that the host tells inside its stream is
// passed on, once, and nothing is said behind it.
func TestStreamErrorEvent(t *testing.T) {
	const openAI = `data: {"error":{"message":"overloaded","type":"server_error","param":null,"code":null}}` + "\n\n"
	const anthropic = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"
	for _, tt := range []struct{ name, path, ask, before, event string }{
		{"OpenAI", chatPath, streamAsk, token, openAI},
		{"Anthropic", messagePath, messageStreamAsk, startMessage + deltaMessage, anthropic},
	} {
		for _, end := range []string{"chunks", "FIN", "reset"} {
			t.Run(tt.name+" by "+end, func(t *testing.T) {
				r := newRig(t)
				defer r.end()
				c, u := r.exchange(post(tt.path, tt.ask))
				u.send(eventsHead + chunk(tt.before) + chunk(tt.event))
				switch end {
				case "chunks":
					u.send(lastChunk)
				case "FIN":
					u.close(EOF)
				default:
					u.close(Reset)
				}
				r.pass(failureDelay + TickEvery)
				a := c.reply()
				if a.body != tt.before+tt.event || strings.Contains(a.body, "[DONE]") {
					t.Errorf("body %q", a.body)
				}
				if row := r.row(0); row.Outcome != usage.Cut || row.Cost.Total == 0 {
					t.Errorf("row %+v", row)
				}
			})
		}
	}
}
