package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"relay/perf/baseline"
	"relay/usage/spool"
)

// baselineCommand takes the settings of `relay serve`, by the same variables, so
// that both can be started alike. Those that it has no use for are ignored.
type baselineCommand struct {
	Engine string `help:"Library that serves the connections: fasthttp or nethttp." default:"nethttp"`

	Port             string    `env:"RELAY_PORT" default:"8080" help:"Port of the inference listener; 0 = a free one."`
	Bind             string    `env:"RELAY_BIND" help:"Address of the inference listener; unset = all addresses."`
	ControlPort      string    `env:"RELAY_CONTROL_PORT" default:"8081" help:"Port of the control listener; 0 = a free one, off = none."`
	ControlBind      string    `env:"RELAY_CONTROL_BIND" default:"127.0.0.1" help:"Address of the control listener."`
	Catalog          string    `env:"RELAY_CATALOG" default:"relay.yaml" help:"The catalog file."`
	DataDir          string    `env:"RELAY_DATA_DIR" default:"./relay-data" help:"Folder of the spool."`
	SpoolSync        span      `env:"RELAY_SPOOL_SYNC" default:"20" unit:"ms" help:"Time between fsyncs of the spool, in ms; 0 = every answer waits for its own."`
	SpoolFull        string    `env:"RELAY_SPOOL_FULL" default:"refuse" enum:"refuse,serve" help:"When the spool cannot take records: refuse requests, or serve them unrecorded."`
	MaxInflight      int64     `env:"RELAY_MAX_INFLIGHT" default:"0" help:"Requests in flight; 0 = what fits in 40 % of the memory."`
	MaxRequestBytes  byteCount `env:"RELAY_MAX_REQUEST_BYTES" default:"32MiB" help:"Largest request body, in bytes or with KiB, MiB."`
	MaxIdlePerHost   int       `env:"RELAY_UPSTREAM_MAX_IDLE_PER_HOST" name:"upstream-max-idle-per-host" default:"0" help:"Idle connections kept per host; 0 = the in-flight cap."`
	ShutdownDeadline span      `env:"RELAY_SHUTDOWN_DEADLINE_S" name:"shutdown-deadline-s" default:"15" unit:"s" help:"How long running requests may take to end at a shutdown, in seconds."`
	InstanceID       string    `env:"RELAY_INSTANCE_ID" name:"instance-id" help:"Name of this gateway in its records; unset = the host name."`
	LogLevel         string    `env:"RELAY_LOG_LEVEL" default:"info" enum:"debug,info,warn,error" help:"Least level that is logged."`
}

// A span is a length of time; a plain number is in the unit of its tag.
type span time.Duration

// Decode reads a flag or a variable.
func (s *span) Decode(ctx *kong.DecodeContext) error {
	var text string
	if err := ctx.Scan.PopValueInto("duration", &text); err != nil {
		return err
	}
	if _, err := strconv.ParseUint(text, 10, 32); err == nil {
		text += ctx.Value.Tag.Get("unit")
	}
	d, err := time.ParseDuration(text)
	if err == nil && d < 0 {
		err = errors.New("must not be negative")
	}
	*s = span(d)
	return err
}

// A byteCount is a number of bytes, with or without KiB or MiB behind it.
type byteCount int64

// UnmarshalText reads a flag or a variable.
func (b *byteCount) UnmarshalText(text []byte) error {
	digits, shift := string(text), 0
	for _, unit := range []struct {
		name  string
		shift int
	}{{"KiB", 10}, {"MiB", 20}, {"GiB", 30}} {
		if rest, found := strings.CutSuffix(digits, unit.name); found {
			digits, shift = rest, unit.shift
		}
	}
	n, err := strconv.ParseUint(digits, 10, 30)
	if err != nil || n == 0 {
		return fmt.Errorf("%q: want a number of bytes such as 33554432 or 32MiB", text)
	}
	*b = byteCount(n << shift)
	return nil
}

// Run serves until the context ends.
func (g *baselineCommand) Run(ctx context.Context) error {
	if err := baseline.CheckEngine(g.Engine); err != nil {
		return err
	}
	o, err := g.options()
	if err != nil {
		return err
	}
	gateway, err := baseline.Start(o)
	if err != nil {
		return err
	}
	fmt.Printf("listening inference=%s\n", o.Inference.Addr())
	if o.Control != nil {
		fmt.Printf("listening control=%s\n", o.Control.Addr())
	}
	select {
	case <-ctx.Done():
	case err = <-gateway.Ended():
	}
	return errors.Join(err, gateway.Close(time.Duration(g.ShutdownDeadline)))
}

// options are those of the gateway, with its listeners.
func (g *baselineCommand) options() (baseline.Options, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(g.LogLevel)); err != nil {
		return baseline.Options{}, err
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	slog.SetDefault(log) // for parts that log by themselves
	o := baseline.Options{
		Engine: g.Engine, Catalog: g.Catalog, DataDir: g.DataDir, SpoolSync: time.Duration(g.SpoolSync),
		InflightMax: g.MaxInflight, RequestBytesMax: int64(g.MaxRequestBytes), IdlePerHost: g.MaxIdlePerHost,
		Instance: g.InstanceID, Log: log,
	}
	if g.SpoolFull == spool.Serve.String() {
		o.SpoolFull = spool.Serve
	}
	var err error
	if o.Inference, err = net.Listen("tcp", net.JoinHostPort(g.Bind, g.Port)); err != nil {
		return o, fmt.Errorf("RELAY_PORT (--port) is %q: %w", g.Port, err)
	}
	if g.ControlPort == "off" {
		return o, nil
	}
	if o.Control, err = net.Listen("tcp", net.JoinHostPort(g.ControlBind, g.ControlPort)); err != nil {
		return o, fmt.Errorf("RELAY_CONTROL_PORT (--control-port) is %q: %w", g.ControlPort, err)
	}
	return o, nil
}
