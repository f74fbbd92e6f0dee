package baseline

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"relay/usage"
)

const (
	chatPath      = "/openai/v1/chat/completions"
	messagePath   = "/anthropic/v1/messages"
	chatBody      = `{"model":"gpt-mock","messages":[{"role":"user","content":"hello"}]}`
	chatStream    = `{"model":"gpt-mock","stream":true,"messages":[{"role":"user","content":"hello"}]}`
	messageBody   = `{"model":"claude-mock","max_tokens":100,"messages":[{"role":"user","content":"hello"}]}`
	messageStream = `{"model":"claude-mock","max_tokens":100,"stream":true,"messages":[{"role":"user","content":"hello"}]}`
)

// TestRows makes requests of all kinds and wants one row of each, with the
// tokens that the mock told and the cost that follows, before the answer ends.
func TestRows(t *testing.T) {
	const counts = "in=1000,cached=400,out=50"
	tests := []struct {
		name, path, mock, body string
		status                 int
		has                    string
		outcome                usage.Outcome
		source                 usage.Source
		input, cached, output  int64
		cost                   int64 // nano-USD
	}{
		// 600 × 2 + 400 × 0.5 + 50 × 10 per million
		{"chat", chatPath, counts, chatBody, 200, `"choices"`, usage.Completed, usage.Reported, 600, 400, 50, 1_900_000},
		{"bare-chat", "/v1/chat/completions", counts, chatBody, 200, `"choices"`, usage.Completed, usage.Reported, 600, 400, 50, 1_900_000},
		{"alias", chatPath, counts, strings.Replace(chatBody, "gpt-mock", "gpt-alias", 1), 200, `"choices"`, usage.Completed, usage.Reported, 600, 400, 50, 1_900_000},
		{"chat-stream", chatPath, counts, chatStream, 200, "data: [DONE]\n\n", usage.Completed, usage.Reported, 600, 400, 50, 1_900_000},
		{"chat-drip", chatPath, counts + ",drip", chatStream, 200, "data: [DONE]\n\n", usage.Completed, usage.Reported, 600, 400, 50, 1_900_000},
		{"chunked", chatPath, counts + ",close-delimited", chatBody, 200, `"choices"`, usage.Completed, usage.Reported, 600, 400, 50, 1_900_000},
		// 1000 × 3 + 400 × 0.3 + 50 × 15
		{"message", messagePath, counts, messageBody, 200, `"type":"message"`, usage.Completed, usage.Reported, 1000, 400, 50, 3_870_000},
		{"bare-message", "/v1/messages", counts, messageBody, 200, `"type":"message"`, usage.Completed, usage.Reported, 1000, 400, 50, 3_870_000},
		{"message-stream", messagePath, counts, messageStream, 200, "event: message_stop\n", usage.Completed, usage.Reported, 1000, 400, 50, 3_870_000},
		// 3 × 3 + 12304 × 3.75 + 550 × 15
		{"cache-write", messagePath, "in=3,write=12304,out=550", messageBody, 200, `"type":"message"`, usage.Completed, usage.Reported, 3, 0, 550, 54_399_000},
		{"long", chatPath, counts + ",tokens=60000", chatBody, 200, `"choices"`, usage.Completed, usage.Reported, 600, 400, 50, 1_900_000},
		{"count", "/anthropic/v1/messages/count_tokens", counts, messageBody, 200, `"input_tokens"`, usage.Completed, usage.NoTokens, 0, 0, 0, 0},
		{"host-error", chatPath, "status=500", chatBody, 500, `"error"`, usage.Failed, usage.NoTokens, 0, 0, 0, 0},
		{"host-limit", chatPath, "status=429", chatBody, 429, `"error"`, usage.Failed, usage.NoTokens, 0, 0, 0, 0},
		{"host-html", messagePath, "html", messageBody, 502, `"type":"error"`, usage.Failed, usage.NoTokens, 0, 0, 0, 0},
		{"host-key", chatPath, "status=401", chatBody, 502, `"bad_gateway"`, usage.Failed, usage.NoTokens, 0, 0, 0, 0},
		{"host-gone", chatPath, "reset", chatBody, 502, `"bad_gateway"`, usage.Failed, usage.NoTokens, 0, 0, 0, 0},
		{"host-cut", chatPath, "cut", chatBody, 502, `"bad_gateway"`, usage.Failed, usage.NoTokens, 0, 0, 0, 0},
		{"host-broken", messagePath, "json-broken", messageBody, 502, `"type":"error"`, usage.Failed, usage.NoTokens, 0, 0, 0, 0},
		{"encoded", chatPath, "gzip", chatBody, 502, `"bad_gateway"`, usage.Failed, usage.NoTokens, 0, 0, 0, 0},
	}
	onEngines(t, func(t *testing.T, engine string) {
		r := startRig(t, engine, nil)
		for _, tt := range tests {
			a := r.call(tt.path+"?mock="+tt.mock, keyWide, tt.body, "X-Request-ID: "+tt.name)
			rows := r.rows(tt.name)
			if a.StatusCode != tt.status || a.err != nil || !strings.Contains(a.body, tt.has) {
				t.Errorf("%s: %d, %v, %.300q", tt.name, a.StatusCode, a.err, a.body)
			}
			if a.Header.Get("X-Request-Id") != tt.name {
				t.Errorf("%s: head %v", tt.name, a.Header)
			}
			if len(rows) != 1 {
				t.Errorf("%s: %d rows", tt.name, len(rows))
				continue
			}
			e := rows[0]
			model := "gpt-mock"
			if strings.Contains(tt.body, "claude") {
				model = "claude-mock"
			}
			if e.Outcome != tt.outcome || e.Source != tt.source || e.Status != tt.status || e.Model != model || e.Account != "team" || e.Key != "wide" ||
				e.Tokens.Input != tt.input || e.Tokens.CachedInput != tt.cached || e.Tokens.Output != tt.output || e.Cost.Total != tt.cost || e.Attempts != 1 {
				t.Errorf("%s: row %+v", tt.name, e)
			}
			if e.BytesOut != int64(len(a.body)) || e.BytesIn != int64(len(tt.body)) {
				t.Errorf("%s: bytes in %d of %d, out %d of %d", tt.name, e.BytesIn, len(tt.body), e.BytesOut, len(a.body))
			}
		}
		if n, _ := r.gateway.core.inflight.Load(); n != 0 {
			t.Errorf("%d requests hold a slot", n)
		}
	})
}

