package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"relay/perf/target"
)

// setupFlags say what is measured; several commands share them.
type setupFlags struct {
	Relay    string   `help:"Path of the relay binary; without it Relay is left out." type:"path"`
	RelayEnv []string `help:"Settings of Relay, NAME=VALUE." placeholder:"NAME=VALUE"`
	Keys     int      `help:"Relay keys, each with an account of its own." default:"1"`
	Workers  int      `help:"Threads of HAProxy, workers of nginx." default:"2"`
	JSON     string   `help:"File to keep the results in." type:"path" placeholder:"FILE"`
}

// start starts the mock and says how targets are started. The mock ends with
// the context.
func (f *setupFlags) start(ctx context.Context, scenario string) (target.Setup, error) {
	program, err := os.Executable()
	if err != nil {
		return target.Setup{}, fmt.Errorf("path of this program: %w", err)
	}
	if f.Relay != "" {
		if f.Relay, err = filepath.Abs(f.Relay); err != nil {
			return target.Setup{}, err
		}
	}
	mock, err := target.Mock(ctx, program, scenario)
	if err != nil {
		return target.Setup{}, err
	}
	return target.Setup{
		Program: program, RelayPath: f.Relay, RelayEnv: f.RelayEnv, RelayKeys: f.Keys, Workers: f.Workers, Mock: mock,
	}, nil
}
