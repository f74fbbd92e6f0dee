package soak

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"relay/perf/target"
)

func testSetup(t *testing.T, o *Options) target.Setup {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	mock, err := target.Mock(t.Context(), program, o.Scenario())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mock.Close() })
	return target.Setup{Program: program, RelayPath: program, RelayKeys: 7, Mock: mock}
}

// TestSoak: whatever a gateway does wrong is found, and nothing else.
func TestSoak(t *testing.T) {
	for _, tt := range []struct {
		fault    string
		problems []string // the start of each, in any order; several of one start count once
		err      string
	}{
		{fault: ""},
		{fault: "refuses", problems: []string{"answers: 6 requests of the warm-up had status 503", "answers: 1 requests of the burst had status 503", "answers: 6 requests of the load had status 503"}},
		{fault: "no record", problems: []string{"rows: 676 answers with status 200 have 669 rows", "rows: 676 requests have 669 rows", "accounts: "}},
		{fault: "no end", problems: []string{"rows: 7 admitted requests have no row of their end"}},
		{fault: "two rows", problems: []string{"rows: 7 rows have the request id", "rows: 676 requests have 683 rows", "accounts: "}},
		{fault: "another account", problems: []string{"accounts: "}},
		{fault: "an unknown account", problems: []string{"accounts: "}},
		{fault: "another cost", problems: []string{"rows: 7 rows do not cost what", "cost: "}},
		{fault: "another usage", problems: []string{"usage: 7 rows of whole answers", "cost: "}},
		{fault: "no price", problems: []string{"cost: "}},
		{fault: "leaks goroutines", problems: []string{"return: after 1s goroutines: "}},
		{fault: "leaks files", problems: []string{"return: after 1s descriptors: "}},
		{fault: "leaks memory", problems: []string{"return: after 1s memory: "}},
		{fault: "dies", err: "relay ended in the middle of the run: "},
	} {
		t.Run(tt.fault, func(t *testing.T) {
			t.Parallel()
			o := Options{Target: target.NameRelay, Rate: 400, Requests: 300, rest: 100 * time.Millisecond, Pace: "instant,first=50ms", BodyBytes: 600, Return: time.Second}
			o.Setup = testSetup(t, &o)
			o.Setup.RelayEnv = []string{faultSetting + "=" + tt.fault}
			r, err := Run(t.Context(), o)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) || !strings.Contains(err.Error(), "panic: out of luck") {
					t.Errorf("%v, want %q and the last words", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range tt.problems {
				if !slices.ContainsFunc(r.Problems, func(p string) bool { return strings.HasPrefix(p, want) }) {
					t.Errorf("no problem %q in %q", want, r.Problems)
				}
			}
			for _, p := range r.Problems {
				if !slices.ContainsFunc(tt.problems, func(want string) bool { return strings.HasPrefix(p, want) }) {
					t.Errorf("%q is no problem", p)
				}
			}
			if r.Load.Offered != 300 || r.Count.Rows == 0 || r.CPUPerRequest <= 0 || r.Base.Descriptors == 0 || r.Most.RSS == 0 {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestTrouble: callers who behave badly have their rows too, and slow ones all
// of their answers.
func TestTrouble(t *testing.T) {
	for _, tt := range []struct{ fault, problem string }{{"", ""}, {"cuts", "slow callers: 0 of "}} {
		t.Run(tt.fault, func(t *testing.T) {
			t.Parallel()
			o := Options{
				Target: target.NameRelay, Rate: 100, Requests: 100, rest: 100 * time.Millisecond, Pace: "instant,first=50ms", BodyBytes: 600, Return: 5 * time.Second,
				Trouble: Trouble{SlowShare: 0.1, LeaveShare: 0.2, FaultShare: 0.4, Faults: []string{"status=500", "reset", "status=429,retry-after=1"}},
			}
			o.Setup = testSetup(t, &o)
			o.Setup.RelayEnv = []string{faultSetting + "=" + tt.fault}
			r, err := Run(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if tt.problem == "" && len(r.Problems) != 0 || tt.problem != "" && (len(r.Problems) != 1 || !strings.HasPrefix(r.Problems[0], tt.problem)) {
				t.Errorf("problems %q, want %q", r.Problems, tt.problem)
			}
			left, failed := r.Trouble[leave], r.Trouble[fault]
			if r.Trouble[slow].Callers != 10 || left.Callers != 20 || left.Lost != 20 || failed.Callers != 40 || failed.ByStatus[500] != 14 || failed.ByStatus[429] != 13 || failed.ByStatus[502] != 13 {
				t.Errorf("%+v", r.Trouble)
			}
		})
	}
}

// TestDirect: what keeps no accounts has no count, and all else is judged.
func TestDirect(t *testing.T) {
	o := Options{Target: target.NameDirect, Rate: 100, Requests: 30, rest: 100 * time.Millisecond, Pace: "instant,first=50ms", LatencyMax: 10 * time.Millisecond, OverheadMax: time.Minute, Return: time.Second}
	o.Setup = testSetup(t, &o)
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if r.Count != nil || r.Load.Offered != 30 || r.InFlight == 0 || r.Base.Goroutines != -1 {
		t.Errorf("%+v", r)
	}
	if r.Excluded == "" && (len(r.Problems) != 1 || !strings.HasPrefix(r.Problems[0], "latency: ")) {
		t.Errorf("problems %q, want that 50 ms are more than 10 ms", r.Problems)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for _, tt := range []struct {
		o    Options
		want string
	}{
		{Options{Requests: 5}, "rate 0"},
		{Options{Rate: 1e6, Requests: 5}, "rate 1e+06"},
		{Options{Rate: 5}, "0 requests"},
		{Options{Rate: 5, Requests: 1e9}, "1000000000 requests"},
		{Options{Rate: 5, Requests: 5, BodyBytes: -1}, "bodies of -1"},
		{Options{Rate: 5, Requests: 5, OverheadMax: -1}, "a bound below 0"},
		{Options{Rate: 5, Requests: 5, Trouble: Trouble{LeaveShare: 0.6}}, "a share of 0.6 of leaving callers"},
		{Options{Rate: 5, Requests: 5, Trouble: Trouble{SlowShare: -0.1}}, "a share of -0.1 of slow callers"},
		{Options{Rate: 5, Requests: 5, Target: "envoy"}, "envoy"},
	} {
		if _, err := Run(t.Context(), tt.o); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %q", tt.o, err, tt.want)
		}
	}
}

// TestShares: the keys take turns within each kind, anew after all variants.
func TestShares(t *testing.T) {
	for _, n := range []int64{1, 2, 7, 1024, 1025, 5000} {
		sent, want := make([]int64, 7), make([]int64, 7)
		shares(sent, n)
		for i := range n {
			want[i/2%variants%7]++
		}
		if !slices.Equal(sent, want) {
			t.Errorf("%d requests: %v, want %v", n, sent, want)
		}
	}
}
