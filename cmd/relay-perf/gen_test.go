package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"relay/perf/mockhost"
	"relay/perf/openloop"
)

// TestGenProcesses: two processes send exactly what one schedule says, and what
// they keep merges to the same result.
func TestGenProcesses(t *testing.T) {
	mock, err := mockhost.Start(mockhost.Options{Scenario: "instant"})
	if err != nil {
		t.Fatal(err)
	}
	defer mock.Close()
	file := filepath.Join(t.TempDir(), "two.json")
	out, err := run(t, "gen", "--addr", mock.Addr(), "--processes", "2", "--rate", "401", "--warm-up", "200ms", "--hold", "1s", "--stream-share", "0.25", "--json", file)
	if err != nil && !strings.Contains(out, "was late") {
		t.Fatalf("%v: %s", err, out)
	}
	var got openloop.Result
	if err := json.NewDecoder(strings.NewReader(out[strings.IndexByte(out, '{'):])).Decode(&got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got.Offered < 400 || got.Offered > 402 || got.Answered != got.Offered || got.ErrorShare != 0 {
		t.Errorf("offered %d, answered %d, errors %v", got.Offered, got.Answered, got.ErrorShare)
	}
	if stats := mock.Stats(); int64(stats.Requests) != got.ByStatusAll[200] {
		t.Errorf("the mock saw %d requests, the generators %v", stats.Requests, got.ByStatusAll)
	}
	out, _ = run(t, "gen", "--merge", file, "--merge", file)
	var twice openloop.Result
	if err := json.NewDecoder(strings.NewReader(out)).Decode(&twice); err != nil || twice.Offered != 2*got.Offered || twice.Lag.Count != 2*got.Lag.Count {
		t.Errorf("%v: twice %d is %d", err, got.Offered, twice.Offered)
	}
}

func TestGenWrongUse(t *testing.T) {
	junk := filepath.Join(t.TempDir(), "junk.json")
	if err := os.WriteFile(junk, []byte(`{"Command":"idle"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ args, has string }{
		{"gen", "--addr is missing"},
		{"gen --addr 127.0.0.1:1", "connect 127.0.0.1:1"},
		{"gen --addr 127.0.0.1:1 --stream-share 2", "want 0 to 1"},
		{"gen --addr 127.0.0.1:1 --processes 0", "want 1 to 64"},
		{"gen --addr 127.0.0.1:1 --processes 2 --hold 100ms --warm-up 0s", "connect 127.0.0.1:1"},
		{"gen --merge " + junk, "is no result of gen"},
		{"gen --merge /nonexistent", "/nonexistent"},
		{"gen --worker", "options on stdin"},
	} {
		if out, err := run(t, strings.Fields(tt.args)...); err == nil || !strings.Contains(out, tt.has) {
			t.Errorf("%s: %v %s", tt.args, err, out)
		}
	}
}
