package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// asCommand makes the test binary be relay-perf, also in the processes that it
// starts.
const asCommand = "RELAY_PERF_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// run runs a command line to its end.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), asCommand+"=1")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestMeasurements runs each measurement small, against the net/http proxy.
func TestMeasurements(t *testing.T) {
	for _, tt := range []struct {
		name, args string
		has        []string
	}{
		{"compare", "compare --targets relay,net/http,direct --rate 200 --rounds 1 --warm-up 100ms --hold 500ms --connections 10",
			[]string{"| net/http | ", "| direct | ", "relay is left out"}},
		{"streams", "streams --targets net/http --streams 20 --open-rate 100 --hold 400ms --tick 50ms",
			[]string{"20 of 20 completed"}},
		{"idle", "idle --targets net/http --connections 50 --hold 300ms",
			[]string{"| net/http | 50 | 50 |"}},
		{"reader", "reader --targets net/http --pour-mb 3 --rate-mb 10 --stop-mb 1 --stop-for 300ms",
			[]string{"whole, every byte checked | 3.0"}},
		{"reader that never reads again", "reader --targets net/http --pour-mb 30 --rate-mb 10 --stop-mb 1 --never --give-up 300ms",
			[]string{"NOT given up within 300ms"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "result.json")
			out, err := run(t, append(strings.Fields(tt.args), "--json", file)...)
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			for _, want := range tt.has {
				if !strings.Contains(out, want) {
					t.Errorf("no %q in\n%s", want, out)
				}
			}
			text, err := os.ReadFile(file)
			if err != nil || !json.Valid(text) || !strings.Contains(string(text), `"Command": "`+strings.Fields(tt.args)[0]) {
				t.Errorf("result file: %v %.200s", err, text)
			}
		})
	}
}

func TestWrongUse(t *testing.T) {
	for _, tt := range []struct{ args, has string }{
		{"compare --targets envoy", "relay"},
		{"streams --rounds 0", "want 1 to 100"},
		{"streams --targets net/http --streams 10000000", "raise the limit"},
		{"idle --targets net/http --connections 10000000", "raise the limit"},
		{"gen --addr 127.0.0.1:1 --rate 0", "want more than 0"},
		{"mock --scenario odd", `no scenario word "odd"`},
		{"baseline-proxy --upstream nonsense", "want a URL"},
	} {
		if out, err := run(t, strings.Fields(tt.args)...); err == nil || !strings.Contains(out, tt.has) {
			t.Errorf("%s: %v %s", tt.args, err, out)
		}
	}
}

func TestMockList(t *testing.T) {
	if out, err := run(t, "mock", "--list"); err != nil || !strings.Contains(out, "pour=BYTES") {
		t.Errorf("%v: %s", err, out)
	}
}
