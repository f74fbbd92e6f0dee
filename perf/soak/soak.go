package soak

import (
	"context"
	"fmt"
	"sync"
	"time"

	"relay/perf/machine"
	"relay/perf/money"
	"relay/perf/openloop"
	"relay/perf/target"
)

// Options say what is sent. The accounts are Setup.RelayKeys, one for each key.
type Options struct {
	Setup     target.Setup `json:"-"`
	Target    string
	Rate      float64 // requests per second
	Requests  int64   // in all
	Pace      string  // scenario words of the mock; "slow" when empty
	BodyBytes int     // exact length of bodies; 0 = as in the usual mix
	// LatencyMax bounds the 95th percentile of the latency, and OverheadMax that
	// of the overhead; 0 = it is only told.
	LatencyMax, OverheadMax time.Duration
	Trouble                 Trouble       // callers beside the load that behave badly
	Return                  time.Duration // within which memory, descriptors and goroutines have to be back; 90 s when 0

	rest time.Duration // between the warm-up and the readings that are compared with; restTime when 0
}

// Scenario is what the mock has to be told.
func (o *Options) Scenario() string {
	pace := o.Pace
	if pace == "" {
		pace = "slow"
	}
	return fmt.Sprintf("%s,in=%d,out=%d", pace, tokensIn, tokensOut)
}

// A Size is how large a gateway is.
type Size struct {
	RSS         int64 // bytes
	Descriptors int
	Goroutines  int // -1 = unknown
	Exchanges   int // requests being worked on, as the gateway tells; -1 = unknown
}

// A Result is what was seen.
type Result struct {
	Target   string
	Rate     float64
	Requests int64
	Load     *openloop.Result
	WarmUp   *openloop.Result // small answers at once
	Burst    *openloop.Result // as the load, but short

	LatencyP50Ms, LatencyP95Ms, LatencyP99Ms float64 // of the worse kind
	OverheadP95Ms                            float64

	InFlight      int     // most at once: as the gateway tells, or else rate × median latency
	KiBPerWaiting float64 // of memory over the base, at the sample with most in flight
	CPUPerRequest float64 // µs
	Base          Size    // behind the warm-up
	Filled        Size    // behind a burst as dense as the load, which has filled the target's pools
	Most          Size    // of each, whenever it was
	After         Size
	ReturnSeconds float64 // until it was back; -1 = it did not come back in time

	Trouble  [troubles]Troubled // slow callers, those who leave, those whom the provider fails
	Seen     money.Seen         // everything, trouble included
	Count    *money.Count       // nil: the target keeps no accounts
	Accounts int                // with rows
	Missing  int64              // rows of the accounts that have fewer than were sent, together

	Problems []string // each check that failed, by name; none = all is well
	Excluded string   // why latencies count in no figure; "" = they count
}

// A soak is a running measurement.
type soak struct {
	o    *Options
	t    *target.Target
	mix  openloop.Mix
	sent []int64 // requests by key, warm-up and burst included

	connections int // most to the target

	mu     sync.Mutex // guards sent and the result's Seen and Trouble while the load runs
	result *Result
}

func (o *Options) check() error {
	if o.Return == 0 {
		o.Return = 90 * time.Second
	}
	if o.rest == 0 {
		o.rest = restTime
	}
	o.Setup.RelayKeys = max(o.Setup.RelayKeys, 1)
	switch {
	case o.Rate <= 0 || o.Rate > rateMax:
		return fmt.Errorf("soak: rate %v: want more than 0 and at most %d", o.Rate, rateMax)
	case o.Requests < 1 || o.Requests > requestsMax:
		return fmt.Errorf("soak: %d requests: want 1 to %d", o.Requests, requestsMax)
	case o.BodyBytes < 0 || o.BodyBytes > bodyMax:
		return fmt.Errorf("soak: bodies of %d bytes: want 0 to %d", o.BodyBytes, bodyMax)
	case o.LatencyMax < 0 || o.OverheadMax < 0 || o.Return < 0:
		return fmt.Errorf("soak: a bound below 0: latency %v, overhead %v, return %v", o.LatencyMax, o.OverheadMax, o.Return)
	}
	return o.Trouble.check()
}