// TestRefusals wants errors in the caller's shape, with their status.
func TestRefusals(t *testing.T) {
	tests := []struct {
		name, path, key, body string
		status                int
		has                   string
		rows                  int
	}{
		{"wrong-key", chatPath, "rk-wrong", chatBody, 401, `"code":"invalid_api_key"`, 0},
		{"wrong-key-message", messagePath, "rk-wrong", messageBody, 401, `"type":"authentication_error"`, 0},
		{"no-path", "/v1/nothing", keyWide, chatBody, 404, `"code":"unknown_url"`, 0},
		{"not-served", "/v1/audio/speech", keyWide, chatBody, 404, `"code":"unknown_url"`, 0},
		{"no-model", chatPath, keyWide, `{"model":"gpt-9"}`, 404, `"code":"model_not_found"`, 1},
		{"no-model-message", messagePath, keyWide, `{"model":"claude-9"}`, 404, `"type":"not_found_error"`, 1},
		{"not-allowed", chatPath, keyWide, `{"model":"gpt-secret"}`, 403, `"code":"model_not_allowed"`, 1},
		{"other-shape", chatPath, keyWide, `{"model":"claude-mock"}`, 400, `"param":"model"`, 1},
		{"no-json", chatPath, keyWide, `{"model":`, 400, `"invalid_request_error"`, 1},
		{"dead-host", chatPath, keyWide, `{"model":"gpt-dead"}`, 502, `"code":"bad_gateway"`, 1},
		{"large", messagePath, keyWide, `{"model":"` + strings.Repeat("x", 70<<10) + `"}`, 413, `"type":"request_too_large"`, 0},
	}
	onEngines(t, func(t *testing.T, engine string) {
		r := startRig(t, engine, nil)
		for _, tt := range tests {
			a := r.call(tt.path, tt.key, tt.body, "X-Request-ID: "+tt.name)
			if a.StatusCode != tt.status || !strings.Contains(a.body, tt.has) || a.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%s: %d %s", tt.name, a.StatusCode, a.body)
			}
			if rows := r.rows(tt.name); len(rows) != tt.rows {
				t.Errorf("%s: %d rows", tt.name, len(rows))
			} else if tt.rows == 1 && (rows[0].Status != tt.status || rows[0].Cost.Total != 0) {
				t.Errorf("%s: row %+v", tt.name, rows[0])
			}
		}
		if rows := r.rows("dead-host"); rows[0].Attempts != 2 || rows[0].Outcome != usage.Failed {
			t.Errorf("dead host: row %+v", rows[0])
		}
		q, err := http.Get(r.url + chatPath)
		if err != nil {
			t.Fatal(err)
		}
		defer q.Body.Close()
		if q.StatusCode != http.StatusMethodNotAllowed || q.Header.Get("Allow") != "POST" {
			t.Errorf("GET: %d %v", q.StatusCode, q.Header)
		}
	})
}

