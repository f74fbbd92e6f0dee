package streams

import (
	"context"
	"strings"
	"testing"
	"time"

	"relay/perf/mockhost"
	"relay/perf/openloop"
)

func testHold(addr string, events int) *hold {
	o := &Options{BodyBytes: 300, Plan: Plan{Tick: 10 * time.Millisecond, Events: events}}
	return newHold(o, addr, openloop.Mix{Host: addr, Keys: []string{"a", "b"}, ChatModel: "gpt-mock", MessagesModel: "claude-mock", Stream: true})
}

// TestFollow: whatever is wrong with a stream must not pass as completed.
func TestFollow(t *testing.T) {
	plan := Plan{Tick: 10 * time.Millisecond, Events: 15}
	for _, tt := range []struct {
		name, scenario, err string
		events              int
		missing             int64
	}{
		{"whole", plan.Scenario(), "", 15, 0},
		{"fewer events", plan.Scenario(), "events missing", 17, 2},
		{"other content", "instant,tokens=120", "wrong content", 15, 15},
		{"refused", "instant,status=503", "status 503", 15, 0},
		{"reset", "instant,reset", "reset", 15, 0},
		{"error event", "instant,error-frame", "the stream says", 15, 15},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mock, err := mockhost.Start(mockhost.Options{Scenario: tt.scenario})
			if err != nil {
				t.Fatal(err)
			}
			defer mock.Close()
			h := testHold(mock.Addr(), tt.events)
			for i := range 2 { // one of each kind
				err := h.follow(context.Background(), i, 5*time.Second)
				if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
					t.Errorf("stream %d: %v, want %q", i, err, tt.err)
				}
			}
			if h.result.EventsMissing != 2*tt.missing {
				t.Errorf("%d events missing, want %d", h.result.EventsMissing, 2*tt.missing)
			}
			if tt.err == "" {
				h.summarize()
				if h.shards[0].gap.TotalCount() != 28 || h.result.DelayP50Ms <= 0 || h.result.DelayP50Ms > 1000 {
					t.Errorf("%d gaps, delay %v ms", h.shards[0].gap.TotalCount(), h.result.DelayP50Ms)
				}
			}
		})
	}
}

func TestExclude(t *testing.T) {
	for _, tt := range []struct {
		ticks, missed uint64
		excluded      bool
	}{{0, 0, false}, {1000, 0, false}, {1000, 40, false}, {1000, 100, true}} {
		begin := mockhost.Stats{Ticks: 7, TicksMissed: 90} // while the streams were opened: no matter
		r := Result{MissedShare: missedShare(begin, mockhost.Stats{Ticks: 7 + tt.ticks, TicksMissed: 90 + tt.missed})}
		if r.exclude(); (r.Excluded != "") != tt.excluded {
			t.Errorf("%d ticks, %d missed: %q", tt.ticks, tt.missed, r.Excluded)
		}
	}
}

func TestNewPlan(t *testing.T) {
	p := NewPlan(5000, 1000, 10*time.Second, 100*time.Millisecond)
	if p.Events != 180 {
		t.Errorf("%d events, want those of 5 s opening, 2 s settling, 10 s hold and 1 s tail", p.Events)
	}
}

// TestKeysInTurn: streams of both kinds are of all keys.
func TestKeysInTurn(t *testing.T) {
	o := &Options{BodyBytes: 300_000}
	h := newHold(o, "h", openloop.Mix{Host: "h", Keys: []string{"key-a", "key-b", "key-c"}, Stream: true})
	for _, want := range []string{"Bearer key-a", "x-api-key: key-a", "Bearer key-b", "x-api-key: key-b", "Bearer key-c", "x-api-key: key-c", "Bearer key-a"} {
		n := 0
		for _, r := range h.requests {
			if strings.Contains(string(r), want) {
				n++
			}
			if len(r) < o.BodyBytes {
				t.Errorf("a request of %d bytes", len(r))
			}
		}
		if n < 2 {
			t.Errorf("%d requests with %s", n, want)
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	good := Options{Streams: 5, OpenRate: 10, Hold: time.Second, BodyBytes: 300, Plan: Plan{Tick: time.Second, Events: 3}}
	for _, tt := range []struct {
		change func(*Options)
		want   string
	}{
		{func(o *Options) { o.Streams = 0 }, "0 streams"},
		{func(o *Options) { o.Streams = 10_000_000 }, "raise the limit"},
		{func(o *Options) { o.OpenRate = 0 }, "0 streams opened"},
		{func(o *Options) { o.Hold = 0 }, "held for 0s"},
		{func(o *Options) { o.Plan.Tick = 0 }, "each 0s"},
		{func(o *Options) { o.Plan.Events = 0 }, "0 events"},
		{func(o *Options) { o.BodyBytes = -1 }, "bodies of -1"},
		{func(o *Options) { o.BodyBytes = 1 << 30 }, "bodies of 1073741824"},
		{func(o *Options) { o.Target = "envoy" }, "envoy"},
	} {
		o := good
		tt.change(&o)
		if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want %q", err, tt.want)
		}
	}
}
