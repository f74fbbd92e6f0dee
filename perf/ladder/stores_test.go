package ladder

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"relay/perf/report"
	"relay/perf/target"
	"relay/store/source"
	"relay/store/state"
)

// TestStoreLimits compiles the limits of the scenario: far ones are lent in
// advance, near ones never are.
func TestStoreLimits(t *testing.T) {
	log := slog.Default()
	slog.SetDefault(slog.New(slog.DiscardHandler)) // the catalog warns of its keys in clear
	defer slog.SetDefault(log)
	for _, c := range []counting{{program: report.StoreMemory}, {program: target.ProgramRedis}, {program: target.ProgramRedis, near: true}} {
		l := counts(c)
		text, err := target.Catalog{Mock: "http://127.0.0.1:1", Keys: l.keys, Policies: l.policies, Limits: l.limits}.Text()
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "relay.yaml")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		_, tables, err := source.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		used := make(map[uint64]bool)
		for _, k := range tables.RelayKeys {
			used[k.Policy.Group.ID] = true
			lent := true
			for _, limit := range k.Policy.Group.Limits {
				lent = lent && state.Share(100, limit.Amount, limit.Amount, 2) > 0
			}
			if lent == c.near || len(k.Policy.Group.Limits) != 3 {
				t.Fatalf("%s: lent %v of %+v", l.variant, lent, k.Policy.Group.Limits)
			}
		}
		if len(used) != l.policies {
			t.Errorf("%s: %d policies are used, want %d", l.variant, len(used), l.policies)
		}
	}
}

func TestCountingUsed(t *testing.T) {
	before := count{
		store:    target.StoreStats{CPU: time.Second, Commands: 100, Evals: 50},
		admitted: target.Histogram{{UpTo: 0.001, Count: 100}, {UpTo: 0.002, Count: 100}},
	}
	after := count{
		store:    target.StoreStats{CPU: time.Second + 10*time.Millisecond, Commands: 3100, Evals: 150},
		admitted: target.Histogram{{UpTo: 0.001, Count: 100}, {UpTo: 0.002, Count: 200}},
	}
	var p report.Point
	counting{program: "x", near: true}.used(&p, before, after, 1000)
	if want := (report.StoreUse{Program: "x", CPUPerRequestUs: 10, EvalsPerReq: 0.1, CommandsPerReq: 3, AdmissionP50Ms: 1.5, AdmissionP99Ms: 1.99}); *p.Store != want || p.Excluded != "" {
		t.Errorf("%+v, want %+v; excluded %q", *p.Store, want, p.Excluded)
	}
	p = report.Point{}
	counting{program: report.StoreMemory}.used(&p, count{}, count{}, 1000)
	if want := (report.StoreUse{Program: report.StoreMemory, Leases: true, AdmissionP50Ms: -1, AdmissionP99Ms: -1}); *p.Store != want || p.Excluded != "" {
		t.Errorf("%+v, want %+v; excluded %q", *p.Store, want, p.Excluded)
	}
	p = report.Point{}
	counting{program: "x"}.used(&p, before, before, 1000)
	if !strings.Contains(p.Excluded, "asked nothing") {
		t.Errorf("a store that nobody asks: excluded %q", p.Excluded)
	}
}
