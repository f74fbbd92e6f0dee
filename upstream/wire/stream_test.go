package wire

import (
	"fmt"
	"strings"
	"testing"
)

// streamed is what a caller gets of an answer that comes in reads of step
// bytes, and the stream behind it.
func streamed(id RouteID, strip bool, answer string, step int) (s *Stream, out string, complete bool) {
	s = new(Stream)
	s.Reset(id, strip)
	var dst []byte
	for i := 0; i < len(answer); i += step {
		read := []byte(answer[i:min(i+step, len(answer))])
		dst = s.Feed(dst, read)
		clear(read) // it was borrowed
	}
	dst, complete = s.End(dst)
	return s, string(dst), complete
}

// sse writes events, each of which is its data, in the framing of line.
func sse(line string, events ...string) string {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "data: %s%s%s", e, line, line)
	}
	return b.String()
}

const (
	chunkRole   = `{"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":null}`
	chunkHello  = `{"id":"c","choices":[{"index":0,"delta":{"content":"你好 \"usage\":{} 😀"},"finish_reason":null}],"usage":null}`
	chunkStop   = `{"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null}`
	chunkUsage  = `{"id":"c","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":4,"total_tokens":14,"prompt_tokens_details":{"cached_tokens":6}}}`
	chunkAzure  = `{"id":"","choices":[],"prompt_filter_results":[{"prompt_index":0}]}`
	helloBytes  = int64(len(`你好 "usage":{} 😀`))
	messageOpen = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"usage\":{\"input_tokens\":25,\"cache_read_input_tokens\":9,\"cache_creation_input_tokens\":1,\"output_tokens\":1}}}\n\n"
	messageText = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi\"}}\n\n"
	messageEnd  = "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":15,\"cache_read_input_tokens\":9,\"cache_creation_input_tokens\":1,\"input_tokens\":null}}\n\n"
	messageStop = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	messagePing = "event: ping\ndata: {\"type\":\"ping\"}\n\n"
)

var chatUsage = Usage{Input: 4, CachedInput: 6, Output: 4, Reported: true}

// A record is what a Stream knows at the end.
type record struct {
	usage                  Usage
	events, text           int64
	done, finished, failed bool
	complete               bool
}

// A streamRow is one answer, what is let out of it, and the record.
type streamRow struct {
	name   string
	id     RouteID
	strip  bool
	answer string
	out    string // "=" for the answer as it came
	want   record
}

// testStream feeds the answer of each row in three framings and in reads of
// several sizes.
func testStream(t *testing.T, rows []streamRow) {
	t.Helper()
	for _, tt := range rows {
		for _, line := range []string{"\n", "\r\n", "\r"} {
			answer, out := strings.ReplaceAll(tt.answer, "\n", line), strings.ReplaceAll(tt.out, "\n", line)
			if tt.out == "=" {
				out = answer
			}
			if tt.name == "message_stop added" {
				out = strings.TrimSuffix(out, strings.ReplaceAll(messageStop, "\n", line)) + messageStop
			}
			t.Run(fmt.Sprintf("%s/%q", tt.name, line), func(t *testing.T) {
				for _, step := range []int{1, 2, 3, 7, len(answer) + 1} {
					s, got, complete := streamed(tt.id, tt.strip, answer, step)
					if tt.out != "" && got != out {
						t.Fatalf("reads of %d bytes: got\n%q, want\n%q", step, got, out)
					}
					if tt.out == "" && got != answer {
						t.Fatalf("reads of %d bytes: got\n%q, want\n%q", step, got, answer)
					}
					is := record{s.Usage, s.Events, s.OutputBytes, s.Done, s.Finished, s.Failed, complete}
					if is != tt.want {
						t.Fatalf("reads of %d bytes: got\n%+v, want\n%+v", step, is, tt.want)
					}
				}
			})
		}
	}
}