// TestLargeBodies sends bodies above the limit, with and without a length.
func TestLargeBodies(t *testing.T) {
	onEngines(t, func(t *testing.T, engine string) {
		r := startRig(t, engine, nil)
		text := `{"model":"` + strings.Repeat("x", 70<<10) + `"}`
		q := r.request(t.Context(), chatPath, keyWide, "")
		q.Body, q.ContentLength = io.NopCloser(strings.NewReader(text)), -1
		answer, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if body, _ := io.ReadAll(answer.Body); answer.StatusCode != 413 || !strings.Contains(string(body), `"code":"request_too_large"`) {
			t.Errorf("%d %s", answer.StatusCode, body)
		}
		// One just below it is served, edits and all.
		a := r.call(chatPath+"?mock=in=7,out=3", keyWide, `{"x":"`+strings.Repeat("y", 60<<10)+`",`+chatStream[1:])
		if a.StatusCode != 200 || a.err != nil {
			t.Errorf("%d %v", a.StatusCode, a.err)
		}
		kept := r.mock.Requests()
		if sent := string(kept[len(kept)-1].Body); !strings.HasSuffix(sent, `,"stream_options":{"include_usage":true}}`) || len(sent) < 60<<10 {
			t.Errorf("body sent: %d bytes, ...%s", len(sent), sent[max(0, len(sent)-100):])
		}
	})
}

// TestLimits wants a denial with its wait, and slots that come back.
func TestLimits(t *testing.T) {
	onEngines(t, func(t *testing.T, engine string) {
		r := startRig(t, engine, nil)
		if a := r.call(chatPath, keyTight, chatBody); a.StatusCode != 200 {
			t.Fatalf("%d %s", a.StatusCode, a.body)
		}
		a := r.call(messagePath, keyTight, messageBody, "X-Request-ID: denied")
		if a.StatusCode != 429 || a.Header.Get("Retry-After") != "3600" || !strings.Contains(a.body, "limit of policy/tight reached: 1 requests per 1h0m0s") {
			t.Errorf("%d %v %s", a.StatusCode, a.Header, a.body)
		}
		if rows := r.rows("denied"); len(rows) != 1 || rows[0].Outcome != usage.Refused || rows[0].Error != "rate_limited" {
			t.Errorf("rows %+v", rows)
		}
		for range 3 { // one after the other: each gives its slot back
			if a := r.call(chatPath, keyOne, chatStream); a.StatusCode != 200 {
				t.Errorf("%d %s", a.StatusCode, a.body)
			}
		}
		var calls sync.WaitGroup // all at once: some find no slot, and are asked for a second time
		var served atomic.Int64
		for range 6 {
			calls.Go(func() {
				switch a := r.call(chatPath, keyOne, chatStream); a.StatusCode {
				case 200:
					served.Add(1)
				case 429:
				default:
					t.Errorf("%d %s", a.StatusCode, a.body)
				}
			})
		}
		if calls.Wait(); served.Load() == 0 {
			t.Error("none of six got the slot")
		}
	})
}

// TestInflight fills the in-flight cap with one slow stream.
func TestInflight(t *testing.T) {
	onEngines(t, func(t *testing.T, engine string) {
		r := startRig(t, engine, func(o *Options) { o.InflightMax = 1 })
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		answer, err := http.DefaultClient.Do(r.request(ctx, chatPath+"?mock=tokens=60000,per=1,tps=200", keyWide, chatStream))
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if a := r.call(chatPath, keyWide, chatBody); a.StatusCode != 503 || a.Header.Get("Retry-After") != "1" || !strings.Contains(a.body, "server_is_overloaded") {
			t.Errorf("%d %v %s", a.StatusCode, a.Header, a.body)
		}
		if a := r.call(messagePath, keyWide, messageBody); a.StatusCode != 529 || !strings.Contains(a.body, "overloaded_error") {
			t.Errorf("%d %s", a.StatusCode, a.body)
		}
		cancel()
		eventually(t, "the slot comes back", func() bool { return r.call(chatPath, keyWide, chatBody).StatusCode == 200 })
	})
}

