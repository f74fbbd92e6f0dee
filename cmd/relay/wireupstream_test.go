//go:build integration

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"relay/perf/mockhost"
)

// soundHeads are those of the mock's odd answers that are answers all the
// same: only the connection may not be used again.
var soundHeads = map[string]bool{"long-body": true, "http10": true}

func TestWireMalformedAnswers(t *testing.T) {
	g := startGateway(t)
	for _, fault := range mockhost.HeadFaults() {
		for _, r := range []struct{ path, body string }{
			{chatPath, chatBody}, {messagePath, messageBody}, {chatPath, chatStreamBody},
		} {
			what := fault + " " + r.path
			a := g.call("POST", r.path+"?mock=head="+fault, keyWide, r.body)
			if soundHeads[fault] {
				if a.StatusCode != 200 || a.cut != nil {
					t.Errorf("%s: %d, %v", what, a.StatusCode, a.cut)
				}
			} else if r.body == chatStreamBody && a.StatusCode == 200 {
				// A JSON answer to a streamed request may be passed on as it
				// comes: then its end must be missing.
				if a.cut == nil {
					t.Errorf("%s: passed on as a whole answer: %s", what, a.body)
				}
			} else {
				wantError(t, what, a, r.path, 502)
			}
			if strings.Contains(a.body, "You should not see this") && !soundHeads[fault] && a.cut == nil {
				t.Errorf("%s: the body was passed on", what)
			}
		}
	}
	// Nothing of it stays on a connection that is used again.
	for range 10 {
		if a := g.call("POST", chatPath, keyWide, chatBody); a.StatusCode != 200 || strings.Contains(a.body, "should not see") {
			t.Fatalf("afterwards: %d %s", a.StatusCode, a.body)
		}
	}
}

func TestWireUpstreamFaults(t *testing.T) {
	g := startGateway(t)
	for _, tt := range []struct {
		mock   string
		status int // to an OpenAI caller
	}{
		{"reset", 502}, {"close", 502}, {"silent", 504},
		{"json-broken", 502}, {"html", 502}, {"html,status=500", 502}, {"empty", 502},
		{"cut", 502}, {"cut-rst", 502},
		{"status=401", 502}, {"status=402", 502}, {"status=403", 502}, {"status=302", 502},
		{"status=400", 400}, {"status=404", 404}, {"status=422", 422},
		{"context-length", 400}, {"content-filter", 400},
		{"status=429", 429}, {"status=500", 500}, {"status=503", 503}, {"status=504", 504},
		{"1xx=9", 502},
	} {
		for _, r := range []struct{ path, body string }{{chatPath, chatBody}, {messagePath, messageBody}} {
			started := time.Now()
			a := g.call("POST", r.path+"?mock="+tt.mock, keyWide, r.body)
			wantError(t, tt.mock+" "+r.path, a, r.path, tt.status)
			if took := time.Since(started); took > 9*time.Second {
				t.Errorf("%s: took %v", tt.mock, took)
			}
			if strings.Contains(a.body, "<html") || a.cut != nil {
				t.Errorf("%s: %v, %s", tt.mock, a.cut, a.body)
			}
		}
	}
	if a := g.call("POST", messagePath+"?mock=status=529", keyWide, messageBody); a.StatusCode != 529 || !strings.Contains(a.body, "overloaded_error") {
		t.Errorf("529: %d %s", a.StatusCode, a.body)
	}
	if a := g.call("POST", chatPath+"?mock=status=429,retry-after=7", keyWide, chatBody); a.StatusCode != 429 || a.Header.Get("Retry-After") != "7" {
		t.Errorf("429: %d, Retry-After %q", a.StatusCode, a.Header.Get("Retry-After"))
	}
	started := time.Now()
	a := g.call("POST", chatPath, keyWide, strings.Replace(chatBody, "gpt-mock", "dead-mock", 1))
	wantError(t, "nothing listens there", a, chatPath, 502)
	if took := time.Since(started); took > 2*time.Second {
		t.Errorf("a refused connection took %v", took)
	}
}

