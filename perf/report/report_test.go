package report

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSpread(t *testing.T) {
	for _, tt := range []struct {
		values []float64
		want   string
	}{
		{nil, "–"},
		{[]float64{3}, "3.0 [3.0–3.0]"},
		{[]float64{5, 1, 3}, "3.0 [1.0–5.0]"},
		{[]float64{4, 1, 2, 3}, "2.5 [1.0–4.0]"},
	} {
		if got := Of(tt.values...).Text(1); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.values, got, tt.want)
		}
	}
}

func TestTable(t *testing.T) {
	var b strings.Builder
	if err := Table(&b, []string{"a", "b"}, [][]string{{"1", "2"}}); err != nil {
		t.Fatal(err)
	}
	if want := "| a | b |\n| --- | --- |\n| 1 | 2 |\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "result.json")
	if err := Write(path, "compare", map[string]int{"rate": 7}, []int{1}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var f File
	if err := json.Unmarshal(text, &f); err != nil || f.Command != "compare" || f.Host.CPUs == 0 || f.Taken.IsZero() {
		t.Errorf("read back %+v, %v", f, err)
	}
}
