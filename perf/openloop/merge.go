package openloop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"time"
)

// Merge makes one result of those of several generators that ran at the same
// time: as if one had sent everything.
func Merge(results ...*Result) (*Result, error) {
	if len(results) == 0 {
		return nil, errors.New("openloop: nothing to merge")
	}
	var t tally
	t.init()
	late := false
	for _, r := range results {
		if r.HoldSeconds != results[0].HoldSeconds || r.HoldSeconds <= 0 {
			return nil, fmt.Errorf("openloop: results of holds of %v and %v seconds do not go together", results[0].HoldSeconds, r.HoldSeconds)
		}
		if err := t.merge(r); err != nil {
			return nil, err
		}
		late = late || r.Late
	}
	merged := t.result(time.Duration(results[0].HoldSeconds * float64(time.Second)))
	merged.Late = merged.Late || late
	return merged, nil
}

// RunProcesses sends the load from n processes, "PROGRAM gen --worker", that
// share one even schedule, and merges what they saw.
func RunProcesses(ctx context.Context, program string, n int, o Options) (*Result, error) {
	if n < 1 || n > processesMax {
		return nil, fmt.Errorf("openloop: %d processes: want 1 to %d", n, processesMax)
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	begin := time.Now().Add(beginDelayProcess)
	var readings sync.WaitGroup
	o.announce(ctx, begin.Add(o.WarmUp), &readings)
	results, errs := make([]*Result, n), make([]error, n)
	var running sync.WaitGroup
	for i := range n {
		part := o
		part.Begin, part.Offset = begin, time.Duration(float64(i)*float64(time.Second)/o.Rate)
		part.Rate = o.Rate / float64(n)
		part.Connections, part.ConnectionsMax = max(o.Connections/n, 1), max(o.ConnectionsMax/n, 1)
		part.Mix.Seed += uint64(i)
		running.Go(func() {
			if results[i], errs[i] = worker(ctx, program, &part); errs[i] != nil {
				cancel()
			}
		})
	}
	running.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	readings.Wait()
	return Merge(results...)
}

// worker runs one process of a load.
func worker(ctx context.Context, program string, o *Options) (*Result, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("openloop: options of a worker: %w", err)
	}
	cmd := exec.CommandContext(ctx, program, "gen", "--worker")
	var said bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(text), &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("openloop: worker: %w: %s", err, bytes.TrimSpace(said.Bytes()))
	}
	r := new(Result)
	if err := json.Unmarshal(out, r); err != nil {
		return nil, fmt.Errorf("openloop: result of a worker: %w", err)
	}
	return r, nil
}

// announce calls HoldBegin and HoldEnd at their times.
func (o *Options) announce(ctx context.Context, holdBegin time.Time, readings *sync.WaitGroup) {
	for _, reading := range []struct {
		at time.Time
		do func()
	}{{holdBegin, o.HoldBegin}, {holdBegin.Add(o.Hold), o.HoldEnd}} {
		if reading.do != nil {
			readings.Go(func() {
				if sleepContext(ctx, time.Until(reading.at)) {
					reading.do()
				}
			})
		}
	}
}
