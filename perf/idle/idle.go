package idle

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"relay/perf/machine"
	"relay/perf/openloop"
	"relay/perf/target"
)

const (
	openers        = 32                     // connections being opened at once
	descriptorsOwn = 500                    // left for everything else of a process
	settleTime     = 2 * time.Second        // before each reading: garbage goes back
	warmUpMin      = 1000                   // requests, however few the connections
	probeEvery     = 100 * time.Millisecond // of a new caller
	bodyBytes      = 512
)

// Options say what is held.
type Options struct {
	Setup       target.Setup `json:"-"`
	Target      string
	Connections int
	Hold        time.Duration
	Silent      bool // connections send nothing at all, instead of one request each
}

// A Result is what was seen.
type Result struct {
	Target        string
	Connections   int // asked for
	Opened        int
	OpenFailed    map[string]int
	StillOpen     int   // at the end of the hold
	RSSBefore     int64 // bytes, after at least as many requests as there are connections
	RSSHeld       int64
	KiBPerIdle    float64
	Goroutines    int // during the hold; -1 = unknown
	Descriptors   int
	CoresIdle     float64 // of the target during the hold, probes included
	UpstreamConns int64   // open at the mock during the hold
	Probe         target.Probed
}

// Fits says whether so many connections fit the limit of open files.
func Fits(connections int) error {
	limit, err := machine.RaiseDescriptors()
	if err != nil {
		return err
	}
	if connections < 1 || uint64(connections)+descriptorsOwn > limit {
		return fmt.Errorf("idle: %d connections: a process may have %d open files here, which is enough for 1 to %d; raise the limit (ulimit -n) for more",
			connections, limit, int(limit)-descriptorsOwn)
	}
	return nil
}

// Run opens the connections, holds them and closes them.
func Run(ctx context.Context, o Options) (*Result, error) {
	if o.Hold <= 0 {
		return nil, fmt.Errorf("idle: a hold of %v: want more than 0", o.Hold)
	}
	if err := Fits(o.Connections); err != nil {
		return nil, err
	}
	t, err := o.Setup.Start(ctx, o.Target)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	r, err := run(ctx, &o, t)
	if err == nil || o.Target == target.NameDirect {
		return r, err
	}
	if ended, words := t.EndedSoon(); ended {
		return nil, fmt.Errorf("idle: %s ended under its connections: %s", o.Target, words)
	}
	return r, err
}

// run measures a target that runs.
func run(ctx context.Context, o *Options, t *target.Target) (*Result, error) {
	mix := o.Setup.Mix(t)
	mix.BodyBytesExact = bodyBytes
	if err := t.WarmUp(ctx, mix, max(o.Connections, warmUpMin)); err != nil {
		return nil, err
	}
	if !pause(ctx, settleTime) {
		return nil, ctx.Err()
	}
	before, err := t.Usage()
	if err != nil {
		return nil, err
	}
	r := &Result{Target: o.Target, Connections: o.Connections, OpenFailed: make(map[string]int), RSSBefore: before.RSS}
	request := mix.Request(openloop.Chat, mix.Keys[0], bodyBytes)
	conns := r.open(ctx, o, t.Addr, request)
	defer func() {
		for _, nc := range conns {
			nc.Close()
		}
	}()
	if err := r.hold(ctx, o, t, request); err != nil {
		return nil, err
	}
	for _, nc := range conns {
		if target.Alive(nc) {
			r.StillOpen++
		}
	}
	return r, nil
}

// open opens the connections, a few at a time.
func (r *Result) open(ctx context.Context, o *Options, addr string, request []byte) []net.Conn {
	var mu sync.Mutex
	var conns []net.Conn
	turns := make(chan struct{})
	var wait sync.WaitGroup
	for range openers {
		wait.Go(func() {
			for range turns {
				nc, err := openOne(addr, request, o.Silent)
				mu.Lock()
				if err != nil {
					r.OpenFailed[target.Cause(err)]++
				} else {
					conns = append(conns, nc)
				}
				mu.Unlock()
			}
		})
	}
	for range o.Connections {
		if ctx.Err() != nil {
			break
		}
		turns <- struct{}{}
	}
	close(turns)
	wait.Wait()
	r.Opened = len(conns)
	return conns
}

func openOne(addr string, request []byte, quiet bool) (net.Conn, error) {
	nc, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil || quiet {
		return nc, err
	}
	status, err := target.Exchange(nc, request)
	if err == nil && status != 200 {
		err = fmt.Errorf("status %d", status)
	}
	if err != nil {
		nc.Close()
		return nil, err
	}
	return nc, nil
}

// hold measures while the connections are idle.
func (r *Result) hold(ctx context.Context, o *Options, t *target.Target, request []byte) error {
	if !pause(ctx, settleTime) {
		return ctx.Err()
	}
	probe := t.StartProbe(ctx, request, probeEvery)
	begin, err := t.Usage()
	if err != nil {
		return err
	}
	if !pause(ctx, o.Hold) {
		return ctx.Err()
	}
	end, err := t.Usage()
	if err != nil {
		return err
	}
	r.Probe = probe.Stop()
	r.RSSHeld = end.RSS
	r.KiBPerIdle = float64(end.RSS-r.RSSBefore) / 1024 / float64(max(r.Opened, 1))
	r.CoresIdle = (end.CPU - begin.CPU).Seconds() / end.At.Sub(begin.At).Seconds()
	if r.Goroutines, err = t.Goroutines(ctx); err != nil {
		return err
	}
	if r.Descriptors, err = t.Descriptors(); err != nil {
		return err
	}
	stats, err := o.Setup.Mock.MockStats(ctx)
	r.UpstreamConns = stats.OpenConnections
	return err
}

func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
