package loop

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"relay/usage"
)

const (
	startMessage = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"usage\":{\"input_tokens\":25,\"output_tokens\":1}}}\n\n"
	deltaMessage = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"tok\"}}\n\n"
	endMessage   = "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":15}}\n\n"
	stopMessage  = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
)

// TestStreamForms: the same stream in every form of lines gives the same text
// to the client and the same row, cut anywhere.
func TestStreamForms(t *testing.T) {
	openAI := token + `data: {"id":"c","choices":[{"index":0,"delta":{"content":"你好 🎈"}}]}` + "\n\n" + stopEvent
	for _, tt := range []struct {
		name       string
		path, ask  string
		sent, want string // want "" = as sent
		in, out    int64
	}{
		{"plain", chatPath, streamAsk, openAI + usageEvent + doneEvent, openAI + doneEvent, 100, 20},
		{"usage asked for", chatPath, `{"model":"gpt","stream":true,"stream_options":{"include_usage":true}}`, openAI + usageEvent + doneEvent, "", 100, 20},
		{"CRLF", chatPath, streamAsk, strings.ReplaceAll(openAI+usageEvent+doneEvent, "\n", "\r\n"), strings.ReplaceAll(openAI+doneEvent, "\n", "\r\n"), 100, 20},
		{"CR", chatPath, streamAsk, strings.ReplaceAll(openAI+usageEvent+doneEvent, "\n", "\r"), strings.ReplaceAll(openAI+doneEvent, "\n", "\r"), 100, 20},
		{"no space", chatPath, streamAsk, strings.ReplaceAll(openAI+usageEvent+doneEvent, "data: ", "data:"), strings.ReplaceAll(openAI+doneEvent, "data: ", "data:"), 100, 20},
		{"comments", chatPath, streamAsk, ": PROCESSING\n\n" + token + ":\n\n" + stopEvent + usageEvent + doneEvent, ": PROCESSING\n\n" + token + ":\n\n" + stopEvent + doneEvent, 100, 20},
		{"usage in the last chunk", chatPath, streamAsk, token + strings.Replace(stopEvent, `}]}`, `}],"usage":{"prompt_tokens":100,"completion_tokens":20}}`, 1) + doneEvent, token + stopEvent + doneEvent, 100, 20},
		{"no DONE", chatPath, streamAsk, openAI, "", 0, 0},
		{"messages", messagePath, messageStreamAsk, startMessage + deltaMessage + "event: ping\ndata: {\"type\":\"ping\"}\n\n" + endMessage + stopMessage, "", 25, 15},
		{"messages without a stop", messagePath, messageStreamAsk, startMessage + deltaMessage + endMessage, startMessage + deltaMessage + endMessage + stopMessage, 25, 15},
		{"last event without its blank line", chatPath, streamAsk, strings.TrimSuffix(openAI+usageEvent+doneEvent, "\n\n"), openAI + doneEvent, 100, 20},
	} {
		for _, step := range []int{1, 3, 64, 1 << 20} {
			t.Run(fmt.Sprintf("%s in reads of %d", tt.name, step), func(t *testing.T) {
				r := newRig(t)
				defer r.end()
				c, u := r.exchange(post(tt.path, tt.ask))
				var body string
				for p := tt.sent; len(p) > 0; p = p[min(len(p), 50):] {
					body += chunk(p[:min(len(p), 50)])
				}
				u.sendEach(eventsHead+body+lastChunk, step)
				a := c.reply()
				want := tt.want
				if want == "" {
					want = tt.sent
				}
				if a.body != want || !a.whole || !a.keep || u.dropped {
					t.Errorf("whole: %t, kept alive: %t, body %q\nwant %q", a.whole, a.keep, a.body, want)
				}
				if a.fields["content-type"] != asEvents || a.fields["cache-control"] != "no-cache" || a.fields["x-accel-buffering"] != "no" || a.fields["content-length"] != "" {
					t.Errorf("fields %v", a.fields)
				}
				row := r.row(0)
				if tt.in > 0 && (row.Source != usage.Reported || row.Tokens.Input != tt.in || row.Tokens.Output != tt.out) ||
					tt.in == 0 && (row.Source != usage.Estimated || row.Tokens.Output == 0) || !row.Stream || row.Outcome != usage.Completed {
					t.Errorf("row has %+v by %s, outcome %s", row.Tokens, row.Source, row.Outcome)
				}
			})
		}
	}
}

