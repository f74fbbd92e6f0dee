package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"relay/perf/report"
	"relay/perf/streams"
)

type streamsCommand struct {
	setupFlags
	Targets   []string      `help:"What is measured, in the order of each round." default:"relay" enum:"relay,haproxy,nginx,net/http,direct"`
	Compare   bool          `help:"Measure the net/http reverse proxy too, interleaved."`
	Rounds    int           `help:"Interleaved rounds." default:"1"`
	Streams   int           `help:"Open streams." default:"5000"`
	OpenRate  int           `help:"Streams opened per second." default:"1000"`
	Tick      time.Duration `help:"Time between the events of a stream." default:"100ms"`
	Hold      time.Duration `help:"Length of the measurement, with all streams open." default:"10s"`
	BodyBytes int           `help:"Length of request bodies." default:"2048"`
}

const roundsMax = 100

// Run measures and prints a table.
func (c *streamsCommand) Run(ctx context.Context) error {
	if c.Rounds < 1 || c.Rounds > roundsMax {
		return fmt.Errorf("--rounds %d: want 1 to %d", c.Rounds, roundsMax)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	plan := streams.NewPlan(c.Streams, c.OpenRate, c.Hold, c.Tick)
	setup, err := c.start(ctx, plan.Scenario())
	if err != nil {
		return err
	}
	defer setup.Mock.Close()
	if c.Compare {
		c.Targets = append(c.Targets, "net/http")
	}
	var results []*streams.Result
	left := make(map[string]bool)
	for round := 1; round <= c.Rounds; round++ {
		for _, name := range c.Targets {
			if left[name] {
				continue
			}
			r, err := streams.Run(ctx, streams.Options{
				Setup: setup, Target: name, Streams: c.Streams, OpenRate: c.OpenRate, Hold: c.Hold, BodyBytes: c.BodyBytes, Plan: plan,
			})
			if left[name] = leftOut(name, err); left[name] {
				continue
			}
			if err != nil {
				return err
			}
			for why, n := range r.Failed {
				fmt.Printf("%s: %d streams failed: %s\n", name, n, why)
			}
			fmt.Fprintf(os.Stderr, "round %d %-9s %.1f KiB per stream, %.3f cores per 1,000, %d of %d completed\n", round, name, r.KiBPerStream, r.CoresPer1000, r.Completed, r.Streams)
			if r.Excluded != "" {
				fmt.Printf("%s, round %d is EXCLUDED: %s\n", name, round, r.Excluded)
			}
			results = append(results, r)
		}
	}
	if err := c.print(results); err != nil {
		return err
	}
	return report.Write(c.JSON, "streams", c, results)
}

// print writes one row per target: medians and ranges over the rounds.
func (c *streamsCommand) print(results []*streams.Result) error {
	var rows [][]string
	for _, name := range c.Targets {
		var completed, total, goroutines, rounds, excluded int
		var missing int64
		goroutines = -1
		var kib, cores, perEvent, events, gap50, gap99, delay99 []float64
		for _, r := range results {
			if r.Target != name {
				continue
			}
			rounds++
			if r.Excluded != "" {
				excluded++
				continue
			}
			completed, total, missing = completed+r.Completed, total+r.Streams, missing+r.EventsMissing
			goroutines = max(goroutines, r.Goroutines)
			kib, cores, perEvent = append(kib, r.KiBPerStream), append(cores, r.CoresPer1000), append(perEvent, r.UsPerEvent)
			events, gap50, gap99, delay99 = append(events, r.EventsPerSec), append(gap50, r.AddedGapP50Ms), append(gap99, r.AddedGapP99Ms), append(delay99, r.DelayP99Ms)
		}
		if rounds == 0 {
			continue
		}
		rows = append(rows, []string{
			name, fmt.Sprintf("%d (%d excluded)", rounds-excluded, excluded), fmt.Sprintf("%d of %d", completed, total), fmt.Sprint(missing), report.Of(kib...).Text(1), report.Of(cores...).Text(3),
			report.Of(perEvent...).Text(1), report.Of(events...).Text(0), report.Of(gap50...).Text(2), report.Of(gap99...).Text(2), report.Of(delay99...).Text(2), number(goroutines),
		})
	}
	head := []string{"target", "rounds", "streams completed", "events missing", "KiB per stream", "cores per 1,000", "µs per event", "events/s", "added gap p50 ms", "added gap p99 ms", "delay p99 ms", "goroutines"}
	return report.Table(os.Stdout, head, rows)
}
