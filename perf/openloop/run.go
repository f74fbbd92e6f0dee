package openloop

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Options say what is sent where and how fast.
type Options struct {
	Addr        string // host:port of the target
	Mix         Mix
	Rate        float64 // requests per second, both kinds together
	WarmUp      time.Duration
	Hold        time.Duration
	Drain       time.Duration // how long answers are awaited behind the hold; 10 s when 0
	Connections int           // opened before the start; 64 when 0
	// ConnectionsMax bounds the connections; a request that finds none free
	// waits, and its wait counts as latency. 4096 when 0.
	ConnectionsMax int

	// Begin and Offset make one even schedule of several generators: all begin
	// at the same time, each with its own offset. Zero is now, without one.
	Begin  time.Time
	Offset time.Duration

	// HoldBegin and HoldEnd are called on goroutines of their own when the
	// hold begins and ends, for readings of the target; nil is allowed.
	HoldBegin, HoldEnd func() `json:"-"`

	stall func(n int) // of tests: called before request n is sent
}

// A job is one scheduled request.
type job struct {
	due     time.Time
	kind    Kind
	stream  bool
	request []byte
	held    bool // belongs to the hold: counts
}

// A run is one running load. mu guards everything below it.
type run struct {
	options Options
	wait    sync.WaitGroup

	mu      sync.Mutex
	free    []*conn
	open    map[*conn]struct{}
	dialing int
	waiting []job // no connection was free; served in order
	ended   bool
	tally   tally
}

// A conn is one connection to the target. Owner: its reading goroutine, except
// that whoever takes it from the free list may write one request.
// Invariant: jobs is empty exactly while the connection is on the free list.
type conn struct {
	nc   net.Conn
	jobs chan job // capacity 1, filled with mu held: the request under way
}

// Run sends the load and waits for its end. The error says that nothing could
// be measured; failures of requests are in the result.
func Run(ctx context.Context, o Options) (*Result, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	r := &run{options: o, open: make(map[*conn]struct{})}
	r.tally.init()
	for range o.Connections {
		c, err := r.dial()
		if err != nil {
			r.end()
			return nil, fmt.Errorf("openloop: connect %s: %w", o.Addr, err)
		}
		r.mu.Lock()
		r.free = append(r.free, c)
		r.mu.Unlock()
	}
	requests := newVariants(&o.Mix)
	var readings sync.WaitGroup
	err := r.follow(ctx, &requests, &readings)
	r.drain(ctx)
	r.end()
	readings.Wait()
	if err != nil {
		return nil, err
	}
	return r.tally.result(o.Hold), nil
}

// variants are the requests of a run: by kind, and whether they ask for a stream.
type variants struct {
	of    [kinds][2][][]byte
	share float64 // of streams
}

func newVariants(m *Mix) variants {
	v := variants{share: m.StreamShare}
	if m.Stream {
		v.share = 1
	}
	for kind := range v.of {
		if v.share < 1 {
			v.of[kind][0] = m.requests(Kind(kind), false)
		}
		if v.share > 0 {
			v.of[kind][1] = m.requests(Kind(kind), true)
		}
	}
	return v
}

// job is request n of the schedule. Kinds take turns, and of each kind the
// streams are spread evenly.
func (v *variants) job(n int) job {
	kind, i := Kind(n%kinds), n/kinds
	j := job{kind: kind, stream: int(float64(i+1)*v.share) > int(float64(i)*v.share)}
	asked := 0
	if j.stream {
		asked = 1
	}
	j.request = v.of[kind][asked][i%variantsMade]
	return j
}

func (o *Options) check() error {
	if o.Connections == 0 {
		o.Connections = 64
	}
	if o.ConnectionsMax == 0 {
		o.ConnectionsMax = 4096
	}
	if o.Drain == 0 {
		o.Drain = 10 * time.Second
	}
	switch {
	case o.Rate <= 0 || o.Rate > rateMax:
		return fmt.Errorf("openloop: rate %v: want more than 0 and at most %d", o.Rate, rateMax)
	case o.Mix.StreamShare < 0 || o.Mix.StreamShare > 1:
		return fmt.Errorf("openloop: a share of streams of %v: want 0 to 1", o.Mix.StreamShare)
	case o.WarmUp < 0 || o.Hold <= 0 || o.WarmUp+o.Hold > durationMax:
		return fmt.Errorf("openloop: warm-up %v and hold %v: want a hold, and at most %v together", o.WarmUp, o.Hold, durationMax)
	case o.ConnectionsMax > connectionsMax || o.Connections > o.ConnectionsMax:
		return fmt.Errorf("openloop: %d to %d connections: want at most %d", o.Connections, o.ConnectionsMax, connectionsMax)
	}
	return nil
}

