package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"relay/perf/report"
	"relay/perf/streams"
	"relay/perf/target"
)

type streamsCommand struct {
	setupFlags
	Targets   []string      `help:"What is measured, in the order of each round: any of the targets of compare." default:"relay"`
	Compare   bool          `help:"Measure the net/http gateway too, interleaved."`
	Rounds    int           `help:"Interleaved rounds." default:"1"`
	Streams   []int         `help:"Open streams, one point after the other; points that the limit of open files does not allow are left out." default:"5000"`
	OpenRate  int           `help:"Streams opened per second." default:"1000"`
	Tick      time.Duration `help:"Time between the events of a stream." default:"100ms"`
	Hold      time.Duration `help:"Length of the measurement, with all streams open." default:"10s"`
	BodyBytes int           `help:"Length of request bodies." default:"2048"`
}

const (
	roundsMax = 100
	pointsMax = 20
)

// Run measures and prints a table.
func (c *streamsCommand) Run(ctx context.Context) error {
	if c.Rounds < 1 || c.Rounds > roundsMax {
		return fmt.Errorf("--rounds %d: want 1 to %d", c.Rounds, roundsMax)
	}
	if c.Compare && !slices.Contains(c.Targets, target.NameNetHTTP) {
		c.Targets = append(c.Targets, target.NameNetHTTP)
	}
	if err := targetsKnown(c.Targets); err != nil {
		return err
	}
	points, err := pointsThatFit("--streams", c.Streams, streams.Fits)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var results []*streams.Result
	left := make(map[string]bool)
	for _, n := range points {
		more, err := c.point(ctx, n, left)
		if err != nil {
			return err
		}
		results = append(results, more...)
	}
	if err := c.print(results); err != nil {
		return err
	}
	return report.Write(c.JSON, "streams", c, results)
}

// point measures all targets with so many streams. left are the targets that
// are missing.
func (c *streamsCommand) point(ctx context.Context, n int, left map[string]bool) ([]*streams.Result, error) {
	plan := streams.NewPlan(n, c.OpenRate, c.Hold, c.Tick)
	setup, err := c.start(ctx, plan.Scenario()) // a mock for each point: the length of the streams is the mock's
	if err != nil {
		return nil, err
	}
	defer setup.Mock.Close()
	var results []*streams.Result
	for round := 1; round <= c.Rounds; round++ {
		for _, name := range c.Targets {
			if left[name] {
				continue
			}
			r, err := streams.Run(ctx, streams.Options{
				Setup: setup, Target: name, Streams: n, OpenRate: c.OpenRate, Hold: c.Hold, BodyBytes: c.BodyBytes, Plan: plan,
			})
			if left[name] = leftOut(name, err); left[name] {
				continue
			}
			if err != nil {
				return nil, err
			}
			for why, n := range r.Failed {
				fmt.Printf("%s: %d streams failed: %s\n", name, n, why)
			}
			fmt.Fprintf(os.Stderr, "%d streams, round %d %-9s %.1f KiB per stream, %.3f cores per 1,000, %d of %d completed, %.2f cores of the generator\n",
				n, round, name, r.KiBPerStream, r.CoresPer1000, r.Completed, r.Streams, r.GeneratorCores)
			if r.Excluded != "" {
				fmt.Printf("%s, round %d of %d streams is EXCLUDED: %s\n", name, round, n, r.Excluded)
			}
			results = append(results, r)
		}
	}
	return results, nil
}

// print writes one row per number of streams and target: medians and ranges
// over the rounds that count.
func (c *streamsCommand) print(results []*streams.Result) error {
	type row struct {
		target  string
		streams int
	}
	grouped := make(map[row][]*streams.Result)
	var order []row
	for _, r := range results {
		k := row{r.Target, r.Streams}
		if grouped[k] == nil {
			order = append(order, k)
		}
		grouped[k] = append(grouped[k], r)
	}
	var rows [][]string
	for _, k := range order {
		rows = append(rows, streamsRow(grouped[k]))
	}
	head := []string{
		"target", "streams", "rounds", "streams completed", "events missing", "KiB per stream", "cores per 1,000", "µs per event",
		"events/s", "added gap p50 ms", "added gap p99 ms", "delay p99 ms", "goroutines",
	}
	return report.Table(os.Stdout, head, rows)
}

// streamsRow sums up the rounds of one target with so many streams.
func streamsRow(rounds []*streams.Result) []string {
	var completed, total, excluded int
	var missing int64
	goroutines := -1
	var kib, cores, perEvent, events, gap50, gap99, delay99 []float64
	for _, r := range rounds {
		if r.Excluded != "" {
			excluded++
			continue
		}
		completed, total, missing = completed+r.Completed, total+r.Streams, missing+r.EventsMissing
		goroutines = max(goroutines, r.Goroutines)
		kib, cores, perEvent = append(kib, r.KiBPerStream), append(cores, r.CoresPer1000), append(perEvent, r.UsPerEvent)
		events, gap50, gap99, delay99 = append(events, r.EventsPerSec), append(gap50, r.AddedGapP50Ms), append(gap99, r.AddedGapP99Ms), append(delay99, r.DelayP99Ms)
	}
	return []string{
		rounds[0].Target, fmt.Sprint(rounds[0].Streams), fmt.Sprintf("%d (%d excluded)", len(rounds)-excluded, excluded),
		fmt.Sprintf("%d of %d", completed, total), fmt.Sprint(missing), report.Of(kib...).Text(1), report.Of(cores...).Text(3),
		report.Of(perEvent...).Text(1), report.Of(events...).Text(0), report.Of(gap50...).Text(2), report.Of(gap99...).Text(2),
		report.Of(delay99...).Text(2), number(goroutines),
	}
}

// targetsKnown says which of the targets is none.
func targetsKnown(names []string) error {
	for _, name := range names {
		if !slices.Contains(target.Names(), name) {
			return fmt.Errorf("--targets %s: want any of %s", name, strings.Join(target.Names(), ", "))
		}
	}
	return nil
}

// pointsThatFit leaves out, and names, the points that this machine cannot
// hold. It fails when none is left.
func pointsThatFit(flag string, points []int, fits func(int) error) ([]int, error) {
	if len(points) < 1 || len(points) > pointsMax {
		return nil, fmt.Errorf("%s: %d points, want 1 to %d", flag, len(points), pointsMax)
	}
	var left []int
	var last error
	for _, n := range points {
		err := fits(n)
		if err == nil {
			left = append(left, n)
			continue
		}
		if last = err; n < 1 {
			return nil, err
		}
		if len(points) > 1 {
			fmt.Printf("%d is left out: %v\n", n, err)
		}
	}
	if len(left) == 0 {
		return nil, last
	}
	return left, nil
}
