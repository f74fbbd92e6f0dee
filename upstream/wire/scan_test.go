package wire

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unsafe"
)

// scanWhole scans a body that came at once.
func scanWhole(id RouteID, body string) (*Scan, ScanFault) {
	s := new(Scan)
	s.Reset(id)
	return s, s.Advance([]byte(body), true)
}

func TestScanValues(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		id         RouteID
		model      string
		want       Scan // the exported values but for the spans
	}{
		{"plain", `{"model":"m","stream":true,"max_tokens":7}`, ChatCompletions, "m",
			Scan{Stream: true, MaxTokens: 7, HasMaxTokens: true, N: 1}},
		{"model last", `{"messages":[{"model":"x","stream":true}],"model":"m"}`, ChatCompletions, "m", Scan{N: 1}},
		{"blanks and line ends", " {\r\n\t\"model\" :\r\n \"m\" , \"stream\"\t: true } \r\n", Messages, "m", Scan{Stream: true, N: 1}},
		{"escaped name", `{"\u006dodel":"m"}`, Messages, "m", Scan{N: 1}},
		{"escaped value", `{"model":"gpt\u002dmock\/1"}`, ChatCompletions, "gpt-mock/1", Scan{N: 1}},
		{"letter case", `{"Model":"x","model":"m","STREAM":true}`, ChatCompletions, "m", Scan{N: 1}},
		{"same names in deeper places", `{"model":"m","stream":true,"stream_options":{"stream":1,"model":2,"include_usage":true,"x":{"include_usage":1,"include_usage":2}},"x":[{"model":1,"model":2}]}`, ChatCompletions, "m",
			Scan{Stream: true, IncludeUsage: true, N: 1}},
		{"what is not read may repeat", `{"model":"m","messages":[],"messages":[],"n":1,"n":2}`, Messages, "m", Scan{N: 1}},
		{"include_usage deeper", `{"model":"m","stream_options":{"x":{"include_usage":true}}}`, ChatCompletions, "m", Scan{N: 1}},
		{"null stream", `{"model":"m","stream":null}`, ChatCompletions, "m", Scan{N: 1}},
		{"completion tokens win", `{"max_completion_tokens":5,"model":"m","max_tokens":9}`, ChatCompletions, "m",
			Scan{MaxTokens: 5, HasMaxTokens: true, N: 1}},
		{"null completion tokens do not", `{"max_completion_tokens":null,"model":"m","max_tokens":9}`, ChatCompletions, "m",
			Scan{MaxTokens: 9, HasMaxTokens: true, N: 1}},
		{"max_completion_tokens is no field of Messages", `{"max_completion_tokens":5,"model":"m","max_tokens":0}`, Messages, "m",
			Scan{HasMaxTokens: true, N: 1}},
		{"max_output_tokens", `{"model":"m","max_output_tokens":5,"max_tokens":9}`, Responses, "m",
			Scan{MaxTokens: 5, HasMaxTokens: true, N: 1}},
		{"not integers", `{"model":"m","max_tokens":1.5,"n":1e2}`, ChatCompletions, "m", Scan{N: choicesUnclear}},
		{"negative", `{"model":"m","max_tokens":-1,"n":-3}`, ChatCompletions, "m", Scan{N: choicesUnclear}},
		{"huge", `{"model":"m","max_tokens":123456789012345678901234567890,"n":99999999999999999999}`, ChatCompletions, "m",
			Scan{MaxTokens: TokensMax, HasMaxTokens: true, N: ChoicesMax}},
		{"wrong kinds", `{"model":"m","max_tokens":"7","n":[2]}`, ChatCompletions, "m", Scan{N: choicesUnclear}},
		{"best_of", `{"model":"m","n":2,"best_of":5}`, Completions, "m", Scan{N: 5}},
		{"best_of is no field of chat", `{"model":"m","best_of":5}`, ChatCompletions, "m", Scan{N: 1}},
		{"BOM", byteOrderMark + `{"model":"m"}`, Messages, "m", Scan{N: 1}},
		{"no model", `{"input":"x"}`, Moderations, "", Scan{N: 1}},
		{"null model", `{"model":null,"prompt":"x","n":2}`, Images, "", Scan{N: 2}},
		{"empty object", `{}`, Audio, "", Scan{N: 1}},
		{"lone surrogate", `{"model":"m","x":"\ud83d"}`, Messages, "m", Scan{N: 1}},
		{"invalid UTF-8 passes", "{\"model\":\"m\",\"x\":\"\xff\xfe\"}", Messages, "m", Scan{N: 1}},
		{"stream of embeddings is unread", `{"model":"m","stream":"x"}`, Embeddings, "m", Scan{N: 1}},
		{"longest model", `{"model":"` + strings.Repeat(`\u0061`, ModelNameBytesMax) + `"}`, Messages, strings.Repeat("a", ModelNameBytesMax), Scan{N: 1}},
		{"deepest", `{"model":"m","x":` + strings.Repeat("[", depthMax-1) + strings.Repeat("]", depthMax-1) + `}`, Messages, "m", Scan{N: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, fault := scanWhole(tt.id, tt.body)
			if fault != ScanOK {
				t.Fatalf("fault %q", fault.Message())
			}
			got := Scan{Stream: s.Stream, IncludeUsage: s.IncludeUsage, MaxTokens: s.MaxTokens, HasMaxTokens: s.HasMaxTokens, N: s.N}
			if got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
			if model := string(s.AppendModel(nil, []byte(tt.body))); model != tt.model {
				t.Errorf("model %q, want %q", model, tt.model)
			}
		})
	}
}

