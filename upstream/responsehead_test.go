package upstream

import (
	"strings"
	"testing"

	"relay/httpparse"
	"relay/upstream/wire"
)

// readResponse parses what was written with the parser of the other side.
func readResponse(t *testing.T, text []byte) *httpparse.Response {
	t.Helper()
	var r httpparse.Response
	var g httpparse.Progress
	if n, err := r.Parse(text, &g, false); err != httpparse.OK || n != len(text) {
		t.Fatalf("the head is refused, %v after %d bytes:\n%s", err, n, text)
	}
	return &r
}

func responseHead(s wire.Shape, lines ...string) *ResponseHead {
	return &ResponseHead{
		Status: 200, Fields: fields(lines...), Shape: s, RequestID: []byte("ours"),
		Framing: Framing{Body: httpparse.ByChunks},
	}
}

// plain are the fields of every chunked answer.
var plain = []string{"x-request-id: ours", "request-id: ours", "transfer-encoding: chunked"}

func TestResponseHeadFields(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   []string
		want string
	}{
		{"passed", []string{"Content-Type: application/json", "Date: Sun, 06 Nov 1994 08:49:37 GMT", "Retry-After: 3", "OpenAI-Processing-Ms: 12",
			"X-Should-Retry: true", "OpenAI-Version: 2020-10-01"},
			"content-type: application/json\ndate: Sun, 06 Nov 1994 08:49:37 GMT\nretry-after: 3\nopenai-processing-ms: 12\nx-should-retry: true\nopenai-version: 2020-10-01"},
		{"origin", []string{"Set-Cookie: a=1", "Server: cloudflare", "CF-Ray: 1", "cf-cache-status: DYNAMIC", "Alt-Svc: h3", "Strict-Transport-Security: max-age=1",
			"Via: 1.1 x", "Report-To: x", "NEL: y"}, ""},
		{"account", []string{"openai-organization: o", "openai-project: p", "anthropic-organization-id: a",
			"x-ratelimit-limit-requests: 5", "x-ratelimit-remaining-tokens: 5", "anthropic-ratelimit-tokens-reset: x"}, ""},
		{"framing", []string{"Content-Length: 5", "Transfer-Encoding: chunked", "Connection: keep-alive, X-Hop", "X-Hop: 1", "Keep-Alive: timeout=5",
			"Trailer: X", "Content-Digest: x", "Proxy-Authenticate: Basic"}, ""},
		{"forged", []string{"X-Relay-Upstream-Request-Id: forged", "X-WR-Anything: 1"}, ""},
		{"coding of bytes passed on", []string{"Content-Encoding: br", "Vary: Accept-Encoding"}, "content-encoding: br\nvary: Accept-Encoding"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, s := range []wire.Shape{wire.OpenAI, wire.Anthropic} {
				r := readResponse(t, AppendResponseHead(nil, responseHead(s, tt.in...)))
				if got := lines(r.Fields, plain...); got != tt.want {
					t.Errorf("%v:\n%s\nwant:\n%s", s, got, tt.want)
				}
			}
		})
	}
}

// The content coding that is told is the one of the bytes, whatever the status.
func TestResponseHeadCoding(t *testing.T) {
	for _, status := range []int{200, 400, 404, 429, 500} {
		for _, decoded := range []bool{false, true} {
			a := responseHead(wire.OpenAI, "Content-Type: application/json", "Content-Encoding: gzip", "Content-Length: 40")
			a.Status, a.Decoded = status, decoded
			a.Framing = Framing{Body: httpparse.ByLength, ContentLength: 90}
			r := readResponse(t, AppendResponseHead(nil, a))
			if told := r.Field("content-encoding") != nil; told == decoded {
				t.Errorf("status %d, decoded %t: coding told %t", status, decoded, told)
			}
			if r.Status != status || r.ContentLength != 90 {
				t.Errorf("status %d, length %d, want %d, 90", r.Status, r.ContentLength, status)
			}
		}
	}
}

func TestResponseHeadRequestID(t *testing.T) {
	for _, tt := range []struct {
		name  string
		shape wire.Shape
		in    []string
		want  string
	}{
		{"openai", wire.OpenAI, []string{"X-Request-Id: req_1"}, "x-request-id: ours\nx-relay-upstream-request-id: req_1"},
		{"anthropic", wire.Anthropic, []string{"Request-Id: req_2"}, "x-request-id: ours\nrequest-id: ours\nx-relay-upstream-request-id: req_2"},
		{"both, openai", wire.OpenAI, []string{"request-id: a", "x-request-id: o"}, "x-request-id: ours\nx-relay-upstream-request-id: o"},
		{"both, anthropic", wire.Anthropic, []string{"x-request-id: o", "request-id: a"}, "x-request-id: ours\nrequest-id: ours\nx-relay-upstream-request-id: a"},
		{"the other", wire.Anthropic, []string{"x-request-id: o"}, "x-request-id: ours\nrequest-id: ours\nx-relay-upstream-request-id: o"},
		{"none", wire.OpenAI, nil, "x-request-id: ours"},
		{"empty", wire.OpenAI, []string{"x-request-id:"}, "x-request-id: ours"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := readResponse(t, AppendResponseHead(nil, responseHead(tt.shape, tt.in...)))
			if got := lines(r.Fields, "transfer-encoding: chunked"); got != tt.want {
				t.Errorf("\n%s\nwant:\n%s", got, tt.want)
			}
		})
	}
}

