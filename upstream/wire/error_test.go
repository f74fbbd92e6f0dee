package wire

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestErrorTable(t *testing.T) {
	labels := map[string]Error{}
	for e := NoError; int(e) < len(errorTable); e++ {
		label := e.String()
		if other, taken := labels[label]; taken || label == "" || strings.ToLower(label) != label || strings.ContainsAny(label, " -") {
			t.Errorf("error %d: label %q is bad or taken by %d", e, label, other)
		}
		labels[label] = e
		if e == NoError {
			continue
		}
		for _, s := range []Shape{OpenAI, Anthropic} {
			if status := e.Status(s); status < 400 || status > 599 {
				t.Errorf("%v: status %d", e, status)
			}
			var body map[string]any
			if err := json.Unmarshal(AppendError(nil, s, e, "", "", nil), &body); err != nil {
				t.Errorf("%v: %v", e, err)
			}
			inner, _ := body["error"].(map[string]any)
			if inner["type"] == "" || inner["message"] == "" {
				t.Errorf("%v: %v", e, body)
			}
		}
	}
}

func TestErrorStatus(t *testing.T) {
	for _, tt := range []struct {
		e                 Error
		openAI, anthropic int
	}{
		{BadRequest, 400, 400}, {MissingKey, 401, 401}, {InvalidKey, 401, 401}, {ModelNotAllowed, 403, 403}, {UnknownPath, 404, 404},
		{UnknownModel, 404, 404}, {MethodNotAllowed, 405, 405}, {RequestTimeout, 408, 408}, {BodyTooLarge, 413, 413}, {TargetTooLong, 414, 414},
		{UnsupportedMedia, 415, 415}, {ExpectationFailed, 417, 417}, {RateLimited, 429, 429}, {BudgetSpent, 429, 429}, {HeadTooLarge, 431, 431},
		{InternalError, 500, 500}, {NotImplemented, 501, 501}, {BadGateway, 502, 502}, {UpstreamCredential, 502, 502}, {UpstreamCut, 502, 502},
		{Overloaded, 503, 529}, {NoHost, 503, 529}, {StoreUnavailable, 503, 529}, {SpoolFull, 503, 529}, {ShuttingDown, 503, 503},
		{UpstreamTimeout, 504, 504}, {StreamIdle, 504, 504}, {BadVersion, 505, 505},
	} {
		if o, a := tt.e.Status(OpenAI), tt.e.Status(Anthropic); o != tt.openAI || a != tt.anthropic {
			t.Errorf("%v: %d and %d, want %d and %d", tt.e, o, a, tt.openAI, tt.anthropic)
		}
	}
}

func TestAppendError(t *testing.T) {
	for _, tt := range []struct {
		name           string
		s              Shape
		e              Error
		message, param string
		requestID      string
		want           string
	}{
		{"OpenAI, all four keys", OpenAI, BadRequest, "", "", "r", `{"error":{"message":"The request is not valid.","type":"invalid_request_error","param":null,"code":null}}`},
		{"OpenAI, param", OpenAI, BadRequest, "Bad.", "model", "r", `{"error":{"message":"Bad.","type":"invalid_request_error","param":"model","code":null}}`},
		{"OpenAI, code", OpenAI, UnknownModel, "The model 'x' does not exist.", "model", "", `{"error":{"message":"The model 'x' does not exist.","type":"invalid_request_error","param":"model","code":"model_not_found"}}`},
		{"OpenAI, overloaded", OpenAI, Overloaded, "x", "", "", `{"error":{"message":"x","type":"service_unavailable_error","param":null,"code":"server_is_overloaded"}}`},
		{"OpenAI, budget", OpenAI, BudgetSpent, "x", "", "", `{"error":{"message":"x","type":"insufficient_quota","param":null,"code":"budget_exceeded"}}`},
		{"OpenAI, key", OpenAI, InvalidKey, "", "", "", `{"error":{"message":"The API key is not valid.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`},
		{"Anthropic", Anthropic, InvalidKey, "", "x", "req-1", `{"type":"error","error":{"type":"authentication_error","message":"The API key is not valid."},"request_id":"req-1"}`},
		{"Anthropic, no id", Anthropic, Overloaded, "x", "", "", `{"type":"error","error":{"type":"overloaded_error","message":"x"},"request_id":null}`},
		{"Anthropic, budget", Anthropic, BudgetSpent, "x", "", "", `{"type":"error","error":{"type":"rate_limit_error","message":"x"},"request_id":null}`},
		{"Anthropic, size", Anthropic, BodyTooLarge, "x", "", "", `{"type":"error","error":{"type":"request_too_large","message":"x"},"request_id":null}`},
		{"escaped", Anthropic, BadRequest, "a\"\n\\\xff\x00", "", "i\n", `{"type":"error","error":{"type":"invalid_request_error","message":"a\"\u000a\\\ufffd\u0000"},"request_id":"i\u000a"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := string(AppendError(nil, tt.s, tt.e, tt.message, tt.param, []byte(tt.requestID))); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestErrorBounds(t *testing.T) {
	var body struct {
		Error struct{ Message, Param string }
	}
	long := strings.Repeat("ä", MessageBytesMax)
	if err := json.Unmarshal(AppendError(nil, OpenAI, BadRequest, "x"+long, "x"+long, nil), &body); err != nil {
		t.Fatal(err)
	}
	if n := len(body.Error.Message); n != MessageBytesMax-1 || !utf8.ValidString(body.Error.Message) {
		t.Errorf("message of %d bytes, want whole characters in %d", n, MessageBytesMax)
	}
	if n := len(body.Error.Param); n != ParamBytesMax-1 {
		t.Errorf("param of %d bytes, want at most %d", n, ParamBytesMax)
	}
	raw := AppendError(nil, Anthropic, BadRequest, strings.Repeat("\x80", 5000), "", []byte(strings.Repeat("r", 5000)))
	if len(raw) > 6*MessageBytesMax+RequestIDBytesMax+200 || !json.Valid(raw) {
		t.Errorf("%d bytes for long junk", len(raw))
	}
}

func TestErrorBodyOK(t *testing.T) {
	for _, tt := range []struct {
		body              string
		openAI, anthropic bool
	}{
		{`{"error":{"message":"x"}}`, true, true},
		{`{"type":"error","error":{"type":"x","message":"y"},"request_id":null}`, true, true},
		{` {"error":{}} ` + "\n", true, true},
		{`{"error":"x"}`, true, false},
		{`{"error":""}`, false, false},
		{`{"error":null}`, false, false},
		{`{"error":[1]}`, false, false},
		{`{"error":{},"error":null}`, false, false},
		{`{"error":null,"err\u006fr":{}}`, true, true},
		{`{"x":{"error":{}}}`, false, false},
		{`{"message":"error"}`, false, false},
		{`[{"error":{}}]`, false, false},
		{`"error"`, false, false},
		{`{"error":{}`, false, false},
		{`{"error":{}}x`, false, false},
		{`<html><body>502</body></html>`, false, false},
		{``, false, false},
	} {
		if o, a := ErrorBodyOK([]byte(tt.body), OpenAI), ErrorBodyOK([]byte(tt.body), Anthropic); o != tt.openAI || a != tt.anthropic {
			t.Errorf("%s: %v and %v, want %v and %v", tt.body, o, a, tt.openAI, tt.anthropic)
		}
	}
}
