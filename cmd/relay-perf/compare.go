package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"relay/perf/compare"
	"relay/perf/report"
)

type compareCommand struct {
	setupFlags
	Targets     []string      `help:"What is compared, in this order." default:"relay,haproxy,nginx,net/http,direct" enum:"relay,haproxy,nginx,net/http,direct"`
	Rate        float64       `help:"Requests per second." default:"2000"`
	Rounds      int           `help:"Interleaved rounds." default:"3"`
	WarmUp      time.Duration `help:"Load before each measurement." default:"2s"`
	Hold        time.Duration `help:"Length of each measurement." default:"8s"`
	Connections int           `help:"Client connections at the start; more are opened when all are busy." default:"400"`
	Stream      bool          `help:"Ask for streams."`
	BodyBytes   int           `help:"Exact length of request bodies; 0 = log-normal, 2 KB at p50 and 20 KB at p99."`
	Scenario    string        `help:"Scenario of the mock." default:"fast"`
}

// Run measures and prints a table.
func (c *compareCommand) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	setup, err := c.start(ctx, c.Scenario)
	if err != nil {
		return err
	}
	defer setup.Mock.Close()
	o := compare.Options{
		Setup: setup, Targets: c.Targets, Rate: c.Rate, Rounds: c.Rounds, WarmUp: c.WarmUp, Hold: c.Hold,
		Connections: c.Connections, Stream: c.Stream, BodyBytes: c.BodyBytes, Scenario: c.Scenario, Progress: os.Stderr,
	}
	steps, missing, err := compare.Run(ctx, o)
	rows := compare.Rows(steps)
	if len(rows) > 0 {
		fmt.Printf("%.0f requests/s, %d rounds, hold %v, medians [range]\n\n", c.Rate, c.Rounds, c.Hold)
	}
	if printErr := compare.Print(os.Stdout, rows, missing); printErr != nil && err == nil {
		err = printErr
	}
	if err != nil {
		return err
	}
	return report.Write(c.JSON, "compare", o, struct {
		Rows    []compare.Row
		Steps   []compare.Step
		Missing []string
	}{rows, steps, missing})
}