func TestScanFaults(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		id         RouteID
		want       ScanFault
	}{
		{"empty", "", Messages, faultEmpty},
		{"blanks", " \n", Messages, faultEmpty},
		{"half a BOM", "\xef\xbb", Messages, faultSyntax},
		{"BOM alone", byteOrderMark, Messages, faultEmpty},
		{"BOM twice", byteOrderMark + byteOrderMark + `{"model":"m"}`, Messages, faultSyntax},
		{"array", `["model"]`, Messages, faultNotObject},
		{"string", `"model"`, Messages, faultNotObject},
		{"number", `12 `, Messages, faultNotObject},
		{"number up to the end", `12`, Moderations, faultNotObject},
		{"cut in a number", `-`, Moderations, faultCut},
		{"null", `null`, Messages, faultNotObject},
		{"cut", `{"model":"m"`, Messages, faultCut},
		{"cut in a string", `{"model":"m`, Messages, faultCut},
		{"more behind", `{"model":"m"}x`, Messages, faultSyntax},
		{"two values", `{"model":"m"}{}`, Messages, faultSyntax},
		{"comma at the end", `{"model":"m",}`, Messages, faultSyntax},
		{"comma in an array", `{"model":"m","x":[1,]}`, Messages, faultSyntax},
		{"no comma", `{"model":"m" "x":1}`, Messages, faultSyntax},
		{"no colon", `{"model" "m"}`, Messages, faultSyntax},
		{"single quotes", `{'model':'m'}`, Messages, faultSyntax},
		{"NaN", `{"model":"m","x":NaN}`, Messages, faultSyntax},
		{"leading zero", `{"model":"m","x":01}`, Messages, faultSyntax},
		{"plus", `{"model":"m","x":+1}`, Messages, faultSyntax},
		{"bare point", `{"model":"m","x":1.}`, Messages, faultSyntax},
		{"bare exponent", `{"model":"m","x":1e}`, Messages, faultSyntax},
		{"bad literal", `{"model":"m","x":nul}`, Messages, faultSyntax},
		{"bad escape", `{"model":"m","x":"\x"}`, Messages, faultSyntax},
		{"bad hex", `{"model":"m","x":"\u12g4"}`, Messages, faultSyntax},
		{"control byte in a string", "{\"model\":\"m\",\"x\":\"a\nb\"}", Messages, faultSyntax},
		{"NUL", "{\"model\":\"m\"}\x00", Messages, faultSyntax},
		{"wrong bracket", `{"model":"m","x":[1}}`, Messages, faultSyntax},
		{"too deep", `{"model":"m","x":` + strings.Repeat("[", depthMax), Messages, faultDepth},
		{"no model", `{"messages":[]}`, ChatCompletions, faultModelMissing},
		{"no model, responses", `{"prompt":{"id":"x"}}`, Responses, faultModelMissing},
		{"no model, count_tokens", `{}`, CountTokens, faultModelMissing},
		{"null model", `{"model":null}`, Embeddings, faultModelType},
		{"number as model", `{"model":7}`, Images, faultModelType},
		{"object as model", `{"model":{"model":"m"}}`, Messages, faultModelType},
		{"empty model", `{"model":""}`, Moderations, faultModelEmpty},
		{"long model", `{"model":"` + strings.Repeat("a", ModelNameBytesMax+1) + `"}`, Messages, faultModelLong},
		{"stream is text", `{"model":"m","stream":"true"}`, ChatCompletions, faultStream},
		{"stream is a number", `{"model":"m","stream":1}`, Responses, faultStream},
		{"stream is an object", `{"model":"m","stream":{}}`, Messages, faultStream},
		{"null stream, Anthropic", `{"model":"m","stream":null}`, Messages, faultStream},
		{"stream_options is a list", `{"model":"m","stream_options":[]}`, ChatCompletions, faultStreamOptions},
		{"stream_options is true", `{"model":"m","stream_options":true}`, Completions, faultStreamOptions},
		{"include_usage is text", `{"model":"m","stream_options":{"include_usage":"yes"}}`, ChatCompletions, faultIncludeUsage},
		{"include_usage is an object", `{"model":"m","stream_options":{"include_usage":{}}}`, ChatCompletions, faultIncludeUsage},
		{"syntax before fields", `{"model":7,}`, Messages, faultSyntax},
		{"two models", `{"model":"a","x":1,"model":"b"}`, Messages, faultModelTwice},
		{"two equal models", `{"model":"a","model":"a"}`, Embeddings, faultModelTwice},
		{"three models", `{"model":"a","model":"b","model":"c"}`, Messages, faultModelTwice},
		{"one of two models is no string", `{"model":[],"model":"b"}`, Messages, faultModelTwice},
		{"two models, one escaped", `{"model":"a","mod\u0065l":"b"}`, Messages, faultModelTwice},
		{"two models, both escaped", `{"\u006Dodel":"a","\u006dodel":"b"}`, ChatCompletions, faultModelTwice},
		{"two streams", `{"model":"m","stream":true,"stream":false}`, Responses, faultStreamTwice},
		{"two stream_options", `{"model":"m","stream_options":{"include_usage":true},"stream_options":null}`, ChatCompletions, faultOptionsTwice},
		{"one of two stream_options is bad", `{"model":"m","stream_options":7,"stream_options":{"include_usage":true}}`, ChatCompletions, faultOptionsTwice},
		{"two include_usage", `{"model":"m","stream_options":{"include_usage":false,"include_usage":true}}`, Completions, faultIncludeTwice},
		{"two max_tokens", `{"model":"m","max_tokens":1,"max_tokens":1000000}`, Messages, faultMaxTwice},
		{"two max_completion_tokens", `{"max_completion_tokens":1,"model":"m","max_completion_tokens":null}`, ChatCompletions, faultMaxPreferredTwice},
		{"two max_output_tokens", `{"max_output_tokens":1,"max_output_tokens":2,"model":"m"}`, Responses, faultMaxOutputTwice},
		{"two n", `{"model":"m","n":1,"\u006e":9}`, Images, faultNTwice},
		{"two best_of", `{"model":"m","best_of":1,"best_of":9}`, Completions, faultBestOfTwice},
		{"the first to repeat is told", `{"stream":true,"model":"m","model":"m","stream":true}`, Messages, faultModelTwice},
		{"syntax before two models", `{"model":"a","model":"b",}`, Messages, faultSyntax},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, fault := scanWhole(tt.id, tt.body)
			if fault != tt.want {
				t.Fatalf("fault %q, want %q", fault.Message(), tt.want.Message())
			}
			if again := s.Advance([]byte(tt.body), true); again != fault {
				t.Errorf("fault changed to %q", again.Message())
			}
			split := new(Scan)
			split.Reset(tt.id)
			for i := range len(tt.body) {
				split.Advance([]byte(tt.body[:i]), false)
			}
			if again := split.Advance([]byte(tt.body), true); again != fault {
				t.Errorf("byte by byte: fault %q, want %q", again.Message(), fault.Message())
			}
		})
	}
}

