//go:build integration

package main

import (
	"bufio"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
)

// malformed are requests of which nothing may reach a host.
var malformed = []struct {
	name, text string
	status     []int
}{
	{"no host", "GET /v1/models HTTP/1.1\r\n\r\n", []int{400}},
	{"two hosts", "GET /v1/models HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", []int{400}},
	{"bad host", "GET /v1/models HTTP/1.1\r\nHost: a b\r\n\r\n", []int{400}},
	{"two blanks", "GET  /v1/models HTTP/1.1\r\nHost: a\r\n\r\n", []int{400}},
	{"tab in the request line", "GET\t/v1/models HTTP/1.1\r\nHost: a\r\n\r\n", []int{400}},
	{"control byte in the target", "GET /v1/mod\x01els HTTP/1.1\r\nHost: a\r\n\r\n", []int{400}},
	{"version 1.2", "GET /v1/models HTTP/1.2\r\nHost: a\r\n\r\n", []int{400, 505}},
	{"version 2.0", "GET /v1/models HTTP/2.0\r\nHost: a\r\n\r\n", []int{400, 505}},
	{"HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", []int{400, 505}},
	{"HTTP/0.9", "GET /v1/models\r\n\r\n", []int{400}},
	{"TLS on cleartext", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", []int{400}},
	{"bare LF", "GET /v1/models HTTP/1.1\nHost: a\n\n", []int{400}},
	{"bare CR", "GET /v1/models HTTP/1.1\r\nHost: a\rX: b\r\n\r\n", []int{400}},
	{"fold", "GET /v1/models HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n", []int{400}},
	{"blank before the colon", "GET /v1/models HTTP/1.1\r\nHost : a\r\n\r\n", []int{400}},
	{"no colon", "GET /v1/models HTTP/1.1\r\nHost: a\r\nX\r\n\r\n", []int{400}},
	{"empty field name", "GET /v1/models HTTP/1.1\r\nHost: a\r\n: x\r\n\r\n", []int{400}},
	{"NUL in a value", "GET /v1/models HTTP/1.1\r\nHost: a\r\nX: a\x00b\r\n\r\n", []int{400}},
	{"signed length", chatHead("Content-Length: +5"), []int{400}},
	{"negative length", chatHead("Content-Length: -5"), []int{400}},
	{"empty length", chatHead("Content-Length:"), []int{400}},
	{"hexadecimal length", chatHead("Content-Length: 0x5"), []int{400}},
	{"length overflow", chatHead("Content-Length: 99999999999999999999"), []int{400, 413}},
	{"different lengths", chatHead("Content-Length: 5", "Content-Length: 6"), []int{400}},
	{"listed different lengths", chatHead("Content-Length: 5, 6"), []int{400}},
	{"length and chunked", chatHead("Content-Length: 5", "Transfer-Encoding: chunked"), []int{400}},
	{"two codings", chatHead("Transfer-Encoding: gzip, chunked"), []int{400, 501}},
	{"chunked twice", chatHead("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"), []int{400, 501}},
	{"unknown coding", chatHead("Transfer-Encoding: xchunked"), []int{400, 501}},
	{"chunked in 1.0", strings.Replace(chatHead("Transfer-Encoding: chunked"), "1.1", "1.0", 1) + "0\r\n\r\n", []int{400}},
	{"chunk size not hex", chatHead("Transfer-Encoding: chunked") + "5g\r\nhello\r\n0\r\n\r\n", []int{400}},
	{"chunk size signed", chatHead("Transfer-Encoding: chunked") + "+5\r\nhello\r\n0\r\n\r\n", []int{400}},
	{"chunk size too long", chatHead("Transfer-Encoding: chunked") + "00000000000000005\r\nhello\r\n0\r\n\r\n", []int{400}},
	{"chunk size overflow", chatHead("Transfer-Encoding: chunked") + "ffffffffffffffff\r\nhello", []int{400, 413}},
	{"chunk without end", chatHead("Transfer-Encoding: chunked") + "5\r\nhelloXX0\r\n\r\n", []int{400}},
	{"LF behind the chunk size", chatHead("Transfer-Encoding: chunked") + "5\nhello\r\n0\r\n\r\n", []int{400}},
	{"bad trailer", chatHead("Transfer-Encoding: chunked") + "0\r\nbad trailer\r\n\r\n", []int{400}},
	{"long target", "GET /" + strings.Repeat("a", 9<<10) + " HTTP/1.1\r\nHost: a\r\n\r\n", []int{414}},
	{"long target without end", "GET /" + strings.Repeat("a", 70<<10), []int{414}},
	{"long field", "GET /v1/models HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("a", 17<<10) + "\r\n\r\n", []int{431}},
	{"many fields", "GET /v1/models HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("X: a\r\n", 120) + "\r\n", []int{431}},
	{"CONNECT", "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n", []int{400, 404, 405, 501}},
}

// chatHead is the head of a chat request with its framing fields.
func chatHead(fields ...string) string {
	return "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " + keyWide +
		"\r\nContent-Type: application/json\r\n" + strings.Join(fields, "\r\n") + "\r\n\r\n"
}

func TestWireMalformedRequests(t *testing.T) {
	g := startGateway(t)
	for _, tt := range malformed {
		t.Run(tt.name, func(t *testing.T) {
			w := dialWire(t, g.inference)
			// A whole second request behind it must never be read as one.
			w.send(tt.text + post(chatPath, keyWide, chatBody))
			a := w.answer(http.MethodGet)
			ok := false
			for _, s := range tt.status {
				ok = ok || a.StatusCode == s
			}
			if !ok {
				t.Errorf("status %d, want one of %v: %s", a.StatusCode, tt.status, a.body)
			}
			if !a.Close {
				t.Error("the answer does not say that the connection closes")
			}
			if !w.closes(3 * time.Second) {
				t.Error("the connection stays open")
			}
		})
	}
	if n := len(g.openai.Requests()); n != 0 {
		t.Errorf("%d requests reached the host", n)
	}
}

func TestWireAbsoluteForm(t *testing.T) {
	g := startGateway(t)
	w := g.dial()
	w.send("GET http://elsewhere.example/v1/models HTTP/1.1\r\nHost: ignored\r\nAuthorization: Bearer " + keyWide + "\r\n\r\n")
	if a := w.answer(http.MethodGet); a.StatusCode != 200 || !strings.Contains(a.body, "gpt-mock") {
		t.Errorf("%d: %s", a.StatusCode, a.body)
	}
}

func TestWirePipelining(t *testing.T) {
	g := startGateway(t)
	w := g.dial()
	models := "GET /v1/models/gpt-mock HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " + keyWide + "\r\n\r\n"
	slow := post(chatPath+"?mock=first=150ms", keyWide, chatBody)
	w.send(models + slow + models + post(chatPath, "rk-unknown", chatBody) + models)
	for i, want := range []string{`"object":"model"`, "chat.completion", `"object":"model"`, "invalid_api_key"} {
		if a := w.answer(http.MethodGet); !strings.Contains(a.body, want) {
			t.Fatalf("answer %d lacks %q: %d %s", i, want, a.StatusCode, a.body)
		}
	}
}

func TestWireKeepAlive(t *testing.T) {
	g := startGateway(t)
	w := g.dial()
	for range 50 {
		w.send(post(chatPath, keyWide, chatBody))
		if a := w.answer(http.MethodPost); a.StatusCode != 200 || a.Close {
			t.Fatalf("status %d, close %v", a.StatusCode, a.Close)
		}
	}
	m := g.metrics()
	if n := m[`relay_connections_total{reused="false",side="upstream"}`]; n > 2 {
		t.Errorf("%v connections were opened to the host for requests in a row", n)
	}
	if n := m[`relay_connections_total{reused="true",side="upstream"}`]; n < 48 {
		t.Errorf("%v attempts used a kept connection", n)
	}
	if n := m[`relay_requests_total{source="upstream",status="200"}`]; n != 50 {
		t.Errorf("%v requests are counted", n)
	}
	w.send(post(chatPath, keyWide, chatBody, "Connection: close"))
	if a := w.answer(http.MethodPost); a.StatusCode != 200 || !a.Close || !w.closes(3*time.Second) {
		t.Errorf("Connection: close: status %d, close %v", a.StatusCode, a.Close)
	}
}

func TestWireExpectContinue(t *testing.T) {
	g := startGateway(t, "RELAY_MAX_REQUEST_BYTES=64KiB")
	head := func(key string, length int, expect string) string {
		return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\nExpect: %s\r\n\r\n",
			chatPath, key, length, expect)
	}
	t.Run("accepted", func(t *testing.T) {
		w := dialWire(t, g.inference)
		for range 2 {
			w.send(head(keyWide, len(chatBody), "100-continue"))
			w.conn.SetReadDeadline(time.Now().Add(2 * time.Second))
			line, err := w.in.ReadString('\n')
			blank, _ := w.in.ReadString('\n')
			if err != nil || !strings.HasPrefix(line, "HTTP/1.1 100 ") || blank != "\r\n" {
				t.Fatalf("got %q %q, %v", line, blank, err)
			}
			w.send(chatBody)
			if a := w.answer(http.MethodPost); a.StatusCode != 200 {
				t.Fatalf("%d: %s", a.StatusCode, a.body)
			}
		}
	})
	for _, tt := range []struct {
		name, head string
		status     int
	}{
		{"wrong key", head("rk-unknown", len(chatBody), "100-continue"), 401},
		{"too large", head(keyWide, 65<<10, "100-continue"), 413},
		{"unknown expectation", head(keyWide, len(chatBody), "a-pony"), 417},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := dialWire(t, g.inference)
			w.send(tt.head)
			a := w.answer(http.MethodPost)
			wantError(t, tt.name, a, chatPath, tt.status)
			// A client that sends the body all the same must not have it taken
			// for a request.
			w.send("GET /v1/models HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " + keyWide + "\r\n\r\n")
			if !w.closes(3 * time.Second) {
				t.Error("the connection stays open")
			}
		})
	}
	t.Run("body comes along", func(t *testing.T) {
		w := dialWire(t, g.inference)
		w.send(head(keyWide, len(chatBody), "100-continue") + chatBody)
		a := w.answer(http.MethodPost)
		for a.StatusCode == 100 {
			a = w.answer(http.MethodPost)
		}
		if a.StatusCode != 200 {
			t.Errorf("%d: %s", a.StatusCode, a.body)
		}
	})
}

