package lanes

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"relay/perf/target"
	"relay/store/catalog"
	"relay/store/redis"
	"relay/store/state"
)

// A bench is one point while it runs.
type bench struct {
	o     *Options
	keys  []*catalog.RelayKey
	rules [3]catalog.Limit
	first uint64 // id of the first policy
	loops []*loop

	store   *redis.Store // nil = none
	runners []*runner
}

// ways prepare the counters of the loops of a bench, by mode.
var ways = map[string]func(*bench) error{
	Leases: func(b *bench) error { return b.shared(false) },
	Exact:  func(b *bench) error { return b.shared(true) },
	Plain:  (*bench).plain,
	Memory: (*bench).memory,
}

// point measures a mode at a rate.
func (o *Options) point(ctx context.Context, mode string, rate float64) (Point, error) {
	b := &bench{o: o, rules: o.rules(rate), first: rand.Uint64() >> 1}
	b.keys = policies(o.Policies, b.first, b.rules)
	defer b.close()
	began := time.Now()
	clock := func() int64 { return int64(time.Since(began)) + 1 } // 0 is no time for a lease
	for range o.Loops {
		b.loops = append(b.loops, newLoop(plan{policies: o.Policies, rate: rate / float64(o.Loops), latencyNs: int64(o.Latency)}, clock, rand.Uint64()))
	}
	if err := ways[mode](b); err != nil {
		return Point{}, err
	}
	runtime.GC()
	return b.run(ctx, mode, rate, clock)
}

// run starts the loops, looks at what is used when the hold begins and ends,
// and waits for them.
func (b *bench) run(ctx context.Context, mode string, rate float64, clock func() int64) (Point, error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	startNs := clock() + int64(scheduleIn)
	beginNs := startNs + int64(b.o.WarmUp)
	endNs := beginNs + int64(b.o.Hold)
	var running sync.WaitGroup
	var stop atomic.Bool
	for _, l := range b.loops {
		l.plan.startNs, l.plan.beginNs, l.plan.endNs = startNs, beginNs, endNs
		running.Go(func() {
			if err := l.run(&stop); err != nil {
				fail(err)
			}
		})
	}
	before, err := b.lookAt(ctx, time.Duration(beginNs-clock()))
	var after look
	if err == nil {
		after, err = b.lookAt(ctx, time.Duration(endNs-clock()))
	}
	stop.Store(err != nil)
	running.Wait()
	b.end()
	if err = cmp.Or(err, context.Cause(ctx)); err != nil {
		return Point{}, err
	}
	p := b.sum(after.sub(before))
	p.Mode, p.Offered = mode, rate
	if b.store != nil && b.store.Err() != nil && p.NotHeld == "" {
		p.NotHeld = b.store.Err().Error()
	}
	return p, nil
}

// A look is what is used at a time.
type look struct {
	at     time.Time
	store  target.StoreStats
	client time.Duration
}

// lookAt waits and looks.
func (b *bench) lookAt(ctx context.Context, in time.Duration) (look, error) {
	select {
	case <-ctx.Done():
		return look{}, context.Cause(ctx)
	case <-time.After(in):
	}
	k := look{at: time.Now()}
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		return k, fmt.Errorf("lanes: usage of this process: %w", err)
	}
	k.client = time.Duration(used.Utime.Nano() + used.Stime.Nano())
	var err error
	k.store, err = target.ReadStoreStats(b.o.Addr)
	return k, err
}

// A span is what was used between two looks.
type span struct {
	seconds, store, client float64
	commands, evals        float64
}

func (k look) sub(o look) span {
	return span{
		seconds: k.at.Sub(o.at).Seconds(), store: (k.store.CPU - o.store.CPU).Seconds(), client: (k.client - o.client).Seconds(),
		commands: float64(k.store.Commands - o.store.Commands), evals: float64(k.store.Evals - o.store.Evals),
	}
}

