package wire

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// edited is the body as a host gets it.
func edited(t *testing.T, id RouteID, body, upstreamModel string, inject bool) string {
	t.Helper()
	s, fault := scanWhole(id, body)
	if fault != ScanOK {
		t.Fatalf("fault %q", fault.Message())
	}
	edits, _ := s.AppendEdits(nil, nil, []byte(body), upstreamModel, inject)
	out := AppendEdited(nil, []byte(body), edits)
	if n := EditedLen([]byte(body), edits); n != len(out) {
		t.Errorf("EditedLen = %d, the body has %d bytes", n, len(out))
	}
	return string(out)
}

func TestAppendEdits(t *testing.T) {
	for _, tt := range []struct {
		name   string
		id     RouteID
		body   string
		model  string
		inject bool
		want   string
	}{
		{"nothing to change", Messages, `{"model":"m","x":"<b>&</b>"}`, "m", true, `{"model":"m","x":"<b>&</b>"}`},
		{"equal once unescaped", Messages, `{"model":"gpt\u002d5"}`, "gpt-5", true, `{"model":"gpt\u002d5"}`},
		{"no upstream name", Messages, `{"model":"m"}`, "", true, `{"model":"m"}`},
		{"alias keeps all else", ChatCompletions, ` { "seed" : 9007199254740993, "model"	: "alias" ,"x":1e400,"y":"<b>&</b>\u003c\/" } `, "real/é", false,
			` { "seed" : 9007199254740993, "model"	: "real/é" ,"x":1e400,"y":"<b>&</b>\u003c\/" } `},
		{"alias is escaped", Messages, `{"model":"a"}`, "q\"\\\n\x01", false, `{"model":"q\"\\\u000a\u0001"}`},
		{"alias in multi-byte text", Messages, `{"x":"你好","model":"ä","y":"é"}`, "模型", false, `{"x":"你好","model":"模型","y":"é"}`},
		{"names in deeper places", Messages, `{"metadata":{"model":"a"},"model":"a","tools":[{"model":"a"}]}`, "c", false,
			`{"metadata":{"model":"a"},"model":"c","tools":[{"model":"a"}]}`},
		{"BOM", Messages, byteOrderMark + `{"model":"m"}`, "m", false, `{"model":"m"}`},
		{"BOM and alias", Messages, byteOrderMark + `{"model":"m"}`, "mm", false, `{"model":"mm"}`},
		{"model left out", Images, `{"prompt":"x"}`, "dall", false, `{"prompt":"x"}`},
		{"inject", ChatCompletions, `{"model":"m","stream":true, "x":1 }`, "m", true,
			`{"model":"m","stream":true, "x":1 ,"stream_options":{"include_usage":true}}`},
		{"inject beside alias", Completions, `{"stream":true,"model":"m"}`, "mm", true,
			`{"stream":true,"model":"mm","stream_options":{"include_usage":true}}`},
		{"inject for null", ChatCompletions, `{"model":"m","stream_options": null ,"stream":true}`, "m", true,
			`{"model":"m","stream_options": {"include_usage":true} ,"stream":true}`},
		{"inject into an empty object", ChatCompletions, `{"model":"m","stream_options":{ },"stream":true}`, "m", true,
			`{"model":"m","stream_options":{"include_usage":true },"stream":true}`},
		{"inject keeps members", ChatCompletions, `{"stream_options":{ "include_obfuscation":false},"model":"m","stream":true}`, "mm", true,
			`{"stream_options":{"include_usage":true, "include_obfuscation":false},"model":"mm","stream":true}`},
		{"inject over false", ChatCompletions, `{"stream_options":{"a":1,"include_usage": false ,"b":[2]},"model":"m","stream":true}`, "m", true,
			`{"stream_options":{"a":1,"include_usage": true ,"b":[2]},"model":"m","stream":true}`},
		{"inject over null", ChatCompletions, `{"model":"m","stream":true,"stream_options":{"include_usage":null}}`, "m", true,
			`{"model":"m","stream":true,"stream_options":{"include_usage":true}}`},
		{"the caller asked", ChatCompletions, `{"model":"m","stream":true,"stream_options":{"include_usage":true}}`, "m", true,
			`{"model":"m","stream":true,"stream_options":{"include_usage":true}}`},
		{"no stream", ChatCompletions, `{"model":"m"}`, "m", true, `{"model":"m"}`},
		{"not asked to inject", ChatCompletions, `{"model":"m","stream":true}`, "m", false, `{"model":"m","stream":true}`},
		{"responses have no such option", Responses, `{"model":"m","stream":true}`, "m", true, `{"model":"m","stream":true}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for range 2 { // run after run
				if got := edited(t, tt.id, tt.body, tt.model, tt.inject); got != tt.want {
					t.Errorf("got  %s\nwant %s", got, tt.want)
				}
			}
		})
	}
}

func TestAppendEditsAfterOthers(t *testing.T) {
	body := []byte(byteOrderMark + `{"stream":true,"model":"m"}`)
	s, _ := scanWhole(ChatCompletions, string(body))
	other := Edit{Off: 99}
	edits, scratch := s.AppendEdits([]Edit{other}, []byte("kept"), body, "mm", true)
	if len(edits) != 4 || edits[0].Off != 99 || edits[1].Off != 0 || edits[2].Off >= edits[3].Off {
		t.Errorf("edits %+v: want the given one, then three in order", edits)
	}
	if !bytes.HasPrefix(scratch, []byte(`kept"mm",`)) {
		t.Errorf("scratch %q", scratch)
	}
}

func TestAppendEditsAllocs(t *testing.T) {
	body := []byte(`{"stream":true,"model":"m","messages":[]}`)
	s, _ := scanWhole(ChatCompletions, string(body))
	edits, scratch := make([]Edit, 0, 4), make([]byte, 0, 256)
	if n := testing.AllocsPerRun(100, func() { s.AppendEdits(edits, scratch, body, "other", true) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func TestAppendQuoted(t *testing.T) {
	for _, in := range []string{"", "plain", "\x00\x1f\x7f\"\\/<>&", "é你😀", "\u2028\u2029", "a\xffb\xe4\xbd", "\ufffd"} {
		got := appendQuoted(nil, in)
		var back string
		if err := json.Unmarshal(got, &back); err != nil || back != strings.ToValidUTF8(asRunes([]byte(in)), "") {
			t.Errorf("%q became %s: %q, %v", in, got, back, err)
		}
		if bytes.ContainsAny(got, "\r\n\u2028") {
			t.Errorf("%q became %q, which has a line end", in, got)
		}
	}
}

func FuzzEdits(f *testing.F) {
	for _, seed := range []string{
		`{"model":"m","stream":true}`, byteOrderMark + `{"stream":true,"stream_options":{"include_usage":false,"z":1},"model":"\u0061"}`,
		`{"model":"m","stream":true,"stream_options": {  } , "n":9007199254740993}`, `{"stream_options":null,"stream":true,"model":"x"}`,
	} {
		f.Add([]byte(seed), "real", true)
		f.Add([]byte(seed), "q\"\n\xff", false)
	}
	f.Fuzz(func(t *testing.T, body []byte, upstreamModel string, inject bool) {
		var s Scan
		s.Reset(ChatCompletions)
		if s.Advance(body, true) != ScanOK {
			return
		}
		edits, _ := s.AppendEdits(nil, nil, body, upstreamModel, inject)
		out := AppendEdited(nil, body, edits)
		if n := EditedLen(body, edits); n != len(out) {
			t.Fatalf("EditedLen = %d, the body has %d bytes", n, len(out))
		}
		var was, is map[string]json.RawMessage
		if err := json.Unmarshal(bytes.TrimPrefix(body, []byte(byteOrderMark)), &was); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(out, &is); err != nil {
			t.Fatalf("%q became %q: %v", body, out, err)
		}
		var model string
		json.Unmarshal(is["model"], &model)
		want := asRunes([]byte(upstreamModel))
		if upstreamModel == "" {
			json.Unmarshal(was["model"], &want)
		}
		if model != want {
			t.Fatalf("model %q, want %q", model, want)
		}
		if inject && s.Stream {
			var got, old map[string]json.RawMessage
			json.Unmarshal(is["stream_options"], &got)
			json.Unmarshal(was["stream_options"], &old)
			if string(got["include_usage"]) != "true" {
				t.Fatalf("%q became %q: usage is not asked for", body, out)
			}
			delete(got, "include_usage")
			delete(old, "include_usage")
			if len(got) != len(old) || len(got) > 0 && !reflect.DeepEqual(got, old) {
				t.Fatalf("stream_options became %q, was %q", got, old)
			}
			delete(is, "stream_options")
			delete(was, "stream_options")
		}
		delete(is, "model")
		delete(was, "model")
		if !reflect.DeepEqual(is, was) { // raw bytes: nothing else changed
			t.Fatalf("%q became %q", body, out)
		}
		again := s
		again.Reset(ChatCompletions)
		if fault := again.Advance(out, true); fault != ScanOK && fault != faultModelLong {
			t.Fatalf("%q became %q, which is refused: %s", body, out, fault.Message())
		}
	})
}