func TestWireHTTP10(t *testing.T) {
	g := startGateway(t)
	for _, body := range []string{chatBody, chatStreamBody} {
		w := dialWire(t, g.inference)
		w.send(strings.Replace(post(chatPath, keyWide, body), "HTTP/1.1", "HTTP/1.0", 1))
		a := w.answer(http.MethodPost)
		if a.StatusCode != 200 || len(a.TransferEncoding) != 0 {
			t.Errorf("status %d, coding %v", a.StatusCode, a.TransferEncoding)
		}
		if body == chatStreamBody && !strings.HasSuffix(a.body, "data: [DONE]\n\n") {
			t.Errorf("stream ends in %q", a.body[max(0, len(a.body)-50):])
		}
		if !w.closes(3 * time.Second) {
			t.Error("the connection stays open")
		}
	}
}

func TestWireChunkedRequest(t *testing.T) {
	g := startGateway(t)
	w := g.dial()
	half := len(chatBody) / 2
	w.send(chatHead("Transfer-Encoding: Chunked", "Trailer: X-Later") +
		fmt.Sprintf("%x;ext=\"a;b\"\r\n%s\r\n000%X\r\n%s\r\n", half, chatBody[:half], len(chatBody)-half, chatBody[half:]) +
		"0\r\nX-Later: yes\r\nAuthorization: Bearer other\r\n\r\n" + post(chatPath, keyWide, chatBody))
	for range 2 {
		if a := w.answer(http.MethodPost); a.StatusCode != 200 {
			t.Fatalf("%d: %s", a.StatusCode, a.body)
		}
	}
	requests := g.openai.Requests()
	if len(requests) != 2 {
		t.Fatalf("%d requests at the host", len(requests))
	}
	fields := fieldsOf(requests[0].Head)
	if string(requests[0].Body) != chatBody || fmt.Sprint(fields["content-length"]) != fmt.Sprintf("[%d]", len(chatBody)) {
		t.Errorf("body %q, length %v", requests[0].Body, fields["content-length"])
	}
	for _, name := range []string{"transfer-encoding", "trailer", "x-later"} {
		if fields[name] != nil {
			t.Errorf("%s went to the host: %v", name, fields[name])
		}
	}
}

