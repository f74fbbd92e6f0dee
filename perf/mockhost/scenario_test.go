package mockhost

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestParseScenario(t *testing.T) {
	for _, tt := range []struct {
		name, text, err string
		check           func(scenario) bool
	}{
		{"nothing is fast", "", "", func(s scenario) bool { return s.pace == paces["fast"] && s.trouble == noTrouble }},
		{"later words win", "in=1,in=2", "", func(s scenario) bool { return s.in == 2 }},
		{"both separators", "instant:out=5,cut=2", "", func(s scenario) bool { return s.out == 5 && s.cut == 2 && s.first == 0 }},
		{"a count left out", "stall", "", func(s scenario) bool { return s.stall == 0 }},
		{"unknown", "quick", `no scenario word "quick"`, nil},
		{"not a number", "cut=x", "want a number", nil},
		{"out of range", "status=99", "from 200 to 599", nil},
		{"flag with a value", "gzip=1", "takes no value", nil},
		{"unknown head", "head=odd", "want one of", nil},
		{"times of nothing", "times=2", "without anything that goes wrong", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := parseScenario(tt.text)
			if tt.err == "" && (err != nil || !tt.check(s)) || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("%q: %v %+v, want %q", tt.text, err, s, tt.err)
			}
		})
	}
}

// rawAnswer sends one request and returns all bytes until the mock closes or
// is silent for the time given.
func rawAnswer(t *testing.T, s *Server, body string, quiet time.Duration) (string, error) {
	t.Helper()
	conn, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: mock\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	conn.SetReadDeadline(time.Now().Add(quiet))
	b, err := io.ReadAll(conn)
	return string(b), err
}

// quietTime is how long silence is awaited: briefly where silence is what the
// scenario is about.
func quietTime(wanted string) time.Duration {
	if wanted == "timeout" {
		return 300 * time.Millisecond
	}
	return 5 * time.Second
}

func TestRefusals(t *testing.T) {
	s := start(t, Options{Scenario: "instant"})
	for _, tt := range []struct {
		words  string
		status int
		retry  string
		has    string
	}{
		{"status=429,retry-after=2", 429, "2", `"type":"rate_limit_error"`},
		{"status=429", 429, "", `"code":"rate_limit_exceeded"`},
		{"status=503", 503, "", `"code":"server_is_overloaded"`},
		{"status=529", 529, "", "service_unavailable_error"},
		{"status=401", 401, "", "invalid_api_key"},
		{"context-length", 400, "", "context_length_exceeded"},
		{"content-filter", 400, "", "content_filter"},
		{"html", 502, "", "<!DOCTYPE html>"},
		{"html,status=500", 500, "", "<!DOCTYPE html>"},
	} {
		status, head, body, err := post(t, s, "/v1/chat/completions", "", chatBody("gpt-mock:"+tt.words, ""))
		if err != nil || status != tt.status || head.Get("Retry-After") != tt.retry || !strings.Contains(body, tt.has) {
			t.Errorf("%s: %d %v %v %s", tt.words, status, err, head, body)
		}
	}
	_, head, _, _ := post(t, s, "/v1/chat/completions", "", chatBody("gpt-mock:status=429,retry-after-date=120", ""))
	if at, err := http.ParseTime(head.Get("Retry-After")); err != nil || time.Until(at) < 100*time.Second {
		t.Errorf("date: %v %v", head.Get("Retry-After"), err)
	}
	for i, want := range []int{500, 500, 200, 200} {
		if status, _, _, _ := post(t, s, "/v1/chat/completions", "", chatBody("gpt-mock:status=500,times=2,tag=a", "")); status != want {
			t.Errorf("request %d of times=2: %d, want %d", i, status, want)
		}
	}
}

