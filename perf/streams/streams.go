package streams

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"relay/perf/machine"
	"relay/perf/mockhost"
	"relay/perf/openloop"
	"relay/perf/pattern"
	"relay/perf/target"
)

const (
	descriptorsOwn  = 1000             // of a process, left for everything else
	descriptorsEach = 2                // of the target, per stream: client and upstream
	restTime        = 2 * time.Second  // between the warm-up and the reading that is compared with
	settleTime      = 2 * time.Second  // between the last opening and the measurement
	tailTime        = time.Second      // between the measurement and the first end
	lateTime        = 30 * time.Second // how much later than planned a stream may end, beside
	lateFactor      = 3                // how much longer than planned it may take
	missedMax       = 0.05             // share of the mock's ticks that may be missed
	warmUpRequests  = 1000
	gapMaxUs        = 60_000_000
	shards          = 16 // of the histograms, so that streams seldom meet at a mutex
	eventBytes      = 32
	requestsMade    = 16      // different requests, in memory as long as the streams
	bodyBytesMax    = 4 << 20 // of a request
	bodyBytesUsual  = 2 << 10
)

// Options say what is held.
type Options struct {
	Setup     target.Setup `json:"-"`
	Target    string
	Streams   int
	OpenRate  int           // streams opened per second
	Hold      time.Duration // measured, with all streams open
	BodyBytes int           // of each request; 2048 when 0
	Plan      Plan
}

// A Plan is the length of the streams; the mock is started with it.
type Plan struct {
	Tick   time.Duration // between the events of a stream
	Events int           // of each stream
}

// NewPlan makes streams long enough to be all open during the hold.
func NewPlan(streams, openRate int, hold, tick time.Duration) Plan {
	length := time.Duration(streams)*time.Second/time.Duration(max(openRate, 1)) + settleTime + hold + tailTime
	return Plan{Tick: tick, Events: int(length / tick)}
}

// Scenario is what the mock has to be told.
func (p Plan) Scenario() string {
	return fmt.Sprintf("instant,tick=%v,events=%d,bytes=%d", p.Tick, p.Events, eventBytes)
}

// A Result is what was seen.
type Result struct {
	Target         string
	Streams        int
	BodyBytes      int            // of each request
	Completed      int            // all events, the last frame and the end of the body
	Failed         map[string]int // by cause
	EventsMissing  int64
	OpenAtHold     int64 // streams that were open in the middle of the hold
	RSSBefore      int64 // bytes
	RSSHeld        int64 // at the end of the hold
	KiBPerStream   float64
	CoresPer1000   float64
	UsPerEvent     float64
	EventsPerSec   float64 // that arrived in the hold
	Goroutines     int     // -1 = unknown
	AddedGapP50Ms  float64 // how much longer a gap between two events was than at the mock
	AddedGapP99Ms  float64
	DelayP50Ms     float64 // from the mock's stamp to arrival
	DelayP99Ms     float64
	DelayMaxMs     float64
	MockPeersGone  uint64
	MockStreamsAll uint64
	GeneratorCores float64 // of this process in the hold
	MissedShare    float64 // of the mock's ticks in the hold
	Excluded       string  // why the round counts in no figure; "" = it counts
}

// A hold is one running measurement.
type hold struct {
	o        *Options
	addr     string
	requests [requestsMade][]byte // half of each kind; stream i sends number i modulo their count
	events   atomic.Int64         // in all streams
	open     atomic.Int64
	shards   [shards]shard

	mu     sync.Mutex // guards result's counts
	result *Result
}

type shard struct {
	mu         sync.Mutex
	gap, delay *hdrhistogram.Histogram
}

// Fits says whether so many streams fit the limit of open files.
func Fits(streams int) error {
	limit, err := machine.RaiseDescriptors()
	if err != nil {
		return err
	}
	if streams < 1 || uint64(streams)*descriptorsEach+descriptorsOwn > limit {
		return fmt.Errorf("streams: %d streams: a process may have %d open files here and the target needs %d for each, which is enough for 1 to %d; raise the limit (ulimit -n) for more",
			streams, limit, descriptorsEach, (int(limit)-descriptorsOwn)/descriptorsEach)
	}
	return nil
}