func TestWireMethods(t *testing.T) {
	g := startGateway(t)
	for _, tt := range []struct{ method, path, allow string }{
		{"GET", chatPath, "POST"}, {"HEAD", chatPath, "POST"}, {"OPTIONS", chatPath, "POST"}, {"PUT", chatPath, "POST"},
		{"DELETE", messagePath, "POST"}, {"GET", messagePath, "POST"}, {"POST", "/v1/models", "GET"}, {"brew", chatPath, "POST"},
	} {
		w := dialWire(t, g.inference)
		w.send(tt.method + " " + tt.path + " HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " + keyWide + "\r\n\r\n")
		a := w.answer(tt.method)
		if tt.method == "HEAD" {
			if a.StatusCode != 405 || a.body != "" {
				t.Errorf("HEAD: %d %q", a.StatusCode, a.body)
			}
		} else {
			wantError(t, tt.method+" "+tt.path, a, tt.path, 405)
		}
		if got := a.Header.Get("Allow"); got != tt.allow {
			t.Errorf("%s %s: Allow is %q, want %q", tt.method, tt.path, got, tt.allow)
		}
	}
	for _, path := range []string{"/", "/v2/chat/completions", "/v1/nothing", "/openai/v1/messages", "/anthropic/v1/chat/completions", "/metrics", "/healthz"} {
		a := g.call(http.MethodPost, path, keyWide, chatBody)
		if a.StatusCode != 404 {
			t.Errorf("%s: %d", path, a.StatusCode)
		}
	}
	if a := g.call(http.MethodPost, "/anthropic/v1/nothing", keyWide, chatBody); !strings.Contains(a.body, `"type":"error"`) {
		t.Errorf("shape of an unknown path: %s", a.body)
	}
}