func TestScenarioSources(t *testing.T) {
	s := start(t, Options{Scenario: "instant,status=418"})
	for _, tt := range []struct{ name, path, fields, model string }{
		{"server", "/v1/chat/completions", "", "m"},
		{"query", "/v1/chat/completions?mock=status%3D419", "", "m"},
		{"credential", "/v1/chat/completions", "Authorization: Bearer sk-mock:status=420\r\n", "m"},
		{"model", "/v1/chat/completions?mock=status%3D419", "Authorization: Bearer sk-mock:status=420\r\n", "m:status=421"},
	} {
		want := map[string]int{"server": 418, "query": 419, "credential": 420, "model": 421}[tt.name]
		if status, _, body, err := post(t, s, tt.path, tt.fields, chatBody(tt.model, "")); status != want || err != nil {
			t.Errorf("%s: %d %v %s", tt.name, status, err, body)
		}
	}
}

func TestTransportFaults(t *testing.T) {
	s := start(t, Options{Scenario: "instant"})
	stream := `,"stream":true`
	for _, tt := range []struct {
		words, rest, err string
		events           int // content events that arrive
	}{
		{"reset", "", "reset", 0},
		{"close", "", "", 0},
		{"silent", "", "timeout", 0},
		{"cut", "", "", 0},
		{"cut=2,tokens=40", stream, "", 2},
		{"cut=99,tokens=40", stream, "", 5},
		{"cut-rst=3,tokens=40", stream, "reset", 3},
		{"stall=1", stream, "timeout", 1},
	} {
		got, err := rawAnswer(t, s, chatBody("gpt-mock:"+tt.words, tt.rest), quietTime(tt.err))
		if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
			t.Errorf("%s: %v, want %q", tt.words, err, tt.err)
		}
		if n := strings.Count(got, `"delta":{"content":`); n != tt.events || strings.Contains(got, "[DONE]") {
			t.Errorf("%s: %d events, want %d: %s", tt.words, n, tt.events, got)
		}
	}
}

// streamText posts a stream and gives its body as an SSE client sees it.
func streamText(t *testing.T, s *Server, words string) (head http.Header, body string) {
	t.Helper()
	status, head, body, err := post(t, s, "/v1/chat/completions", "", chatBody("gpt-mock:"+words, `,"stream":true`))
	if err != nil || status != 200 {
		t.Fatalf("%s: %d %v", words, status, err)
	}
	return head, body
}