// TestCut breaks streams off in the middle.
func TestCut(t *testing.T) {
	onEngines(t, func(t *testing.T, engine string) {
		r := startRig(t, engine, nil)
		for _, tt := range []struct{ name, path, body, has, hasNot string }{
			{"cut-chat", chatPath, chatStream, `data: {"error":{"message":`, "[DONE]"},
			{"cut-message", messagePath, messageStream, "event: error\ndata: {\"type\":\"error\"", "message_stop"},
		} {
			a := r.call(tt.path+"?mock=tokens=60,per=1,tps=5000,cut=40", keyWide, tt.body, "X-Request-ID: "+tt.name)
			if a.StatusCode != 200 || a.err == nil || !strings.Contains(a.body, tt.has) || strings.Contains(a.body, tt.hasNot) {
				t.Errorf("%s: %d %v ...%s", tt.name, a.StatusCode, a.err, a.body[max(0, len(a.body)-300):])
			}
			if rows := r.rows(tt.name); len(rows) != 1 || rows[0].Outcome != usage.Cut || rows[0].Tokens.Output < 10 || rows[0].Error != "upstream_cut" {
				t.Errorf("%s: rows %+v", tt.name, rows)
			}
		}
	})
}

// TestHangUp leaves in the middle of a stream.
func TestHangUp(t *testing.T) {
	onEngines(t, func(t *testing.T, engine string) {
		r := startRig(t, engine, nil)
		ctx, cancel := context.WithCancel(t.Context())
		answer, err := http.DefaultClient.Do(r.request(ctx, chatPath+"?mock=in=1000,tokens=60000,per=1,tps=500", keyWide, chatStream, "X-Request-ID: left"))
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(answer.Body)
		for range 20 {
			lines.Scan()
		}
		cancel()
		answer.Body.Close()
		eventually(t, "the upstream is cancelled", func() bool { return r.mock.Stats().OpenStreams == 0 })
		eventually(t, "the row is written", func() bool { return len(r.rows("left")) == 1 })
		if e := r.rows("left")[0]; e.Outcome != usage.Cancelled || !e.HungUp || e.Tokens.Output < 1 || e.Status != 200 {
			t.Errorf("row %+v", e)
		}
		if n, _ := r.gateway.core.inflight.Load(); n != 0 {
			t.Errorf("%d requests hold a slot", n)
		}
	})
}

// TestHangUpEarly leaves before there is any answer: net/http tells, fasthttp
// does not.
func TestHangUpEarly(t *testing.T) {
	r := startRig(t, "nethttp", nil)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	q := r.request(ctx, messagePath+"?mock=silent", keyWide, messageBody, "X-Request-ID: early")
	go func() {
		_, err := http.DefaultClient.Do(q)
		ended <- err
	}()
	eventually(t, "the host is asked", func() bool { return len(r.mock.Requests()) == 1 })
	cancel()
	if err := <-ended; err == nil {
		t.Error("an answer came")
	}
	eventually(t, "the row is written", func() bool { return len(r.rows("early")) == 1 })
	if e := r.rows("early")[0]; e.Outcome != usage.Cancelled || e.Status != 0 || e.Source != usage.Estimated || e.Tokens.Output != 0 {
		t.Errorf("row %+v", e)
	}
	eventually(t, "the upstream is cancelled", func() bool { return r.mock.Stats().PeersGone == 1 })
}

