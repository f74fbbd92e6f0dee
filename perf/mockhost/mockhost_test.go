package mockhost

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

func start(t testing.TB, o Options) *Server {
	t.Helper()
	s, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// post sends one request on a connection of its own and reads the whole
// answer, raw bytes included.
func post(t *testing.T, s *Server, path, fields, body string) (status int, head http.Header, answer string, err error) {
	t.Helper()
	conn, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	var req bytes.Buffer
	req.WriteString("POST " + path + " HTTP/1.1\r\nHost: mock\r\n" + fields)
	req.Write(appendInt(nil, "Content-Length: ", int64(len(body))))
	req.WriteString("\r\n\r\n" + body)
	if _, err := conn.Write(req.Bytes()); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, nil, "", err
	}
	b, err := io.ReadAll(response.Body)
	return response.StatusCode, response.Header, string(b), err
}

const anthropicVersion = "anthropic-version: 2023-06-01\r\n"

func chatBody(model, rest string) string {
	return `{"model":"` + model + `","messages":[{"role":"user","content":"hi"}]` + rest + `}`
}

func TestValidation(t *testing.T) {
	s := start(t, Options{Key: "secret", Scenario: "instant"})
	const bearer, key = "Authorization: Bearer secret\r\n", "x-api-key: secret\r\n"
	for _, tt := range []struct {
		name, path, fields, body string
		status                   int
		has                      string
	}{
		{"chat", "/v1/chat/completions", bearer, chatBody("gpt-mock", ""), 200, `"object":"chat.completion"`},
		{"any base path", "/openai/v1/chat/completions", bearer, chatBody("gpt-mock", ""), 200, "Hello"},
		{"messages by key", "/v1/messages", key + anthropicVersion, chatBody("claude-mock", `,"max_tokens":9`), 200, `"max_tokens"`},
		{"messages by bearer", "/v1/messages", bearer + anthropicVersion, chatBody("claude-mock", `,"max_tokens":99`), 200, `"end_turn"`},
		{"no key", "/v1/chat/completions", "", chatBody("gpt-mock", ""), 401, "invalid_api_key"},
		{"wrong key", "/v1/messages", "x-api-key: other\r\n" + anthropicVersion, chatBody("c", `,"max_tokens":9`), 401, "authentication_error"},
		{"no version", "/v1/messages", key, chatBody("c", `,"max_tokens":9`), 400, "anthropic-version"},
		{"no max_tokens", "/v1/messages", key + anthropicVersion, chatBody("c", ""), 400, "max_tokens"},
		{"sampling on the newer version", "/v1/messages", key + "anthropic-version: 2026-10-21\r\n", chatBody("c", `,"max_tokens":9,"top_p":1`), 400, "top_p"},
		{"no model", "/v1/chat/completions", bearer, `{"messages":[]}`, 400, "model"},
		{"model of the wrong type", "/v1/chat/completions", bearer, `{"model":1}`, 400, "string"},
		{"not JSON", "/v1/chat/completions", bearer, `{"model":"m",`, 400, "parse"},
		{"trailing bytes", "/v1/chat/completions", bearer, `{"model":"m"}x`, 400, "parse"},
		{"stream_options without stream", "/v1/chat/completions", bearer, chatBody("m", `,"stream_options":{"include_usage":true}`), 400, "stream_options"},
		{"tool_choice without tools", "/v1/chat/completions", bearer, chatBody("m", `,"tool_choice":"auto"`), 400, "tool_choice"},
		{"empty tools", "/v1/chat/completions", bearer, chatBody("m", `,"tools":[]`), 400, "tools"},
		{"chunked body", "/v1/chat/completions", bearer + "Transfer-Encoding: chunked\r\n", chatBody("m", ""), 400, "Content-Length"},
		{"unknown path", "/v1/nothing", bearer, "{}", 404, "unknown path"},
		{"unknown word", "/v1/chat/completions", bearer, chatBody("m:resett", ""), 400, "resett"},
		{"escaped model", "/v1/chat/completions", bearer, chatBody(`m\u003astatus=418`, ""), 418, "error"},
		{"last model wins", "/v1/chat/completions", bearer, `{"model":"m:status=500","messages":[],"model":"m:status=418"}`, 418, "error"},
		{"nested model is no model", "/v1/chat/completions", bearer, `{"metadata":{"model":"m:status=500"},"model":"n"}`, 200, `"model":"n"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status, _, body, err := post(t, s, tt.path, tt.fields, tt.body)
			if err != nil || status != tt.status || !strings.Contains(body, tt.has) {
				t.Errorf("got %d %v %s, want %d with %q", status, err, body, tt.status, tt.has)
			}
		})
	}
	if got := s.Stats().ChunkedRequests; got != 1 {
		t.Errorf("chunked requests counted: %d, want 1", got)
	}
}

func TestRecord(t *testing.T) {
	s := start(t, Options{Record: true, Scenario: "instant"})
	body := `{"seed":9007199254740993, "model":"gpt-mock","messages":[]}`
	for range recordsMax + 3 {
		post(t, s, "/v1/chat/completions?a=b", "X-Odd:  kept \r\n", body)
	}
	got := s.Requests()
	if len(got) != recordsMax {
		t.Fatalf("%d requests kept, want %d", len(got), recordsMax)
	}
	last := got[recordsMax-1]
	if string(last.Body) != body || last.Path != "/v1/chat/completions?a=b" || !bytes.Contains(last.Head, []byte("X-Odd:  kept \r\n")) {
		t.Errorf("recorded %s %q %q", last.Path, last.Head, last.Body)
	}
	response, err := http.Get(s.URL() + "/_mock/last")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	b, _ := io.ReadAll(response.Body)
	if !strings.Contains(string(b), "9007199254740993") {
		t.Errorf("/_mock/last: %s", b)
	}
}
