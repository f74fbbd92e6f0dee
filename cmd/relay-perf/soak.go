package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"relay/perf/report"
	"relay/perf/soak"
	"relay/usage"
)

type soakCommand struct {
	Relay       string        `help:"Path of the relay binary; without it Relay is left out." type:"path"`
	RelayEnv    []string      `help:"Settings of Relay, NAME=VALUE." placeholder:"NAME=VALUE"`
	JSON        string        `help:"File to keep the results in." type:"path" placeholder:"FILE"`
	Target      string        `help:"What is loaded: any of the targets of compare." default:"relay"`
	Rate        float64       `help:"Requests per second." default:"200"`
	Requests    int64         `help:"Requests in all. A published run has 360,001 at 2,000/s." default:"20000"`
	Accounts    int           `help:"Accounts, each with a relay key; requests take turns." default:"60"`
	Pace        string        `help:"Scenario words of the mock." default:"slow"`
	BodyBytes   int           `help:"Exact length of request bodies; 0 = log-normal, 2 KB at p50 and 20 KB at p99."`
	SlowShare   float64       `help:"Callers beside the load, as a share of it, who send slowly and read slowly."`
	LeaveShare  float64       `help:"The same of callers who leave in the middle."`
	FaultShare  float64       `help:"The same of callers whom the provider fails."`
	FaultWords  []string      `help:"Scenario words by which it fails them, in turn; separate them by semicolons." sep:";"`
	LatencyMax  time.Duration `help:"Allowed latency at p95; 0 = it is only told."`
	OverheadMax time.Duration `help:"Allowed overhead at p95; 0 = it is only told." default:"250ms"`
	Return      time.Duration `help:"Within which memory, descriptors and goroutines have to be back where they were. Idle connections to providers are kept for 55 s." default:"90s"`
}

const accountsMax = 10_000

// Run loads the target, prints what was seen, and fails when a check does.
func (c *soakCommand) Run(ctx context.Context) error {
	if err := targetsKnown([]string{c.Target}); err != nil {
		return err
	}
	if c.Accounts < 1 || c.Accounts > accountsMax {
		return fmt.Errorf("--accounts %d: want 1 to %d", c.Accounts, accountsMax)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	o := soak.Options{
		Target: c.Target, Rate: c.Rate, Requests: c.Requests, Pace: c.Pace, BodyBytes: c.BodyBytes,
		LatencyMax: c.LatencyMax, OverheadMax: c.OverheadMax, Return: c.Return,
		Trouble: soak.Trouble{SlowShare: c.SlowShare, LeaveShare: c.LeaveShare, FaultShare: c.FaultShare, Faults: c.FaultWords},
	}
	shared := setupFlags{Relay: c.Relay, RelayEnv: c.RelayEnv, Keys: c.Accounts, Workers: 2}
	setup, err := shared.start(ctx, o.Scenario())
	if err != nil {
		return err
	}
	defer setup.Mock.Close()
	o.Setup = setup
	r, err := soak.Run(ctx, o)
	if leftOut(c.Target, err) {
		return report.Write(c.JSON, "soak", c, nil)
	}
	if err != nil {
		return err
	}
	if err := printSoak(r); err != nil {
		return err
	}
	if err := report.Write(c.JSON, "soak", c, r); err != nil {
		return err
	}
	if len(r.Problems) > 0 {
		return fmt.Errorf("%d checks failed:\n  %s", len(r.Problems), strings.Join(r.Problems, "\n  "))
	}
	return nil
}

func printSoak(r *soak.Result) error {
	rows := [][]string{
		{"requests", fmt.Sprintf("%d at %.0f/s, and %d and %d before them", r.Load.Offered, r.Rate, r.WarmUp.Offered, r.Burst.Offered)},
		{"answers by status", fmt.Sprint(r.Seen.ByStatus)},
		{"lost", fmt.Sprint(r.Seen.Lost)},
		{"latency p50 / p95 / p99", fmt.Sprintf("%.1f / %.1f / %.1f ms", r.LatencyP50Ms, r.LatencyP95Ms, r.LatencyP99Ms)},
		{"overhead p50 / p95 / p99 / max", fmt.Sprintf("%.2f / %.2f / %.2f / %.1f ms", r.Load.Overhead.P50, r.OverheadP95Ms, r.Load.Overhead.P99, r.Load.Overhead.Max)},
		{"most in flight", fmt.Sprint(r.InFlight)},
		{"memory per waiting request", fmt.Sprintf("%.1f KiB", r.KiBPerWaiting)},
		{"CPU per request", fmt.Sprintf("%.0f µs", r.CPUPerRequest)},
		{"memory base / full pools / most / after", fmt.Sprintf("%s / %s / %s / %s MiB", mib(r.Base.RSS), mib(r.Filled.RSS), mib(r.Most.RSS), mib(r.After.RSS))},
		{"descriptors base / most / after", fmt.Sprintf("%d / %d / %d", r.Base.Descriptors, r.Most.Descriptors, r.After.Descriptors)},
		{"goroutines base / most / after", fmt.Sprintf("%s / %s / %s", number(r.Base.Goroutines), number(r.Most.Goroutines), number(r.After.Goroutines))},
		{"back at the base", returned(r.ReturnSeconds)},
	}
	for i, name := range []string{"slow callers", "callers who left", "callers who were failed"} {
		if t := r.Trouble[i]; t.Callers > 0 {
			rows = append(rows, []string{name, fmt.Sprintf("%d, by status %v, without a whole answer %d", t.Callers, t.ByStatus, t.Lost)})
		}
	}
	if c := r.Count; c != nil {
		rows = append(rows, []string{"rows", fmt.Sprintf("%d in %d accounts, by status %v", c.Rows, r.Accounts, c.ByStatus)},
			[]string{"cost", usage.FormatUSD(c.Cost) + " USD"})
	} else {
		rows = append(rows, []string{"rows", "– (keeps no accounts)"})
	}
	if r.Excluded != "" {
		rows = append(rows, []string{"EXCLUDED", r.Excluded})
	}
	return report.Table(os.Stdout, []string{r.Target, ""}, rows)
}

func returned(seconds float64) string {
	if seconds < 0 {
		return "NO"
	}
	return fmt.Sprintf("after %.1f s", seconds)
}
