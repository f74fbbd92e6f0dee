package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"relay/perf/lanes"
	"relay/perf/report"
	"relay/perf/target"
)

type lanesCommand struct {
	Redis     string        `help:"host:port of a store that runs already, without password; without it a redis-server is started."`
	Rate      float64       `help:"Requests per second; the half of it is measured, too." default:"50000"`
	Policies  int           `help:"Policies that requests are spread over." default:"1000"`
	Hot       bool          `help:"16 policies."`
	Saturated bool          `help:"The limit on requests lets half of the rate through."`
	Loops     int           `help:"Loops that ask." default:"2"`
	Lanes     int           `help:"Lanes to the store." default:"1"`
	Modes     []string      `help:"Ways of asking: leases, exact, plain, memory." default:"leases,exact,plain,memory"`
	Latency   time.Duration `help:"From granted to settled." default:"2ms"`
	WarmUp    time.Duration `help:"Load before each measurement." default:"2s"`
	Hold      time.Duration `help:"Length of each measurement." default:"5s"`
	Rounds    int           `help:"Rounds; the ways take turns in each." default:"1"`
	JSON      string        `help:"File to keep the results in." type:"path" placeholder:"FILE"`
}

// Run measures and prints a table.
func (c *lanesCommand) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	addr := c.Redis
	if addr == "" {
		store, err := target.Store(ctx, target.ProgramRedis)
		if err != nil {
			return err
		}
		defer store.Close()
		addr = store.Addr
	}
	points, err := lanes.Run(ctx, lanes.Options{
		Addr: addr, Rate: c.Rate, Policies: c.Policies, Hot: c.Hot, Saturated: c.Saturated, Loops: c.Loops, Lanes: c.Lanes, Modes: c.Modes,
		Latency: c.Latency, WarmUp: c.WarmUp, Hold: c.Hold, Rounds: c.Rounds, Progress: os.Stderr,
	})
	if err != nil {
		return err
	}
	head, rows := lanes.Table(points)
	if err := report.Table(os.Stdout, head, rows); err != nil {
		return err
	}
	fmt.Println()
	for _, line := range lanes.Verdicts(points) {
		fmt.Println("*", line)
	}
	return report.Write(c.JSON, "lanes", c, points)
}
