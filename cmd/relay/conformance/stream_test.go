//go:build integration

package conformance

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

// messages is a whole stream of the other shape.
const messages = `event: message_start
data: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"model":"x","usage":{"input_tokens":3,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hello"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":5}}

event: message_stop
data: {"type":"message_stop"}

`

// asked is a request for a stream, of the origin's shape.
func asked(name string, o *origin) string {
	text := fmt.Sprintf(`{"model":%q,"stream":true,"max_tokens":9,"messages":[{"role":"user","content":"hello"}]}`, o.model)
	head := strings.ReplaceAll(start, "CASE", name)
	if strings.HasPrefix(o.model, "anth") {
		head = strings.Replace(head, "/v1/chat/completions", "/v1/messages", 1)
	}
	return head + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(text)) + text
}

// A streamed answer is the same however it is cut into chunks and writes.
func TestStreamSplits(t *testing.T) {
	t.Parallel()
	head := "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
	crlf := strings.ReplaceAll(events, "\n", "\r\n")
	for _, tt := range []struct{ name, kind, stream string }{
		{"chat", "open", events},
		{"chat with CRLF", "open", crlf},
		{"chat with comments", "open", ": one\n\n" + strings.Replace(events, "\n\n", "\n\n: two\n\n:\n\n", 2)},
		{"chat with other fields", "open", strings.Replace(events, "\n\n", "\n\nid: 1\nretry: 5\n"+events[:105]+"\n\n", 1)},
		{"chat with characters", "open", strings.Replace(events, "hello", "你好 \U0001f600 äöü", 1)},
		{"messages", "anth", messages},
	} {
		for _, how := range []string{"length", "one chunk", "chunks of one byte", "chunks of seven bytes", "one byte a write", "until close"} {
			t.Run(tt.name+"/"+how, func(t *testing.T) {
				t.Parallel()
				o := take(t, tt.kind)
				c := dial(t)
				c.send(asked(t.Name(), o))
				l := o.accept(t)
				l.request(t)
				switch how {
				case "length":
					l.send(head + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(tt.stream)) + tt.stream)
				case "one chunk":
					l.send(head + chunked + "\r\n" + chunk(tt.stream) + "0\r\n\r\n")
				case "chunks of one byte":
					l.send(head + chunked + "\r\n" + bytewise(tt.stream) + "0\r\n\r\n")
				case "chunks of seven bytes":
					l.send(head + chunked + "\r\n")
					for i := 0; i < len(tt.stream); i += 7 {
						l.send(chunk(tt.stream[i:min(i+7, len(tt.stream))]))
					}
					l.send("0\r\n\r\n")
				case "one byte a write":
					out := head + chunked + "\r\n" + chunk(tt.stream) + "0\r\n\r\n"
					for i := range len(out) {
						l.send(out[i : i+1])
					}
				case "until close":
					l.send(head + "\r\n" + tt.stream)
					_ = l.Close()
				}
				a := c.answer(t)
				if a.status != 200 || a.cut || a.framing != "chunked" || a.body != tt.stream {
					t.Errorf("%s, cut %t: %q", a.framing, a.cut, a.head+a.body)
				}
				if got := a.field("content-type"); got != "text/event-stream" {
					t.Errorf("content-type: %s", got)
				}
				c.lives(t, t.Name())
			})
		}
	}
}

// Each event is passed on before the next one comes, and by the client's end of
// the wire in the same order.
func TestStreamAtOnce(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ kind, stream string }{{"open", events}, {"anth", messages}} {
		t.Run(tt.kind, func(t *testing.T) {
			t.Parallel()
			o := take(t, tt.kind)
			c := dial(t)
			c.send(asked(t.Name(), o))
			l := o.accept(t)
			l.request(t)
			l.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" + chunked + "\r\n")
			a := &answer{}
			for i, event := range strings.SplitAfter(tt.stream, "\n\n") {
				if event == "" {
					break
				}
				l.send(chunk(event))
				_ = c.SetReadDeadline(time.Now().Add(soon))
				if i == 0 {
					if err := a.readHead(c.r); err != nil {
						t.Fatal(err)
					}
				}
				got := make([]byte, len(chunk(event)))
				if _, err := io.ReadFull(c.r, got); err != nil || string(got) != chunk(event) {
					t.Fatalf("event %d: %v, %q", i, err, got)
				}
			}
			l.send("0\r\n\r\n")
			got := make([]byte, 5)
			if _, err := io.ReadFull(c.r, got); err != nil || string(got) != "0\r\n\r\n" {
				t.Errorf("the end: %v, %q", err, got)
			}
			c.lives(t, t.Name())
		})
	}
}

// A stream that breaks ends in an error event of the shape, without the events
// that end a whole one, and as a message that is not whole.
func TestStreamBroken(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ kind, stream, last, fault string }{
		{"open", events, "[DONE]", `data: {"error":`},
		{"anth", messages, "message_stop", "event: error\ndata: {\"type\":\"error\","},
	} {
		whole := len(tt.stream) - strings.Count(tt.stream, "\n")
		for _, at := range []int{0, 5, 120, whole / 2, whole * 2 / 3} {
			for _, how := range []string{"FIN", "RST", "bad chunk", "last chunk"} {
				t.Run(fmt.Sprintf("%s/%d/%s", tt.kind, at, how), func(t *testing.T) {
					t.Parallel()
					o := take(t, tt.kind)
					c := dial(t)
					c.send(asked(t.Name(), o))
					l := o.accept(t)
					l.request(t)
					l.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" + chunked + "\r\n")
					if at > 0 {
						l.send(chunk(tt.stream[:at]))
					}
					switch how {
					case "FIN":
						_ = l.Close()
					case "RST":
						time.Sleep(quiet / 3)
						reset(l.Conn)
					case "bad chunk":
						l.send("x\r\n")
					case "last chunk":
						l.send("0\r\n\r\n")
					}
					a := c.answer(t)
					if a.status == 502 && !a.cut {
						return // nothing was passed on yet
					}
					if !a.cut || !strings.Contains(a.body, "\n\n"+tt.fault) || strings.Contains(a.body, tt.last) {
						t.Errorf("cut %t: %q", a.cut, a.head+a.body)
					}
				})
			}
		}
	}
}