func TestStreamUsage(t *testing.T) {
	testStream(t, []streamRow{
		{"chat", ChatCompletions, false, sse("\n", chunkRole, chunkHello, chunkStop, chunkUsage, "[DONE]"), "=",
			record{chatUsage, 5, helloBytes, true, true, false, true}},
		{"usage chunk stripped", ChatCompletions, true, sse("\n", chunkHello, chunkStop, chunkUsage, "[DONE]"), sse("\n", chunkHello, chunkStop, "[DONE]"),
			record{chatUsage, 3, helloBytes, true, true, false, true}},
		{"nothing to strip in responses", Responses, true, sse("\n", chunkUsage, "[DONE]"), "=",
			record{Usage{Reported: false}, 2, 0, true, false, false, true}},
		{"filter results kept", ChatCompletions, true, sse("\n", chunkAzure, chunkStop, "[DONE]"), "=",
			record{Usage{}, 3, 0, true, true, false, true}},
		{"usage beside filter results cut", ChatCompletions, true, sse("\n", `{"choices":[],"usage":{"prompt_tokens":1},"prompt_filter_results":[]}`, "[DONE]"),
			sse("\n", `{"choices":[],"prompt_filter_results":[]}`, "[DONE]"), record{Usage{Input: 1, Reported: true}, 2, 0, true, false, false, true}},
		{"usage beside an error cut", ChatCompletions, true, sse("\n", `{"error":{"message":"x"},"choices":[],"usage":{"prompt_tokens":1}}`),
			sse("\n", `{"error":{"message":"x"},"choices":[]}`), record{Usage{Input: 1, Reported: true}, 1, 0, false, false, true, false}},
		{"usage beside null payload dropped", ChatCompletions, true, sse("\n", `{"moderation":null,"choices":[],"usage":{"prompt_tokens":1}}`, "[DONE]"),
			sse("\n", "[DONE]"), record{Usage{Input: 1, Reported: true}, 1, 0, true, false, false, true}},
		{"usage without choices dropped", Completions, true, sse("\n", `{"usage":{"prompt_tokens":1}}`, "[DONE]"),
			sse("\n", "[DONE]"), record{Usage{Input: 1, Reported: true}, 1, 0, true, false, false, true}},
		{"empty usage object dropped", ChatCompletions, true, sse("\n", `{"choices":[],"usage":{}}`, "[DONE]"),
			sse("\n", "[DONE]"), record{Usage{}, 1, 0, true, false, false, true}},
		{"usage in the finish chunk cut", ChatCompletions, true, sse("\n", `{"choices":[{"finish_reason":"stop"}], "usage" : {"prompt_tokens":1,"x":{"y":[]}} ,"id":"c"}`, "[DONE]"),
			sse("\n", `{"choices":[{"finish_reason":"stop"}] ,"id":"c"}`, "[DONE]"), record{Usage{Input: 1, Reported: true}, 2, 0, true, true, false, true}},
		{"usage first in its chunk cut", ChatCompletions, true, sse("\n", `{ "usage":{"prompt_tokens":1} , "choices":[{"text":"ab"}]}`, "[DONE]"),
			sse("\n", `{ "choices":[{"text":"ab"}]}`, "[DONE]"), record{Usage{Input: 1, Reported: true}, 2, 2, true, false, false, true}},
		{"running usage cut, the last counts", ChatCompletions, true,
			sse("\n", `{"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":10,"completion_tokens":1}}`, `{"choices":[{"delta":{"content":"b"}}],"usage":{"prompt_tokens":10,"completion_tokens":2}}`, "[DONE]"),
			sse("\n", `{"choices":[{"delta":{"content":"a"}}]}`, `{"choices":[{"delta":{"content":"b"}}]}`, "[DONE]"),
			record{Usage{Input: 10, Output: 2, Reported: true}, 3, 2, true, false, false, true}},
		{"usage over two data lines cut", ChatCompletions, true, "data: {\"choices\":[{}],\"usage\":{\ndata: \"prompt_tokens\":1}\ndata: }\n\n",
			"data: {\"choices\":[{}]\ndata: }\n\n", record{Usage{Input: 1, Reported: true}, 1, 0, false, false, false, false}},
	})
}