// follow sends every job at its time, however the replies come.
func (r *run) follow(ctx context.Context, requests *variants, readings *sync.WaitGroup) error {
	runtime.LockOSThread() // sleeping by the clock, not by the runtime's timers: those are late by up to 1 ms
	defer runtime.UnlockOSThread()
	o := &r.options
	begin := o.Begin
	if begin.IsZero() {
		begin = time.Now().Add(beginDelay)
	}
	holdBegin := begin.Add(o.WarmUp)
	holdEnd := holdBegin.Add(o.Hold)
	r.mu.Lock()
	r.tally.holdBegin, r.tally.holdEnd = holdBegin, holdEnd
	r.mu.Unlock()
	o.announce(ctx, holdBegin, readings)
	for n := 0; ; n++ {
		due := begin.Add(o.Offset + time.Duration(float64(n)*float64(time.Second)/o.Rate))
		if !due.Before(holdEnd) {
			sleepUntil(holdEnd)
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		sleepUntil(due)
		if o.stall != nil {
			o.stall(n)
		}
		j := requests.job(n)
		j.due, j.held = due, !due.Before(holdBegin)
		r.mu.Lock()
		if j.held {
			r.tally.offered++
			r.tally.lag.record(time.Since(due).Microseconds())
		}
		r.dispatch(j)
	}
}

// sleepUntil sleeps on this thread. A time in the past returns at once.
func sleepUntil(t time.Time) {
	for {
		left := time.Until(t)
		if left <= 0 {
			return
		}
		if left > sleepSlack {
			left -= sleepSlack
		} else {
			left = time.Microsecond
		}
		ts := unix.NsecToTimespec(left.Nanoseconds())
		unix.Nanosleep(&ts, nil)
	}
}

func sleepContext(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// dispatch writes a job on a free connection, or opens one, or lets the job
// wait. It is called with mu held and releases it.
func (r *run) dispatch(j job) {
	if n := len(r.free); n > 0 {
		c := r.free[n-1]
		r.free = r.free[:n-1]
		c.jobs <- j
		r.mu.Unlock()
		c.send(j)
		return
	}
	r.waiting = append(r.waiting, j)
	grow := len(r.open)+r.dialing < r.options.ConnectionsMax
	if grow {
		r.dialing++
	}
	r.mu.Unlock()
	if grow {
		r.wait.Go(r.grow)
	}
}

// grow adds a connection for the jobs that wait.
func (r *run) grow() {
	c, err := r.dial()
	r.mu.Lock()
	r.dialing--
	if err != nil {
		if n := len(r.waiting); n > 0 { // the job that asked for the connection
			j := r.waiting[0]
			r.waiting = r.waiting[1:]
			r.tally.fail(j, err)
		}
		r.mu.Unlock()
		return
	}
	r.next(c)
}

// next gives a connection its next job or frees it. It is called with mu held
// and releases it.
func (r *run) next(c *conn) {
	if len(r.waiting) == 0 {
		r.free = append(r.free, c)
		r.mu.Unlock()
		return
	}
	j := r.waiting[0]
	r.waiting = r.waiting[1:]
	c.jobs <- j
	r.mu.Unlock()
	c.send(j)
}

func (r *run) dial() (*conn, error) {
	nc, err := net.DialTimeout("tcp", r.options.Addr, dialTimeout)
	if err != nil {
		return nil, err
	}
	c := &conn{nc: nc, jobs: make(chan job, 1)}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		nc.Close()
		return nil, errors.New("openloop: the run has ended")
	}
	r.open[c] = struct{}{}
	r.tally.dials++
	r.wait.Go(func() { r.read(c) })
	return c, nil
}

// send writes one request, which is in jobs already: a reader that sees the
// connection die must find it there.
func (c *conn) send(j job) {
	if _, err := c.nc.Write(j.request); err != nil {
		c.nc.Close() // the reader sees it and counts
	}
}

// read takes the answers of a connection until it is of no further use.
func (r *run) read(c *conn) {
	in := bufio.NewReaderSize(c.nc, lineBytesMax/16)
	var watch stream
	for {
		var firstByte time.Time
		_, err := in.Peek(1)
		if err == nil {
			firstByte = time.Now()
		}
		var a answer
		if err == nil {
			a, err = readAnswer(in, &watch)
		}
		now := time.Now()
		r.mu.Lock()
		select {
		case j := <-c.jobs:
			if err != nil && r.ended {
				r.tally.lose(j)
			} else if err != nil {
				r.tally.fail(j, err)
			} else {
				r.tally.take(j, a, &watch, firstByte, now)
			}
		default: // closed while idle
			r.dropFree(c)
			if err == nil {
				r.tally.unasked++
			}
			err = errAnswer
		}
		if err != nil || a.closes || r.ended {
			delete(r.open, c)
			r.mu.Unlock()
			c.nc.Close()
			return
		}
		r.next(c)
	}
}

// dropFree takes a connection off the free list.
func (r *run) dropFree(c *conn) {
	for i, f := range r.free {
		if f == c {
			r.free = append(r.free[:i], r.free[i+1:]...)
			return
		}
	}
}

// drain waits for the answers that are under way.
func (r *run) drain(ctx context.Context) {
	for until := time.Now().Add(r.options.Drain); time.Now().Before(until); {
		r.mu.Lock()
		busy := len(r.open) - len(r.free) + len(r.waiting) + r.dialing
		r.mu.Unlock()
		if busy == 0 || !sleepContext(ctx, 5*time.Millisecond) {
			return
		}
	}
}

// end closes everything; what has no answer counts as unanswered.
func (r *run) end() {
	r.mu.Lock()
	r.ended = true
	for c := range r.open {
		c.nc.Close()
	}
	for _, j := range r.waiting {
		r.tally.lose(j)
	}
	r.waiting = nil
	r.mu.Unlock()
	r.wait.Wait()
}
