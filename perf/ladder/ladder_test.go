package ladder

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestWrongOptions(t *testing.T) {
	for _, tt := range []struct {
		name string
		o    Options
		want string
	}{
		{"profile", Options{Profile: "slow"}, "want one of quick, local, full"},
		{"scenario", Options{Profile: "quick", Scenarios: []string{"one-rely"}}, "past-capacity"},
		{"number", Options{Profile: "quick", Scenarios: []string{"99"}}, "past-capacity"},
		{"system", Options{Profile: "quick", Systems: []string{"envoy"}}, "want any of relay, nethttp, fasthttp, haproxy, nginx, direct"},
		{"rounds", Options{Profile: "quick", Rounds: 1000}, "want 1 to 100"},
		{"rate", Options{Profile: "quick", Rates: []float64{100, -1}}, "want more than 0"},
		{"hold", Options{Profile: "quick", Hold: 2 * time.Hour}, "want a hold"},
		{"keys", Options{Profile: "quick", Keys: 1_000_000}, "want 1 to 100000"},
		{"processes", Options{Profile: "quick", Processes: 100}, "want 1 to 64"},
		{"no mock", Options{Profile: "quick", Gateway: "10.0.0.1:8080"}, "both addresses"},
		{"not remote", Options{Profile: "quick", Gateway: "10.0.0.1:8080", Mock: "10.0.0.2:9090"}, "starts its gateways itself"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.o.Progress = io.Discard
			if _, err := Run(t.Context(), tt.o); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q in it", err, tt.want)
			}
		})
	}
}

func TestScenarios(t *testing.T) {
	seen := make(map[string]bool)
	for i, s := range scenarios() {
		if s.number != i || s.name == "" || s.asks == "" || seen[s.name] {
			t.Errorf("scenario %d: %+v", i, s)
		}
		seen[s.name] = true
		if s.run == nil && s.completedBy == "" {
			t.Errorf("%s measures nothing and waits for nothing", s.name)
		}
		if byName, err := findScenario(s.name); err != nil || byName.number != i {
			t.Errorf("%s: %v", s.name, err)
		}
	}
	for _, p := range Profiles() {
		for _, name := range p.scenarios {
			if _, err := findScenario(name); err != nil {
				t.Errorf("profile %s: %v", p.Name, err)
			}
		}
		if !slices.IsSorted(p.rates) || !slices.IsSorted(p.streams) || !slices.IsSorted(p.idle) {
			t.Errorf("profile %s does not go upwards", p.Name)
		}
	}
}

func TestSpread(t *testing.T) {
	for _, tt := range []struct {
		all  []int
		n    int
		want []int
	}{
		{nil, 3, nil}, {[]int{1, 2, 3}, 3, []int{1, 2, 3}}, {[]int{0, 1, 2, 3, 4, 5}, 3, []int{0, 2, 4}}, {[]int{0, 1, 2, 3, 4}, 2, []int{0, 2}},
	} {
		if got := spread(tt.all, tt.n); !slices.Equal(got, tt.want) {
			t.Errorf("%d of %v: %v, want %v", tt.n, tt.all, got, tt.want)
		}
	}
}

// TestShelf keeps what its owner deletes, replaces and appends to.
func TestShelf(t *testing.T) {
	source := filepath.Join(t.TempDir(), "state")
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(source, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	s, err := newShelf(source)
	if err != nil {
		t.Fatal(err)
	}
	write("run/0/1.seg", "first ")
	write("run/run.json", "open")
	if err := s.link(); err != nil {
		t.Fatal(err)
	}
	write("run/0/1.seg", "segment")
	for _, name := range []string{"run/0/1.seg", "run/run.json"} {
		if err := os.Remove(filepath.Join(source, name)); err != nil {
			t.Fatal(err)
		}
	}
	write("run/run.json", "sealed")
	write("run/0/2.seg", "second")
	folder, err := s.close()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"run/0/1.seg": "first segment", "run/0/2.seg": "second", "run/run.json": "sealed"} {
		if got, err := os.ReadFile(filepath.Join(folder, name)); err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v, want %q", name, got, err, want)
		}
	}
	s.remove()
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("%s is left behind: %v", folder, err)
	}
}
