package reader

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"relay/perf/mockhost"
	"relay/perf/openloop"
	"relay/perf/pattern"
	"relay/perf/target"
)

const (
	sampleEvery    = 50 * time.Millisecond
	probeEvery     = 100 * time.Millisecond
	pollEvery      = 100 * time.Millisecond
	warmUpRequests = 1000
	portionBytes   = 32 << 10         // read at once
	returnTime     = 10 * time.Second // how long memory may take to come back
	returnedBytes  = 1 << 20          // above the start: memory has come back
	lateTime       = 60 * time.Second // how much longer than planned the whole may take
	bodyBytes      = 512
)

// Options say how the client reads.
type Options struct {
	Setup     target.Setup `json:"-"`
	Target    string
	PourBytes int64 // content of the stream
	ReadRate  int64 // bytes per second on the wire
	StopAfter int64 // bytes on the wire, then the client stops reading
	StopFor   time.Duration
	// Never: the client does not read again. The target must give it up; it is
	// awaited for GiveUp.
	Never  bool
	GiveUp time.Duration
}

// Scenario is what the mock has to be told.
func (o *Options) Scenario() string { return fmt.Sprintf("instant,pour=%d", o.PourBytes) }

// A Result is what was seen.
type Result struct {
	Target       string
	ContentBytes int64 // checked, byte by byte
	Whole        bool  // all content and the last frame came
	Seconds      float64
	RSSBefore    int64
	RSSMax       int64
	RSSAfter     int64   // behind the end: once it is back within 1 MiB of before, or the lowest of 10 s
	GrowthMiB    float64 // RSSMax over RSSBefore
	LeftMiB      float64 // RSSAfter over RSSBefore
	// HeldMiB is the most that had left the mock and not reached the client:
	// in the target, and in the kernel's four socket buffers.
	HeldMiB       float64
	Closed        bool    // Never: the target gave up the stream
	ClosedAfter   float64 // seconds behind the stop
	FDsBefore     int
	FDsAfter      int
	GoroutinesEnd int
	Probe         target.Probed
	Failure       string // why the stream was not whole
}

// A paced reader reads no faster than its rate and stops once.
type paced struct {
	nc      net.Conn
	o       *Options
	began   time.Time
	bytes   int64
	stopped bool
	onStop  func() error // not nil error: reading ends there
	stall   time.Duration
}

func (p *paced) Read(b []byte) (int, error) {
	if !p.stopped && p.bytes >= p.o.StopAfter {
		p.stopped = true
		before := time.Now()
		if err := p.onStop(); err != nil {
			return 0, err
		}
		p.stall = time.Since(before)
	}
	due := p.began.Add(p.stall + time.Duration(float64(p.bytes)/float64(p.o.ReadRate)*float64(time.Second)))
	time.Sleep(time.Until(due))
	n, err := p.nc.Read(b[:min(len(b), portionBytes)])
	p.bytes += int64(n)
	return n, err
}

var errStopped = errors.New("the client stopped for good")

// Run pours once.
func Run(ctx context.Context, o Options) (*Result, error) {
	if o.PourBytes < 1 || o.ReadRate < 1 || o.StopAfter < 0 || o.StopAfter >= o.PourBytes {
		return nil, fmt.Errorf("reader: pour %d, rate %d, stop after %d: want positive numbers and a stop within the pour", o.PourBytes, o.ReadRate, o.StopAfter)
	}
	t, err := o.Setup.Start(ctx, o.Target)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	mix := o.Setup.Mix(t)
	if err := t.WarmUp(ctx, mix, warmUpRequests); err != nil {
		return nil, err
	}
	before, err := t.Usage()
	if err != nil {
		return nil, err
	}
	r := &Result{Target: o.Target, RSSBefore: before.RSS, GoroutinesEnd: -1}
	if r.FDsBefore, err = t.Descriptors(); err != nil {
		return nil, err
	}
	sampler := t.StartSampler(ctx, sampleEvery)
	probe := t.StartProbe(ctx, mix.Request(openloop.Chat, mix.Keys[0], bodyBytes), probeEvery)
	mix.Stream = true
	err = r.pour(ctx, &o, t.Addr, mix.Request(openloop.Chat, mix.Keys[0], bodyBytes))
	r.Probe = probe.Stop()
	r.RSSMax, _ = sampler.Stop()
	r.GrowthMiB = float64(r.RSSMax-r.RSSBefore) / (1 << 20)
	if err != nil {
		return nil, err
	}
	return r, r.settle(ctx, t)
}

// pour reads the stream as the options say.
func (r *Result) pour(ctx context.Context, o *Options, addr string, request []byte) error {
	nc, err := net.DialTimeout("tcp", addr, 10*time.Second)
	if err != nil {
		return fmt.Errorf("reader: %w", err)
	}
	defer nc.Close()
	defer context.AfterFunc(ctx, func() { nc.Close() })()
	planned := time.Duration(float64(o.PourBytes)*1.2/float64(o.ReadRate)*float64(time.Second)) + o.StopFor
	if o.Never {
		planned += o.GiveUp
	}
	nc.SetDeadline(time.Now().Add(planned + lateTime))
	first, err := o.Setup.Mock.MockStats(ctx)
	if err != nil {
		return err
	}
	p := &paced{nc: nc, o: o, began: time.Now()}
	p.onStop = func() error { return r.stop(ctx, o, first, p.bytes) }
	began := time.Now()
	if _, err := nc.Write(request); err != nil {
		return fmt.Errorf("reader: %w", err)
	}
	s, err := pattern.Open(p, pattern.LineBytesPour)
	if err != nil {
		return fmt.Errorf("reader: %w", err)
	}
	for err == nil {
		_, err = s.Next()
	}
	r.Seconds = time.Since(began).Seconds()
	r.ContentBytes = s.Bytes
	r.Whole = err == io.EOF && s.Done && s.Bytes >= o.PourBytes
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if !r.Whole {
		r.Failure = fmt.Sprintf("%v, last frame %v, %d of %d bytes", err, s.Done, s.Bytes, o.PourBytes)
	}
	return nil
}

// stop is the time in which the client does not read.
func (r *Result) stop(ctx context.Context, o *Options, first mockhost.Stats, taken int64) error {
	began := time.Now()
	length := o.StopFor
	if o.Never {
		length = o.GiveUp
	}
	for time.Since(began) < length {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollEvery):
		}
		stats, err := o.Setup.Mock.MockStats(ctx)
		if err != nil {
			return err
		}
		r.HeldMiB = max(r.HeldMiB, float64(int64(stats.BytesOut-first.BytesOut)-taken)/(1<<20))
		if o.Never && stats.OpenStreams == 0 {
			r.Closed, r.ClosedAfter = true, time.Since(began).Seconds()
			break
		}
	}
	if o.Never {
		return errStopped
	}
	return nil
}

// settle waits for memory to come back.
func (r *Result) settle(ctx context.Context, t *target.Target) error {
	r.RSSAfter = r.RSSMax
	for began := time.Now(); time.Since(began) < returnTime && r.RSSAfter > r.RSSBefore+returnedBytes; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollEvery):
		}
		u, err := t.Usage()
		if err != nil {
			return err
		}
		if u.RSS < r.RSSAfter {
			r.RSSAfter = u.RSS
		}
	}
	r.LeftMiB = float64(r.RSSAfter-r.RSSBefore) / (1 << 20)
	var err error
	if r.FDsAfter, err = t.Descriptors(); err != nil {
		return err
	}
	r.GoroutinesEnd, err = t.Goroutines(ctx)
	return err
}
