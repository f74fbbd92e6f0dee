package openloop

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"relay/perf/mockhost"
)

// These tests prove the meter itself.

func startMock(t *testing.T, scenario string) *mockhost.Server {
	t.Helper()
	mock, err := mockhost.Start(mockhost.Options{Scenario: scenario})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mock.Close() })
	return mock
}

func measure(t *testing.T, o Options) *Result {
	t.Helper()
	if o.Mix.ChatModel == "" {
		o.Mix.ChatModel, o.Mix.MessagesModel = "gpt-mock", "claude-mock"
	}
	r, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A planted delay of 5 ms shows as 5 ms of latency and as no overhead.
func TestMeterShowsPlantedDelay(t *testing.T) {
	mock := startMock(t, "instant,first=5ms")
	best := &Result{}
	for range 3 { // the machine may be busy
		r := measure(t, Options{Addr: mock.Addr(), Rate: 300, Hold: time.Second})
		for kind, k := range r.ByKind {
			if k.Total.P50 < 5 || k.Overhead.P50 > k.Total.P50-5+0.01 {
				t.Fatalf("%s: total %.2f ms, overhead %.2f ms: the planted 5 ms are missing", kind, k.Total.P50, k.Overhead.P50)
			}
		}
		if best.Overhead.Count == 0 || r.Overhead.P50 < best.Overhead.P50 {
			best = r
		}
	}
	if chat := best.ByKind["chat"].Total.P50; chat > 8 {
		t.Errorf("a planted delay of 5 ms shows as %.2f ms", chat)
	}
}

// The generator against the mock alone adds next to nothing.
func TestMeterAddsLittle(t *testing.T) {
	mock := startMock(t, "fast")
	var seen []float64
	for range 5 { // the machine may be busy
		r := measure(t, Options{Addr: mock.Addr(), Rate: 300, WarmUp: 300 * time.Millisecond, Hold: time.Second, Connections: 40})
		if r.Overhead.P50 < 0.3 && r.Overhead.Count > 0 {
			return
		}
		seen = append(seen, r.Overhead.P50)
	}
	t.Errorf("overhead p50 against the mock directly: %v ms, want below 0.3", seen)
}

// A generator that stops for a while makes its run void.
func TestMeterSeesItsOwnStall(t *testing.T) {
	mock := startMock(t, "instant")
	o := Options{Addr: mock.Addr(), Rate: 500, Hold: 600 * time.Millisecond}
	o.stall = func(n int) {
		if n == 100 {
			time.Sleep(150 * time.Millisecond)
		}
	}
	r := measure(t, o)
	if !r.Late || r.Lag.Max < 100 || r.Offered != 300 {
		t.Errorf("late %t, lag %+v, offered %d", r.Late, r.Lag.Max, r.Offered)
	}
}

// Streams count as good only when they are whole and right.
func TestMeterJudgesStreams(t *testing.T) {
	for _, tt := range []struct {
		words string
		good  bool
	}{
		{"tokens=40,per=4", true},
		{"tokens=40,per=4,crlf", true},
		{"tick=10ms,events=5", true},
		{"tokens=40,cut=3", false},
		{"tokens=40,cut-rst=3", false},
		{"tokens=40,nodone", false},
		{"tokens=40,malformed=3", false},
		{"tokens=40,error-frame=3", false},
		{"tokens=40,out=41", false}, // a word of the content is missing
		{"json-on-stream", false},
		{"status=503", false},
	} {
		t.Run(tt.words, func(t *testing.T) {
			mock := startMock(t, "instant")
			r := measure(t, Options{Addr: mock.Addr(), Rate: 100, Hold: 200 * time.Millisecond, Drain: 5 * time.Second,
				Mix: Mix{ChatModel: "m:" + tt.words, MessagesModel: "m:" + tt.words, Stream: true}})
			bad := r.ByKind["chat"].Bad + r.ByKind["messages"].Bad
			if tt.good && (bad != 0 || r.ByKind["chat"].FirstEvent.Count != 10 || r.ByKind["messages"].Gap.Count == 0) {
				t.Errorf("%d bad: %+v %v", bad, r.ByKind["chat"], r.Failures)
			}
			if !tt.good && bad != 20 {
				t.Errorf("%d bad of 20: statuses %v, failures %v", bad, r.ByStatus, r.Failures)
			}
		})
	}
}

// First events and gaps are those of the mock.
func TestMeterTimesStreams(t *testing.T) {
	mock := startMock(t, "instant,first=30ms,tps=1000,tokens=40,per=20")
	r := measure(t, Options{Addr: mock.Addr(), Rate: 100, Hold: 400 * time.Millisecond, Mix: Mix{
		ChatModel: "gpt-mock", MessagesModel: "claude-mock", StreamShare: 0.5}})
	for kind, k := range r.ByKind {
		if k.Sent != 20 || k.FirstEvent.Count != 10 || k.FirstEvent.P50 < 30 || k.Gap.Count != 10 || k.Gap.P50 < 10 || k.Bad != 0 {
			t.Errorf("%s: %+v", kind, k)
		}
	}
	if r.ByStatusAll[200] != 40 || r.LostAll != 0 {
		t.Errorf("all: %v, lost %d", r.ByStatusAll, r.LostAll)
	}
}

func TestMeterCountsRefusals(t *testing.T) {
	mock := startMock(t, "instant")
	r := measure(t, Options{Addr: mock.Addr(), Rate: 100, Hold: 400 * time.Millisecond,
		Mix: Mix{ChatModel: "m:status=503", MessagesModel: "m"}})
	if r.RefusedShare != 0.5 || r.Refusal.Count != 20 || r.ErrorShare != 1 || r.SentRate != 100 {
		t.Errorf("refused %v, refusals %d, errors %v, sent %v", r.RefusedShare, r.Refusal.Count, r.ErrorShare, r.SentRate)
	}
}

// Two generators that are merged are as one that has seen everything.
func TestMergeIsOne(t *testing.T) {
	var both, one, two tally
	both.init()
	one.init()
	two.init()
	begin := time.Now()
	for _, y := range []*tally{&both, &one, &two} {
		y.holdBegin, y.holdEnd = begin, begin.Add(time.Second)
	}
	watch := &stream{}
	for n := range 1000 {
		j := job{due: begin, kind: Kind(n % kinds), held: n%10 != 0}
		into := [...]*tally{&one, &two}[n/7%2]
		for _, y := range []*tally{&both, into} {
			if j.held {
				y.offered++
				y.lag.record(int64(n % 50))
			}
			switch {
			case n%97 == 0:
				y.fail(j, errAnswer)
			case n%101 == 0:
				y.take(j, answer{status: 529, mockUs: -1}, watch, begin, begin.Add(time.Millisecond))
			default:
				at := begin.Add(time.Duration(n*n) * time.Microsecond)
				y.take(j, answer{status: 200, mockUs: int64(n)}, watch, at, at)
			}
		}
	}
	merged, err := Merge(roundTrip(t, one.result(time.Second)), roundTrip(t, two.result(time.Second)))
	if err != nil {
		t.Fatal(err)
	}
	want := roundTrip(t, both.result(time.Second))
	if got := roundTrip(t, merged); !reflect.DeepEqual(got, want) {
		t.Errorf("merged\n%+v\nwant\n%+v", got, want)
	}
}

func roundTrip(t *testing.T, r *Result) *Result {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	back := new(Result)
	if err := json.Unmarshal(text, back); err != nil {
		t.Fatal(err)
	}
	return back
}

func TestMergeRefuses(t *testing.T) {
	whole := func() *Result {
		var y tally
		y.init()
		y.lag.record(5)
		return y.result(time.Second)
	}
	broken, cut, longer := whole(), whole(), whole()
	broken.Lag.Histogram = []byte("nonsense")
	cut.Lag.Count++
	longer.HoldSeconds = 2
	for name, results := range map[string][]*Result{
		"nothing": nil, "histogram": {whole(), broken}, "values": {cut}, "hold": {whole(), longer},
	} {
		if _, err := Merge(results...); err == nil || !strings.HasPrefix(err.Error(), "openloop: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
