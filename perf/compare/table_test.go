package compare

import (
	"strings"
	"testing"

	"relay/perf/openloop"
)

func TestRows(t *testing.T) {
	step := func(name string, cpu float64, goroutines int, excluded string) Step {
		return Step{Target: name, CPUPerRequestUs: cpu, Goroutines: goroutines, Excluded: excluded,
			Load: &openloop.Result{ServedRate: 2000}, RSSBytes: 10e6}
	}
	rows := Rows([]Step{
		step("a", 50, 20, ""), step("b", 100, -1, ""),
		step("a", 60, 25, ""), step("b", 9999, -1, "late"),
		step("a", 40, 22, ""), step("b", 120, -1, ""),
	})
	if len(rows) != 2 {
		t.Fatalf("%d rows, want 2", len(rows))
	}
	a, b := rows[0], rows[1]
	if a.CPUPerRequest.Median != 50 || a.CPUPerRequest.Low != 40 || a.Ratio != 1 || a.Goroutines != 25 || a.Rounds != 3 {
		t.Errorf("a: %+v", a)
	}
	if b.CPUPerRequest.Median != 110 || b.CPUPerRequest.High != 120 || b.Ratio != 2.2 || b.Excluded != 1 || b.Goroutines != -1 {
		t.Errorf("b: %+v, want the excluded step in no figure", b)
	}
	var out strings.Builder
	if err := Print(&out, rows, []string{"c is left out: c is not installed"}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| a | 3 | 50.0 [40.0–60.0] | 1.00 | 2000 [2000–2000] |", "| b | 2 (1 excluded) |", "c is left out"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
