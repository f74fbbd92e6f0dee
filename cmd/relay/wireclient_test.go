//go:build integration

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"relay/perf/mockhost"
)

// A wire is a raw client connection.
type wire struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

// patience is how long an answer may take.
const patience = 15 * time.Second

func (g *gateway) dial() *wire {
	g.t.Helper()
	return dialWire(g.t, g.inference)
}

func dialWire(t *testing.T, address string) *wire {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &wire{t: t, conn: c, in: bufio.NewReader(c)}
}

// send writes text as it is. A peer that has closed already is no failure
// here: what it said before can still be read.
func (w *wire) send(text string) {
	w.t.Helper()
	w.conn.SetWriteDeadline(time.Now().Add(patience))
	_, err := io.WriteString(w.conn, text)
	if err != nil && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
		w.t.Fatal(err)
	}
}

// An answer is one whole response.
type answer struct {
	*http.Response
	body string
	cut  error // why the body is not whole; nil if it is
}

// answer reads the next response to a request of that method.
func (w *wire) answer(method string) answer {
	w.t.Helper()
	w.conn.SetReadDeadline(time.Now().Add(patience))
	r, err := http.ReadResponse(w.in, &http.Request{Method: method})
	if err != nil {
		w.t.Fatalf("no answer: %v", err)
	}
	body, cut := io.ReadAll(r.Body)
	return answer{r, string(body), cut}
}

// closes reports whether the peer closes the connection without further bytes,
// in time.
func (w *wire) closes(most time.Duration) bool {
	w.t.Helper()
	w.conn.SetReadDeadline(time.Now().Add(most))
	b, err := w.in.ReadByte()
	if err == nil {
		w.t.Errorf("a byte %q behind the answer", b)
		return false
	}
	return !errors.Is(err, os.ErrDeadlineExceeded)
}

// post is a whole POST request in the text of HTTP/1.1.
func post(path, key, body string, fields ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "POST %s HTTP/1.1\r\nHost: relay\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n", path, key, len(body))
	for _, f := range fields {
		b.WriteString(f + "\r\n")
	}
	return b.String() + "\r\n" + body
}

// Bodies of small requests.
const (
	chatBody       = `{"model":"gpt-mock","messages":[{"role":"user","content":"Hi"}]}`
	chatStreamBody = `{"model":"gpt-mock","stream":true,"messages":[{"role":"user","content":"Hi"}]}`
	messageBody    = `{"model":"claude-mock","max_tokens":64,"messages":[{"role":"user","content":"Hi"}]}`
	messageStream  = `{"model":"claude-mock","max_tokens":64,"stream":true,"messages":[{"role":"user","content":"Hi"}]}`
)

const (
	chatPath    = "/v1/chat/completions"
	messagePath = "/v1/messages"
)

// call makes one request by net/http on a connection of its own and returns
// the whole answer.
func (g *gateway) call(method, path, key, body string, fields ...string) answer {
	g.t.Helper()
	r, err := http.NewRequest(method, "http://"+g.inference+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	r.Close = true
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	r.Header.Set("Content-Type", "application/json")
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		r.Header.Set(name, value)
	}
	client := &http.Client{Timeout: 3 * patience}
	got, err := client.Do(r)
	if err != nil {
		g.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer got.Body.Close()
	text, cut := io.ReadAll(got.Body)
	return answer{got, string(text), cut}
}

// An openStream is a streamed answer being read.
type openStream struct {
	t    *testing.T
	body io.ReadCloser
	in   *bufio.Reader
	conn net.Conn
	*http.Response
}

// stream begins a streamed request.
func (g *gateway) stream(path, key, body string) *openStream {
	g.t.Helper()
	r, err := http.NewRequest(http.MethodPost, "http://"+g.inference+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", "application/json")
	s := &openStream{t: g.t}
	r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		GotConn: func(i httptrace.GotConnInfo) { s.conn = i.Conn },
	}))
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	if s.Response, err = client.Do(r); err != nil {
		g.t.Fatal(err)
	}
	s.body = s.Response.Body
	s.in = bufio.NewReader(s.body)
	g.t.Cleanup(func() { s.body.Close() })
	return s
}

// event reads one data line, or "" at the end.
func (s *openStream) event() string {
	s.t.Helper()
	s.conn.SetReadDeadline(time.Now().Add(patience))
	for {
		line, err := s.in.ReadString('\n')
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			return strings.TrimSpace(data)
		}
		if err != nil {
			return ""
		}
	}
}

// rest reads to the end and returns the events and why the body is not whole.
func (s *openStream) rest() (events []string, cut error) {
	s.t.Helper()
	s.conn.SetReadDeadline(time.Now().Add(2 * patience))
	text, cut := io.ReadAll(s.in)
	return dataLines(string(text)), cut
}

// abort resets the connection.
func (s *openStream) abort() {
	s.conn.(*net.TCPConn).SetLinger(0)
	s.conn.Close()
	s.body.Close()
}

// dataLines are the values of the data fields of an event stream.
func dataLines(text string) []string {
	var events []string
	for line := range strings.Lines(text) {
		if data, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "data:"); ok {
			events = append(events, strings.TrimPrefix(data, " "))
		}
	}
	return events
}

// errorOf is the error object of a body in either shape.
type errorOf struct {
	Type  string // of the whole: "error" in Anthropic shape
	Error struct {
		Message string
		Type    string
		Code    string
		Param   *string
	}
	RequestID string `json:"request_id"`
}

// wantError wants a status and an error body of the path's shape.
func wantError(t *testing.T, what string, a answer, path string, status int) errorOf {
	t.Helper()
	var e errorOf
	if a.StatusCode != status {
		t.Errorf("%s: status %d, want %d: %.300s", what, a.StatusCode, status, a.body)
		return e
	}
	if err := json.Unmarshal([]byte(a.body), &e); err != nil {
		t.Errorf("%s: body is not JSON: %v: %.300q", what, err, a.body)
		return e
	}
	if e.Error.Message == "" || e.Error.Type == "" {
		t.Errorf("%s: no message or type: %s", what, a.body)
	}
	anthropic := strings.Contains(path, "/messages")
	if anthropic != (e.Type == "error") {
		t.Errorf("%s: wrong shape: %s", what, a.body)
	}
	if !anthropic && !(strings.Contains(a.body, `"code":`) && strings.Contains(a.body, `"param":`)) {
		t.Errorf("%s: code or param is missing: %s", what, a.body)
	}
	if got := a.Header.Get("Content-Type"); !strings.HasPrefix(got, "application/json") {
		t.Errorf("%s: content type %q", what, got)
	}
	return e
}

// lastBody is the body of the last request that a mock has got.
func lastBody(t *testing.T, requests []mockhost.Request) string {
	t.Helper()
	if len(requests) == 0 {
		t.Fatal("the host got no request")
	}
	return string(requests[len(requests)-1].Body)
}

// fieldsOf are the field lines of a request head, names in lower case.
func fieldsOf(head []byte) map[string][]string {
	fields := map[string][]string{}
	for _, line := range bytes.Split(head, []byte("\r\n"))[1:] {
		if name, value, ok := strings.Cut(string(line), ":"); ok {
			name = strings.ToLower(name)
			fields[name] = append(fields[name], strings.TrimSpace(value))
		}
	}
	return fields
}
