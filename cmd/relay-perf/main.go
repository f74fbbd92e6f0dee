// Command relay-perf holds the mock provider, the load generators and the
// side-by-side comparisons by which Relay is measured.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

// commands is the command line.
type commands struct {
	Mock mockCommand `cmd:"" help:"Serve a mock provider of both shapes until interrupted."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var line commands
	parsed := kong.Parse(&line, kong.Name("relay-perf"), kong.UsageOnError(),
		kong.Description("Mock provider, load generators and side-by-side measurements of Relay."),
		kong.BindTo(ctx, (*context.Context)(nil)))
	err := parsed.Run()
	stop()
	parsed.FatalIfErrorf(err)
}
