package upstream

import (
	"bytes"
	"strings"
	"testing"

	"relay/httpparse"
	"relay/store/catalog"
	"relay/upstream/wire"
)

const (
	relayKey = "rk-caller-0123456789"
	hostKey  = "sk-host-9876543210"
)

// fields makes parsed fields of field lines.
func fields(lines ...string) []httpparse.Field {
	var list []httpparse.Field
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ":")
		list = append(list, httpparse.Field{Name: []byte(name), Value: []byte(strings.TrimSpace(value))})
	}
	return list
}

func requestHead(s wire.Shape, lines ...string) *RequestHead {
	h := &catalog.Host{
		Name: "host", Shape: s, HostPort: "api.example.com:8443", BasePath: "/base/v1", AnthropicVersion: "2023-06-01",
	}
	suffix := "/chat/completions"
	if s == wire.Anthropic {
		h.BasePath, suffix = "/base", "/messages"
	}
	return &RequestHead{
		Method: []byte("POST"), Suffix: []byte(suffix), Fields: fields(lines...), Host: h,
		Key: &catalog.HostKey{Host: h, Value: []byte(hostKey)}, Credential: []byte(relayKey),
		RequestID: []byte("0198-ours"), ContentLength: 17,
	}
}

// readRequest parses what was written with the parser of the other side.
func readRequest(t *testing.T, text []byte) *httpparse.Request {
	t.Helper()
	var r httpparse.Request
	var g httpparse.Progress
	if n, err := r.Parse(text, &g); err != httpparse.OK || n != len(text) {
		t.Fatalf("the head is refused, %v after %d bytes:\n%s", err, n, text)
	}
	return &r
}