func TestStreamLines(t *testing.T) {
	testStream(t, []streamRow{
		{"null usage stays", ChatCompletions, true, sse("\n", chunkHello, chunkStop), "=", record{Usage{}, 2, helloBytes, false, true, false, true}},
		{"no space, joined lines, other fields", ChatCompletions, false,
			"id: 7\ndata:{\"choices\":[{\"delta\":\ndata:{\"content\":\"x\"},\nretry: 3\ndata\ndata: \"finish_reason\":\"stop\"}]}\nunknown: data: x\n\ndata:[DONE]\n\n", "=",
			record{Usage{}, 2, 1, true, true, false, true}},
		{"fields that are nearly known", ChatCompletions, false, "dat: x\ndate: x\ndata : x\nevents: x\nevent\nevent: " + strings.Repeat("error", 9) + "\n" + sse("\n", chunkStop) + "event: error\nevent\n" + sse("\n", "[DONE]"), "=",
			record{Usage{}, 2, 0, true, true, false, true}},
		{"names longer than any known, escaped names", ChatCompletions, false, sse("\n", `{"`+strings.Repeat("error", 9)+`":{},"error\u4f60":{},"`+strings.Repeat(`\u0061`, 40)+`":1,"ch\u006fices":[{"delta":{"audio":{"transcript":"ab"}},"finish_reason":{}}, 7]}`), "=",
			record{Usage{}, 1, 2, false, false, false, false}},
		{"comments", ChatCompletions, false, ": OPENROUTER PROCESSING\n\n:\n\n: data: {\"error\":{}}\n" + sse("\n", chunkStop) + ":\n" + sse("\n", "[DONE]"), "=",
			record{Usage{}, 2, 0, true, true, false, true}},
		{"BOM is dropped", ChatCompletions, false, byteOrderMark + sse("\n", chunkStop, "[DONE]"), sse("\n", chunkStop, "[DONE]"),
			record{Usage{}, 2, 0, true, true, false, true}},
		{"half a BOM is junk", ChatCompletions, false, "\xef\xbb" + sse("\n", "[DONE]") + sse("\n", chunkStop), "=",
			record{Usage{}, 1, 0, false, true, false, true}},
		{"extra blank lines", ChatCompletions, false, "\n\n\n" + sse("\n", chunkStop) + "\n\n", "=", record{Usage{}, 1, 0, false, true, false, true}},
		{"broken JSON passes unread", ChatCompletions, true, sse("\n", `{"choices":[],"usage":{"prompt_tokens":1}`, `{"choices":[{"finish_reason":"stop"}]}`), "=",
			record{Usage{}, 2, 0, false, true, false, true}},
		{"error in a chunk", ChatCompletions, false, sse("\n", chunkHello, `{"error":{"message":"overloaded","code":503}}`), "",
			record{Usage{}, 2, helloBytes, false, false, true, false}},
		{"error as text", ChatCompletions, false, sse("\n", `{"error":"overloaded"}`), "", record{Usage{}, 1, 0, false, false, true, false}},
		{"null error is none", ChatCompletions, false, sse("\n", `{"error":null,"choices":[{"finish_reason":"stop"}]}`), "=", record{Usage{}, 1, 0, false, true, false, true}},
		{"error deep inside is none", ChatCompletions, false, sse("\n", `{"choices":[{"error":{},"delta":{"error":{}},"finish_reason":"stop"}]}`), "=", record{Usage{}, 1, 0, false, true, false, true}},
		{"error event by name", ChatCompletions, false, "event:error\ndata: overloaded\n\n", "", record{Usage{}, 1, 0, false, false, true, false}},
		{"all kinds of text", ChatCompletions, false, sse("\n", `{"choices":[{"delta":{"content":"\u4f60","reasoning_content":"bb","refusal":"c","tool_calls":[{"function":{"name":"f","arguments":"{\"a\""}}],"function_call":{"arguments":"dd"}},"finish_reason":"stop"}]}`), "=",
			record{Usage{}, 1, 3 + 2 + 1 + 1 + 4 + 2, false, true, false, true}},
		{"completions", Completions, false, sse("\n", `{"choices":[{"text":"abc","finish_reason":null}]}`, `{"choices":[{"text":"","finish_reason":"length"}]}`, "[DONE]"), "=",
			record{Usage{}, 3, 3, true, true, false, true}},
	})
}

