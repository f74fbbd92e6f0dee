//go:build integration

package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// volatile are the parts of a mock's answers that differ from one to the next.
var volatile = regexp.MustCompile(`("(?:id|created|mock_us|system_fingerprint)"):\s*(?:"[^"]*"|\d+)`)

// TestWireBytesOfRequests compares what the host gets byte for byte: only the
// model's value, and stream_options of a stream, may differ from what was sent.
func TestWireBytesOfRequests(t *testing.T) {
	g := startGateway(t)
	for _, tt := range []struct{ name, path, sent, want string }{
		{"nothing to change", chatPath,
			`{"zeta":1,"model":"gpt-mock","alpha":[ 1 , 2.50 ],"messages":[{"role":"system","content":"<b>&</b> \u003c \/ ü \ud83d\ude00"}]}`, ""},
		{"big numbers", chatPath,
			`{"model":"gpt-mock","seed":9007199254740993,"x":12345678901234567890,"y":1e400,"z":-0.0,"messages":[{"role":"user","content":"Hi"}]}`, ""},
		{"alias", chatPath,
			`{"seed":9007199254740993,"messages":[{"role":"user","content":"model gpt-alias"}],"model" : "gpt-alias" ,"user":"é"}`,
			`{"seed":9007199254740993,"messages":[{"role":"user","content":"model gpt-alias"}],"model" : "gpt-mock" ,"user":"é"}`},
		{"alias written with escapes", chatPath,
			`{"m\u006fdel":"gpt\u002dalias","messages":[{"role":"user","content":"Hi"}]}`,
			`{"m\u006fdel":"gpt-mock","messages":[{"role":"user","content":"Hi"}]}`},
		{"alias with a star, longer than the model", chatPath,
			`{"model":"gpt-mock-2026-11-30-preview","messages":[{"role":"user","content":"日本語"}]}`,
			`{"model":"gpt-mock","messages":[{"role":"user","content":"日本語"}]}`},
		{"model inside", chatPath,
			`{"messages":[{"role":"user","content":"{\"model\":\"gpt-alias\"}"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"properties":{"model":{"type":"string"},"stream":{"type":"boolean"}}}}}],"metadata":{"model":"gpt-alias"},"model":"gpt-mock"}`, ""},
		{"white space", chatPath,
			" \r\n\t{ \"model\"\t:\r\n\"gpt-mock\" , \"messages\" : [ {\"role\":\"user\",\"content\":\"Hi\"} ] } \n", ""},
		{"usage is asked for", chatPath,
			`{"model":"gpt-mock","stream":true,"stream_options":{"include_obfuscation":false,"include_usage":true},"messages":[{"role":"user","content":"Hi"}]}`, ""},
		{"not a stream", chatPath,
			`{"model":"gpt-mock","stream":false,"messages":[{"role":"user","content":"Hi"}]}`, ""},
		{"other shape", messagePath,
			`{"model":"claude-mock","max_tokens":9,"system":[{"type":"text","text":"<>&","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":"Hi"}],"stream":true}`, ""},
		{"alias, other shape", messagePath,
			`{"max_tokens":9,"messages":[{"role":"user","content":"Hi"}],"model":"claude-alias"}`,
			`{"max_tokens":9,"messages":[{"role":"user","content":"Hi"}],"model":"claude-mock"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := tt.want
			if want == "" {
				want = tt.sent
			}
			host := g.openai
			if tt.path == messagePath {
				host = g.anthropic
			}
			for range 2 { // the same, run after run
				if a := g.call("POST", tt.path, keyWide, tt.sent); a.StatusCode != 200 {
					t.Fatalf("%d: %s", a.StatusCode, a.body)
				}
				requests := host.Requests()
				if got := lastBody(t, requests); got != want {
					t.Errorf("the host got\n%q, want\n%q", got, want)
				}
				fields := fieldsOf(requests[len(requests)-1].Head)
				if got := fmt.Sprint(fields["content-length"]); got != fmt.Sprintf("[%d]", len(want)) || fields["transfer-encoding"] != nil {
					t.Errorf("length %s, coding %v; want %d bytes", got, fields["transfer-encoding"], len(want))
				}
			}
		})
	}
}

func TestWireUsageIsAskedFor(t *testing.T) {
	g := startGateway(t)
	for _, tt := range []struct{ name, sent, want string }{
		{"no options", `{"model":"gpt-mock","stream":true,"messages":[{"role":"user","content":"Hi"}]}`, ""},
		{"null", `{"model":"gpt-mock","stream":true,"stream_options":null,"messages":[{"role":"user","content":"Hi"}]}`,
			`{"model":"gpt-mock","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"Hi"}]}`},
		{"empty", `{"model":"gpt-mock","stream":true,"stream_options":{},"messages":[{"role":"user","content":"Hi"}]}`,
			`{"model":"gpt-mock","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"Hi"}]}`},
	} {
		a := g.call("POST", chatPath, keyWide, tt.sent)
		got := lastBody(t, g.openai.Requests())
		if tt.want != "" && got != tt.want {
			t.Errorf("%s: the host got %s, want %s", tt.name, got, tt.want)
		}
		if strings.Count(got, `"stream_options":{"include_usage":true}`) != 1 {
			t.Errorf("%s: the host got %s", tt.name, got)
		}
		events := dataLines(a.body)
		for _, e := range events {
			if strings.Contains(e, `"choices":[]`) {
				t.Errorf("%s: the caller did not ask for %s", tt.name, e)
			}
		}
		if len(events) < 3 || events[len(events)-1] != "[DONE]" {
			t.Errorf("%s: %d events", tt.name, len(events))
		}
	}
	a := g.call("POST", chatPath, keyWide, strings.Replace(chatStreamBody, `"stream":true`, `"stream":true,"stream_options":{"include_usage":true}`, 1))
	usage := 0
	for _, e := range dataLines(a.body) {
		if strings.Contains(e, `"choices":[]`) && strings.Contains(e, `"prompt_tokens"`) {
			usage++
		}
	}
	if usage != 1 {
		t.Errorf("%d usage chunks for a caller who asked", usage)
	}
}

// TestWireBytesOfAnswers compares an answer through the gateway with the
// host's own.
func TestWireBytesOfAnswers(t *testing.T) {
	g := startGateway(t)
	direct := func(path, body string) string {
		d := &gateway{t: t, inference: g.openai.Addr()}
		if strings.HasPrefix(path, messagePath) {
			d.inference = g.anthropic.Addr()
		}
		return d.call("POST", path, hostSecret, body, "anthropic-version: 2023-06-01").body
	}
	normal := func(text string) string { return volatile.ReplaceAllString(text, "$1:0") }
	for _, tt := range []struct{ path, mock, body string }{
		{chatPath, "unicode,tokens=20", chatBody},
		{chatPath, "unicode,tokens=20", strings.Replace(chatStreamBody, `"stream":true`, `"stream":true,"stream_options":{"include_usage":true}`, 1)},
		{chatPath, "tokens=20,crlf", strings.Replace(chatStreamBody, `"stream":true`, `"stream":true,"stream_options":{"include_usage":true}`, 1)},
		{chatPath, "tokens=20,comments,nospace", strings.Replace(chatStreamBody, `"stream":true`, `"stream":true,"stream_options":{"include_usage":true}`, 1)},
		{messagePath, "unicode,tokens=20,thinking", messageBody},
		{messagePath, "unicode,tokens=20,thinking", messageStream},
		{messagePath, "tokens=20,cr", messageStream},
	} {
		path := tt.path + "?mock=" + tt.mock
		got, want := normal(g.call("POST", path, keyWide, tt.body).body), normal(direct(path, tt.body))
		if got != want || want == "" {
			t.Errorf("%s %s:\n%q, want\n%q", tt.path, tt.mock, got, want)
		}
	}
}

func TestWireHeadersToHost(t *testing.T) {
	g := startGateway(t)
	fields := []string{
		"X-Api-Key: " + keyWide, "X-WR-API-Key: " + keyWide, "Cookie: a=" + keyWide, "X-Forwarded-For: 192.0.2.1",
		"OpenAI-Organization: org-mine", "X-Stainless-Lang: go", "Connection: X-Private", "X-Private: 1",
		"Te: trailers", "Origin: http://x.example", "Idempotency-Key: idem-1", "OpenAI-Beta: beta-1", "Accept-Encoding: gzip",
	}
	g.call("POST", chatPath, keyWide, chatBody, fields...)
	requests := g.openai.Requests()
	got := fieldsOf(requests[len(requests)-1].Head)
	for _, name := range []string{"x-api-key", "x-wr-api-key", "cookie", "x-forwarded-for", "openai-organization", "x-stainless-lang", "x-private", "origin", "te", "upgrade"} {
		if got[name] != nil {
			t.Errorf("%s went to the host: %v", name, got[name])
		}
	}
	for name, want := range map[string]string{
		"authorization": "Bearer " + hostSecret + "-o", "host": g.openai.Addr(), "idempotency-key": "idem-1",
		"openai-beta": "beta-1", "accept-encoding": "identity", "content-type": "application/json",
	} {
		if len(got[name]) != 1 || got[name][0] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	for sent, want := range map[string]string{"": "2023-06-01", "2026-10-21": "2026-10-21"} {
		more := []string{"anthropic-beta: b1,b2"}
		if sent != "" {
			more = append(more, "anthropic-version: "+sent)
		}
		g.call("POST", messagePath, keyWide, messageBody, more...)
		requests := g.anthropic.Requests()
		got := fieldsOf(requests[len(requests)-1].Head)
		if fmt.Sprint(got["anthropic-version"]) != "["+want+"]" || fmt.Sprint(got["anthropic-beta"]) != "[b1,b2]" {
			t.Errorf("version %v, beta %v", got["anthropic-version"], got["anthropic-beta"])
		}
		if fmt.Sprint(got["x-api-key"]) != "["+hostSecret+"-a]" || got["authorization"] != nil {
			t.Errorf("credential fields: %v, %v", got["x-api-key"], got["authorization"])
		}
	}
}

func TestWireQueryIsKept(t *testing.T) {
	g := startGateway(t)
	g.call("POST", "/anthropic/v1/messages?beta=true&x=%20y", keyWide, messageBody)
	requests := g.anthropic.Requests()
	if got := requests[len(requests)-1].Path; got != "/v1/messages?beta=true&x=%20y" {
		t.Errorf("the host got %s", got)
	}
	g.call("POST", "/openai/v1/chat/completions", keyWide, chatBody)
	requests = g.openai.Requests()
	if got := requests[len(requests)-1].Path; got != "/v1/chat/completions" {
		t.Errorf("the host got %s", got)
	}
}

func TestWireBadBodies(t *testing.T) {
	g := startGateway(t)
	for _, tt := range []struct{ name, body, param string }{
		{"empty", "", ""}, {"not JSON", "hello", ""}, {"list", "[]", ""}, {"cut", `{"model":"gpt-mock"`, ""},
		{"more behind", chatBody + "x", ""}, {"no model", `{"messages":[]}`, "model"}, {"model null", `{"model":null}`, "model"},
		{"model number", `{"model":5}`, "model"}, {"model empty", `{"model":""}`, "model"},
		{"stream text", `{"model":"gpt-mock","stream":"yes"}`, "stream"},
		{"two models", `{"model":"gpt-mock","messages":[],"model":"claude-mock"}`, "model"},
		{"two models, one escaped", `{"model":"gpt-mock","messages":[],"mod\u0065l":"claude-mock"}`, "model"},
		{"two limits", `{"model":"gpt-mock","messages":[],"max_tokens":5,"max_tokens":500}`, "max_tokens"},
		{"wrong case", `{"Model":"gpt-mock","messages":[]}`, "model"},
		{"deep", `{"model":"gpt-mock","x":` + strings.Repeat("[", 100000) + strings.Repeat("]", 100000) + `}`, ""},
	} {
		a := g.call("POST", chatPath, keyWide, tt.body)
		e := wantError(t, tt.name, a, chatPath, 400)
		if tt.param != "" && (e.Error.Param == nil || *e.Error.Param != tt.param) {
			t.Errorf("%s: param is %v, want %s", tt.name, e.Error.Param, tt.param)
		}
		wantError(t, tt.name, g.call("POST", messagePath, keyWide, tt.body), messagePath, 400)
	}
	if n := len(g.openai.Requests()) + len(g.anthropic.Requests()); n != 0 {
		t.Errorf("%d bad bodies reached a host", n)
	}
}