func TestWireSoundButOdd(t *testing.T) {
	g := startGateway(t)
	for _, mock := range []string{
		"1xx=2", "1xx=8", "close-delimited", "connection-close", "chunk-ext", "gzip", "drip", "tokens=0",
	} {
		for _, r := range []struct{ path, body, end string }{
			{chatPath, chatBody, `"chat.completion"`}, {messagePath, messageBody, `"type":"message"`},
		} {
			a := g.call("POST", r.path+"?mock="+mock, keyWide, r.body)
			if a.StatusCode != 200 || a.cut != nil || !json.Valid([]byte(a.body)) || !strings.Contains(a.body, r.end) {
				t.Errorf("%s %s: %d, %v, %.200q", mock, r.path, a.StatusCode, a.cut, a.body)
			}
			if got := a.Header.Get("Content-Encoding"); got != "" {
				t.Errorf("%s: Content-Encoding %q", mock, got)
			}
		}
	}
	for _, mock := range []string{
		"1xx=2", "close-delimited", "connection-close", "chunk-ext", "trailers", "gzip", "crlf", "cr", "nospace", "comments",
		"bom", "drip", "unicode,drip", "nousage", "usage-in-finish", "usage-running", "tokens=0", "json-on-stream",
	} {
		a := g.call("POST", chatPath+"?mock="+mock, keyWide, chatStreamBody)
		whole := strings.Contains(a.body, "[DONE]") || mock == "json-on-stream" && json.Valid([]byte(a.body))
		if a.StatusCode != 200 || a.cut != nil || !whole {
			t.Errorf("%s: %d, %v, ends in %q", mock, a.StatusCode, a.cut, a.body[max(0, len(a.body)-120):])
		}
	}
	if a := g.call("POST", chatPath+"?mock=status=404,gzip", keyWide, chatBody); a.StatusCode != 404 || !json.Valid([]byte(a.body)) || a.Header.Get("Content-Encoding") != "" {
		t.Errorf("encoded error: %d, %q, %.100q", a.StatusCode, a.Header.Get("Content-Encoding"), a.body)
	}
}

func TestWireCutStreams(t *testing.T) {
	g := startGateway(t)
	for _, tt := range []struct {
		mock string
		ends string // what an OpenAI caller sees last
	}{
		{"tokens=60,per=1,cut=40", "upstream_disconnected"},
		{"tokens=60,per=1,cut-rst=40", "upstream_disconnected"},
		{"tokens=60,per=1,tps=200,stall=5", "timeout"},
		{"tokens=20,per=1,error-frame=4", "error"},
	} {
		for _, r := range []struct{ path, body string }{{chatPath, chatStreamBody}, {messagePath, messageStream}} {
			what := tt.mock + " " + r.path
			a := g.call("POST", r.path+"?mock="+tt.mock, keyWide, r.body)
			events := dataLines(a.body)
			if a.StatusCode != 200 || len(events) < 3 {
				t.Errorf("%s: %d, %d events", what, a.StatusCode, len(events))
				continue
			}
			if strings.Contains(a.body, "[DONE]") || strings.Contains(a.body, "message_stop") {
				t.Errorf("%s: the cut stream looks whole", what)
			}
			last := events[len(events)-1]
			if r.path == chatPath && (!strings.Contains(last, `"error"`) || !strings.Contains(last, tt.ends)) {
				t.Errorf("%s: last event is %s", what, last)
			}
			if r.path == messagePath && (!strings.Contains(a.body, "event: error") || !strings.Contains(last, `"type":"error"`)) {
				t.Errorf("%s: last event is %s", what, last)
			}
			for i, e := range events {
				if !json.Valid([]byte(e)) {
					t.Errorf("%s: event %d is not JSON: %q", what, i, e)
				}
			}
		}
	}
}

func TestWireStreamFailsAtFirstFrame(t *testing.T) {
	g := startGateway(t)
	for _, mock := range []string{"error-frame=0", "comments,error-frame=0", "empty", "cut=0", "cut-rst=0"} {
		for _, r := range []struct{ path, body string }{{chatPath, chatStreamBody}, {messagePath, messageStream}} {
			a := g.call("POST", r.path+"?mock="+mock, keyWide, r.body)
			if a.StatusCode == 200 && !strings.Contains(a.body, `"error"`) {
				t.Errorf("%s %s: looks like success: %q", mock, r.path, a.body)
			}
			if strings.Contains(a.body, "[DONE]") || strings.Contains(a.body, "message_stop") {
				t.Errorf("%s %s: looks whole: %q", mock, r.path, a.body)
			}
		}
	}
}