func TestStreamRoutes(t *testing.T) {
	testStream(t, []streamRow{
		{"messages", Messages, false, messageOpen + messagePing + messageText + messageEnd + messageStop, "=",
			record{Usage{Input: 25, CachedInput: 9, CacheWrite5m: 1, Output: 15, Reported: true}, 5, 2, true, true, false, true}},
		{"message_stop added", Messages, false, messageOpen + messageText + messageEnd, messageOpen + messageText + messageEnd + messageStop,
			record{Usage{Input: 25, CachedInput: 9, CacheWrite5m: 1, Output: 15, Reported: true}, 3, 2, true, true, false, true}},
		{"cut behind text", Messages, false, messageOpen + messageText, "=",
			record{Usage{Input: 25, CachedInput: 9, CacheWrite5m: 1, Output: 1, Reported: true}, 2, 2, false, false, false, false}},
		{"messages error", Messages, false, messageOpen + "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n", "",
			record{Usage{Input: 25, CachedInput: 9, CacheWrite5m: 1, Output: 1, Reported: true}, 2, 0, false, false, true, false}},
		{"kinds of deltas", Messages, false, "data: {\"type\":\"content_block_delta\",\"delta\":{\"partial_json\":\"{}\"}}\n\n" +
			"data: {\"delta\":{\"thinking\":\"abc\"},\"type\":\"content_block_delta\"}\n\ndata: {\"delta\":{\"signature\":\"zzzz\"}}\n\n" +
			"data: {\"type\":\"content_block_start\",\"content_block\":{\"type\":\"text\",\"text\":\"d\"}}\n\n", "=", record{Usage{}, 4, 6, false, false, false, false}},

		{"responses", Responses, false, "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"usage\":null}}\n\n" +
			"event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"abc\"}\n\n" +
			"event: response.completed\ndata: {\"response\":{\"status\":\"completed\",\"usage\":{\"input_tokens\":5,\"output_tokens\":3}},\"type\":\"response.completed\"}\n\n", "=",
			record{Usage{Input: 5, Output: 3, Reported: true}, 3, 3, true, true, false, true}},
		{"responses incomplete", Responses, false, sse("\n", `{"type":"response.incomplete","response":{"usage":{"input_tokens":5}}}`), "=",
			record{Usage{Input: 5, Reported: true}, 1, 0, true, true, false, true}},
		{"responses failed", Responses, false, sse("\n", `{"type":"response.failed","response":{"error":{"code":"x"},"usage":{"input_tokens":5}}}`), "=",
			record{Usage{Input: 5, Reported: true}, 1, 0, true, true, true, true}},
		{"responses error", Responses, false, sse("\n", `{"type":"error","code":"x","message":"y"}`), "", record{Usage{}, 1, 0, false, false, true, false}},
		{"responses cut", Responses, false, sse("\n", `{"type":"response.output_text.delta","delta":"abc"}`), "", record{Usage{}, 1, 3, false, false, false, false}},

		{"image", Images, true, sse("\n", `{"type":"image_generation.partial_image","b64_json":"AAAA"}`, `{"type":"image_generation.completed","b64_json":"AAAA","usage":{"input_tokens":5,"output_tokens":9}}`), "=",
			record{Usage{Input: 5, Output: 9, Reported: true}, 2, 0, false, true, false, true}},
		{"unknown events of audio", Audio, false, sse("\n", `{"type":"speech.audio.delta","audio":"AAAA"}`), "=", record{Usage{}, 1, 0, false, false, false, true}},
		{"empty", Audio, false, "", "", record{}},
		{"empty chat", ChatCompletions, false, "", "", record{}},
		{"comments only", ChatCompletions, false, ": x\n\n", "=", record{}},
	})
}