func TestStreamForms(t *testing.T) {
	s := start(t, Options{Scenario: "instant,tokens=16"})
	_, plain := streamText(t, s, "")
	// what differs between two answers
	clean := func(body string) string {
		lines := strings.Split(body, "\n")
		for i, line := range lines {
			if at := strings.Index(line, `"choices"`); at >= 0 {
				lines[i] = line[at:]
			}
		}
		return strings.Join(lines, "\n")
	}
	for _, tt := range []struct {
		words string
		undo  func(string) string
		mark  string
	}{
		{"crlf", func(b string) string { return strings.ReplaceAll(b, "\r\n", "\n") }, "}\r\n\r\n"},
		{"cr", func(b string) string { return strings.ReplaceAll(b, "\r", "\n") }, "}\r\rdata"},
		{"nospace", func(b string) string { return strings.ReplaceAll(b, "data:", "data: ") }, "data:{"},
		{"comments", func(b string) string {
			return strings.ReplaceAll(strings.ReplaceAll(b, ": MOCK PROCESSING\n\n", ""), ":\n\n", "")
		}, ": MOCK PROCESSING\n\n"},
		{"bom", func(b string) string { return strings.TrimPrefix(b, "\ufeff") }, "\ufeffdata"},
		{"drip", func(b string) string { return b }, "data: {"},
		{"chunk-ext,trailers", func(b string) string { return b }, "data: {"},
		{"close-delimited", func(b string) string { return b }, "data: {"},
		{"split=100", func(b string) string { return b }, "data: {"},
	} {
		_, got := streamText(t, s, tt.words)
		if !strings.Contains(got, tt.mark) {
			t.Errorf("%s: no %q in %q", tt.words, tt.mark, got)
		}
		if clean(tt.undo(got)) != clean(plain) {
			t.Errorf("%s:\n got %q\nwant %q", tt.words, clean(tt.undo(got)), clean(plain))
		}
	}
	head, zipped := streamText(t, s, "gzip")
	z, err := gzip.NewReader(strings.NewReader(zipped))
	if err != nil || head.Get("Content-Encoding") != "gzip" {
		t.Fatal(err, head)
	}
	if b, err := io.ReadAll(z); err != nil || clean(string(b)) != clean(plain) {
		t.Errorf("gzip: %v %q", err, b)
	}
	for _, tt := range []struct{ words, has, not string }{
		{"nodone", `"finish_reason":"stop"`, "[DONE]"},
		{"nousage", "[DONE]", `"usage"`},
		{"usage-in-finish,out=5", `"finish_reason":"stop"}],"usage":{"prompt_tokens"`, `"choices":[],`},
		{"usage-running", `"finish_reason":null}],"usage":{"prompt_tokens"`, ""},
		{"malformed=1", "[{\"delta\"\n\n", ""},
		{"error-frame", "server_is_overloaded", `"delta"`},
		{"error-frame=1", "server_is_overloaded", "[DONE]"},
		{"unicode", "你好", ""},
		{"stamp", `"mock_us":`, ""},
		{"json-on-stream", `"object":"chat.completion",`, "data:"},
	} {
		_, got := streamText(t, s, tt.words)
		if !strings.Contains(got, tt.has) || tt.not != "" && strings.Contains(got, tt.not) {
			t.Errorf("%s: %q", tt.words, got)
		}
	}
	if _, got := streamText(t, s, "empty"); got != "" {
		t.Errorf("empty: %q", got)
	}
}

func TestHeadFaultsAreWrong(t *testing.T) {
	s := start(t, Options{Scenario: "instant"})
	for _, kind := range HeadFaults() {
		got, _ := rawAnswer(t, s, chatBody("gpt-mock:head="+kind, ""), 5*time.Second)
		if got == "" {
			t.Errorf("%s: nothing came", kind)
		}
	}
	got, _ := rawAnswer(t, s, chatBody("gpt-mock:1xx=3,connection-close", ""), 5*time.Second)
	if strings.Count(got, "HTTP/1.1 103 ") != 3 || !strings.Contains(got, "HTTP/1.1 200 OK") {
		t.Errorf("1xx: %q", got)
	}
}

func TestEarlyAnswer(t *testing.T) {
	s := start(t, Options{Scenario: "instant"})
	conn, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(5 * time.Second))
	fmt.Fprintf(conn, "POST /v1/chat/completions?mock=early HTTP/1.1\r\nHost: mock\r\nContent-Length: 1000000\r\n\r\n{\"model\"")
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || response.StatusCode != 413 {
		t.Fatalf("early answer: %v %v", response, err)
	}
}

func TestIdleTrouble(t *testing.T) {
	s := start(t, Options{Scenario: "instant"})
	for _, tt := range []struct{ words, has, err string }{
		{"idle-close=1ms", "", ""},
		{"idle-rst=1ms", "", "reset"},
		{"idle-408=1ms", "HTTP/1.1 408 ", ""},
		{"idle-junk=1ms", "stray", "timeout"},
	} {
		got, err := rawAnswer(t, s, chatBody("gpt-mock:"+tt.words, ""), quietTime(tt.err))
		if !strings.Contains(got, "HTTP/1.1 200 OK") || !strings.Contains(got, tt.has) ||
			(err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %v %q", tt.words, err, got)
		}
	}
}

