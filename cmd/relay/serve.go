package main

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// serveCommand runs the gateway until a signal ends it.
type serveCommand struct {
	Settings
}

// Run is the command.
func (c *serveCommand) Run(s streams, unknown variables) error {
	c.DataDir = c.dataDir()
	log := c.logger(s)
	unknown.warn(log)
	return serve(&c.Settings, log, s.out, func(*relay) error { return nil })
}

// serve runs a relay: start, started, wait for a signal, end. Signals count
// from the first moment, also while the relay starts.
func serve(settings *Settings, log *slog.Logger, out io.Writer, started func(*relay) error) error {
	slog.SetDefault(log) // for parts that log by themselves, such as the catalog's
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer signal.Stop(signals)
	if err := cmp.Or(settings.check(), checkRuntime(os.Getenv)); err != nil {
		return err
	}
	r, err := startRelay(settings, log)
	if err != nil {
		return err
	}
	for _, line := range r.listening() {
		fmt.Fprintln(out, line)
	}
	if err := started(r); err != nil {
		r.end(0)
		return err
	}
	for s := range signals {
		if s == syscall.SIGHUP {
			log.Info("catalog reload asked for", "signal", "SIGHUP")
			r.file.Reload()
			continue
		}
		log.Info("shutdown begins", "signal", s.String(), "deadline", settings.ShutdownDeadline.duration().String())
		break
	}
	go leaveAtSecond(signals, log)
	if err := r.end(settings.ShutdownDeadline.duration()); err != nil {
		return err
	}
	log.Info("shutdown done")
	return nil
}

// leaveAtSecond ends the process at once when another signal to end comes.
func leaveAtSecond(signals <-chan os.Signal, log *slog.Logger) {
	for s := range signals {
		if s != syscall.SIGHUP {
			log.Warn("second signal: leaving at once", "signal", s.String())
			os.Exit(exitFailure)
		}
	}
}

// Times of the end of a relay.
const (
	drainLook  = 20 * time.Millisecond // between looks at what still runs
	drainGrace = 2 * time.Second       // past the deadline, for error frames to leave
)
