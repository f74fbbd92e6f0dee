package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"relay/perf/idle"
	"relay/perf/report"
	"relay/perf/target"
)

type idleCommand struct {
	setupFlags
	Targets     []string      `help:"What is measured, one after the other." default:"relay" enum:"relay,haproxy,nginx,net/http"`
	Connections int           `help:"Idle client connections." default:"10000"`
	Hold        time.Duration `help:"How long they are held." default:"10s"`
	Silent      bool          `help:"Connections send nothing; by default each has had one answer."`
}

// Run measures and prints a table.
func (c *idleCommand) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	setup, err := c.start(ctx, "instant")
	if err != nil {
		return err
	}
	defer setup.Mock.Close()
	var results []*idle.Result
	var rows [][]string
	for _, name := range c.Targets {
		r, err := idle.Run(ctx, idle.Options{Setup: setup, Target: name, Connections: c.Connections, Hold: c.Hold, Silent: c.Silent})
		if leftOut(name, err) {
			continue
		}
		if err != nil {
			return err
		}
		for why, n := range r.OpenFailed {
			fmt.Printf("%s: %d connections could not be opened: %s\n", name, n, why)
		}
		results = append(results, r)
		rows = append(rows, []string{
			name, fmt.Sprint(r.Opened), fmt.Sprint(r.StillOpen), fmt.Sprintf("%.2f", r.KiBPerIdle),
			mib(r.RSSBefore), mib(r.RSSHeld), number(r.Goroutines), fmt.Sprint(r.UpstreamConns), fmt.Sprintf("%.3f", r.CoresIdle),
			fmt.Sprintf("%.2f / %.2f / %.2f", r.Probe.P50Ms, r.Probe.P99Ms, r.Probe.MaxMs), fmt.Sprintf("%d of %d", r.Probe.FailedCount, r.Probe.Count+int64(r.Probe.FailedCount)),
		})
	}
	head := []string{"target", "opened", "open at the end", "KiB per connection", "RSS before MiB", "RSS held MiB", "goroutines", "upstream connections", "cores", "probe p50 / p99 / max ms", "probes failed"}
	if err := report.Table(os.Stdout, head, rows); err != nil {
		return err
	}
	return report.Write(c.JSON, "idle", c, results)
}

// leftOut says that a target is missing, and prints so.
func leftOut(name string, err error) bool {
	var absent *target.Missing
	if errors.As(err, &absent) {
		fmt.Printf("%s is left out: %v\n", name, absent)
		return true
	}
	return false
}

func mib(n int64) string { return fmt.Sprintf("%.1f", float64(n)/(1<<20)) }

// number prints a count that may be unknown.
func number(n int) string {
	if n < 0 {
		return "–"
	}
	return fmt.Sprint(n)
}
