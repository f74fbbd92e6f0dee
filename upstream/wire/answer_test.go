package wire

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

func TestAnswerUsage(t *testing.T) {
	for _, tt := range []struct {
		name string
		id   RouteID
		body string
		want Usage
	}{
		{"chat", ChatCompletions, `{"choices":[{"message":{"content":"\"usage\":{\"prompt_tokens\":9}"}}],"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,
			"prompt_tokens_details":{"cached_tokens":30,"cache_write_tokens":10,"audio_tokens":5,"image_tokens":1},
			"completion_tokens_details":{"reasoning_tokens":8,"audio_tokens":4,"rejected_prediction_tokens":1}}}`,
			Usage{Input: 60, CachedInput: 30, CacheWrite5m: 10, Output: 20, Reasoning: 8, AudioInput: 5, AudioOutput: 4, Reported: true}},
		{"chat with nulls", ChatCompletions, `{"usage":{"prompt_tokens":3,"completion_tokens":null,"prompt_tokens_details":null,"completion_tokens_details":{"reasoning_tokens":null}}}`,
			Usage{Input: 3, Reported: true}},
		{"names of the other API are 0", ChatCompletions, `{"usage":{"prompt_tokens":3,"completion_tokens":2,"input_tokens":0,"output_tokens":0,"input_tokens_details":null}}`,
			Usage{Input: 3, Output: 2, Reported: true}},
		{"usage in deeper places", ChatCompletions, `{"choices":[{"usage":{"prompt_tokens":9}}],"x":{"usage":{"prompt_tokens":9}},"usage":{"x":{"prompt_tokens":9},"prompt_tokens":1}}`,
			Usage{Input: 1, Reported: true}},
		{"escaped names", ChatCompletions, `{"us\u0061ge":{"\u0070rompt_tokens":4}}`, Usage{Input: 4, Reported: true}},
		{"more cached than prompt", ChatCompletions, `{"usage":{"prompt_tokens":3,"prompt_tokens_details":{"cached_tokens":5}}}`, Usage{CachedInput: 5, Reported: true}},
		{"parts above their whole", ChatCompletions, `{"usage":{"prompt_tokens":3,"completion_tokens":2,"prompt_tokens_details":{"audio_tokens":9},"completion_tokens_details":{"reasoning_tokens":9,"audio_tokens":9}}}`,
			Usage{Input: 3, Output: 2, Reasoning: 2, AudioInput: 3, AudioOutput: 2, Reported: true}},
		{"null", ChatCompletions, `{"usage":null}`, Usage{}},
		{"empty", ChatCompletions, `{"usage":{}}`, Usage{}},
		{"a list", ChatCompletions, `{"usage":[{"prompt_tokens":3}]}`, Usage{}},
		{"absent", ChatCompletions, `{"id":"x"}`, Usage{}},
		{"negative and huge", Completions, `{"usage":{"prompt_tokens":-5,"completion_tokens":99999999999999999999999}}`, Usage{Output: TokensMax, Reported: true}},
		{"written as fractions", Completions, `{"usage":{"prompt_tokens":5.0,"completion_tokens":1e3}}`, Usage{Input: 5, Reported: true}},
		{"embeddings", Embeddings, `{"data":[{"embedding":[0.25,-1e-7,3]}],"usage":{"prompt_tokens":7,"total_tokens":7}}`, Usage{Input: 7, Reported: true}},
		{"responses", Responses, `{"output":[],"usage":{"input_tokens":50,"input_tokens_details":{"cached_tokens":20,"cache_write_tokens":5,"cache_write_tokens_details":{"ttl_30m_tokens":5}},"output_tokens":9,"output_tokens_details":{"reasoning_tokens":4},"total_tokens":59},"error":null}`,
			Usage{Input: 25, CachedInput: 20, CacheWrite5m: 5, Output: 9, Reasoning: 4, Reported: true}},
		{"images", Images, `{"data":[{"b64_json":"AAAA"}],"usage":{"input_tokens":50,"output_tokens":1056,"input_tokens_details":{"text_tokens":10,"image_tokens":40}}}`,
			Usage{Input: 50, Output: 1056, Reported: true}},
		{"transcription by tokens", Audio, `{"text":"x","usage":{"type":"tokens","input_tokens":14,"input_token_details":{"text_tokens":0,"audio_tokens":14},"output_tokens":45}}`,
			Usage{Input: 14, AudioInput: 14, Output: 45, Reported: true}},
		{"transcription by time", Audio, `{"text":"x","usage":{"type":"duration","seconds":9}}`, Usage{}},
		{"messages", Messages, `{"content":[{"type":"text","text":"x"}],"usage":{"input_tokens":3,"cache_creation_input_tokens":12,"cache_read_input_tokens":7,
			"cache_creation":{"ephemeral_5m_input_tokens":10,"ephemeral_1h_input_tokens":2},"output_tokens":550,"output_tokens_details":{"thinking_tokens":100},
			"server_tool_use":{"web_search_requests":2,"web_fetch_requests":1},"service_tier":"standard"}}`,
			Usage{Input: 3, CachedInput: 7, CacheWrite5m: 10, CacheWrite1h: 2, Output: 550, Reasoning: 100, WebSearches: 2, Reported: true}},
		{"messages without the split", Messages, `{"usage":{"input_tokens":3,"cache_creation_input_tokens":12304,"cache_read_input_tokens":0,"cache_creation":null,"output_tokens":550,"server_tool_use":null}}`,
			Usage{Input: 3, CacheWrite5m: 12304, Output: 550, Reported: true}},
		{"split below the total", Messages, `{"usage":{"input_tokens":3,"cache_creation_input_tokens":100,"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":40},"output_tokens":1}}`,
			Usage{Input: 3, CacheWrite5m: 60, CacheWrite1h: 40, Output: 1, Reported: true}},
		{"messages with rows", Messages, `{"usage":{"input_tokens":23,"output_tokens":10,"server_tool_use":{"web_search_requests":1},"iterations":[
			{"type":"compaction","input_tokens":180,"output_tokens":35},
			{"type":"message","input_tokens":23,"output_tokens":10,"cache_creation_input_tokens":6,"cache_creation":{"ephemeral_1h_input_tokens":4}}]}}`,
			Usage{Input: 203, CacheWrite5m: 2, CacheWrite1h: 4, Output: 45, WebSearches: 1, Reported: true}},
		{"messages with no rows", Messages, `{"usage":{"input_tokens":2,"output_tokens":1,"iterations":[]}}`, Usage{Input: 2, Output: 1, Reported: true}},
		{"count_tokens", CountTokens, `{"input_tokens":14}`, Usage{}},
		{"BOM", ChatCompletions, byteOrderMark + `{"usage":{"prompt_tokens":3}}`, Usage{Input: 3, Reported: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for step := 1; step <= len(tt.body); step += 1 + step/2 {
				var a Answer
				a.Reset(tt.id)
				for i := 0; i < len(tt.body); i += step {
					a.Feed([]byte(tt.body[i:min(i+step, len(tt.body))]))
				}
				if !a.End() {
					t.Fatalf("reads of %d bytes: not valid", step)
				}
				if a.Usage != tt.want {
					t.Errorf("reads of %d bytes: got %+v, want %+v", step, a.Usage, tt.want)
				}
				if a.Failed {
					t.Error("taken for an error")
				}
			}
		})
	}
}

