package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"relay/perf/ladder"
	"relay/perf/report"
)

type ladderCommand struct {
	Relay    string   `help:"Path of the relay binary; without it Relay is left out." type:"path"`
	RelayEnv []string `help:"Settings of Relay and of the gateways that it is compared with, NAME=VALUE." placeholder:"NAME=VALUE"`
	Profile  string   `help:"quick: all systems at two rates, in some minutes. local: each system to its end. full: all scenarios as published, hours." default:"quick" enum:"quick,local,full"`
	Scenario []string `help:"Scenarios, by name or number; those of the profile by default." placeholder:"NAME"`
	Systems  []string `help:"What is compared, in the order of each step: relay, nethttp, fasthttp, haproxy, nginx; direct is no system at all." placeholder:"NAME"`
	List     bool     `help:"List the scenarios and exit."`

	Rounds    int           `help:"Interleaved rounds; those of the profile by default."`
	Rates     []float64     `help:"Requests per second of the steps, in place of the usual ones."`
	Streams   []int         `help:"Open streams, in place of the usual points."`
	WarmUp    time.Duration `help:"Load before each measurement; that of the profile by default."`
	Hold      time.Duration `help:"Length of each measurement; that of the profile by default."`
	Processes int           `help:"Generator processes that share one schedule." default:"1"`
	Keys      int           `help:"Relay keys, each with an account of its own." default:"60"`
	Workers   int           `help:"Threads of HAProxy, workers of nginx; all cores by default."`

	Gateway        string `help:"host:port of a gateway that runs already, perhaps on another host: nothing is started."`
	GatewayControl string `help:"Its control listener, for goroutines and allocations."`
	Mock           string `help:"host:port of the mock behind it."`

	Out string `help:"Folder for the result: run-TIME.json, and latest.json." type:"path" default:"perf/out"`
}

// Run measures, keeps the result and prints its tables.
func (c *ladderCommand) Run(ctx context.Context) error {
	if c.List {
		fmt.Print(ladder.Scenarios())
		return nil
	}
	o, err := c.options()
	if err != nil {
		return err
	}
	run, err := ladder.Run(ctx, o)
	if run == nil {
		return err
	}
	if run.Host.Commit == "" {
		run.Host.Commit = commit
	}
	path, keepErr := c.keep(run)
	printErr := report.Markdown(os.Stdout, run)
	if keepErr == nil {
		fmt.Fprintln(os.Stderr, "the result is in", path)
	}
	return errors.Join(err, keepErr, printErr)
}

func (c *ladderCommand) options() (ladder.Options, error) {
	o := ladder.Options{
		Profile: c.Profile, Scenarios: c.Scenario, Systems: c.Systems, RelayPath: c.Relay, RelayEnv: c.RelayEnv, Keys: c.Keys,
		Workers: c.Workers, Rounds: c.Rounds, Rates: c.Rates, Streams: c.Streams, WarmUp: c.WarmUp, Hold: c.Hold, Processes: c.Processes,
		Gateway: c.Gateway, GatewayControl: c.GatewayControl, Mock: c.Mock, Progress: os.Stderr,
	}
	if c.Relay != "" {
		found, err := os.Stat(c.Relay)
		if err != nil || found.IsDir() {
			return o, fmt.Errorf("--relay %s is no relay binary: build one with `make build`, or leave the flag out to measure without Relay", c.Relay)
		}
	}
	var err error
	if o.Program, err = os.Executable(); err != nil {
		return o, fmt.Errorf("path of this program: %w", err)
	}
	return o, nil
}

// keep writes the result under its time and as the latest.
func (c *ladderCommand) keep(run *report.Run) (string, error) {
	text, err := json.MarshalIndent(run, "", "  ")
	if err != nil {
		return "", fmt.Errorf("encode the result: %w", err)
	}
	if err := os.MkdirAll(c.Out, 0o755); err != nil {
		return "", err
	}
	path := filepath.Join(c.Out, "run-"+run.Taken.Format("20060102-150405")+".json")
	for _, name := range []string{path, filepath.Join(c.Out, "latest.json")} {
		if err := os.WriteFile(name, append(text, '\n'), 0o644); err != nil {
			return "", err
		}
	}
	return path, nil
}