// TestStreamAsItComes: every event is at the client in the callback that
// completed it.
func TestStreamAsItComes(t *testing.T) {
	r := newRig(t)
	defer r.end()
	c, u := r.exchange(post(chatPath, streamAsk))
	u.send(eventsHead)
	if c.out != "" {
		t.Fatalf("%q is at the client before the first event", c.out)
	}
	for i := range 20 {
		event := strings.Replace(token, "tok", fmt.Sprintf("tok%d", i), 1)
		wire := chunk(event)
		u.send(wire[:10])
		before := c.writes
		u.send(wire[10:])
		if c.writes != before+1 || !strings.HasSuffix(c.out, chunk(event)) {
			t.Fatalf("event %d: %d writes, the client has %q", i, c.writes-before, c.out)
		}
		r.pass(100 * time.Millisecond)
	}
	if r.loop.metrics.Streams != 1 {
		t.Errorf("%d streams", r.loop.metrics.Streams)
	}
	u.send(chunk(stopEvent) + chunk(doneEvent) + lastChunk)
	if !c.reply().whole {
		t.Error("not whole")
	}
	row := r.row(0)
	if row.FirstTokenNs <= 0 || row.FirstTokenNs > int64(time.Second) || row.UpstreamNs < int64(2*time.Second) || row.OverheadNs > int64(time.Second) {
		t.Errorf("first token %d ns, upstream %d ns, own %d ns", row.FirstTokenNs, row.UpstreamNs, row.OverheadNs)
	}
}

// TestStreamLong: a live stream runs beyond every total.
func TestStreamLong(t *testing.T) {
	r := newRig(t)
	defer r.end()
	c, u := r.exchange(post(chatPath, streamAsk))
	u.send(eventsHead)
	for range 200 { // 30 min: every limit of the host and of the loop is shorter
		u.send(chunk(token))
		r.pass(9 * time.Second)
	}
	u.send(chunk(stopEvent+usageEvent+doneEvent) + lastChunk)
	a := c.reply()
	if !a.whole || strings.Count(a.body, "tok") != 200 || r.row(0).Source != usage.Reported {
		t.Errorf("whole: %t, %d tokens", a.whole, strings.Count(a.body, "tok"))
	}
}

// TestStreamKeepAlive: after a silence the client hears something, between
// events only, in the shape.
func TestStreamKeepAlive(t *testing.T) {
	for _, tt := range []struct {
		name, path, ask string
		first           string // events before the silence
		want            string
	}{
		{"OpenAI", chatPath, streamAsk, token, ": keep-alive\n\n"},
		{"OpenAI before the first event", chatPath, streamAsk, "", ": keep-alive\n\n"},
		{"messages", messagePath, messageStreamAsk, startMessage, "event: ping\ndata: {\"type\":\"ping\"}\n\n"},
		{"messages before the first event", messagePath, messageStreamAsk, "", ": keep-alive\n\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			defer r.end()
			c, u := r.exchange(post(tt.path, tt.ask))
			u.send(eventsHead)
			if tt.first != "" {
				u.send(chunk(tt.first))
			}
			r.pass(4900 * time.Millisecond)
			if strings.Contains(c.out, tt.want) {
				t.Fatal("too early")
			}
			r.pass(200 * time.Millisecond)
			if strings.Count(c.out, tt.want) != 1 {
				t.Fatalf("the client has %q after 5.1 s", c.out)
			}
			u.send(chunk(deltaMessage[:20])) // half an event: held, so that between events is still true
			r.pass(5 * time.Second)
			if strings.Count(c.out, tt.want) != 2 {
				t.Errorf("the client has %q after 10 s", c.out)
			}
			c.close(EOF)
			if row := r.row(0); tt.first == "" && row.FirstTokenNs != 0 {
				t.Error("a keep-alive counts as the first token")
			}
		})
	}
}

// TestStreamKeepAliveBoundary: inside an event too long to be held, nothing is
// said.
func TestStreamKeepAliveBoundary(t *testing.T) {
	r := newRig(t)
	defer r.end()
	c, u := r.exchange(post(chatPath, streamAsk))
	long := `data: {"choices":[{"index":0,"delta":{"content":"` + strings.Repeat("x", 90<<10)
	u.send(eventsHead + chunk(long))
	for range 3 {
		r.pass(6 * time.Second)
		u.send(chunk("y"))
	}
	if strings.Contains(c.out, "keep-alive") {
		t.Error("a keep-alive inside an event")
	}
	u.send(chunk(`"}}]}`+"\n\n"+stopEvent+doneEvent) + lastChunk)
	if a := c.reply(); a.body != long+`yyy"}}]}`+"\n\n"+stopEvent+doneEvent || !a.whole {
		t.Errorf("%d bytes, whole: %t", len(a.body), a.whole)
	}
}

// TestStreamJSON: a host that answers a stream request by JSON is passed on.
func TestStreamJSON(t *testing.T) {
	r := newRig(t)
	defer r.end()
	c, u := r.exchange(post(chatPath, streamAsk))
	serve(u)
	if a := c.reply(); a.status != 200 || a.body != chatReply || r.row(0).Source != usage.Reported {
		t.Errorf("status %d, body %s", a.status, a.body)
	}
}