func TestUsagePrices(t *testing.T) {
	var a Answer
	a.Reset(Messages)
	a.Feed([]byte(`{"usage":{"input_tokens":3,"cache_creation_input_tokens":12304,"cache_read_input_tokens":0,"output_tokens":550}}`))
	a.End()
	u := a.Usage
	usd := (float64(u.Input)*3 + float64(u.CacheWrite5m)*3.75 + float64(u.CacheWrite1h)*6 + float64(u.CachedInput)*0.30 + float64(u.Output)*15) / 1e6
	if math.Abs(usd-0.054399) > 1e-9 {
		t.Errorf("%.6f USD, want 0.054399", usd)
	}
	if u.TotalInput() != 12307 || u.Total() != 12857 {
		t.Errorf("totals %d and %d, want 12307 and 12857", u.TotalInput(), u.Total())
	}
}

func TestAnswerFailed(t *testing.T) {
	for body, want := range map[string]bool{
		`{"error":{"message":"x"}}`:             true,
		`{"error":"x"}`:                         true,
		`{"error":null}`:                        false,
		`{"error":""}`:                          false,
		`{"x":{"error":{}},"output":"error"}`:   false,
		`{"type":"error","error":{"type":"x"}}`: true,
	} {
		var a Answer
		a.Reset(Messages)
		a.Feed([]byte(body))
		if a.End(); a.Failed != want {
			t.Errorf("%s: Failed = %v, want %v", body, a.Failed, want)
		}
	}
}

