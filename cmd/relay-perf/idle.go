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
	Targets     []string      `help:"What is measured, one after the other: any of the targets of compare." default:"relay"`
	Connections []int         `help:"Idle client connections, one point after the other; points that the limit of open files does not allow are left out." default:"10000"`
	Hold        time.Duration `help:"How long they are held." default:"10s"`
	Silent      bool          `help:"Connections send nothing; by default each has had one answer."`
}

// Run measures and prints a table.
func (c *idleCommand) Run(ctx context.Context) error {
	if err := targetsKnown(c.Targets); err != nil {
		return err
	}
	points, err := pointsThatFit("--connections", c.Connections, idle.Fits)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	setup, err := c.start(ctx, "instant")
	if err != nil {
		return err
	}
	defer setup.Mock.Close()
	var results []*idle.Result
	left := make(map[string]bool)
	for _, n := range points {
		for _, name := range c.Targets {
			if left[name] {
				continue
			}
			r, err := idle.Run(ctx, idle.Options{Setup: setup, Target: name, Connections: n, Hold: c.Hold, Silent: c.Silent})
			if left[name] = leftOut(name, err); left[name] {
				continue
			}
			if err != nil {
				return err
			}
			for why, n := range r.OpenFailed {
				fmt.Printf("%s: %d connections could not be opened: %s\n", name, n, why)
			}
			results = append(results, r)
		}
	}
	if err := printIdle(results); err != nil {
		return err
	}
	return report.Write(c.JSON, "idle", c, results)
}

func printIdle(results []*idle.Result) error {
	var rows [][]string
	for _, r := range results {
		rows = append(rows, []string{
			r.Target, fmt.Sprint(r.Opened), fmt.Sprint(r.StillOpen), fmt.Sprintf("%.2f", r.KiBPerIdle),
			mib(r.RSSBefore), mib(r.RSSHeld), number(r.Goroutines), fmt.Sprint(r.UpstreamConns), fmt.Sprintf("%.3f", r.CoresIdle),
			fmt.Sprintf("%.2f / %.2f / %.2f", r.Probe.P50Ms, r.Probe.P99Ms, r.Probe.MaxMs), fmt.Sprintf("%d of %d", r.Probe.FailedCount, r.Probe.Count+int64(r.Probe.FailedCount)),
		})
	}
	head := []string{"target", "opened", "open at the end", "KiB per connection", "RSS before MiB", "RSS held MiB", "goroutines", "upstream connections", "cores", "probe p50 / p99 / max ms", "probes failed"}
	return report.Table(os.Stdout, head, rows)
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
