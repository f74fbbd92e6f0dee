package report

import (
	"strings"
	"testing"
)

// counted is a run of one relay over several stores.
func counted() *Run {
	var s Scenario
	for _, rate := range []float64{1000, 2000} {
		for _, u := range []struct {
			variant string
			cpu     float64
			use     StoreUse
		}{
			{"memory", 80, StoreUse{Program: StoreMemory, Leases: true}},
			{"redis-server, leases", 88, StoreUse{Program: "redis-server", Leases: true, CPUPerRequestUs: 3, EvalsPerReq: 0.05, AdmissionP50Ms: 0.1, AdmissionP99Ms: 0.5}},
			{"redis-server, exact", 140, StoreUse{Program: "redis-server", CPUPerRequestUs: 30, EvalsPerReq: 0.9, AdmissionP50Ms: 0.3, AdmissionP99Ms: 1}},
			{"valkey-server, leases", 100, StoreUse{Program: "valkey-server", Leases: true, CPUPerRequestUs: 2, EvalsPerReq: 0.04, AdmissionP50Ms: -1, AdmissionP99Ms: -1}},
		} {
			for round := range 2 {
				s.Points = append(s.Points, Point{
					System: "relay", Variant: u.variant, Round: round + 1, Offered: rate, Served: rate, CPUPerRequestUs: u.cpu + float64(round), Store: &u.use,
				})
			}
		}
	}
	return &Run{Scenarios: []Scenario{{Points: []Point{{System: "relay", Offered: 2000, CPUPerRequestUs: 1}}}, s}}
}

func TestStoreVerdict(t *testing.T) {
	run := counted()
	want := []string{
		"At 2,000 requests/s with leases Relay took 88.5 µs of CPU per request with limits in redis-server and 80.5 µs with limits in memory (1.10×, within the 1.15× that it may); the store took 3 µs and 0.05 EVALSHA per request.",
		"At 2,000 requests/s with leases Relay took 101 µs of CPU per request with limits in valkey-server and 80.5 µs with limits in memory (1.25×, NOT within the 1.15× that it may); the store took 2 µs and 0.04 EVALSHA per request.",
	}
	if got := verdicts(run); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	// Where memory did not stand, nothing is compared.
	for i := range run.Scenarios[1].Points {
		if p := &run.Scenarios[1].Points[i]; p.Offered == 2000 && p.Store.Program == StoreMemory {
			p.Excluded = "late"
		}
		if p := &run.Scenarios[1].Points[i]; p.Store.Program == "valkey-server" {
			p.ErrorShare = 0.5
		}
	}
	if got := verdicts(run); len(got) != 1 || !strings.HasPrefix(got[0], "At 1,000 requests/s with leases") {
		t.Errorf("got %q", got)
	}
}

func TestStoresTold(t *testing.T) {
	run := counted()
	var b strings.Builder
	if err := Markdown(&b, run); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| 2000 | relay redis-server, leases | 2 | 88.5 [88.0–89.0] | 3.00 [3.00–3.00] | 0.0500 [0.0500–0.0500] |", "| 2000 | relay valkey-server, leases | 2 |",
		"* At 2,000 requests/s with leases",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if strings.Count(b.String(), "| 2000 | relay | ") != 1 {
		t.Error("a point at whose store nobody looked is in the table of stores")
	}
	page := html(t, run)
	pictures(t, page)
	for _, want := range []string{"CPU of the store by offered rate", "Admission p99 by offered rate", "EVALSHA per request"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q on the page", want)
		}
	}
}