func TestAnswerValid(t *testing.T) {
	for body, want := range map[string]bool{
		`{}`: true, ` [1] `: true, `7`: true, `-0.5e+3`: true, `"x"`: true, `null`: true,
		``: false, ` `: false, `{`: false, `{} x`: false, `<html>`: false, `-`: false, `1.`: false, `tru`: false, "\"a\x01\"": false,
		byteOrderMark: false, "\xef\xbb{}": false, "\xef": false,
		strings.Repeat("[", depthMax+1) + strings.Repeat("]", depthMax+1): false,
	} {
		var a Answer
		a.Reset(ChatCompletions)
		for i := range len(body) {
			a.Feed([]byte(body[i : i+1]))
		}
		if a.End() != want {
			t.Errorf("%q in bytes: valid = %v, want %v", body, !want, want)
		}
		a.Reset(ChatCompletions)
		a.Feed([]byte(body))
		if a.End() != want {
			t.Errorf("%q: valid = %v, want %v", body, !want, want)
		}
	}
}

func TestAnswerAllocs(t *testing.T) {
	body := []byte(`{"choices":[{"message":{"content":"Some words"}}],"usage":{"prompt_tokens":12,"completion_tokens":5}}`)
	var a Answer
	allocs := testing.AllocsPerRun(100, func() {
		a.Reset(ChatCompletions)
		a.Feed(body[:20])
		a.Feed(body[20:])
		if !a.End() || a.Usage.Input != 12 {
			t.Fatal("not read")
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations, want 0", allocs)
	}
}

func FuzzAnswerSplit(f *testing.F) {
	for _, seed := range []string{
		`{"usage":{"prompt_tokens":1,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":1}}}`,
		`{"usage":{"input_tokens":1,"iterations":[{"input_tokens":4},7]},"error":{}}`, byteOrderMark + `[1,"\u00e9\ud83d",-0.1e5,null]`, "\xef\xbb", `12`,
	} {
		f.Add([]byte(seed), uint8(0), uint8(0))
		f.Add([]byte(seed), uint8(7), uint8(4))
	}
	f.Fuzz(func(t *testing.T, body []byte, route, step uint8) {
		id := ChatCompletions + RouteID(route)%(CountTokens-ChatCompletions+1)
		var whole, split Answer
		whole.Reset(id)
		whole.Feed(body)
		valid := whole.End()
		split.Reset(id)
		for i := 0; i < len(body); {
			n := min(i+int(step)%16+1, len(body))
			split.Feed(body[i:n])
			i = n
		}
		if split.End() != valid || split.Usage != whole.Usage || split.Failed != whole.Failed {
			t.Fatalf("in pieces: %+v, whole: %+v, valid %v", split.Usage, whole.Usage, valid)
		}
		text := strings.TrimPrefix(string(body), byteOrderMark)
		if valid != json.Valid([]byte(text)) && whole.read.lex.state != tooDeep {
			t.Fatalf("%q: valid = %v", body, valid)
		}
		u := whole.Usage
		for _, n := range []int64{u.Input, u.CachedInput, u.CacheWrite5m, u.CacheWrite1h, u.Output, u.Reasoning, u.WebSearches} {
			if n < 0 || n > TokensMax {
				t.Fatalf("count out of range: %+v", u)
			}
		}
		if u.Reasoning > u.Output || u.AudioInput > u.Input || u.AudioOutput > u.Output {
			t.Fatalf("a part above its whole: %+v", u)
		}
	})
}