// Run starts the target, loads it, lets it rest, ends it and reads its books.
// The error says that nothing could be judged, as when the target dies; what
// is wrong with the target otherwise is in the problems of the result.
func Run(ctx context.Context, o Options) (*Result, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	t, err := o.Setup.Start(ctx, o.Target)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	s := &soak{
		o: &o, t: t, mix: o.Setup.Mix(t), sent: make([]int64, o.Setup.RelayKeys),
		result: &Result{Target: o.Target, Rate: o.Rate, Requests: o.Requests, ReturnSeconds: -1, Seen: money.Seen{ByStatus: make(map[int]int64)}},
	}
	s.mix.BodyBytesExact = o.BodyBytes
	limit, err := machine.RaiseDescriptors()
	if err != nil {
		return nil, err
	}
	s.connections = min(connectionsMost, int(limit)-descriptorsOwn)
	err = s.load(ctx)
	if err == nil {
		err = s.settle(ctx)
	}
	ended, words := t.Ended()
	if err != nil {
		ended, words = t.EndedSoon()
	}
	if ended && o.Target != target.NameDirect {
		return nil, fmt.Errorf("soak: %s ended in the middle of the run: %s", o.Target, words)
	}
	if err != nil {
		return nil, err
	}
	t.Stop()
	s.judgeLoad()
	s.judgeTrouble()
	s.judgeReturn()
	if t.DataDir == "" {
		return s.result, nil
	}
	return s.result, s.judgeMoney()
}

// load sends everything.
func (s *soak) load(ctx context.Context) error {
	r := s.result
	warm := s.mix
	warm.ChatPath, warm.MessagesPath = "/openai/v1/chat/completions?mock=instant", "/anthropic/v1/messages?mock=instant"
	var err error
	r.WarmUp, err = s.send(ctx, openloop.Options{Mix: warm, Rate: warmUpRate}, min(s.o.Requests, warmUpRequests))
	if err != nil {
		return fmt.Errorf("soak: warm-up: %w", err)
	}
	if r.WarmUp.ErrorShare > 0.5 {
		return fmt.Errorf("soak: warm-up: most requests failed: statuses %v, failures %v", r.WarmUp.ByStatus, r.WarmUp.Failures)
	}
	if !pause(ctx, s.o.rest) {
		return ctx.Err()
	}
	if r.Base, err = s.size(ctx); err != nil {
		return err
	}
	r.Most = r.Base
	if err := s.fill(ctx); err != nil {
		return err
	}
	begin, err := s.t.Usage()
	if err != nil {
		return err
	}
	watched, end := s.watch(ctx)
	var trouble sync.WaitGroup
	for kind, share := range s.o.Trouble.shares() {
		if share > 0 {
			trouble.Go(func() {
				s.makeTrouble(watched, kind, s.o.Rate*share, time.Duration(float64(s.o.Requests)/s.o.Rate*float64(time.Second)))
			})
		}
	}
	r.Load, err = s.send(watched, s.dense(), s.o.Requests)
	trouble.Wait()
	if watchErr := end(); watchErr != nil {
		err = watchErr
	}
	if err != nil {
		return fmt.Errorf("soak: %w", err)
	}
	after, err := s.t.Usage()
	if err != nil {
		return err
	}
	r.CPUPerRequest = (after.CPU - begin.CPU).Seconds() * 1e6 / float64(s.o.Requests)
	return nil
}

// dense are the options of the load.
func (s *soak) dense() openloop.Options {
	return openloop.Options{
		Mix: s.mix, Rate: s.o.Rate, Drain: drainTime,
		Connections: max(1, min(int(s.o.Rate*connectionsAhead), s.connections)), ConnectionsMax: s.connections,
	}
}

// fill sends a burst as dense as the load, so that the target's pools are as
// full before the load as they will be behind it: what is compared then is what
// a request leaves behind for good.
func (s *soak) fill(ctx context.Context) error {
	var err error
	r := s.result
	r.Burst, err = s.send(ctx, s.dense(), min(s.o.Requests/4, int64(s.o.Rate*burstSeconds))+1)
	if err != nil {
		return fmt.Errorf("soak: burst: %w", err)
	}
	for range fillRests { // the least: what is garbage is no pool
		if !pause(ctx, s.o.rest) {
			return ctx.Err()
		}
		size, err := s.size(ctx)
		if err != nil {
			return err
		}
		if r.Filled.RSS == 0 || size.RSS < r.Filled.RSS {
			r.Filled = size
		}
	}
	return nil
}

// send sends n requests, all of which count, and takes note of what was seen.
func (s *soak) send(ctx context.Context, o openloop.Options, n int64) (*openloop.Result, error) {
	o.Addr, o.Hold = s.t.Addr, time.Duration(float64(n)*float64(time.Second)/o.Rate)
	r, err := openloop.Run(ctx, o)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := &s.result.Seen
	for status, n := range r.ByStatusAll {
		seen.ByStatus[status] += n
	}
	seen.Lost += r.LostAll
	shares(s.sent, r.Offered)
	return r, nil
}

func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