func TestWireStreamWithoutTerminator(t *testing.T) {
	g := startGateway(t)
	a := g.call("POST", chatPath+"?mock=nodone", keyWide, chatStreamBody)
	if a.cut != nil || strings.Contains(a.body, `"error"`) || !strings.Contains(a.body, `"finish_reason":"stop"`) {
		t.Errorf("finished without [DONE]: %v, %q", a.cut, a.body[max(0, len(a.body)-200):])
	}
	a = g.call("POST", messagePath+"?mock=nodone", keyWide, messageStream)
	if a.cut != nil || strings.Contains(a.body, "event: error") || !strings.Contains(a.body, `"stop_reason":"end_turn"`) {
		t.Errorf("finished without message_stop: %v, %q", a.cut, a.body[max(0, len(a.body)-200):])
	}
}

// TestWireIdleConnections has the host spoil idle connections in every way:
// the next request must not notice.
func TestWireIdleConnections(t *testing.T) {
	g := startGateway(t)
	for _, mock := range []string{"idle-close=30ms", "idle-rst=30ms", "idle-408=30ms", "idle-junk=30ms", "connection-close"} {
		for range 3 {
			if a := g.call("POST", chatPath+"?mock="+mock, keyWide, chatBody); a.StatusCode != 200 {
				t.Errorf("%s: %d %s", mock, a.StatusCode, a.body)
			}
			time.Sleep(80 * time.Millisecond)
			if a := g.call("POST", chatPath, keyWide, chatBody); a.StatusCode != 200 {
				t.Errorf("after %s: %d %s", mock, a.StatusCode, a.body)
			}
		}
	}
}