func TestScanFaultTable(t *testing.T) {
	for f := faultEmpty; int(f) < len(scanFaults); f++ {
		if f.Message() == "" {
			t.Errorf("fault %d has no message", f)
		}
	}
	for f, limit := range map[ScanFault]int{faultDepth: depthMax, faultModelLong: ModelNameBytesMax, faultFormType: boundaryBytesMax, faultFormLarge: partsMax} {
		if !strings.Contains(f.Message(), " "+strconv.Itoa(limit)+" ") {
			t.Errorf("%q does not name the limit %d", f.Message(), limit)
		}
	}
	for f := fieldModel; int(f) < len(fieldNames); f++ {
		if p := f.twice().Param(); p != fieldNames[f] || !strings.Contains(f.twice().Message(), "'"+p+"'") {
			t.Errorf("%s given twice: param %q, message %q", fieldNames[f], p, f.twice().Message())
		}
	}
	if p := faultModelLong.Param(); p != "model" {
		t.Errorf("param %q, want model", p)
	}
	if p := faultStream.Param(); p != "stream" {
		t.Errorf("param %q, want stream", p)
	}
}

func TestScanSize(t *testing.T) {
	if n := unsafe.Sizeof(Scan{}); n >= 200 {
		t.Errorf("a Scan is %d bytes, budget is below 200", n)
	}
}

