package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"relay/perf/machine"
)

// commands is the command line.
type commands struct {
	Mock     mockCommand     `cmd:"" help:"Serve a mock provider of both shapes until interrupted."`
	Gen      genCommand      `cmd:"" help:"Send an open-loop load to one address."`
	Ladder   ladderCommand   `cmd:"" help:"Named scenarios: knee, capacity, CPU per request, memory and more of Relay and others, interleaved."`
	Report   reportCommand   `cmd:"" help:"Draw a page and tables of what a ladder measured."`
	Catalog  catalogCommand  `cmd:"" help:"Print the catalog that a gateway on another host needs for a ladder."`
	Idle     idleCommand     `cmd:"" help:"Hold idle connections and see what each costs."`
	Streams  streamsCommand  `cmd:"" help:"Hold open streams, check every byte, and see what each costs."`
	Reader   readerCommand   `cmd:"" help:"Pour a large stream to a reader that is slow, or that stops."`
	Baseline baselineCommand `cmd:"" help:"Serve a gateway of the usual design, a goroutine per connection, with the settings of relay serve."`
	Soak     soakCommand     `cmd:"" help:"Hold a slow load for a long time, then check every row, every account and every leak."`
	Lanes    lanesCommand    `cmd:"" help:"Count limits in a store by loops and lanes alone, and see what a request costs the store."`
}

// commit is set by the build.
var commit string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var line commands
	parsed := kong.Parse(&line, kong.Name("relay-perf"), kong.UsageOnError(),
		kong.Description("Mock provider, load generators and side-by-side measurements of Relay."),
		kong.BindTo(ctx, (*context.Context)(nil)))
	if _, err := machine.RaiseDescriptors(); err != nil {
		fmt.Fprintln(os.Stderr, err) // a measurement that needs more says so itself
	}
	err := parsed.Run()
	stop()
	parsed.FatalIfErrorf(err)
}