func (o *Options) check() error {
	if o.BodyBytes == 0 {
		o.BodyBytes = bodyBytesUsual
	}
	switch {
	case o.OpenRate < 1 || o.Hold <= 0:
		return fmt.Errorf("streams: %d streams opened per second, held for %v: want both above 0", o.OpenRate, o.Hold)
	case o.Plan.Tick <= 0 || o.Plan.Events < 1:
		return fmt.Errorf("streams: %d events, one each %v: want both above 0", o.Plan.Events, o.Plan.Tick)
	case o.BodyBytes < 1 || o.BodyBytes > bodyBytesMax:
		return fmt.Errorf("streams: bodies of %d bytes: want 1 to %d", o.BodyBytes, bodyBytesMax)
	}
	return Fits(o.Streams)
}

// Run opens the streams, measures while all are open and waits for their ends.
func Run(ctx context.Context, o Options) (*Result, error) {
	if err := o.check(); err != nil {
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
		return nil, fmt.Errorf("streams: %s ended in the middle of its streams: %s", o.Target, words)
	}
	return r, err
}

// run measures a target that runs.
func run(ctx context.Context, o *Options, t *target.Target) (*Result, error) {
	mix := o.Setup.Mix(t)
	if err := t.WarmUp(ctx, mix, warmUpRequests); err != nil {
		return nil, err
	}
	if !pause(ctx, restTime) {
		return nil, ctx.Err()
	}
	before, err := t.Usage()
	if err != nil {
		return nil, err
	}
	statsBefore, err := o.Setup.Mock.MockStats(ctx)
	if err != nil {
		return nil, err
	}
	mix.Stream = true
	h := newHold(o, t.Addr, mix)
	h.result.RSSBefore = before.RSS
	if err := h.run(ctx, t); err != nil {
		return nil, err
	}
	statsAfter, err := o.Setup.Mock.MockStats(ctx)
	h.result.MockPeersGone = statsAfter.PeersGone - statsBefore.PeersGone
	h.result.MockStreamsAll = statsAfter.Streams - statsBefore.Streams
	h.summarize()
	h.result.exclude()
	return h.result, err
}

// missedShare is how much of its ticks a mock has missed between two readings.
func missedShare(begin, end mockhost.Stats) float64 {
	ran, missed := float64(end.Ticks-begin.Ticks), float64(end.TicksMissed-begin.TicksMissed)
	if ran+missed == 0 {
		return 0
	}
	return missed / (ran + missed)
}

// newHold makes the requests of the streams, whose keys are used in turn.
func newHold(o *Options, addr string, mix openloop.Mix) *hold {
	h := &hold{
		o: o, addr: addr,
		result: &Result{Target: o.Target, Streams: o.Streams, BodyBytes: o.BodyBytes, Failed: make(map[string]int)},
	}
	for i := range requestsMade {
		h.requests[i] = mix.Request(openloop.Kind(i%2), mix.Keys[i/2%len(mix.Keys)], o.BodyBytes)
	}
	for i := range h.shards {
		h.shards[i].gap, h.shards[i].delay = hdrhistogram.New(1, gapMaxUs, 3), hdrhistogram.New(1, gapMaxUs, 3)
	}
	return h
}

// exclude says whether the mock kept its pace in the hold. When it did not, the
// machine was too busy for the figures to mean anything.
func (r *Result) exclude() {
	if r.MissedShare > missedMax {
		r.Excluded = fmt.Sprintf("the mock missed %.0f %% of its ticks: the machine was too busy", r.MissedShare*100)
	}
}

// run opens at the given rate, measures, and waits.
func (h *hold) run(ctx context.Context, t *target.Target) error {
	reading, cancel := context.WithCancel(ctx)
	defer cancel()
	length := time.Duration(h.o.Plan.Events) * h.o.Plan.Tick
	var wait sync.WaitGroup
	begin := time.Now()
	for i := range h.o.Streams {
		due := begin.Add(time.Duration(i) * time.Second / time.Duration(h.o.OpenRate))
		if !pause(ctx, time.Until(due)) {
			cancel()
			wait.Wait()
			return ctx.Err()
		}
		wait.Go(func() {
			err := h.follow(reading, i, lateFactor*length+lateTime)
			h.mu.Lock()
			defer h.mu.Unlock()
			if err != nil {
				h.result.Failed[target.Cause(err)]++
			} else {
				h.result.Completed++
			}
		})
	}
	err := h.measure(ctx, t)
	if err != nil {
		cancel()
	}
	wait.Wait()
	return err
}

