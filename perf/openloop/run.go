package openloop

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A generator is one running load. Owner: the goroutine of Run, on a thread of
// its own.
type generator struct {
	options  Options
	schedule *schedule
	to       address
	poll     *poller
	tally    tally
	base     time.Time // zero of the clock

	conns      []*conn // by descriptor
	generation int32
	free       []*conn // the last one used is the first to be used again
	open       int     // ordinary connections, with those that are dialed
	dialing    int
	busy       int
	callers    int   // connections of mischief
	waiting    queue // no connection was free
	timers     timers

	begun  bool  // the schedule is followed
	over   bool  // nothing new begins
	failed error // before the beginning
	usual  int64 // what an answer takes about, in nanoseconds
	looked int64 // when there were no more events
}

// Run sends the load and waits for its end. The error says that nothing could
// be measured; failures of requests are in the result.
func Run(ctx context.Context, o Options) (*Result, error) {
	return run(ctx, o, func() (time.Time, error) { return o.Begin, nil })
}

// run connects, asks when to begin, and sends the load.
func run(ctx context.Context, o Options, begin func() (time.Time, error)) (*Result, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// Waits end when they should, not up to 50 µs later so that wake-ups can be shared.
	if unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) == nil {
		defer unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0)
	}
	g := &generator{options: o, schedule: newSchedule(&o.Mix), base: time.Now(), usual: leaveWaitFirst.Nanoseconds()}
	g.tally.init()
	err := g.connect(ctx)
	if g.poll != nil {
		defer g.poll.close()
	}
	if err != nil {
		g.end()
		return nil, fmt.Errorf("openloop: connect %s: %w", o.Addr, err)
	}
	at, err := begin()
	if err != nil {
		g.end()
		return nil, err
	}
	if at.IsZero() {
		at = time.Now().Add(beginDelay)
	}
	readings := g.begin(ctx, at)
	err = g.follow(ctx)
	if err == nil {
		err = g.drain(ctx)
	}
	g.end()
	readings.Wait()
	if err != nil {
		return nil, err
	}
	return g.tally.result(o.Hold), nil
}

func (g *generator) now() int64 { return time.Since(g.base).Nanoseconds() }

// connect opens the connections that are there at the beginning.
func (g *generator) connect(ctx context.Context) error {
	var err error
	if g.to, err = resolve(g.options.Addr); err != nil {
		return err
	}
	if g.poll, err = newPoller(); err != nil {
		return err
	}
	for g.failed == nil && len(g.free) < g.options.Connections {
		if g.open < g.options.Connections && g.dialing < dialsAtOnce {
			if _, err := g.dial(nil); err != nil {
				return err
			}
			continue
		}
		if err := g.step(ctx, g.now()+int64(waitMax)); err != nil {
			return err
		}
	}
	return g.failed
}

// begin sets the times of the run.
func (g *generator) begin(ctx context.Context, at time.Time) *sync.WaitGroup {
	g.begun = true
	o := &g.options
	o.Begin = at
	holdBegin := at.Add(o.WarmUp)
	g.tally.holdBegin = time.Until(holdBegin).Nanoseconds() + g.now()
	g.tally.holdEnd = g.tally.holdBegin + o.Hold.Nanoseconds()
	readings := new(sync.WaitGroup)
	o.announce(ctx, holdBegin, readings)
	return readings
}

// follow sends every request at its time, however the answers come.
func (g *generator) follow(ctx context.Context) error {
	o, t := &g.options, &g.tally
	begin := t.holdBegin - o.WarmUp.Nanoseconds()
	var cpu time.Duration
	for n := o.Part; ; {
		for range eventsAtOnce {
			due := begin + o.due(n).Nanoseconds()
			now := g.now()
			if due >= t.holdEnd {
				if now >= t.holdEnd {
					if cpu > 0 {
						t.cpuUs = (threadCPU() - cpu).Microseconds()
					}
					return nil
				}
				break
			}
			if due > now {
				break
			}
			if o.stall != nil {
				o.stall(n)
			}
			if cpu == 0 && due >= t.holdBegin {
				cpu = threadCPU()
			}
			j := g.schedule.job(n)
			j.due, j.held = due, due >= t.holdBegin
			g.dispatch(j)
			n += o.Parts
		}
		if err := g.step(ctx, min(begin+o.due(n).Nanoseconds(), t.holdEnd)); err != nil {
			return err
		}
	}
}

// dispatch sends a job on a free connection, or opens one, or lets it wait.
func (g *generator) dispatch(j job) {
	if j.manner != ordinary {
		g.call(j)
		return
	}
	if j.held {
		g.tally.offered++
		g.tally.lag.record((g.now() - j.due) / 1000)
	}
	for n := len(g.free); n > 0; n = len(g.free) {
		c := g.free[n-1]
		g.free = g.free[:n-1]
		if c.state == free {
			g.start(c, j)
			return
		}
	}
	g.waiting.push(j)
	g.grow()
}

// step handles events and waits until a time, or for further events if that is
// long. A short wait is a sleep: answers tell themselves when they arrived, so
// nothing is lost when they are read with the next request, and it saves a
// wake-up for each.
func (g *generator) step(ctx context.Context, until int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	now := g.now()
	g.fire(now)
	if len(g.timers) > 0 {
		until = min(until, g.timers[0].wakeAt)
	}
	left := time.Duration(until - now)
	sleeps := g.begun && left <= sleepMax
	if sleeps && now-g.looked < lookEvery.Nanoseconds() {
		g.poll.sleep(left)
		return nil
	}
	if sleeps {
		left = 0
	}
	events, err := g.poll.wait(min(left, waitMax))
	if err != nil {
		return err
	}
	for i := range events {
		e := &events[i]
		if c := g.conns[e.Fd]; c != nil && c.generation == e.Pad {
			g.ready(c, e.Events)
		}
	}
	if len(events) == eventsAtOnce { // there may be more
		return nil
	}
	g.looked = g.now()
	if sleeps {
		g.poll.sleep(time.Duration(until - g.looked))
	}
	return nil
}

// drain waits for the answers that are under way.
func (g *generator) drain(ctx context.Context) error {
	until := g.tally.holdEnd + g.options.Drain.Nanoseconds()
	for g.busy+g.waiting.len()+g.callers > 0 && g.now() < until {
		if err := g.step(ctx, until); err != nil {
			return err
		}
	}
	return nil
}

// end closes everything; what has no answer counts as unanswered.
func (g *generator) end() {
	g.over = true
	now := g.now()
	for _, c := range g.conns {
		switch {
		case c == nil:
			continue
		case c.caller != nil:
			g.misbehaved(c, errNoEnd)
			continue
		case c.state == busy:
			g.tally.lose(&c.job, c.sent > 0, now)
		}
		g.drop(c)
	}
	for j, ok := g.waiting.pop(); ok; j, ok = g.waiting.pop() {
		g.tally.lose(&j, false, now)
	}
}

// threadCPU is what this thread has used.
func threadCPU() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_THREAD, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// announce calls HoldBegin and HoldEnd at their times.
func (o *Options) announce(ctx context.Context, holdBegin time.Time, readings *sync.WaitGroup) {
	for _, reading := range []struct {
		at time.Time
		do func()
	}{{holdBegin, o.HoldBegin}, {holdBegin.Add(o.Hold), o.HoldEnd}} {
		if reading.do != nil {
			readings.Go(func() {
				select {
				case <-ctx.Done():
				case <-time.After(time.Until(reading.at)):
					reading.do()
				}
			})
		}
	}
}
