package mockhost

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

func startLooped(t *testing.T, o Options) *Server {
	t.Helper()
	o.Loop = true
	s, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func rawRequest(path, fields, body string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: m\r\nanthropic-version: 2023-06-01\r\n%sContent-Length: %d\r\n\r\n%s", path, fields, len(body), body)
}

// loopRequests are some for a loop and some that it gives away.
var loopRequests = []string{
	rawRequest("/v1/chat/completions", "", `{"model":"gpt-mock","messages":[{"role":"user","content":"hi"}]}`),
	rawRequest("/v1/messages", "", `{"model":"claude-mock","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`),
	rawRequest("/base/v1/chat/completions", "", `{"model":"m:tokens=3,in=7,out=8,cached=2","n":2,"messages":[]}`),
	rawRequest("/v1/chat/completions", "", `{"model":"m:status=429,retry-after=3","messages":[]}`),
	rawRequest("/v1/chat/completions", "", `{"model":"m:no-such-word","messages":[]}`),
	rawRequest("/v1/chat/completions", "", `{"model":"m","messages":[`),
	rawRequest("/v1/chat/completions", "", `{"model":"m:tokens=5","stream":true,"messages":[]}`),
	rawRequest("/v1/messages", "", `{"model":"m:cut=1,tokens=20","max_tokens":50,"messages":[]}`),
	rawRequest("/v1/messages?mock=status%3D503", "", `{"model":"m","max_tokens":5,"messages":[]}`),
	rawRequest("/v1/chat/completions", "Authorization: Bearer sk-mock:tokens=4\r\n", `{"model":"m","messages":[]}`),
	rawRequest("/v1/embeddings", "", `{"model":"m","input":"a"}`),
	"GET /v1/models HTTP/1.1\r\nHost: m\r\n\r\n",
	"nonsense\r\n\r\n",
}

var changing = regexp.MustCompile(`mock\d{20}|x-mock-duration-us: \d+|"created(_at)?":\d+|content-length: \d+`)

// ask sends a request, in pieces of some bytes, and gives all that comes back
// until the answer is whole, with what changes from one to the next blotted out.
func ask(t *testing.T, addr, request string, piece int) string {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(10 * time.Second))
	for len(request) > 0 {
		n := min(piece, len(request))
		if _, err := io.WriteString(nc, request[:n]); err != nil {
			break // refused early
		}
		request = request[n:]
	}
	var raw strings.Builder
	in := bufio.NewReader(io.TeeReader(nc, &raw))
	answer, err := http.ReadResponse(in, nil)
	if err == nil {
		io.Copy(io.Discard, answer.Body)
	}
	return changing.ReplaceAllString(raw.String(), "")
}

// TestLoopAnswersAlike: it makes no difference who answers, however the request
// is cut.
func TestLoopAnswersAlike(t *testing.T) {
	plain, err := Start(Options{Scenario: "instant"})
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	looped := startLooped(t, Options{Scenario: "instant"})
	for _, request := range loopRequests {
		want := ask(t, plain.Addr(), request, len(request))
		if len(want) < 20 {
			t.Fatalf("%.80q has the answer %q", request, want)
		}
		for _, piece := range []int{1, 7, 100, len(request)} {
			if got := ask(t, looped.Addr(), request, piece); got != want {
				t.Errorf("%.80q in pieces of %d:\n%s\nwant\n%s", request, piece, got, want)
			}
		}
	}
	if a, b := plain.Stats(), looped.Stats(); b.Requests != 4*a.Requests || a.Requests == 0 {
		t.Errorf("requests counted: %d plain, %d looped in 4 turns", a.Requests, b.Requests)
	}
}

// TestLoopKeepsOrder: requests that come at once are answered in order, those
// that the loop gives away among them.
func TestLoopKeepsOrder(t *testing.T) {
	looped := startLooped(t, Options{Scenario: "instant,first=3ms"})
	nc, err := net.Dial("tcp", looped.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(10 * time.Second))
	var all strings.Builder
	var statuses []int
	for i := range 40 {
		model, status := "m", 200
		if i%15 == 14 {
			model, status = "m:status=503", 503
		}
		statuses = append(statuses, status)
		all.WriteString(rawRequest("/v1/chat/completions", "", fmt.Sprintf(`{"model":%q,"messages":[],"pad":%q}`, model, strings.Repeat("x", 1000*(i%3)))))
	}
	go io.WriteString(nc, all.String())
	in := bufio.NewReader(nc)
	for i, want := range statuses {
		answer, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatalf("answer %d: %v", i, err)
		}
		io.Copy(io.Discard, answer.Body)
		if answer.StatusCode != want {
			t.Fatalf("answer %d has status %d, want %d", i, answer.StatusCode, want)
		}
		if us := answer.Header.Get("X-Mock-Duration-Us"); want == 200 && len(us) < 4 {
			t.Errorf("answer %d took %s µs, want at least 3 ms", i, us)
		}
	}
}

// TestLoopForgetsPeers: connections that leave, waiting or idle, leave nothing
// behind, and neither does the end.
func TestLoopForgetsPeers(t *testing.T) {
	before := descriptors(t)
	s, err := Start(Options{Scenario: "instant,first=10s", Loop: true})
	if err != nil {
		t.Fatal(err)
	}
	var kept []net.Conn
	for i := range 300 {
		nc, err := net.Dial("tcp", s.Addr())
		if err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			io.WriteString(nc, rawRequest("/v1/chat/completions", "", `{"model":"m","messages":[]}`))
		}
		kept = append(kept, nc)
	}
	await(t, func() bool { st := s.Stats(); return st.OpenConnections == 300 && st.Requests == 150 })
	for _, nc := range kept {
		nc.Close()
	}
	await(t, func() bool { st := s.Stats(); return st.OpenConnections == 0 && st.PeersGone == 150 })
	nc, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	await(t, func() bool { return s.Stats().OpenConnections == 1 })
	s.Close()
	if _, err := nc.Read(make([]byte, 1)); err == nil {
		t.Error("a connection outlives its server")
	}
	nc.Close()
	await(t, func() bool { return descriptors(t) <= before })
}

func await(t *testing.T, done func() bool) {
	t.Helper()
	for until := time.Now().Add(10 * time.Second); !done(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("waited for 10 s in vain")
		}
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}