// TestStreamEveryCut cuts each framing at each byte, so that each character
// and each line end is cut somewhere.
func TestStreamEveryCut(t *testing.T) {
	for _, line := range []string{"\n", "\r\n", "\r"} {
		answer := ": 你好" + line + line + sse(line, chunkRole, chunkHello) + ":" + line + sse(line, chunkStop, chunkUsage, "[DONE]")
		want := ": 你好" + line + line + sse(line, chunkRole, chunkHello) + ":" + line + sse(line, chunkStop, "[DONE]")
		for a := range len(answer) {
			for _, b := range []int{a, a + 1, a + 2, len(answer)} {
				b = min(b, len(answer))
				var s Stream
				s.Reset(ChatCompletions, true)
				out := s.Feed(nil, []byte(answer[:a]))
				out = s.Feed(out, []byte(answer[a:b]))
				out = s.Feed(out, []byte(answer[b:]))
				if out, complete := s.End(out); string(out) != want || !complete {
					t.Fatalf("%q cut at %d and %d: got\n%q, want\n%q", line, a, b, out, want)
				}
				if s.Usage != chatUsage || s.Events != 4 || s.OutputBytes != helloBytes {
					t.Fatalf("%q cut at %d and %d: %+v, %d events, %d bytes", line, a, b, s.Usage, s.Events, s.OutputBytes)
				}
			}
		}
	}
}

func TestStreamMixedLineEnds(t *testing.T) {
	answer := "data: " + chunkHello + "\r\n\rdata: " + chunkStop + "\n\r\ndata: [DONE]\r\n\n"
	for step := 1; step < 9; step++ {
		s, out, complete := streamed(ChatCompletions, true, answer, step)
		if out != answer || !complete || s.Events != 3 {
			t.Errorf("reads of %d bytes: %q, complete %v, %d events", step, out, complete, s.Events)
		}
	}
}

// TestStreamHoldsEvents checks that nothing of an event goes out before its
// blank line, and that an event ended by CR does not wait for an LF.
func TestStreamHoldsEvents(t *testing.T) {
	for _, line := range []string{"\n", "\r\n", "\r"} {
		event := sse(line, chunkHello)
		ready := strings.TrimSuffix(event, "\n") // CR LF CR is a blank line already
		if line == "\n" {
			ready = event
		}
		var s Stream
		s.Reset(ChatCompletions, false)
		for i := range len(ready) {
			out := s.Feed(nil, []byte(ready[i:i+1]))
			if last := i == len(ready)-1; !last && len(out) > 0 || last && string(out) != ready {
				t.Fatalf("%q: byte %d let out %q", line, i, out)
			}
			if !s.AtBoundary() {
				t.Fatalf("%q: no boundary at byte %d", line, i)
			}
		}
	}
}

func TestStreamLongEvent(t *testing.T) {
	long := func(n int) string {
		return sse("\n", `{"choices":[{"delta":{"content":"`+strings.Repeat("x", n)+`"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3}}`)
	}
	for _, tt := range []struct {
		name string
		text int
		cut  bool // the usage can still be cut out
	}{
		{"fits", HeldBytesMax - len(long(0)), true},
		{"one byte more", HeldBytesMax - len(long(0)) + 1, false},
		{"much more", 5 * HeldBytesMax, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			answer := sse("\n", chunkHello) + long(tt.text) + sse("\n", chunkUsage, "[DONE]")
			want := sse("\n", chunkHello) + long(tt.text) + sse("\n", "[DONE]")
			if tt.cut {
				want = strings.Replace(want, `,"usage":{"prompt_tokens":3}`, "", 1)
			}
			for _, step := range []int{1000, 4096, 1 << 16, len(answer)} {
				var s Stream
				s.Reset(ChatCompletions, true)
				var out []byte
				half := false
				for i := 0; i < len(answer); i += step {
					out = s.Feed(out, []byte(answer[i:min(i+step, len(answer))]))
					half = half || !s.AtBoundary()
					if s.Held() > 2*HeldBytesMax {
						t.Fatalf("holds %d bytes", s.Held())
					}
				}
				out, complete := s.End(out)
				if string(out) != want || !complete || s.Usage != chatUsage || s.OutputBytes != helloBytes+int64(tt.text) {
					t.Fatalf("reads of %d bytes: %d bytes, want %d; complete %v, %+v", step, len(out), len(want), complete, s.Usage)
				}
				if wantHalf := tt.text > 2*HeldBytesMax && step < HeldBytesMax; wantHalf && !half {
					t.Errorf("reads of %d bytes: was never inside the event", step)
				}
				if s.Held() > heldKeepBytes {
					t.Errorf("still holds %d bytes", s.Held())
				}
			}
		})
	}
}

