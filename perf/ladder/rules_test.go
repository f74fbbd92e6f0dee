package ladder

import (
	"slices"
	"testing"

	"relay/perf/report"
)

// points makes one point per rung, of one round.
func points(system string, steps ...rung) []report.Point {
	var out []report.Point
	for _, s := range steps {
		out = append(out, report.Point{
			System: system, Round: 1, Offered: s.offered, Sent: s.offered, Served: s.served, ErrorShare: s.errorShare,
			OverheadP99Ms: s.overheadP99Ms, Cores: map[string]float64{partGateway: s.cores},
		})
	}
	return out
}

func TestSummarize(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   []rung
		want report.Summary
	}{
		{"nothing", nil, report.Summary{}},
		{"past its knee", []rung{{1000, 1000, 0, 2, 0.5}, {2000, 1990, 0.001, 15, 1}, {3000, 2900, 0.001, 80, 2}, {4000, 3100, 0.2, 300, 2}},
			report.Summary{Knee: 1990, Capacity: 2900, CapacityP99Ms: 80, Highest: 3100, HighestErrorShare: 0.2, PerCore: 1450}},
		{"a lower step is too slow", []rung{{1000, 1000, 0, 16, 1}, {2000, 2000, 0, 3, 1}},
			report.Summary{Capacity: 2000, CapacityP99Ms: 3, Highest: 2000, PerCore: 2000}},
		{"errors at a lower step", []rung{{1000, 990, 0.0011, 1, 1}, {2000, 2000, 0, 3, 1}},
			report.Summary{Capacity: 2000, CapacityP99Ms: 3, Highest: 2000, PerCore: 2000}},
		{"errors everywhere", []rung{{1000, 990, 0.01, 1, 1}}, report.Summary{Highest: 990, HighestErrorShare: 0.01}},
		{"less is served past the peak", []rung{{1000, 1000, 0, 1, 0.5}, {2000, 700, 0, 900, 1}},
			report.Summary{Knee: 1000, Capacity: 1000, CapacityP99Ms: 1, Highest: 1000, PerCore: 2000}},
		{"nothing is known of cores", []rung{{1000, 1000, 0, 1, 0}}, report.Summary{Knee: 1000, Capacity: 1000, CapacityP99Ms: 1, Highest: 1000}},
		{"in any order", []rung{{2000, 2000, 0, 30, 1}, {1000, 1000, 0, 1, 1}},
			report.Summary{Knee: 1000, Capacity: 2000, CapacityP99Ms: 30, Highest: 2000, PerCore: 2000}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := summarize(points("a", tt.in...))
			if tt.in == nil {
				if len(got) != 0 {
					t.Errorf("got %+v of nothing", got)
				}
				return
			}
			tt.want.System = "a"
			if len(got) != 1 || got[0] != tt.want {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

func TestSummarizeRounds(t *testing.T) {
	in := slices.Concat(
		points("a", rung{1000, 1000, 0, 2, 1}, rung{2000, 2000, 0, 3, 1}),
		points("b", rung{1000, 1000, 0, 1, 1}),
		points("a", rung{1000, 1000, 0, 4, 1}, rung{2000, 2000, 0, 90, 1}),
		points("a", rung{1000, 1000, 0, 99, 1}, rung{2000, 2000, 0, 4, 1}),
		points("a", rung{3000, 3000, 0, 1, 1}),
	)
	in[len(in)-1].Excluded = "the generator was late"
	got := summarize(in)
	if len(got) != 2 || got[0].System != "a" || got[1].System != "b" {
		t.Fatalf("got %+v, want a and b", got)
	}
	if got[0].Knee != 2000 || got[0].Highest != 2000 {
		t.Errorf("got %+v, want medians over rounds and the excluded step in no figure", got[0])
	}
}

func TestIsEnd(t *testing.T) {
	good := report.Point{Sent: 1000, Served: 1000}
	late := report.Point{Sent: 1000, Served: 1000, Excluded: "late"}
	for _, tt := range []struct {
		name string
		in   []report.Point
		want bool
	}{
		{"nothing yet", nil, false},
		{"all well", []report.Point{good}, false},
		{"refuses", []report.Point{good, {Sent: 1000, Served: 930, ErrorShare: 0.07}}, true},
		{"some errors", []report.Point{{Sent: 1000, Served: 990, ErrorShare: 0.01}}, false},
		{"stays behind", []report.Point{{Sent: 1000, Served: 800}}, true},
		{"late once", []report.Point{good, late}, false},
		{"late twice", []report.Point{good, late, late}, true},
		{"late, then not", []report.Point{late, good, late}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := isEnd(tt.in); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestKept(t *testing.T) {
	in := []report.Point{
		{System: "a", Variant: "cap 10, below capacity", Offered: 90, Sent: 90, Served: 90},
		{System: "a", Variant: "cap 10, at 2 times", Offered: 200, Sent: 200, Served: 89, RefusalP99Ms: 2},
		{System: "b", Variant: "cap 10, below capacity", Offered: 90, Sent: 90, Served: 90},
		{System: "b", Variant: "cap 10, at 2 times", Offered: 200, Sent: 200, Served: 45, RefusalP99Ms: 900},
		{System: "b", Variant: "cap 10, at 3 times", Offered: 300, Sent: 300, Served: 5, Excluded: "late"},
	}
	want := []string{
		"a, cap 10, at 2 times (200/s): 89/s were served, 99 % of the most that it ever served; a refusal took 2.0 ms at p99.",
		"b, cap 10, at 2 times (200/s): 45/s were served, 50 % of the most that it ever served; a refusal took 900.0 ms at p99; it should keep 95 %.",
	}
	if got := kept(in); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