func TestWireTooLarge(t *testing.T) {
	g := startGateway(t, "RELAY_MAX_REQUEST_BYTES=64KiB")
	big := `{"model":"gpt-mock","messages":[{"role":"user","content":"` + strings.Repeat("x", 64<<10) + `"}]}`
	for _, path := range []string{chatPath, messagePath} {
		t.Run("announced "+path, func(t *testing.T) {
			w := dialWire(t, g.inference)
			w.send(fmt.Sprintf("POST %s HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n", path, keyWide, len(big)))
			wantError(t, path, w.answer(http.MethodPost), path, 413) // before a byte of the body
			w.send(big)
			if !w.closes(3 * time.Second) {
				t.Error("the connection stays open")
			}
		})
		t.Run("chunked "+path, func(t *testing.T) {
			w := dialWire(t, g.inference)
			w.send(strings.Replace(chatHead("Transfer-Encoding: chunked"), chatPath, path, 1) + "7\r\n{\"x\": \"\r\n")
			for range 5 {
				w.send("4000\r\n" + strings.Repeat("x", 0x4000) + "\r\n")
			}
			wantError(t, path, w.answer(http.MethodPost), path, 413)
			if !w.closes(3 * time.Second) {
				t.Error("the connection stays open")
			}
		})
	}
	exact := `{"model":"gpt-mock","messages":[{"role":"user","content":"` + strings.Repeat("x", 64<<10-len(`{"model":"gpt-mock","messages":[{"role":"user","content":""}]}`)) + `"}]}`
	if a := g.call(http.MethodPost, chatPath, keyWide, exact); a.StatusCode != 200 {
		t.Errorf("a body of exactly the limit: %d %s", a.StatusCode, a.body)
	}
}

func TestWireSlowHead(t *testing.T) {
	g := startGateway(t)
	w := g.dial()
	started := time.Now()
	go func() { // single bytes must not move the deadline
		for _, b := range []byte("GET /v1/models HTTP/1.1\r\nHost: abcdefgh") {
			if _, err := w.conn.Write([]byte{b}); err != nil {
				return
			}
			time.Sleep(400 * time.Millisecond)
		}
	}()
	a := w.answer(http.MethodGet)
	if took := time.Since(started); a.StatusCode != 408 || took < 8*time.Second || took > 13*time.Second {
		t.Errorf("status %d after %v", a.StatusCode, took)
	}
	if !w.closes(3 * time.Second) {
		t.Error("the connection stays open")
	}
}

func TestWireRequestIDs(t *testing.T) {
	g := startGateway(t)
	v7 := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	for _, tt := range []struct{ path, body, key, field string }{
		{chatPath, chatBody, keyWide, "X-Request-Id"}, {messagePath, messageBody, keyWide, "Request-Id"},
		{chatPath, chatBody, "rk-unknown", "X-Request-Id"}, {messagePath, messageBody, "rk-unknown", "Request-Id"},
		{chatPath, chatStreamBody, keyWide, "X-Request-Id"}, {messagePath, messageStream, keyWide, "Request-Id"},
	} {
		if got := g.call("POST", tt.path, tt.key, tt.body, "X-Request-ID: mine-1").Header.Get(tt.field); got != "mine-1" {
			t.Errorf("%s: %s is %q, want the caller's", tt.path, tt.field, got)
		}
		for _, bad := range []string{"", strings.Repeat("x", 129), "caf\u00e9"} {
			if got := g.call("POST", tt.path, tt.key, tt.body, "X-Request-ID: "+bad).Header.Get(tt.field); !v7.MatchString(got) {
				t.Errorf("%s with %q: %s is %q, want a UUIDv7", tt.path, bad, tt.field, got)
			}
		}
	}
}