func TestScanAllocs(t *testing.T) {
	body := []byte(`{"messages":[{"role":"user","content":"Some \"words\"\n"}],"model":"gpt\u002d5","stream":true,"stream_options":{"include_usage":true}}`)
	dst := make([]byte, 0, 64)
	var s Scan
	allocs := testing.AllocsPerRun(100, func() {
		s.Reset(ChatCompletions)
		for i := 0; i < len(body); i += 7 {
			s.Advance(body[:i], false)
		}
		if s.Advance(body, true) != ScanOK {
			t.Fatal("refused")
		}
		dst = s.AppendModel(dst[:0], body)
	})
	if allocs != 0 {
		t.Errorf("%v allocations, want 0", allocs)
	}
}

// asRunes is text with what is not UTF-8 replaced, as encoding/json does.
func asRunes(p []byte) string { return string([]rune(string(p))) }

// repeats reports whether a name that the route reads comes twice at the top
// of the object in text.
func repeats(t *testing.T, text []byte, id RouteID) bool {
	d := json.NewDecoder(bytes.NewReader(text))
	if _, err := d.Token(); err != nil {
		t.Fatal(err)
	}
	seen := map[any]bool{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			t.Fatal(err)
		}
		f := slices.Index(fieldNames[:], name.(string))
		if f > 0 && scanFields[id]>>f&1 != 0 && seen[name] {
			return true
		}
		seen[name] = true
	}
	return false
}

func FuzzScanSplit(f *testing.F) {
	for _, seed := range []string{
		`{"model":"m","stream":true,"max_tokens":7,"n":2}`,
		`{"\u006dodel":"gpt\u002d5","stream_options":{"include_usage":false},"stream":null}`,
		byteOrderMark + `{"model":"\ud83d\ude00\ud83d","x":[1,-2.5e+7,true,{"model":"no"}]}`,
		`{"model":"a","mod\u0065l":"b"}`, `{"stream":true,"stream":false,"model":"m","n":1,"n":2}`,
		`{"model":7}`, `{"a":[[[[]]]],"model":"你好"} `, `[1]`, `{"model":"m","x":"\`,
	} {
		f.Add([]byte(seed), uint8(0), uint8(3))
		f.Add([]byte(seed), uint8(4), uint8(1))
	}
	f.Fuzz(func(t *testing.T, body []byte, route, step uint8) {
		id := ChatCompletions + RouteID(route)%(CountTokens-ChatCompletions+1)
		var whole, split Scan
		whole.Reset(id)
		fault := whole.Advance(body, true)
		split.Reset(id)
		for i := 0; i < len(body); i += int(step)%16 + 1 {
			moved := bytes.Clone(body[:i])
			split.Advance(moved, false)
		}
		if got := split.Advance(body, true); got != fault {
			t.Fatalf("in pieces: fault %q, whole: %q", got.Message(), fault.Message())
		}
		text := bytes.TrimPrefix(body, []byte(byteOrderMark))
		switch fault {
		case ScanOK:
		case faultEmpty, faultSyntax, faultCut, faultNotObject:
			var object map[string]any
			if json.Unmarshal(text, &object) == nil && object != nil {
				t.Fatalf("fault %q for valid JSON %q", fault.Message(), body)
			}
			return
		default:
			twice := fault >= faultModelTwice && fault != faultIncludeTwice
			if twice != (repeats(t, text, id)) && fault != faultIncludeTwice && fault != faultDepth {
				t.Fatalf("fault %q for %q", fault.Message(), body)
			}
			return
		}
		if repeats(t, text, id) {
			t.Fatalf("accepted %q", body)
		}
		a, b := whole, split
		a.lex, b.lex = lexer{}, lexer{} // what is left in it depends on the cuts
		if a != b {
			t.Fatalf("in pieces: %+v\nwhole: %+v", b, a)
		}
		var object map[string]json.RawMessage
		if err := json.Unmarshal(text, &object); err != nil {
			t.Fatalf("accepted %q: %v", body, err)
		}
		var model string
		if raw, ok := object["model"]; ok {
			if err := json.Unmarshal(raw, &model); err != nil {
				t.Fatalf("model %s: %v", raw, err)
			}
		}
		if got := asRunes(whole.AppendModel(nil, body)); got != model {
			t.Fatalf("model %q, want %q", got, model)
		}
		var stream bool
		if raw, ok := object["stream"]; ok && scanFields[id]>>fieldStream&1 != 0 {
			if err := json.Unmarshal(raw, &stream); err != nil {
				t.Fatalf("stream %s: %v", raw, err)
			}
		}
		if whole.Stream != stream {
			t.Fatalf("stream %v, want %v", whole.Stream, stream)
		}
	})
}