func TestPace(t *testing.T) {
	s := start(t, Options{})
	began := time.Now()
	_, head, _, err := post(t, s, "/v1/chat/completions", "", chatBody("gpt-mock:tokens=100", ""))
	if took := time.Since(began); err != nil || took < 40*time.Millisecond {
		t.Errorf("fast with 100 tokens took %v, want 20 ms + 20 ms", took)
	}
	if us, err := strconv.Atoi(head.Get("X-Mock-Duration-Us")); err != nil || us < 40_000 {
		t.Errorf("x-mock-duration-us: %d, %v", us, err)
	}
	p := paces["stream"]
	below := 0
	for range 20000 {
		if p.tokens() <= p.tokensMedian {
			below++
		}
	}
	if below < 9600 || below > 10400 {
		t.Errorf("%d of 20000 lengths are at most the median", below)
	}
}

// contents collects the text of a patterned stream.
func contents(t *testing.T, body string) []byte {
	t.Helper()
	var all bytes.Buffer
	for line := range strings.SplitSeq(body, "\n") {
		if _, rest, ok := strings.Cut(line, `"delta":{"content":"`); ok && !strings.Contains(line, `"role"`) {
			text, _, _ := strings.Cut(rest, `"`)
			all.WriteString(text)
		} else if _, rest, ok := strings.Cut(line, `"text_delta","text":"`); ok {
			text, _, _ := strings.Cut(rest, `"`)
			all.WriteString(text)
		}
	}
	return all.Bytes()
}

func TestPattern(t *testing.T) {
	s := start(t, Options{})
	for _, tt := range []struct {
		path, words string
		want        int
	}{
		{"/v1/chat/completions", "pour=1000000", 245 * pourEventBytes},
		{"/v1/messages", "pour=1000000", 245 * pourEventBytes},
		{"/v1/chat/completions", "instant,tick=10ms,events=20,bytes=300", 6000},
		{"/v1/messages", "instant,tick=10ms,events=20", 640},
	} {
		status, _, body, err := post(t, s, tt.path, anthropicVersion, chatBody("mock:"+tt.words, `,"stream":true,"max_tokens":9`))
		if err != nil || status != 200 {
			t.Fatalf("%s: %d %v %s", tt.words, status, err, body)
		}
		got := contents(t, body)
		if len(got) != tt.want {
			t.Fatalf("%s: %d content bytes, want %d", tt.words, len(got), tt.want)
		}
		for i, b := range got {
			if b != PatternByte(int64(i)) {
				t.Fatalf("%s: byte %d is %q", tt.words, i, b)
			}
		}
	}
	// The client may have read the end before the server has counted it.
	for until := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		st := s.Stats()
		if st.StreamsWhole == 4 && st.OpenStreams == 0 {
			break
		}
		if time.Now().After(until) {
			t.Fatalf("stats %+v", st)
		}
	}
}

// TestTickReaderStops shows that a peer that does not read delays nobody else.
func TestTickReaderStops(t *testing.T) {
	s := start(t, Options{Scenario: "instant"})
	body := chatBody("mock:tick=10ms,events=100000,bytes=60000", `,"stream":true`)
	stuck, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer stuck.Close()
	fmt.Fprintf(stuck, "POST /v1/chat/completions HTTP/1.1\r\nHost: mock\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	for range 3 {
		if _, got, err := streamOver(s, "mock:tick=10ms,events=30"); err != nil || len(contents(t, got)) != 960 {
			t.Fatalf("a stream beside a stuck one: %v", err)
		}
	}
}

func streamOver(s *Server, model string) (int, string, error) {
	response, err := http.Post(s.URL()+"/v1/chat/completions", "application/json", strings.NewReader(chatBody(model, `,"stream":true`)))
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	b, err := io.ReadAll(response.Body)
	return response.StatusCode, string(b), err
}

func TestPeersGoneAreCounted(t *testing.T) {
	s := start(t, Options{Scenario: "slow"})
	conn, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	body := chatBody("mock", "")
	fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: mock\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	for s.Stats().Requests == 0 {
		time.Sleep(time.Millisecond)
	}
	conn.Close()
	for until := time.Now().Add(time.Second); s.Stats().PeersGone == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("the mock did not see its peer leave")
		}
	}
}
