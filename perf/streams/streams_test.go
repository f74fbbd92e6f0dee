package streams

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"relay/perf/mockhost"
	"relay/perf/openloop"
)

func newHold(addr string, events int) *hold {
	h := &hold{o: &Options{Plan: Plan{Tick: 10 * time.Millisecond, Events: events}}, addr: addr, result: &Result{Failed: make(map[string]int)}}
	mix := openloop.Mix{Host: addr, ChatModel: "gpt-mock", MessagesModel: "claude-mock", Stream: true}
	for kind := range h.requests {
		h.requests[kind] = mix.Request(openloop.Kind(kind), "", 300)
	}
	for i := range h.shards {
		h.shards[i].gap, h.shards[i].delay = hdrhistogram.New(1, gapMaxUs, 3), hdrhistogram.New(1, gapMaxUs, 3)
	}
	return h
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
			h := newHold(mock.Addr(), tt.events)
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
		var r Result
		if r.exclude(tt.ticks, tt.missed); (r.Excluded != "") != tt.excluded {
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
