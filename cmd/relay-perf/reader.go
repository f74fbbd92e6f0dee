package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"relay/perf/reader"
	"relay/perf/report"
)

type readerCommand struct {
	setupFlags
	Targets   []string      `help:"What is measured, one after the other: any of the targets of compare." default:"relay"`
	PourMB    int64         `help:"Content of the stream, in MB." default:"200"`
	RateMB    float64       `help:"What the client reads, in MB/s." default:"8"`
	StopMB    int64         `help:"Where the client stops reading, in MB." default:"40"`
	StopFor   time.Duration `help:"How long it stops." default:"8s"`
	Never     bool          `help:"The client never reads again: the target must give it up."`
	IdleLimit time.Duration `help:"With --never: RELAY_STREAM_IDLE of Relay." default:"5s"`
	GiveUp    time.Duration `help:"With --never: how long the target may take to give up." default:"30s"`
}

// Run pours through each target and prints a table.
func (c *readerCommand) Run(ctx context.Context) error {
	if err := targetsKnown(c.Targets); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	const mb = 1_000_000
	o := reader.Options{
		PourBytes: c.PourMB * mb, ReadRate: int64(c.RateMB * mb), StopAfter: c.StopMB * mb, StopFor: c.StopFor, Never: c.Never, GiveUp: c.GiveUp,
	}
	setup, err := c.start(ctx, o.Scenario())
	if err != nil {
		return err
	}
	defer setup.Mock.Close()
	if c.Never {
		setup.RelayEnv = append(setup.RelayEnv, "RELAY_STREAM_IDLE="+c.IdleLimit.String())
	}
	o.Setup = setup
	var results []*reader.Result
	var rows [][]string
	for _, name := range c.Targets {
		o.Target = name
		r, err := reader.Run(ctx, o)
		if leftOut(name, err) {
			continue
		}
		if err != nil {
			return err
		}
		results = append(results, r)
		ending := "whole, every byte checked"
		switch {
		case c.Never && r.Closed:
			ending = fmt.Sprintf("given up after %.1f s", r.ClosedAfter)
		case c.Never:
			ending = fmt.Sprintf("NOT given up within %v", c.GiveUp)
		case !r.Whole:
			ending = "BROKEN: " + r.Failure
		}
		rows = append(rows, []string{
			name, ending, fmt.Sprintf("%.1f", float64(r.ContentBytes)/mb), fmt.Sprintf("%.1f", r.Seconds), mib(r.RSSBefore), fmt.Sprintf("%.1f", r.GrowthMiB),
			fmt.Sprintf("%.1f", r.LeftMiB), fmt.Sprintf("%.1f", r.HeldMiB), fmt.Sprintf("%d → %d", r.FDsBefore, r.FDsAfter), number(r.GoroutinesEnd),
			fmt.Sprintf("%.2f / %.2f / %.2f", r.Probe.P50Ms, r.Probe.P99Ms, r.Probe.MaxMs), fmt.Sprint(r.Probe.FailedCount),
		})
	}
	head := []string{"target", "stream", "MB read", "seconds", "RSS before MiB", "RSS growth MiB", "RSS left MiB", "held on the way MiB", "files", "goroutines", "probe p50 / p99 / max ms", "probes failed"}
	if err := report.Table(os.Stdout, head, rows); err != nil {
		return err
	}
	return report.Write(c.JSON, "reader", c, results)
}