// follow opens one stream and reads it to its end.
func (h *hold) follow(ctx context.Context, i int, longest time.Duration) error {
	nc, err := net.DialTimeout("tcp", h.addr, 10*time.Second)
	if err != nil {
		return err
	}
	defer nc.Close()
	defer context.AfterFunc(ctx, func() { nc.Close() })()
	nc.SetDeadline(time.Now().Add(longest))
	if _, err := nc.Write(h.requests[i%requestsMade]); err != nil {
		return err
	}
	s, err := pattern.Open(nc, pattern.LineBytesTick)
	if err != nil {
		return err
	}
	h.open.Add(1)
	defer h.open.Add(-1)
	err = h.read(s, &h.shards[i%shards])
	missing := int64(h.o.Plan.Events - s.Events)
	if missing != 0 {
		h.mu.Lock()
		h.result.EventsMissing += missing
		h.mu.Unlock()
	}
	switch {
	case err != io.EOF:
		return err
	case missing != 0 || s.Bytes != int64(h.o.Plan.Events)*eventBytes:
		return errors.New("a clean end with events missing")
	case !s.Done:
		return errors.New("a clean end without the last frame")
	}
	return nil
}

func (h *hold) read(s *pattern.Stream, into *shard) error {
	var lastUs, lastStamp int64
	for {
		stamp, err := s.Next()
		if err != nil {
			return err
		}
		now := time.Now().UnixMicro()
		h.events.Add(1)
		into.mu.Lock()
		into.delay.RecordValue(min(max(now-stamp, 1), gapMaxUs))
		if lastUs != 0 {
			into.gap.RecordValue(min(max((now-lastUs)-(stamp-lastStamp), 1), gapMaxUs))
		}
		into.mu.Unlock()
		lastUs, lastStamp = now, stamp
	}
}

// measure reads the target while all streams are open.
func (h *hold) measure(ctx context.Context, t *target.Target) error {
	if !pause(ctx, settleTime) {
		return ctx.Err()
	}
	ticksBegin, err := h.o.Setup.Mock.MockStats(ctx)
	if err != nil {
		return err
	}
	begin, err := t.Usage()
	if err != nil {
		return err
	}
	eventsBegin, ownBegin := h.events.Load(), ownCPU()
	if !pause(ctx, h.o.Hold/2) {
		return ctx.Err()
	}
	h.result.OpenAtHold = h.open.Load()
	if !pause(ctx, h.o.Hold-h.o.Hold/2) {
		return ctx.Err()
	}
	end, err := t.Usage()
	if err != nil {
		return err
	}
	r, events := h.result, float64(h.events.Load()-eventsBegin)
	ticksEnd, err := h.o.Setup.Mock.MockStats(ctx)
	if err != nil {
		return err
	}
	r.MissedShare = missedShare(ticksBegin, ticksEnd)
	seconds, cpu := end.At.Sub(begin.At).Seconds(), (end.CPU - begin.CPU).Seconds()
	r.RSSHeld = end.RSS
	r.GeneratorCores = (ownCPU() - ownBegin).Seconds() / seconds
	if open := float64(r.OpenAtHold); open > 0 && events > 0 {
		r.KiBPerStream = float64(end.RSS-r.RSSBefore) / 1024 / open
		r.CoresPer1000 = cpu / seconds / open * 1000
		r.UsPerEvent = cpu * 1e6 / events
		r.EventsPerSec = events / seconds
	}
	r.Goroutines, err = t.Goroutines(ctx)
	return err
}

// ownCPU is the time that this process has used, without its children; 0 when
// the kernel does not tell.
func ownCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func (h *hold) summarize() {
	gap, delay := h.shards[0].gap, h.shards[0].delay
	for i := range h.shards[1:] {
		gap.Merge(h.shards[i+1].gap)
		delay.Merge(h.shards[i+1].delay)
	}
	ms := func(us int64) float64 { return float64(us) / 1000 }
	r := h.result
	r.AddedGapP50Ms, r.AddedGapP99Ms = ms(gap.ValueAtQuantile(50)), ms(gap.ValueAtQuantile(99))
	r.DelayP50Ms, r.DelayP99Ms, r.DelayMaxMs = ms(delay.ValueAtQuantile(50)), ms(delay.ValueAtQuantile(99)), ms(delay.Max())
}

func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
