package control

import (
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"relay/loop"
	"relay/loop/reactor"
	"relay/store/source"
)

// fakeLoop answers scrapes with its metrics unless it is stuck.
type fakeLoop struct {
	metrics loop.Metrics
	drained bool
	stuck   bool // the message is taken and never looked at
	full    bool // the mailbox is full
}

func (f *fakeLoop) Post(m loop.Message) bool {
	s := m.(*loop.Scrape)
	switch {
	case f.full:
		return false
	case !f.stuck:
		s.Metrics, s.Drained = f.metrics, f.drained
		go s.Reply(s)
	}
	return true
}

// started is a running server over fakes.
type started struct {
	t        *testing.T
	loops    []*fakeLoop
	status   source.Status
	draining bool
	store    Store
	server   *Server
	url      string
}

func start(t *testing.T, token string, loops ...*fakeLoop) *started {
	t.Helper()
	s := &started{t: t, loops: loops, status: source.Status{
		Path: "relay.yaml", Generation: 3, Revision: "abc", LoadedAt: time.Unix(1700000000, 0), Refused: 2,
	}}
	posters := make([]Poster, len(loops))
	for i, l := range loops {
		posters[i] = l
	}
	server := New(Sources{
		Loops: posters, AdminToken: token, Version: "v1", Commit: "c1",
		Catalog: func() source.Status { return s.status },
		Reactor: func() reactor.Stats {
			st := reactor.Stats{Waiting: 4, HandshakesFailed: 8}
			st.Dials[loop.DialTimeout] = 5
			late := reactor.LoopStats{Pauses: 2, LagNow: 3 * time.Second}
			late.Lag.Counts[0], late.Lag.Counts[len(reactor.LagBounds)] = 1, 1
			late.Lag.Sum = 6 * time.Second
			st.Loops = []reactor.LoopStats{{Pauses: 1}, late}
			return st
		},
		Draining: func() bool { return s.draining },
		Store:    func() Store { return s.store },
		Outcomes: []string{"ok", "", "refused"},
		Readings: []Reading{
			{Name: "inflight_requests", Help: "How many?", Value: func() float64 { return 7 }},
			{Name: "odd_total", Help: "Which?", Counter: true, Label: "kind", Of: "a", Value: func() float64 { return 1 }},
			{Name: "odd_total", Help: "Which?", Counter: true, Label: "kind", Of: "b", Value: func() float64 { return 2 }},
		},
		Log: slog.New(slog.DiscardHandler),
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server.Start(l)
	s.server = server
	t.Cleanup(server.Close)
	s.url = "http://" + l.Addr().String()
	return s
}

// get returns status and body of a page.
func (s *started) get(page, authorization string) (int, string) {
	s.t.Helper()
	r, err := http.NewRequest(http.MethodGet, s.url+page, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

func wantLines(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains("\n"+text, "\n"+line+"\n") {
			t.Errorf("no line %q", line)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}

func TestMetricsAddUpOverLoops(t *testing.T) {
	a, b := &fakeLoop{}, &fakeLoop{}
	a.metrics.Requests[0][429] = 2
	b.metrics.Requests[0][429] = 3
	b.metrics.Requests[1][200] = 10
	a.metrics.Shed[loop.ShedMemory] = 4
	a.metrics.Attempts[2] = 6
	a.metrics.Reused, b.metrics.Reused = 1, 2
	a.metrics.Clients, b.metrics.Clients = 5, 6
	a.metrics.RequestTime.Counts[0], a.metrics.RequestTime.SumNs = 1, 1e5
	b.metrics.RequestTime.Counts[3], b.metrics.RequestTime.SumNs = 1, 1e6
	b.metrics.RequestTime.Counts[len(loop.HistogramBounds)] = 1
	s := start(t, "", a, b)
	status, text := s.get("/metrics", "")
	if status != http.StatusOK {
		t.Fatalf("status %d: %s", status, text)
	}
	wantLines(t, text,
		`relay_requests_total{source="relay",status="429"} 5`,
		`relay_requests_total{source="upstream",status="200"} 10`,
		`relay_requests_shed_total{reason="memory"} 4`,
		`relay_attempts_total{outcome="refused"} 6`,
		`relay_connections_total{reused="true",side="upstream"} 3`,
		`relay_open_connections{side="client"} 11`,
		`relay_request_seconds_bucket{le="0.0001"} 1`,
		`relay_request_seconds_bucket{le="0.001"} 2`,
		`relay_request_seconds_bucket{le="600"} 2`,
		`relay_request_seconds_bucket{le="+Inf"} 3`,
		`relay_request_seconds_sum 0.0011`,
		`relay_loop_answering{loop="0"} 1`,
		`relay_catalog_generation 3`,
		`relay_catalog_loaded_timestamp_seconds 1.7e+09`,
		`relay_catalog_reload_failures_total 2`,
		`relay_catalog_last_reload_ok 1`,
		`relay_inflight_requests 7`,
		`relay_connections_waiting 4`,
		`relay_dials_total{outcome="timeout"} 5`,
		`relay_handshakes_total{outcome="failed"} 8`,
		`relay_read_pauses_total 3`,
		`relay_loop_late_seconds{loop="1"} 3`,
		`relay_loop_lag_seconds_bucket{le="0.0001"} 1`,
		`relay_loop_lag_seconds_bucket{le="5"} 1`,
		`relay_loop_lag_seconds_count 2`,
		`relay_loop_lag_seconds_sum 6`,
		`relay_odd_total{kind="b"} 2`,
	)
	if !strings.Contains(text, `relay_build_info{commit="c1",goversion="go`) || !strings.Contains(text, "\nprocess_open_fds ") {
		t.Error("build or process metrics are missing")
	}
	for line := range strings.Lines(text) {
		if help, ok := strings.CutPrefix(line, "# HELP relay_"); ok && !strings.HasSuffix(help, "?\n") {
			t.Errorf("metric without a question: %q", help)
		}
	}
}

func TestStuckLoopShows(t *testing.T) {
	a, b := &fakeLoop{}, &fakeLoop{}
	b.metrics.Accepted = 9
	s := start(t, "", a, b)
	if _, text := s.get("/metrics", ""); !strings.Contains(text, `relay_connections_total{reused="false",side="client"} 9`) {
		t.Fatal("first scrape lacks the counter")
	}
	b.full = true
	_, text := s.get("/metrics", "")
	wantLines(t, text,
		`relay_loop_answering{loop="0"} 1`,
		`relay_loop_answering{loop="1"} 0`,
		`relay_connections_total{reused="false",side="client"} 9`, // counters do not fall
	)
	if status, _ := s.get("/readyz", ""); status != http.StatusServiceUnavailable {
		t.Errorf("readyz with a stuck loop: %d", status)
	}
	if status, _ := s.get("/healthz", ""); status != http.StatusOK {
		t.Errorf("healthz with a stuck loop: %d", status)
	}
}

func TestAskGivesUp(t *testing.T) {
	answers := Ask([]Poster{&fakeLoop{stuck: true}, &fakeLoop{drained: true}}, 50*time.Millisecond)
	if answers[0].OK || !answers[1].OK || !answers[1].Drained {
		t.Fatalf("answers are %+v", answers)
	}
}

func TestReadyTellsWhatIsLive(t *testing.T) {
	s := start(t, "", &fakeLoop{})
	s.status.LastError = "line 3: unknown field"
	s.status.LastErrorAt = time.Unix(1700000100, 0)
	status, text := s.get("/readyz", "")
	var r readiness
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatal(err)
	}
	if status != http.StatusOK || r.Generation != 3 || r.Revision != "abc" || !r.Ready ||
		r.LastError != "line 3: unknown field" || !r.LastErrorAt.Equal(s.status.LastErrorAt) {
		t.Errorf("after a refused reload: %d %s", status, text)
	}
	if _, text := s.get("/metrics", ""); !strings.Contains(text, "\nrelay_catalog_last_reload_ok 0\n") {
		t.Error("metrics do not show the refused reload")
	}
	s.draining = true
	if status, text := s.get("/readyz", ""); status != http.StatusServiceUnavailable || !strings.Contains(text, `"draining": true`) {
		t.Errorf("while draining: %d %s", status, text)
	}
}

// TestReadyTellsOfTheStore: a lost store makes a relay unready only when it
// refuses; either way it is told.
func TestReadyTellsOfTheStore(t *testing.T) {
	silent := &fakeLoop{full: true}
	lostAt := time.Unix(1700000200, 0).UTC()
	for _, tt := range []struct {
		name     string
		store    Store
		loops    []*fakeLoop
		draining bool
		status   int
		note     string
	}{
		{"in memory", Store{Backend: "memory"}, []*fakeLoop{{}}, false, 200, ""},
		{"shared", Store{Backend: "redis"}, []*fakeLoop{{}}, false, 200, ""},
		{"local", Store{Backend: "redis", LostAt: lostAt, Error: "refused", Note: "by itself"}, []*fakeLoop{{}}, false, 200, "by itself"},
		{"refuses", Store{Backend: "redis", LostAt: lostAt, Error: "refused", Note: "all refused", Refuses: true}, []*fakeLoop{{}}, false, 503, "all refused"},
		{"all at once", Store{Backend: "redis", LostAt: lostAt, Error: strings.Repeat("x", 2*errorTextBytesMax), Note: "all refused", Refuses: true},
			[]*fakeLoop{{}, silent}, true, 503, "a shutdown runs; 1 of 2 loops do not answer; all refused"},
	} {
		s := start(t, "", tt.loops...)
		s.store, s.draining = tt.store, tt.draining
		status, text := s.get("/readyz", "")
		var r readiness
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			t.Fatal(err)
		}
		if status != tt.status || r.Ready != (status == 200) || r.Note != tt.note || r.Store != tt.store.Backend {
			t.Errorf("%s: %d %s", tt.name, status, text)
		}
		if r.StoreLostAt == nil != tt.store.LostAt.IsZero() || r.StoreLostAt != nil && !r.StoreLostAt.Equal(lostAt) || r.StoreError != shortened(tt.store.Error) {
			t.Errorf("%s: lost at %v because of %q", tt.name, r.StoreLostAt, r.StoreError)
		}
		if len(text) > 2*errorTextBytesMax {
			t.Errorf("%s: %d bytes", tt.name, len(text))
		}
	}
}

func TestProfilesAreGuarded(t *testing.T) {
	open := start(t, "", &fakeLoop{})
	if status, _ := open.get("/debug/pprof/", "Bearer anything"); status != http.StatusNotFound {
		t.Errorf("without a token set: %d", status)
	}
	s := start(t, "correct-token", &fakeLoop{})
	for _, tt := range []struct {
		authorization string
		want          int
	}{
		{"", http.StatusUnauthorized},
		{"Bearer correct-toke", http.StatusUnauthorized},
		{"Bearer ", http.StatusUnauthorized},
		{"Bearer correct-token", http.StatusOK},
		{"Basic eDpjb3JyZWN0LXRva2Vu", http.StatusOK}, // x:correct-token
	} {
		if status, _ := s.get("/debug/pprof/cmdline", tt.authorization); status != tt.want {
			t.Errorf("%q: %d, want %d", tt.authorization, status, tt.want)
		}
	}
}

func TestUnknownPage(t *testing.T) {
	s := start(t, "", &fakeLoop{})
	if status, _ := s.get("/v1/models", ""); status != http.StatusNotFound {
		t.Errorf("status %d", status)
	}
	answer, err := http.Post(s.url+"/metrics", "text/plain", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", answer.StatusCode)
	}
}