// lines are the fields of a head as "name: value", names in lower case, less
// those that every head of the kind has.
func lines(list []httpparse.Field, less ...string) string {
	var out []string
next:
	for _, f := range list {
		line := strings.ToLower(string(f.Name)) + ": " + string(f.Value)
		for _, l := range less {
			if line == l {
				continue next
			}
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

var (
	always = []string{
		"host: api.example.com:8443", "content-length: 17", "user-agent: relay",
		"accept-encoding: identity", "x-request-id: 0198-ours",
	}
	alwaysOpenAI    = append([]string{"authorization: Bearer " + hostKey}, always...)
	alwaysAnthropic = append([]string{"x-api-key: " + hostKey}, always...)
)

func TestRequestHeadLine(t *testing.T) {
	for _, tt := range []struct {
		name  string
		shape wire.Shape
		query string // "-" = none
		want  string
	}{
		{"openai", wire.OpenAI, "-", "POST /base/v1/chat/completions HTTP/1.1"},
		{"anthropic", wire.Anthropic, "-", "POST /base/v1/messages HTTP/1.1"},
		{"query", wire.Anthropic, "beta=true&x=%20", "POST /base/v1/messages?beta=true&x=%20 HTTP/1.1"},
		{"empty query", wire.OpenAI, "", "POST /base/v1/chat/completions? HTTP/1.1"},
		{"query with the relay key", wire.OpenAI, "a=1&key=" + relayKey, "POST /base/v1/chat/completions HTTP/1.1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := requestHead(tt.shape)
			if tt.query != "-" {
				a.Query = []byte(tt.query)
			}
			text := AppendRequestHead(nil, a)
			if line, _, _ := strings.Cut(string(text), "\r\n"); line != tt.want {
				t.Errorf("%q, want %q", line, tt.want)
			}
			r := readRequest(t, text)
			if r.ContentLength != 17 || string(r.Host) != "api.example.com:8443" {
				t.Errorf("length %d, host %s", r.ContentLength, r.Host)
			}
		})
	}
}

func TestRequestHeadWithoutBody(t *testing.T) {
	a := requestHead(wire.OpenAI)
	a.Method, a.ContentLength = []byte("GET"), -1
	if r := readRequest(t, AppendRequestHead(nil, a)); r.ContentLength != -1 || r.Chunked {
		t.Errorf("length %d", r.ContentLength)
	}
	a.ContentLength = 0
	if r := readRequest(t, AppendRequestHead(nil, a)); r.ContentLength != 0 {
		t.Errorf("length %d", r.ContentLength)
	}
}

func TestRequestHeadFields(t *testing.T) {
	both := func(lines ...string) []string { return lines }
	for _, tt := range []struct {
		name              string
		in                []string
		openai, anthropic string // beyond what is always there; anthropic-version apart
	}{
		{"passed", both("Content-Type: application/json", "Accept: text/event-stream", "Idempotency-Key: i1", "X-New-Beta: 1"),
			"content-type: application/json\naccept: text/event-stream\nidempotency-key: i1\nx-new-beta: 1",
			"content-type: application/json\naccept: text/event-stream\nidempotency-key: i1\nx-new-beta: 1"},
		{"betas", both("OpenAI-Beta: assistants=v2", "anthropic-beta: a,b", "anthropic-beta: c", "anthropic-new: x"),
			"openai-beta: assistants=v2", "anthropic-beta: a,b\nanthropic-beta: c\nanthropic-new: x"},
		{"credentials", both("Authorization: Bearer "+relayKey, "x-api-key: other", "X-WR-API-Key: other", "Cookie: s=1", "Api-Key: k", "X-Goog-Api-Key: k"), "", ""},
		{"key elsewhere", both("X-Custom: "+relayKey, "X-Other: a "+relayKey+" b", "Anthropic-Beta: "+relayKey, "Anthropic-Version: "+relayKey, "Accept: */*"),
			"accept: */*", "accept: */*"},
		{"own fields", both("X-WR-Upstream-Host: h", "X-WR-Anything: 1", "X-Relay-Upstream-Request-Id: u"), "", ""},
		{"where from", both("Origin: https://a", "Referer: https://b", "X-Forwarded-For: 10.0.0.1", "X-Forwarded-Proto: https", "Forwarded: for=x",
			"Via: 1.1 a", "X-Real-IP: 1.2.3.4", "CF-Ray: 1", "CF-Connecting-IP: 1", "Sec-Fetch-Mode: cors", "User-Agent: sdk/1", "True-Client-IP: 1"), "", ""},
		{"sdk", both("X-Stainless-Lang: js", "x-stainless-retry-count: 1"), "", ""},
		{"traces", both("traceparent: 00-1", "tracestate: a", "baggage: b", "X-Request-ID: theirs"), "", ""},
		{"account", both("OpenAI-Organization: o", "OpenAI-Project: p", "anthropic-workspace-id: w", "anthropic-user-profile-id: u",
			"anthropic-dangerous-direct-browser-access: true"), "", ""},
		{"framing", both("Host: relay", "Content-Length: 99", "Transfer-Encoding: chunked", "Expect: 100-continue", "Content-Encoding: identity",
			"Accept-Encoding: gzip", "Content-MD5: x", "Digest: y"), "", ""},
		{"hop by hop", both("Connection: close, X-Private", "X-Private: 1", "Keep-Alive: 5", "TE: trailers", "Trailer: X", "Upgrade: h2c",
			"HTTP2-Settings: x", "Proxy-Connection: close", "Proxy-Authorization: Basic x"), "", ""},
		{"another method", both("X-HTTP-Method-Override: DELETE", "X-Original-URL: /admin"), "", ""},
		{"a long name", both(strings.Repeat("X-Long-", 40) + ": 1"),
			strings.Repeat("x-long-", 40) + ": 1", strings.Repeat("x-long-", 40) + ": 1"},
		{"a long name that is dropped", both("X-Forwarded-" + strings.Repeat("Long-", 40) + ": 1"), "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := AppendRequestHead(nil, requestHead(wire.OpenAI, tt.in...))
			if got := lines(readRequest(t, text).Fields, alwaysOpenAI...); got != tt.openai {
				t.Errorf("to an OpenAI host:\n%s\nwant:\n%s", got, tt.openai)
			}
			secretOnce(t, text)
			text = AppendRequestHead(nil, requestHead(wire.Anthropic, tt.in...))
			got := lines(readRequest(t, text).Fields, append(alwaysAnthropic, "anthropic-version: 2023-06-01")...)
			if got != tt.anthropic {
				t.Errorf("to an Anthropic host:\n%s\nwant:\n%s", got, tt.anthropic)
			}
			secretOnce(t, text)
		})
	}
}

// secretOnce fails when the relay key leaves, or the host's is not there once.
func secretOnce(t *testing.T, text []byte) {
	t.Helper()
	if bytes.Contains(text, []byte(relayKey)) {
		t.Errorf("the relay key leaves:\n%s", text)
	}
	if n := bytes.Count(text, []byte(hostKey)); n != 1 {
		t.Errorf("the host key stands %d times:\n%s", n, text)
	}
}

func TestRequestHeadVersion(t *testing.T) {
	for _, tt := range []struct {
		name  string
		shape wire.Shape
		in    []string
		want  string
	}{
		{"default", wire.Anthropic, nil, "anthropic-version: 2023-06-01"},
		{"the caller's", wire.Anthropic, []string{"Anthropic-Version: 2026-10-21"}, "anthropic-version: 2026-10-21"},
		{"empty", wire.Anthropic, []string{"Anthropic-Version:"}, "anthropic-version: 2023-06-01"},
		{"twice", wire.Anthropic, []string{"anthropic-version: 2026-10-21", "anthropic-version: 2023-06-01"}, "anthropic-version: 2026-10-21"},
		{"never to an OpenAI host", wire.OpenAI, []string{"anthropic-version: 2026-10-21"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := readRequest(t, AppendRequestHead(nil, requestHead(tt.shape, tt.in...)))
			if got := lines(r.Fields, append(alwaysOpenAI, alwaysAnthropic...)...); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestRequestHeadOrganization(t *testing.T) {
	a := requestHead(wire.OpenAI, "OpenAI-Organization: theirs", "OpenAI-Project: theirs")
	a.Host.Organization, a.Host.Project = "org-ours", "proj-ours"
	r := readRequest(t, AppendRequestHead(nil, a))
	if got := lines(r.Fields, alwaysOpenAI...); got != "openai-organization: org-ours\nopenai-project: proj-ours" {
		t.Errorf("%q", got)
	}
}

// Without a credential nothing is taken for one.
func TestRequestHeadNoCredential(t *testing.T) {
	a := requestHead(wire.OpenAI, "Accept: */*")
	a.Credential, a.Query = nil, []byte("a=1")
	text := AppendRequestHead(nil, a)
	if !bytes.Contains(text, []byte("?a=1 ")) || !bytes.Contains(text, []byte("Accept: */*\r\n")) {
		t.Errorf("%s", text)
	}
}