func TestStreamEnd(t *testing.T) {
	for _, tt := range []struct {
		name, answer, want string
		id                 RouteID
		complete           bool
	}{
		{"no blank line", "data: [DONE]\n", "data: [DONE]\n\n\n", ChatCompletions, true},
		{"no line end", sse("\n", chunkStop) + "data: [DONE]", sse("\n", chunkStop) + "data: [DONE]\n\n", ChatCompletions, true},
		{"finish without line end", "data: " + chunkStop, "data: " + chunkStop + "\n\n", ChatCompletions, true},
		{"half an event behind the finish", sse("\n", chunkStop) + `data: {"cho`, sse("\n", chunkStop), ChatCompletions, true},
		{"half an event", sse("\n", chunkHello) + `data: {"cho`, sse("\n", chunkHello), ChatCompletions, false},
		{"whole event without blank line, not complete", sse("\n", chunkRole) + "data: " + chunkHello, sse("\n", chunkRole), ChatCompletions, false},
		{"stripped usage without blank line", sse("\n", chunkStop) + "data: " + chunkUsage, sse("\n", chunkStop), ChatCompletions, true},
		{"message_stop without line end", messageOpen + strings.TrimSpace(messageStop), messageOpen + messageStop, Messages, true},
		{"usage cut without blank line", `data: {"choices":[{"finish_reason":"stop"}],"usage":{}}`, `data: {"choices":[{"finish_reason":"stop"}]}` + "\n\n", ChatCompletions, true},
		{"long event without blank line", "data: [DONE]" + strings.Repeat(" ", HeldBytesMax), "data: [DONE]" + strings.Repeat(" ", HeldBytesMax) + "\n\n", ChatCompletions, true},
		{"half a long event behind the finish", sse("\n", chunkStop) + "data: " + strings.Repeat("x", HeldBytesMax), "=", ChatCompletions, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.want == "=" {
				tt.want = tt.answer
			}
			for _, step := range []int{1, 5, 1 << 20} {
				s, out, complete := streamed(tt.id, true, tt.answer, step)
				if out != tt.want || complete != tt.complete {
					t.Errorf("reads of %d bytes: got %q, %v, want %q, %v", step, out, complete, tt.want, tt.complete)
				}
				if tt.name == "whole event without blank line, not complete" && (s.OutputBytes != 0 || s.Events != 1) {
					t.Errorf("%d bytes in %d events counted, only the first was passed on", s.OutputBytes, s.Events)
				}
			}
		})
	}
}

func TestKeepAlive(t *testing.T) {
	var s Stream
	s.Reset(Messages, false)
	if got := string(s.AppendKeepAlive(nil)); got != ": keep-alive\n\n" {
		t.Errorf("before message_start: %q", got)
	}
	s.Feed(nil, []byte(messageOpen))
	if got := string(s.AppendKeepAlive(nil)); got != messagePing {
		t.Errorf("behind message_start: %q", got)
	}
	s.Reset(ChatCompletions, false)
	s.Feed(nil, []byte(sse("\n", chunkHello)))
	if got := string(s.AppendKeepAlive(nil)); got != ": keep-alive\n\n" {
		t.Errorf("OpenAI: %q", got)
	}
}

func TestBugs(t *testing.T) {
	var inside Stream
	inside.Reset(ChatCompletions, false)
	inside.Feed(nil, make([]byte, HeldBytesMax+1))
	for name, call := range map[string]func(){
		"keep-alive inside an event": func() { inside.AppendKeepAlive(nil) },
		"no error to tell":           func() { AppendError(nil, OpenAI, NoError, "x", "", nil) },
		"a line end in a form":       func() { MultipartEdit(nil, []byte("m"), Span{0, 1}, "a\r\n--b") },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if text, _ := recover().(string); !strings.HasPrefix(text, "BUG: ") {
					t.Errorf("panic %q", text)
				}
			}()
			call()
		})
	}
}

