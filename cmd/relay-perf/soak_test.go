package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"relay/perf/soak"
)

// TestSoakOfRelay builds Relay and soaks it for a moment: all checks pass.
func TestSoakOfRelay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	relay, file := filepath.Join(dir, "relay"), filepath.Join(dir, "result.json")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", relay, "relay/cmd/relay").CombinedOutput(); err != nil {
		t.Fatalf("build: %v: %s", err, out)
	}
	// A pool of one: descriptors come back at once and not when kept connections
	// have been idle for their time.
	out, err := run(t, strings.Fields("soak --relay "+relay+" --relay-env RELAY_UPSTREAM_MAX_IDLE_PER_HOST=1 --rate 200 --requests 400 --accounts 9 --pace instant,first=300ms --overhead-max 30s --return 30s --json "+file)...)
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, want := range []string{"| rows | 901 in 9 accounts, by status map[200:901] |", "| lost | 0 |", "| back at the base | after"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var kept struct {
		Command string
		Results soak.Result
	}
	if err := json.Unmarshal(text, &kept); err != nil || kept.Command != "soak" || kept.Results.Count.Rows != 901 || kept.Results.Most.Exchanges < 20 {
		t.Errorf("result file: %+v, %v", kept, err)
	}
}

// TestSoakFails: a check that does not pass is named, and is an error.
func TestSoakFails(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ args, has string }{
		{"soak --target direct --rate 100 --requests 20 --accounts 3 --pace instant,status=400,times=4 --return 20s", "answers: 8 requests of the warm-up had status 400"},
		{"soak --target envoy", "--targets envoy: want any of relay"},
		{"soak --target direct --rate 0", "rate 0"},
		{"soak --target direct --requests 0", "0 requests"},
		{"soak --target direct --accounts 0", "--accounts 0: want 1 to 10000"},
		{"soak --target direct --leave-share 2", "a share of 2 of leaving callers"},
		{"soak --target direct --pace odd", `no scenario word "odd"`},
	} {
		if out, err := run(t, strings.Fields(tt.args)...); err == nil || !strings.Contains(out, tt.has) {
			t.Errorf("%s: %v %s", tt.args, err, out)
		}
	}
	if out, err := run(t, "soak"); err != nil || !strings.Contains(out, "relay is left out") {
		t.Errorf("without a target: %v %s", err, out)
	}
}
