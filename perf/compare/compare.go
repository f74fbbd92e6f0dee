package compare

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"relay/perf/machine"
	"relay/perf/openloop"
	"relay/perf/target"
)

const (
	roundsMax   = 100
	sampleEvery = 200 * time.Millisecond // of the working set
)

// Options say what is compared and how.
type Options struct {
	Setup       target.Setup `json:"-"`
	Targets     []string     // names, in the order of each round
	Rate        float64      // requests per second, both kinds together
	Rounds      int
	WarmUp      time.Duration
	Hold        time.Duration
	Connections int
	Stream      bool
	BodyBytes   int // not 0: every body has this length
	Scenario    string

	Progress io.Writer `json:"-"` // a line per step
}

// A Step is one target in one round.
type Step struct {
	Target string
	Round  int
	Load   *openloop.Result

	CPUPerRequestUs float64 // of the target and its children, over the hold
	Cores           float64
	RSSBytes        int64 // the most that was seen in the hold
	Goroutines      int   // at the end of the hold; -1 = unknown
	MockCPUUs       float64
	Excluded        string // why the step counts in no figure; "" = it counts
}

// Run takes the measurements. Targets that are missing are named and left out.
func Run(ctx context.Context, o Options) (steps []Step, missing []string, err error) {
	if o.Rounds < 1 || o.Rounds > roundsMax {
		return nil, nil, fmt.Errorf("compare: %d rounds: want 1 to %d", o.Rounds, roundsMax)
	}
	left := make(map[string]bool)
	for round := 1; round <= o.Rounds; round++ {
		for _, name := range o.Targets {
			if left[name] {
				continue
			}
			step, err := take(ctx, &o, name)
			var absent *target.Missing
			if errors.As(err, &absent) {
				left[name] = true
				missing = append(missing, fmt.Sprintf("%s is left out: %v", name, absent))
				continue
			}
			if err != nil {
				return steps, missing, fmt.Errorf("compare: round %d, %s: %w", round, name, err)
			}
			step.Round = round
			steps = append(steps, step)
			fmt.Fprintf(o.Progress, "round %d %-9s %s\n", round, name, step.line())
		}
	}
	return steps, missing, nil
}

// readings are taken of a target while the load runs.
type readings struct {
	mu         sync.Mutex
	begin, end machine.Usage
	mockBegin  float64 // seconds of CPU
	mockEnd    float64
	rss        int64
	goroutines int
	err        error
}

func (r *readings) note(err error) {
	r.mu.Lock()
	r.err = errors.Join(r.err, err)
	r.mu.Unlock()
}

// take starts a target, loads it and stops it.
func take(ctx context.Context, o *Options, name string) (Step, error) {
	t, err := o.Setup.Start(ctx, name)
	if err != nil {
		return Step{}, err
	}
	defer t.Close()
	r := &readings{goroutines: -1}
	sampling, stop := context.WithCancel(ctx)
	defer stop()
	var sampler sync.WaitGroup
	mix := o.Setup.Mix(t)
	mix.Stream, mix.BodyBytesExact = o.Stream, o.BodyBytes
	load, err := openloop.Run(ctx, openloop.Options{
		Addr: t.Addr, Rate: o.Rate, WarmUp: o.WarmUp, Hold: o.Hold, Connections: o.Connections,
		Mix: mix,
		HoldBegin: func() {
			r.read(t, o, &r.begin, &r.mockBegin)
			sampler.Go(func() { r.sample(sampling, t) })
		},
		HoldEnd: func() {
			r.read(t, o, &r.end, &r.mockEnd)
			n, err := t.Goroutines(ctx) // behind the reading of CPU: it costs some
			r.note(err)
			r.mu.Lock()
			r.goroutines = n
			r.mu.Unlock()
			stop()
		},
	})
	stop()
	sampler.Wait()
	if ended, said := t.Ended(); name != target.NameDirect && ended {
		return Step{}, fmt.Errorf("%s ended under load: %s", name, said)
	}
	if err != nil {
		return Step{}, err
	}
	if r.err != nil {
		return Step{}, r.err
	}
	return r.step(name, load), nil
}

func (r *readings) read(t *target.Target, o *Options, into *machine.Usage, mock *float64) {
	u, err := t.Usage()
	m, mockErr := o.Setup.Mock.Usage()
	r.mu.Lock()
	*into, *mock = u, m.CPU.Seconds()
	r.err = errors.Join(r.err, err, mockErr)
	r.mu.Unlock()
}

func (r *readings) sample(ctx context.Context, t *target.Target) {
	for {
		u, err := t.Usage()
		if err == nil {
			r.mu.Lock()
			r.rss = max(r.rss, u.RSS)
			r.mu.Unlock()
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(sampleEvery):
		}
	}
}

func (r *readings) step(name string, load *openloop.Result) Step {
	s := Step{Target: name, Load: load, RSSBytes: r.rss, Goroutines: r.goroutines}
	cpu := r.end.CPU - r.begin.CPU
	s.Cores = cpu.Seconds() / r.end.At.Sub(r.begin.At).Seconds()
	if load.ServedInHold > 0 {
		s.CPUPerRequestUs = float64(cpu.Microseconds()) / float64(load.ServedInHold)
		s.MockCPUUs = (r.mockEnd - r.mockBegin) * 1e6 / float64(load.ServedInHold)
	}
	switch {
	case load.Late:
		s.Excluded = fmt.Sprintf("the generator was late: p99 %.1f ms behind its schedule", load.Lag.P99)
	case load.ServedInHold == 0:
		s.Excluded = "nothing was served"
	}
	return s
}

func (s *Step) line() string {
	text := fmt.Sprintf("%7.1f µs/request, %6.0f served/s, errors %.3f %%, overhead p50 %.2f p99 %.2f ms, RSS %.1f MB, lag p99 %.2f ms",
		s.CPUPerRequestUs, s.Load.ServedRate, s.Load.ErrorShare*100, s.Load.Overhead.P50, s.Load.Overhead.P99,
		float64(s.RSSBytes)/1e6, s.Load.Lag.P99)
	if s.Excluded != "" {
		text += " — EXCLUDED: " + s.Excluded
	}
	return text
}