// rawHost is a host that does what serve does with each connection. It returns
// its base address.
func rawHost(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				serve(c)
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

// TestWireEarlyAnswer has a host refuse before it has read the body, as servers
// do: it answers, sends a FIN, and reads on for a while.
func TestWireEarlyAnswer(t *testing.T) {
	g := prepareGateway(t)
	const refusal = `{"error":{"message":"too large for me","type":"invalid_request_error","param":null,"code":null}}`
	host := rawHost(t, func(c net.Conn) {
		head := bufio.NewReader(c)
		for line := "x"; line != "\r\n"; {
			var err error
			if line, err = head.ReadString('\n'); err != nil {
				return
			}
		}
		fmt.Fprintf(c, "HTTP/1.1 413 Content Too Large\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(refusal), refusal)
		c.(*net.TCPConn).CloseWrite()
		c.SetReadDeadline(time.Now().Add(time.Second))
		io.Copy(io.Discard, head)
	})
	g.writeCatalog(catalogText(host, g.anthropic.URL(), ""))
	g.start()
	for _, n := range []int{1 << 10, 1 << 20, 16 << 20} {
		body := `{"model":"gpt-mock","messages":[{"role":"user","content":"` + strings.Repeat("x", n) + `"}]}`
		a := g.call("POST", chatPath, keyWide, body)
		if e := wantError(t, fmt.Sprintf("early refusal of %d bytes", n), a, chatPath, http.StatusRequestEntityTooLarge); e.Error.Message != "too large for me" {
			t.Errorf("the host's words are lost: %s", a.body)
		}
	}
}

// TestWireSlowReader has one caller not read a stream of 200 MB: memory stays
// bounded, and another stream on every loop is not disturbed.
func TestWireSlowReader(t *testing.T) {
	g := startGateway(t)
	before := g.metrics()["process_resident_memory_bytes"]
	for range 4 {
		w := g.dial()
		w.send(post(chatPath+"?mock=pour=200000000", keyWide, chatStreamBody))
	}
	if !eventually(10*time.Second, func() bool { return g.metrics()["relay_read_pauses_total"] >= 4 }) {
		t.Error("the host was never paused")
	}
	for range 5 {
		a := g.call("POST", chatPath+"?mock=tokens=50,per=1,tps=500", keyWide, chatStreamBody)
		if a.StatusCode != 200 || !strings.HasSuffix(a.body, "data: [DONE]\n\n") {
			t.Errorf("a stream beside it: %d", a.StatusCode)
		}
	}
	if grown := g.metrics()["process_resident_memory_bytes"] - before; grown > memoryFactor*48<<20 {
		t.Errorf("memory grew by %.0f MiB for four readers that do not read", grown/(1<<20))
	}
	if sent := g.openai.Stats().BytesOut; sent > 100<<20 {
		t.Errorf("the host could send %d MiB", sent>>20)
	}
}

func TestWireClientGone(t *testing.T) {
	g := startGateway(t)
	for _, path := range []string{"silent", "tokens=1000,tps=5,per=1"} {
		gone := g.openai.Stats().PeersGone
		w := g.dial()
		w.send(post(chatPath+"?mock="+path, keyWide, chatStreamBody))
		if !eventually(patience, func() bool { return g.metrics()["relay_exchanges"] == 1 }) {
			t.Fatal("the request does not run")
		}
		time.Sleep(100 * time.Millisecond)
		w.conn.Close()
		if !eventually(3*time.Second, func() bool { return g.openai.Stats().PeersGone == gone+1 }) {
			t.Errorf("%s: the host is not told within 3 s that the caller left", path)
		}
	}
	if n := g.metrics()["relay_hangups_total"]; n != 2 {
		t.Errorf("%v hang-ups are counted", n)
	}
}

func TestWireNoTotalDeadline(t *testing.T) {
	g := startGateway(t) // all timeouts of the hosts are 2 s
	a := g.call("POST", chatPath+"?mock=tick=500ms,events=12", keyWide, chatStreamBody)
	if a.StatusCode != 200 || a.cut != nil || !strings.HasSuffix(a.body, "data: [DONE]\n\n") {
		t.Errorf("a stream of 6 s: %d, %v, ends in %q", a.StatusCode, a.cut, a.body[max(0, len(a.body)-100):])
	}
}

func TestWireKeepsStreamAlive(t *testing.T) {
	g := startGateway(t, "RELAY_KEEPALIVE=1s")
	g.writeCatalog(strings.ReplaceAll(catalogText(g.openai.URL(), g.anthropic.URL(), ""), "2s", "30s"))
	if !eventually(patience, func() bool { return g.readiness().Generation == 2 }) {
		t.Fatal("the catalog is not taken")
	}
	a := g.call("POST", chatPath+"?mock=opening=1ms,first=2500ms,tokens=3,per=1", keyWide, chatStreamBody)
	if n := strings.Count("\n"+a.body, "\n:"); n < 2 || !strings.HasSuffix(a.body, "data: [DONE]\n\n") {
		t.Errorf("%d comments in %q", n, a.body)
	}
	a = g.call("POST", messagePath+"?mock=opening=1ms,first=2500ms,tokens=3,per=1", keyWide, messageStream)
	if !strings.Contains(a.body, "event: ping") && !strings.Contains("\n"+a.body, "\n:") || !strings.Contains(a.body, "message_stop") {
		t.Errorf("no ping in %q", a.body)
	}
}

// TestWireSplitAnswer cuts an answer at every byte: each caller must get the
// same text.
func TestWireSplitAnswer(t *testing.T) {
	g := startGateway(t)
	want := ""
	for at := range 700 {
		a := g.call("POST", chatPath+fmt.Sprintf("?mock=unicode,tokens=6,per=2,split=%d,pause=1ms", at), keyWide, chatStreamBody)
		got := ""
		for _, e := range dataLines(a.body) {
			var chunk struct {
				Choices []struct{ Delta struct{ Content string } }
			}
			if e != "[DONE]" && json.Unmarshal([]byte(e), &chunk) == nil {
				for _, c := range chunk.Choices {
					got += c.Delta.Content
				}
			}
		}
		if want == "" {
			want = got
		}
		if got != want || got == "" || strings.ContainsRune(got, '\uFFFD') {
			t.Fatalf("cut at %d: %q, want %q", at, got, want)
		}
	}
}
