package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"relay/perf/report"
)

func TestReport(t *testing.T) {
	dir := t.TempDir()
	kept := report.Run{Taken: time.Unix(1e9, 0), Profile: "quick", Scenarios: []report.Scenario{{Name: "overview", Points: []report.Point{
		{System: "relay", Round: 1, Offered: 500, Served: 499, CPUPerRequestUs: 90, OverheadP99Ms: 1, GCCycles: -1},
		{System: "haproxy", Round: 1, Offered: 500, Served: 499, CPUPerRequestUs: 60, OverheadP99Ms: 1},
	}}}}
	text, err := json.Marshal(kept)
	if err != nil {
		t.Fatal(err)
	}
	file, junk, other := filepath.Join(dir, "run.json"), filepath.Join(dir, "junk.json"), filepath.Join(dir, "other.json")
	for path, content := range map[string]string{file: string(text), junk: "{", other: `{"Command":"idle"}`} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	page := filepath.Join(dir, "new", "folder", "report.html")
	out, err := run(t, "report", file, "--out", page, "--markdown", "-")
	if err != nil || !strings.Contains(out, "| 500 | haproxy | 1 | 499 |") {
		t.Errorf("%v: %s", err, out)
	}
	if html, err := os.ReadFile(page); err != nil || !strings.Contains(string(html), "haproxy 60 µs (0.67×)") {
		t.Errorf("%v: %.200s", err, html)
	}
	for _, tt := range []struct{ file, has string }{
		{filepath.Join(dir, "none.json"), "no such file"}, {junk, "junk.json is no result of a ladder"}, {other, "it has no scenarios"},
	} {
		if out, err := run(t, "report", tt.file, "--out", page); err == nil || !strings.Contains(out, tt.has) {
			t.Errorf("%s: %v %s", tt.file, err, out)
		}
	}
}
