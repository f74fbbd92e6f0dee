package openloop

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"
)

// What a worker writes when it has connected, and then waits for the beginning.
const readyLine = "ready\n"

// RunProcesses sends the load from n processes, "PROGRAM gen --worker", that
// share one even schedule, and merges what they saw. HoldBegin and HoldEnd are
// called here.
func RunProcesses(ctx context.Context, program string, n int, o Options) (*Result, error) {
	if n < 1 || n > processesMax {
		return nil, fmt.Errorf("openloop: %d processes: want 1 to %d", n, processesMax)
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	workers := make([]*worker, n)
	for i := range workers {
		part := o
		part.Part, part.Parts = o.Part+i*o.Parts, o.Parts*n
		part.Connections, part.ConnectionsMax = max(o.Connections/n, 1), max(o.ConnectionsMax/n, 1)
		w, err := startWorker(ctx, program, &part)
		if err != nil {
			cancel(err)
			all(workers[:i], (*worker).wait)
			return nil, err
		}
		workers[i] = w
	}
	tooLong := time.AfterFunc(workersReady, func() { cancel(fmt.Errorf("openloop: workers were not ready within %v", workersReady)) })
	all(workers, func(w *worker) { w.awaitReady(cancel) })
	tooLong.Stop()
	begin := o.Begin
	if begin.IsZero() {
		begin = time.Now().Add(workersDelay)
	}
	var readings sync.WaitGroup
	o.announce(ctx, begin.Add(o.WarmUp), &readings)
	all(workers, func(w *worker) { w.load(begin, cancel) })
	all(workers, (*worker).wait)
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	readings.Wait()
	results := make([]*Result, n)
	for i, w := range workers {
		results[i] = &w.result
	}
	return Merge(results...)
}

// all does something with all workers at once.
func all(workers []*worker, do func(*worker)) {
	var running sync.WaitGroup
	for _, w := range workers {
		running.Go(func() { do(w) })
	}
	running.Wait()
}

// A worker is one process of a load. Owner: one goroutine at a time.
type worker struct {
	cmd    *exec.Cmd
	in     io.WriteCloser // to its end it lives
	out    *bufio.Reader
	said   bytes.Buffer
	result Result
}

func startWorker(ctx context.Context, program string, o *Options) (*worker, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("openloop: options of a worker: %w", err)
	}
	w := &worker{cmd: exec.CommandContext(ctx, program, "gen", "--worker")}
	w.cmd.Stderr = &w.said
	if w.in, err = w.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("openloop: worker: %w", err)
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("openloop: worker: %w", err)
	}
	w.out = bufio.NewReader(out)
	if err := w.cmd.Start(); err != nil {
		return nil, fmt.Errorf("openloop: worker: %w", err)
	}
	w.in.Write(append(text, '\n')) // a worker that does not take it does not get ready
	return w, nil
}

// awaitReady waits until the worker has connected.
func (w *worker) awaitReady(fail context.CancelCauseFunc) {
	if line, err := w.out.ReadString('\n'); err != nil || line != readyLine {
		fail(w.failure(err))
	}
}

// load makes the worker begin and takes its result.
func (w *worker) load(begin time.Time, fail context.CancelCauseFunc) {
	text, err := begin.MarshalJSON()
	if err == nil {
		_, err = w.in.Write(append(text, '\n'))
	}
	if err == nil {
		err = json.NewDecoder(w.out).Decode(&w.result)
	}
	if err != nil {
		fail(w.failure(err))
	}
}

// failure is why a worker did not do its part, in its own words if it has any.
func (w *worker) failure(err error) error {
	w.wait()
	if said := bytes.TrimSpace(w.said.Bytes()); len(said) > 0 {
		return fmt.Errorf("openloop: worker: %s", said)
	}
	return fmt.Errorf("openloop: worker: no result: %w", errors.Join(err, w.cmd.Err))
}

// wait ends a worker. What it says then is known.
func (w *worker) wait() {
	w.in.Close()
	w.cmd.Wait()
}

// Work is the other side of RunProcesses: it takes options from in, connects,
// says that it is ready, waits to be told when to begin, and gives its result
// to out. It ends early when in does.
func Work(ctx context.Context, in io.Reader, out io.Writer) error {
	const optionsBytesMax = 64 << 20
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	told := json.NewDecoder(io.LimitReader(in, optionsBytesMax))
	var o Options
	if err := told.Decode(&o); err != nil {
		return fmt.Errorf("openloop: options on stdin: %w", err)
	}
	result, err := run(ctx, o, func() (begin time.Time, err error) {
		if _, err = io.WriteString(out, readyLine); err != nil {
			return begin, err
		}
		if err = told.Decode(&begin); err != nil {
			return begin, fmt.Errorf("openloop: time to begin on stdin: %w", err)
		}
		go func() {
			io.Copy(io.Discard, in) // until the one who started this is gone
			cancel()
		}()
		return begin, nil
	})
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(result)
}
