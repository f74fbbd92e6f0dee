package wire

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"
	"testing"
)

// eventsOf is a plain reading of HTML §9.2.6: the whole events of an answer
// with their blank lines, and what is left.
func eventsOf(answer string) (events []string, rest string) {
	begin, lineBegin := 0, 0
	for i := 0; i < len(answer); i++ {
		if answer[i] != '\n' && answer[i] != '\r' {
			continue
		}
		blank := i == lineBegin
		if answer[i] == '\r' && i+1 < len(answer) && answer[i+1] == '\n' {
			i++
		}
		lineBegin = i + 1
		if blank {
			events = append(events, answer[begin:lineBegin])
			begin = lineBegin
		}
	}
	return events, answer[begin:]
}

// payloadOf is the joined data of an event.
func payloadOf(event string) string {
	event = strings.ReplaceAll(strings.ReplaceAll(event, "\r\n", "\n"), "\r", "\n")
	var values []string
	for line := range strings.SplitSeq(event, "\n") {
		if name, value, _ := strings.Cut(line, ":"); name == "data" {
			values = append(values, strings.TrimPrefix(value, " "))
		}
	}
	return strings.Join(values, "\n")
}

// follow takes what a stripping Stream let out of one event off out, and
// reports whether that is what it may be.
func follow(event, out string) (rest string, ok bool) {
	if rest, ok = strings.CutPrefix(out, event); ok {
		return rest, true
	}
	var was map[string]json.RawMessage
	if json.Unmarshal([]byte(payloadOf(event)), &was) != nil || !bytes.HasPrefix(was["usage"], []byte("{")) {
		return out, false
	}
	next, _ := eventsOf(out)
	if len(next) > 0 {
		var is map[string]json.RawMessage
		if json.Unmarshal([]byte(payloadOf(next[0])), &is) == nil {
			delete(was, "usage")
			delete(is, "usage") // there when the event had it twice
			if maps.EqualFunc(was, is, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
				return out[len(next[0]):], true
			}
		}
	}
	return out, true // dropped
}

func FuzzStreamSplit(f *testing.F) {
	for _, seed := range []string{
		sse("\n", chunkRole, chunkHello, chunkStop, chunkUsage, "[DONE]"), sse("\r\n", chunkHello, chunkUsage, "[DONE]"), sse("\r", chunkStop, chunkUsage),
		sse("\n", `{ "usage":{"prompt_tokens":1} , "choices":[{"text":"ab"}]}`, `{"choices":[{}],"usage":{}}`, chunkAzure), byteOrderMark + ": x\n\ndata:{}\r\r\n\n",
		"data: {\"choices\":[{}],\"usage\":{\ndata: \"prompt_tokens\":1}\ndata: }\n\n", messageOpen + messageText + messageEnd, "\xef\xbbdata\nevent: error\n\n",
	} {
		f.Add([]byte(seed), uint8(0), uint8(0), true)
		f.Add([]byte(seed), uint8(7), uint8(5), false)
	}
	f.Fuzz(func(t *testing.T, answer []byte, route, step uint8, strip bool) {
		id := ChatCompletions + RouteID(route)%(CountTokens-ChatCompletions+1)
		text := strings.TrimPrefix(string(answer), byteOrderMark)
		var whole, split Stream
		whole.Reset(id, strip)
		passed := string(whole.Feed(nil, bytes.Clone(answer)))

		split.Reset(id, strip)
		var out []byte
		for i := 0; i < len(answer); {
			n := min(i+int(step)%32+1, len(answer))
			out = split.Feed(out, bytes.Clone(answer[i:n]))
			if split.Held() > 2*HeldBytesMax {
				t.Fatalf("holds %d bytes", split.Held())
			}
			i = n
		}
		if string(out) != passed && !strings.HasPrefix(byteOrderMark, string(answer)) {
			t.Fatalf("in pieces %q\nwhole     %q", out, passed)
		}
		events, rest := eventsOf(text)
		left := passed
		for _, event := range events {
			var ok bool
			if left, ok = follow(event, left); !ok || !strip && !strings.HasPrefix(passed, event) && left == passed {
				t.Fatalf("event %q is not in %q", event, left)
			}
		}
		if whole.AtBoundary() && left != "" || !whole.AtBoundary() && left != rest {
			t.Fatalf("%q was let out of %q", left, rest)
		}
		a, okA := whole.End([]byte(passed))
		b, okB := split.End(out)
		if string(a) != string(b) || okA != okB {
			t.Fatalf("at the end in pieces %q, %v\nwhole %q, %v", b, okB, a, okA)
		}
		if whole.Usage != split.Usage || whole.Events != split.Events || whole.OutputBytes != split.OutputBytes ||
			whole.Done != split.Done || whole.Finished != split.Finished || whole.Failed != split.Failed {
			t.Fatalf("records differ: %+v, %+v", whole.Usage, split.Usage)
		}
		if !strip || id > Completions {
			closing, _ := eventsOf(string(a[len(passed):]))
			if okA && len(a) > len(passed) && len(closing) == 0 {
				t.Fatalf("the end is half an event: %q", a[len(passed):])
			}
		}
	})
}