// TestFields sees what the host and the caller get of each other.
func TestFields(t *testing.T) {
	onEngines(t, func(t *testing.T, engine string) {
		r := startRig(t, engine, nil)
		a := r.call(messagePath+"?mock=instant&x="+keyWide, "other", messageBody, "X-Api-Key: "+keyWide, "Anthropic-Beta: b1", "X-Own: v",
			"X-Shown: a "+keyWide, "Cookie: c", "Connection: X-Hop", "X-Hop: h", "User-Agent: me")
		if a.StatusCode != 200 {
			t.Fatalf("%d %s", a.StatusCode, a.body)
		}
		kept := r.mock.Requests()
		sent := strings.ToLower(string(kept[len(kept)-1].Head))
		for _, has := range []string{"post /v1/messages http/1.1\r\n", "x-api-key: sk-upstream\r\n", "anthropic-version: 2023-06-01\r\n", "anthropic-beta: b1\r\n",
			"x-own: v\r\n", "user-agent: relay\r\n", "x-request-id: ", "host: " + r.mock.Addr(), "content-type: application/json\r\n"} {
			if strings.Count(sent, has) != 1 {
				t.Errorf("no %q, or twice, in %q", has, sent)
			}
		}
		for _, hasNot := range []string{keyWide, "cookie", "x-hop", "authorization"} {
			if strings.Contains(sent, hasNot) {
				t.Errorf("%q in %q", hasNot, sent)
			}
		}
		for _, name := range []string{"Request-Id", "X-Request-Id", "X-Relay-Upstream-Request-Id", "Date", "Content-Length"} {
			if len(a.Header.Values(name)) != 1 {
				t.Errorf("%s: %q", name, a.Header.Values(name))
			}
		}
		if a.Header.Get("Server") != "" || len(a.Header.Get("Request-Id")) != 36 {
			t.Errorf("head %v", a.Header)
		}
		// The caller's own version goes on, in the place of the host's.
		r.call("/v1/messages", keyWide, messageBody, "Anthropic-Version: 2024-01-01")
		kept = r.mock.Requests()
		if sent := strings.ToLower(string(kept[len(kept)-1].Head)); strings.Count(sent, "anthropic-version: 2024-01-01\r\n") != 1 || strings.Count(sent, "anthropic-version") != 1 {
			t.Errorf("version in %q", sent)
		}
	})
}

// TestSyncedAnswers has every answer wait for its fsync, on many connections.
func TestSyncedAnswers(t *testing.T) {
	onEngines(t, func(t *testing.T, engine string) {
		r := startRig(t, engine, func(o *Options) { o.SpoolSync = 0 })
		var wait sync.WaitGroup
		for i := range 40 {
			path, body := chatPath, chatStream
			if i%2 == 0 {
				path, body = messagePath, messageBody
			}
			wait.Go(func() {
				if a := r.call(path+"?mock=in=10,out=10", keyWide, body, "X-Request-ID: together"); a.StatusCode != 200 || a.err != nil {
					t.Errorf("%d %v", a.StatusCode, a.err)
				}
			})
		}
		wait.Wait()
		if rows := r.rows("together"); len(rows) != 40 {
			t.Errorf("%d rows", len(rows))
		}
	})
}

// TestClose ends a gateway while a stream runs.
func TestClose(t *testing.T) {
	onEngines(t, func(t *testing.T, engine string) {
		r := startRig(t, engine, nil)
		answer, err := http.DefaultClient.Do(r.request(t.Context(), chatPath+"?mock=tokens=60000,per=1,tps=200", keyWide, chatStream, "X-Request-ID: running"))
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		r.close()
		if rows := r.rows("running"); len(rows) != 1 {
			t.Errorf("rows %+v", rows)
		}
		if _, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://")); err == nil {
			t.Error("still accepts")
		}
	})
}

// TestControl asks for the pages of the control listener.
func TestControl(t *testing.T) {
	onEngines(t, func(t *testing.T, engine string) {
		r := startRig(t, engine, nil)
		r.call(chatPath, keyWide, chatBody)
		for _, tt := range []struct{ path, has string }{
			{"/metrics", "\ngo_goroutines "}, {"/metrics", "\ngo_gc_duration_seconds_count "}, {"/metrics", "\ngo_memstats_mallocs_total "},
			{"/metrics", "\nrelay_requests_total{status=\"200\"} 1\n"}, {"/metrics", "\nrelay_usage_events_total 1\n"},
			{"/metrics", "\nrelay_records_lost_total 0\n"}, {"/healthz", "ok"},
		} {
			answer, err := http.Get(r.control + tt.path)
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(answer.Body)
			answer.Body.Close()
			if !strings.Contains(string(text), tt.has) {
				t.Errorf("%s has no %q", tt.path, tt.has)
			}
		}
	})
}

func TestCheckEngine(t *testing.T) {
	if err := CheckEngine("epoll"); err == nil || !strings.Contains(err.Error(), strings.Join(Engines(), ", ")) {
		t.Errorf("error %v", err)
	}
}