func TestStreamFailure(t *testing.T) {
	long := "data: " + strings.Repeat("x", HeldBytesMax)
	openAI := `data: {"error":{"message":"The upstream broke off in the middle of its answer.","type":"server_error","param":null,"code":"upstream_disconnected"}}` + "\n\n"
	for _, tt := range []struct {
		name   string
		id     RouteID
		answer string
		e      Error
		want   string // behind what was passed on
	}{
		{"OpenAI", ChatCompletions, sse("\n", chunkHello), UpstreamCut, openAI},
		{"held rest is dropped", ChatCompletions, sse("\n", chunkHello) + "data: {", UpstreamCut, openAI},
		{"inside an event", ChatCompletions, long, UpstreamCut, "\n\n" + openAI},
		{"inside an event, behind CR", ChatCompletions, long + "\r", UpstreamCut, "\n\n" + openAI},
		{"idle", Responses, "", StreamIdle, `data: {"error":{"message":"The upstream sent nothing for too long.","type":"server_error","param":null,"code":"timeout"}}` + "\n\n"},
		{"Anthropic", Messages, messageOpen, UpstreamCut, "event: error\ndata: " + `{"type":"error","error":{"type":"api_error","message":"The upstream broke off in the middle of its answer."},"request_id":"r-1"}` + "\n\n"},
		{"Anthropic idle", Messages, messageOpen, StreamIdle, "event: error\ndata: " + `{"type":"error","error":{"type":"timeout_error","message":"The upstream sent nothing for too long."},"request_id":"r-1"}` + "\n\n"},
		{"the upstream told it", ChatCompletions, sse("\n", `{"error":{"message":"x"}}`), UpstreamCut, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var s Stream
			s.Reset(tt.id, false)
			s.Feed(nil, []byte(tt.answer))
			if got := string(s.AppendFailure(nil, tt.e, []byte("r-1"))); got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
			if !s.AtBoundary() {
				t.Error("not at a boundary")
			}
		})
	}
}

// TestMemo makes events that agree in their start and differ behind it, in
// both ways of cutting.
func TestMemo(t *testing.T) {
	chunk := func(id, text, rest string) string {
		return `{"id":"` + id + `","choices":[{"index":0,"delta":{"content":"` + text + `"}` + rest + `}]}`
	}
	answer := sse("\n", chunk("a", "one", ""), chunk("a", "three", ""), chunk("b", "x", ""), chunk("b", "", `,"finish_reason":"stop"`), `{"choices":[]}`,
		chunk("b", `\"`, ``)) + "data:" + chunk("b", "zz", "") + "\n\nevent: x\ndata: " + chunk("b", "zz", "") + "\n\n"
	for step := 1; step <= len(answer); step++ {
		s, out, complete := streamed(ChatCompletions, true, answer, step)
		if out != answer || !complete || s.OutputBytes != 3+5+1+1+2+2 || s.Events != 8 {
			t.Fatalf("reads of %d bytes: %d bytes of text in %d events", step, s.OutputBytes, s.Events)
		}
	}
}

func TestFeedAllocs(t *testing.T) {
	for _, tt := range []struct {
		id     RouteID
		answer string
	}{
		{ChatCompletions, sse("\n", chunkRole, chunkHello, chunkHello, chunkStop, chunkUsage, "[DONE]")},
		{Messages, messageOpen + messageText + messageText + messageEnd + messageStop},
	} {
		p := []byte(tt.answer)
		dst := make([]byte, 0, 2*len(p))
		var s Stream
		if n := testing.AllocsPerRun(100, func() {
			s.Reset(tt.id, true)
			dst = s.Feed(dst[:0], p)
		}); n != 0 {
			t.Errorf("%v: whole events: %v allocations, want 0", tt.id, n)
		}
		if n := testing.AllocsPerRun(100, func() {
			s.Reset(tt.id, true)
			dst = dst[:0]
			for i := 0; i < len(p); i += 50 {
				dst = s.Feed(dst, p[i:min(i+50, len(p))])
			}
		}); n != 0 {
			t.Errorf("%v: events in pieces: %v allocations, want 0 once the buffer has grown", tt.id, n)
		}
	}
}
