package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"relay/perf/report"
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

// TestMeasurements runs each measurement small, against the net/http gateway.
func TestMeasurements(t *testing.T) {
	for _, tt := range []struct {
		name, args string
		has        []string
	}{
		{"streams", "streams --targets nethttp --streams 20 --open-rate 100 --hold 400ms --tick 50ms",
			[]string{"20 of 20 completed"}},
		{"idle", "idle --targets nethttp --connections 50 --hold 300ms",
			[]string{"| nethttp | 50 | 50 |"}},
		{"reader", "reader --targets nethttp --pour-mb 3 --rate-mb 10 --stop-mb 1 --stop-for 300ms",
			[]string{"whole, every byte checked | 3.0"}},
		{"reader that never reads again", "reader --targets nethttp --pour-mb 30 --rate-mb 10 --stop-mb 1 --never --give-up 300ms",
			[]string{"NOT given up within 300ms"}},
		{"lanes", "lanes --rate 400 --policies 10 --warm-up 100ms --hold 300ms",
			[]string{"| 400 | leases | ", "| 200 | memory | ", "* Leases at 400/s: "}},
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

// TestLadder runs the quick ladder small, with accounts and without.
func TestLadder(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	out, err := run(t, strings.Fields("ladder --systems relay,nethttp,direct --rates 100,200 --warm-up 100ms --hold 400ms --streams 20 --out "+folder)...)
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, want := range []string{"| 100 | nethttp | ", "| 200 | nethttp | ", "| 200 | direct | ", "| 20 | nethttp | ", "relay is left out"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	text, err := os.ReadFile(filepath.Join(folder, "latest.json"))
	if err != nil {
		t.Fatal(err)
	}
	var got report.Run
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Missing) != 1 || len(got.Scenarios) != 1 || len(got.Scenarios[0].Points) != 4 || got.Settings["hold"] != "400ms" {
		t.Fatalf("result %s", text)
	}
	for _, p := range got.Scenarios[0].Points {
		if p.Excluded != "" { // the machine may be busy
			continue
		}
		if p.Served == 0 || p.ErrorShare != 0 || p.CPUPerRequestUs < 0 || p.RSSBytes == 0 {
			t.Errorf("point %+v", p)
		}
		if keeps := p.System == "nethttp"; keeps != (p.Money != nil) || keeps && (p.Money.Rows != p.Money.Answered || p.Money.Problem != "" || p.Goroutines < 1) {
			t.Errorf("%s: money %+v, %d goroutines", p.System, p.Money, p.Goroutines)
		}
	}
	for _, p := range got.Scenarios[0].Streams {
		if p.Completed != 20 || (p.System == "nethttp") != (p.Money != nil) || p.Money != nil && p.Money.Rows != 20 {
			t.Errorf("streams %+v, money %+v", p, p.Money)
		}
	}
	if kept, err := filepath.Glob(filepath.Join(folder, "run-*.json")); err != nil || len(kept) != 1 {
		t.Errorf("%v is kept, %v", kept, err)
	}
}

func TestWrongUse(t *testing.T) {
	for _, tt := range []struct{ args, has string }{
		{"ladder --systems envoy", "want any of relay"},
		{"ladder --scenario one-rely", "past-capacity"},
		{"ladder --relay /nonexistent/relay", "is no relay binary"},
		{"ladder --rounds 1000", "want 1 to 100"},
		{"streams --rounds 0", "want 1 to 100"},
		{"lanes --redis 127.0.0.1:1 --modes guess", "want any of"},
		{"streams --targets nethttp --streams 10000000", "raise the limit"},
		{"idle --targets nethttp --connections 10000000", "raise the limit"},
		{"gen --addr 127.0.0.1:1 --rate 0", "want more than 0"},
		{"mock --scenario odd", `no scenario word "odd"`},
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