func TestWireIdleClientsCostNothing(t *testing.T) {
	g := startGateway(t)
	for range 200 {
		g.dial()
	}
	if !eventually(5*time.Second, func() bool {
		m := g.metrics()
		return m[`relay_open_connections{side="client"}`] == 200 && m[`relay_open_connections{side="upstream"}`] == 0
	}) {
		t.Errorf("open connections: %v", g.metrics()[`relay_open_connections{side="client"}`])
	}
	if a := g.call("POST", chatPath, keyWide, chatBody); a.StatusCode != 200 {
		t.Errorf("%d beside idle clients", a.StatusCode)
	}
}

func TestWireConnectionLimit(t *testing.T) {
	g := startGateway(t, "RELAY_MAX_CONNS=16", "RELAY_CONN_QUEUE=1", "RELAY_CONN_QUEUE_TIMEOUT=500ms")
	var held []*wire
	for range 16 {
		w := g.dial()
		w.send("GET /v1/models HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " + keyWide + "\r\n\r\n")
		w.answer(http.MethodGet)
		held = append(held, w)
	}
	late := g.dial()
	late.send(post(chatPath, keyWide, chatBody))
	a := late.answer(http.MethodPost)
	if a.StatusCode != 503 || a.Header.Get("Retry-After") == "" {
		t.Errorf("past the limit: %d, Retry-After %q", a.StatusCode, a.Header.Get("Retry-After"))
	}
	waits := g.dial()
	waits.send(post(chatPath, keyWide, chatBody))
	held[0].conn.Close()
	if a := waits.answer(http.MethodPost); a.StatusCode != 200 {
		t.Errorf("with room again: %d %s", a.StatusCode, a.body)
	}
}

func TestWireProxyProtocol(t *testing.T) {
	g := startGateway(t, "RELAY_PROXY_PROTOCOL=on")
	w := g.dial()
	w.send("PROXY TCP4 192.0.2.7 192.0.2.1 1234 80\r\n" + post(chatPath, keyWide, chatBody) + post(chatPath, keyWide, chatBody))
	for range 2 {
		if a := w.answer(http.MethodPost); a.StatusCode != 200 {
			t.Fatalf("%d: %s", a.StatusCode, a.body)
		}
	}
	v2 := g.dial()
	v2.send("\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\xc0\x00\x02\x07\xc0\x00\x02\x01\x04\xd2\x00\x50" + post(chatPath, keyWide, chatBody))
	if a := v2.answer(http.MethodPost); a.StatusCode != 200 {
		t.Fatalf("%d: %s", a.StatusCode, a.body)
	}
	without := g.dial()
	without.send(post(chatPath, keyWide, chatBody))
	without.conn.SetReadDeadline(time.Now().Add(patience))
	if line, err := bufio.NewReader(without.conn).ReadString('\n'); err == nil && !strings.HasPrefix(line, "HTTP/1.1 400") {
		t.Errorf("without a PROXY header: %q", line)
	}
}

func TestWireProxyFromTrustedOnly(t *testing.T) {
	for trusted, taken := range map[string]bool{"127.0.0.0/8,::1": true, "192.0.2.0/24": false} {
		g := startGateway(t, "RELAY_PROXY_PROTOCOL=on", "RELAY_TRUSTED_PROXIES="+trusted)
		w := g.dial()
		w.send("PROXY TCP4 192.0.2.7 192.0.2.1 1234 80\r\n" + post(chatPath, keyWide, chatBody))
		if taken {
			if a := w.answer(http.MethodPost); a.StatusCode != 200 {
				t.Errorf("from a trusted peer: %d %s", a.StatusCode, a.body)
			}
			continue
		}
		if !w.closes(3 * time.Second) {
			t.Error("from another peer: the connection stays open")
		}
		if n := g.metrics()[`relay_accept_failures_total{reason="untrusted"}`]; n != 1 {
			t.Errorf("%v are counted", n)
		}
	}
}