// sum makes the point of what the loops have seen and what was used.
func (b *bench) sum(used span) Point {
	var t tally
	latency, lag := newTimes(), newTimes()
	for _, l := range b.loops {
		t.add(&l.tally)
		latency.Merge(l.latency)
		lag.Merge(l.lag)
	}
	n := float64(max(1, t.decided()))
	us := func(ns int64) float64 { return float64(ns) / 1e3 }
	p := Point{
		Decided: float64(t.decided()) / b.o.Hold.Seconds(),
		StoreUs: used.store / n * 1e6, ClientUs: used.client / n * 1e6, StoreCores: used.store / used.seconds,
		Evals: used.evals / n, Commands: used.commands / n, Ops: float64(t.ops) / n,
		P50Us: us(latency.ValueAtQuantile(50)), P99Us: us(latency.ValueAtQuantile(99)), LagP99Us: us(lag.ValueAtQuantile(99)),
		DeniedRate: float64(t.denied) / b.o.Hold.Seconds(), Lost: t.lost, Refused: t.full, Unsent: t.unsent, Unsettled: t.unsettled,
	}
	var why []string
	for _, k := range []struct {
		wrong bool
		text  string
	}{
		{float64(t.decided()) < heldShare*float64(t.offered), fmt.Sprintf("%.1f %% were decided in time", 100*n/float64(max(1, t.offered)))},
		{p.LagP99Us > us(int64(lagMax)), fmt.Sprintf("the loops were %.1f ms behind their schedule at p99", p.LagP99Us/1e3)},
		{t.lost+t.full+t.unsent > 0, fmt.Sprintf("%d were lost, %d found no room, %d were not sent", t.lost, t.full, t.unsent)},
		{t.unsettled > 0, fmt.Sprintf("%d requests and leases were left at the end", t.unsettled)},
	} {
		if k.wrong {
			why = append(why, k.text)
		}
	}
	p.NotHeld = strings.Join(why, "; ")
	return p
}

// shared prepares leases over lanes to the store.
func (b *bench) shared(exact bool) (err error) {
	b.store, err = redis.Open(redis.Options{Addrs: []string{b.o.Addr}, Loops: b.o.Loops, Lanes: b.o.Lanes})
	if err != nil {
		return err
	}
	return b.leased(b.store.Lanes(), b.store.LaneOf, exact, func(i int) (state.Store, func() bool) {
		return b.store.Lane(i), b.store.Lane(i).Owes
	})
}

// memory prepares leases over one lane to a store in this process.
func (b *bench) memory() error {
	store := state.NewMemory(b.o.Loops)
	return b.leased(1, func(uint64) int { return 0 }, false, func(int) (state.Store, func() bool) {
		return store, func() bool { return false }
	})
}

// leased gives each loop leases, and starts the lanes.
func (b *bench) leased(lanes int, laneOf func(uint64) int, exact bool, lane func(int) (state.Store, func() bool)) error {
	into := make([]*box[*state.Op], lanes) // known before any loop runs
	var back []*box[*state.Op]
	for i, l := range b.loops {
		c, err := newLeased(i, l, b.keys, laneOf, into, exact)
		if err != nil {
			return err
		}
		l.counter = c
		back = append(back, c.box)
	}
	for i := range into {
		store, owes := lane(i)
		r := startRunner(store, owes, back)
		b.runners = append(b.runners, r)
		into[i] = &r.box
	}
	return nil
}

// plain gives each loop a connection of its own.
func (b *bench) plain() error {
	names := make([]string, b.o.Policies)
	for i := range names {
		names[i] = "relay-perf:" + strconv.FormatUint(b.first+uint64(i), 16)
	}
	for _, l := range b.loops {
		c, err := newPlain(l, b.o.Addr, names, &b.rules)
		if err != nil {
			return err
		}
		l.counter = c
	}
	return nil
}

// end stops the lanes and closes the counters. The loops have ended.
func (b *bench) end() {
	for _, r := range b.runners {
		r.close()
	}
	b.runners = nil
	for _, l := range b.loops {
		if l.counter != nil {
			l.counter.close()
			l.counter = nil
		}
	}
}

// close closes everything.
func (b *bench) close() {
	b.end()
	if b.store != nil {
		b.store.Close()
	}
}