func TestResponseHeadEventStream(t *testing.T) {
	for _, tt := range []struct {
		name, in, want string
	}{
		{"neither", "Content-Type: text/event-stream; charset=utf-8",
			"content-type: text/event-stream; charset=utf-8\ncache-control: no-cache\nx-accel-buffering: no"},
		{"cache control", "Cache-Control: no-cache, must-revalidate", "cache-control: no-cache, must-revalidate\nx-accel-buffering: no"},
		{"buffering", "X-Accel-Buffering: yes", "x-accel-buffering: yes\ncache-control: no-cache"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := responseHead(wire.OpenAI, tt.in)
			a.EventStream = true
			if got := lines(readResponse(t, AppendResponseHead(nil, a)).Fields, plain...); got != tt.want {
				t.Errorf("\n%s\nwant:\n%s", got, tt.want)
			}
		})
	}
}

func TestResponseHeadRetryAfter(t *testing.T) {
	a := responseHead(wire.Anthropic)
	a.Status, a.RetryAfterNs = 529, 1.2e9
	if got := string(readResponse(t, AppendResponseHead(nil, a)).Field("retry-after")); got != "2" {
		t.Errorf("told %q", got)
	}
	a.Fields = fields("Retry-After: 30")
	if got := lines(readResponse(t, AppendResponseHead(nil, a)).Fields, plain...); got != "retry-after: 30" {
		t.Errorf("told %q", got)
	}
}

func TestResponseHeadFraming(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status int
		f      Framing
		want   string
	}{
		{"length", 200, Framing{Body: httpparse.ByLength, ContentLength: 1 << 40}, "content-length: 1099511627776"},
		{"length zero", 200, Framing{Body: httpparse.ByLength}, "content-length: 0"},
		{"empty", 200, Framing{Body: httpparse.NoBody}, "content-length: 0"},
		{"204", 204, Framing{Body: httpparse.NoBody}, ""},
		{"304 with a length", 304, Framing{Body: httpparse.ByLength, ContentLength: 9}, ""},
		{"chunks", 200, Framing{Body: httpparse.ByChunks}, "transfer-encoding: chunked"},
		{"chunks and close", 200, Framing{Body: httpparse.ByChunks, Close: true}, "transfer-encoding: chunked\nconnection: close"},
		{"until close", 200, Framing{Body: httpparse.UntilClose}, "connection: close"},
		{"close wins", 200, Framing{Body: httpparse.UntilClose, KeepAlive: true}, "connection: close"},
		{"HTTP/1.0 goes on", 200, Framing{Body: httpparse.ByLength, ContentLength: 3, KeepAlive: true}, "content-length: 3\nconnection: keep-alive"},
		{"HTTP/1.0 ends", 200, Framing{Body: httpparse.ByLength, ContentLength: 3, KeepAlive: true, Close: true}, "content-length: 3\nconnection: close"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := responseHead(wire.OpenAI)
			a.Status, a.Framing = tt.status, tt.f
			if got := lines(readResponse(t, AppendResponseHead(nil, a)).Fields, "x-request-id: ours"); got != tt.want {
				t.Errorf("\n%s\nwant:\n%s", got, tt.want)
			}
		})
	}
}

func TestAnswerHead(t *testing.T) {
	for _, tt := range []struct {
		name string
		a    AnswerHead
		want string
	}{
		{"openai", AnswerHead{Status: 401, ContentLength: 42},
			"HTTP/1.1 401 Unauthorized\r\nx-request-id: ours\r\ncontent-type: application/json\r\ncontent-length: 42\r\n\r\n"},
		{"anthropic", AnswerHead{Status: 529, Shape: wire.Anthropic, ContentLength: 7, RetryAfterNs: 1, Close: true},
			"HTTP/1.1 529 Overloaded\r\nx-request-id: ours\r\nrequest-id: ours\r\ncontent-type: application/json\r\nretry-after: 1\r\n" +
				"content-length: 7\r\nconnection: close\r\n\r\n"},
		{"limit", AnswerHead{Status: 429, ContentLength: 7, RetryAfterNs: 20e9 + 1, NoRetry: true, KeepAlive: true},
			"HTTP/1.1 429 Too Many Requests\r\nx-request-id: ours\r\ncontent-type: application/json\r\nretry-after: 21\r\n" +
				"x-should-retry: false\r\ncontent-length: 7\r\nconnection: keep-alive\r\n\r\n"},
		{"method", AnswerHead{Status: 405, ContentLength: 7, Allow: "POST"},
			"HTTP/1.1 405 Method Not Allowed\r\nx-request-id: ours\r\ncontent-type: application/json\r\nallow: POST\r\ncontent-length: 7\r\n\r\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.a.RequestID = []byte("ours")
			text := AppendAnswerHead([]byte("before"), &tt.a)
			got, found := strings.CutPrefix(string(text), "before")
			if !found || got != tt.want {
				t.Errorf("%q, want %q", text, tt.want)
			}
			readResponse(t, []byte(got))
		})
	}
}

