package wire

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestStreamAgainstEncodingJSON makes streams of random chunks, some of whose
// text looks like what a Stream looks for, and compares the record with what
// went into them.
func TestStreamAgainstEncodingJSON(t *testing.T) {
	type object = map[string]any
	pieces := []string{"", " word", "你好", "😀", `"usage":{"prompt_tokens":99}`, "\n\ndata: [DONE]\n\n", `\`, `}]}`, "\u2028", "\x00", "<&>", strings.Repeat("long ", 90)}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		text := func(chunk object) int64 {
			s := pieces[r.IntN(len(pieces))] + pieces[r.IntN(len(pieces))]
			delta := object{"role": "assistant"}
			switch r.IntN(3) {
			case 0:
				delta["content"] = s
			case 1:
				delta["tool_calls"] = []object{{"index": 0, "function": object{"arguments": s}, "usage": object{"prompt_tokens": 7}}}
			case 2:
				delta["content"], delta["logprobs"] = s, object{"content": []object{{"token": s, "text": s}}}
			}
			chunk["choices"] = []object{{"index": 0, "delta": delta, "finish_reason": nil}}
			return int64(len(s))
		}
		var answer, want strings.Builder
		var bytes, events int64
		usage := Usage{}
		write := func(b *strings.Builder, chunk object) {
			raw, err := json.Marshal(chunk)
			if err != nil {
				t.Fatal(err)
			}
			b.WriteString("data: " + string(raw) + "\n\n")
		}
		for range r.IntN(12) + 1 {
			chunk := object{"id": "c", "object": "chat.completion.chunk", "metadata": object{"usage": object{"completion_tokens": 5}}}
			bytes += text(chunk)
			events++
			switch r.IntN(4) {
			case 0:
				chunk["usage"] = nil
				write(&answer, chunk)
			case 1:
				in, out, cached := r.Int64N(1000), r.Int64N(1000), r.Int64N(10)
				usage = Usage{Input: max(0, in-cached), CachedInput: cached, Output: out, Reported: true}
				chunk["usage"] = object{"prompt_tokens": in, "completion_tokens": out, "prompt_tokens_details": object{"cached_tokens": cached}}
				write(&answer, chunk)
				delete(chunk, "usage")
			default:
				write(&answer, chunk)
			}
			write(&want, chunk)
			if r.IntN(5) == 0 {
				write(&answer, object{"choices": []object{}, "usage": object{"prompt_tokens": 3}, "id": "c"})
				usage = Usage{Input: 3, Reported: true}
			}
		}
		s, out, _ := streamed(ChatCompletions, true, answer.String(), r.IntN(answer.Len())+1)
		if out != want.String() {
			t.Fatalf("seed %d: got\n%s\nwant\n%s", seed, out, want.String())
		}
		if s.Usage != usage || s.OutputBytes != bytes || s.Events != events || s.Done || s.Failed || s.Finished {
			t.Fatalf("seed %d: %+v, %d bytes in %d events, want %+v, %d in %d", seed, s.Usage, s.OutputBytes, s.Events, usage, bytes, events)
		}
	}
}