func TestHeadAllocs(t *testing.T) {
	request := requestHead(wire.OpenAI, "Host: relay", "Content-Type: application/json", "Accept: */*", "Authorization: Bearer "+relayKey,
		"User-Agent: sdk", "X-Stainless-Lang: js", "X-Stainless-Runtime: node", "Accept-Encoding: gzip", "Connection: keep-alive", "OpenAI-Beta: a")
	messages := requestHead(wire.Anthropic, "X-Api-Key: "+relayKey, "Anthropic-Version: 2023-06-01", "Anthropic-Beta: a", "Content-Type: application/json")
	response := responseHead(wire.Anthropic, "Date: Sun, 06 Nov 1994 08:49:37 GMT", "Content-Type: text/event-stream", "Request-Id: r", "Server: x",
		"CF-Ray: 1", "Content-Encoding: gzip", "Anthropic-Ratelimit-Requests-Limit: 5", "Transfer-Encoding: chunked", "Connection: keep-alive")
	response.EventStream, response.Decoded, response.RetryAfterNs = true, true, 5
	answer := &AnswerHead{Status: 429, RequestID: []byte("ours"), ContentLength: 9, RetryAfterNs: 5, NoRetry: true, Allow: "POST", Close: true}
	dst := make([]byte, 0, 4096)
	if n := testing.AllocsPerRun(1000, func() {
		AppendRequestHead(dst, request)
		AppendRequestHead(dst, messages)
		AppendResponseHead(dst, response)
		AppendAnswerHead(dst, answer)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkRequestHead(b *testing.B) {
	a := requestHead(wire.OpenAI, "Host: relay", "Content-Type: application/json", "Accept: */*", "Authorization: Bearer "+relayKey,
		"User-Agent: sdk", "X-Stainless-Lang: js", "X-Stainless-Runtime: node", "X-Stainless-Os: Linux", "Accept-Encoding: gzip",
		"Connection: keep-alive", "Content-Length: 300", "OpenAI-Beta: a")
	dst := make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		AppendRequestHead(dst, a)
	}
}

func BenchmarkResponseHead(b *testing.B) {
	a := responseHead(wire.OpenAI, "Date: Sun, 06 Nov 1994 08:49:37 GMT", "Content-Type: application/json", "X-Request-Id: r", "Server: x",
		"CF-Ray: 1", "X-Ratelimit-Limit-Requests: 5", "X-Ratelimit-Remaining-Requests: 5", "Openai-Processing-Ms: 5", "Content-Length: 100", "Connection: keep-alive")
	dst := make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		AppendResponseHead(dst, a)
	}
}

// TestDate: the host's own date is kept, ours fills in.
func TestDate(t *testing.T) {
	now := []byte("Mon, 30 Nov 2026 10:00:00 GMT")
	for _, tt := range []struct {
		name string
		head []byte
		want string
	}{
		{"host tells none", AppendResponseHead(nil, &ResponseHead{Status: 200, Date: now}), "\r\ndate: Mon, 30 Nov 2026 10:00:00 GMT\r\n"},
		{"host tells one", AppendResponseHead(nil, &ResponseHead{Status: 200, Date: now,
			Fields: []httpparse.Field{{Name: []byte("Date"), Value: []byte("Sun, 29 Nov 2026 10:00:00 GMT")}}}), "\r\nDate: Sun, 29 Nov 2026 10:00:00 GMT\r\n"},
		{"ours", AppendAnswerHead(nil, &AnswerHead{Status: 404, Date: now}), "\r\ndate: Mon, 30 Nov 2026 10:00:00 GMT\r\n"},
	} {
		if n := strings.Count(strings.ToLower(string(tt.head)), "\r\ndate: "); n != 1 || !strings.Contains(string(tt.head), tt.want) {
			t.Errorf("%s: %q has %d dates, want %q", tt.name, tt.head, n, tt.want)
		}
	}
}
