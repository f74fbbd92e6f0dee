package ladder

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"relay/perf/machine"
	"relay/perf/mockhost"
	"relay/perf/openloop"
	"relay/perf/report"
)

// The metrics that a step reads.
const (
	metricGoroutines = "go_goroutines"
	metricCycles     = "go_gc_duration_seconds_count"
	metricMallocs    = "go_memstats_mallocs_total"
	metricCPU        = "process_cpu_seconds_total" // where the process cannot be watched
	metricMemory     = "process_resident_memory_bytes"
	metricAdmission  = "relay_admission_seconds"
)

// A reading is what a stage has used so far.
type reading struct {
	at      time.Time                // of the metrics
	metrics map[string]float64       // of all gateways together; nil = unknown
	usage   map[string]machine.Usage // by part
	mock    *mockhost.Stats          // nil = unknown
	count   count                    // where the lane has somebody look
}

// A measurement watches a stage over one hold.
type measurement struct {
	parent   context.Context
	ctx      context.Context // of the sampler
	cancel   context.CancelFunc
	stage    *stage
	sampling sync.WaitGroup

	mu            sync.Mutex // guards the rest: begin, end and the sampler run on goroutines of their own
	groups        map[string]machine.Group
	before, after *reading
	rss           int64
	err           error
}

func newMeasurement(ctx context.Context, s *stage) *measurement {
	m := &measurement{parent: ctx, stage: s, groups: make(map[string]machine.Group)}
	m.ctx, m.cancel = context.WithCancel(ctx)
	return m
}

// begin is called when the hold begins. The gateway is asked for its metrics
// before its CPU is read, and at the end behind it: what they cost counts
// nowhere.
func (m *measurement) begin(half time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := &reading{at: time.Now()}
	lookErr := r.look(m.parent, m.stage) // first, and last at the end: it costs more than to ask
	r.ask(m.parent, m.stage)
	for part, group := range m.stage.groups {
		m.groups[part] = group
	}
	var errs [2]error
	m.groups[partGenerator], errs[0] = m.stage.bench.generator()
	r.usage, errs[1] = m.usage()
	m.before, m.err = r, errors.Join(errs[0], errs[1], lookErr)
	m.sampling.Go(func() { m.sample(half) })
}

// end is called when the hold ends.
func (m *measurement) end() {
	m.cancel()
	m.mu.Lock()
	defer m.mu.Unlock()
	r := &reading{}
	var err error
	r.usage, err = m.usage()
	r.at = time.Now()
	r.ask(m.parent, m.stage)
	m.after, m.err = r, errors.Join(m.err, err, r.look(m.parent, m.stage))
}

// look reads what the counting of limits has taken, if it is to be looked at.
func (r *reading) look(ctx context.Context, s *stage) (err error) {
	if s.lane.counting.program != "" {
		r.count, err = s.look(ctx)
	}
	return err
}

// ask reads what the processes tell of themselves. One that is too busy to
// answer leaves it unknown; that it has died is seen elsewhere.
func (r *reading) ask(ctx context.Context, s *stage) {
	if metrics, err := s.metrics(ctx); err == nil {
		r.metrics = metrics
	}
	if stats, err := s.mock.MockStats(ctx); err == nil {
		r.mock = &stats
	}
}

// close ends the sampler.
func (m *measurement) close() {
	m.cancel()
	m.sampling.Wait()
}

func (m *measurement) usage() (map[string]machine.Usage, error) {
	out := make(map[string]machine.Usage)
	var errs []error
	for part, group := range m.groups {
		u, err := group.Usage()
		out[part], errs = u, append(errs, err)
	}
	return out, errors.Join(errs...)
}

// sample looks at the working set of the gateways in the last half of the hold.
func (m *measurement) sample(wait time.Duration) {
	group := m.stage.groups[partGateway]
	for len(group) > 0 {
		select {
		case <-m.ctx.Done():
			return
		case <-time.After(wait):
		}
		if u, err := group.Usage(); err == nil {
			m.mu.Lock()
			m.rss = max(m.rss, u.RSS)
			m.mu.Unlock()
		}
		wait = sampleEvery
	}
}

// metrics adds up those of the gateways; nil = there is no control listener.
func (s *stage) metrics(ctx context.Context) (map[string]float64, error) {
	var sum map[string]float64
	for _, t := range s.gateways {
		if t.Control == "" {
			continue
		}
		values, err := t.Metrics(ctx, metricGoroutines, metricCycles, metricMallocs, metricCPU, metricMemory)
		if err != nil {
			return nil, err
		}
		if sum == nil {
			sum = make(map[string]float64)
		}
		for name, v := range values {
			sum[name] += v
		}
	}
	return sum, nil
}

// point is what the step has shown.
func (m *measurement) point(load *openloop.Result) (report.Point, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err == nil && (m.before == nil || m.after == nil) {
		m.err = errors.New("ladder: the hold was not measured")
	}
	if m.err != nil {
		return report.Point{}, m.err
	}
	p := loadPoint(load)
	for part, after := range m.after.usage {
		before := m.before.usage[part]
		p.Cores[part] = (after.CPU - before.CPU).Seconds() / after.At.Sub(before.At).Seconds()
	}
	p.RSSBytes = max(m.rss, m.after.usage[partGateway].RSS)
	seconds := m.after.at.Sub(m.before.at).Seconds()
	if len(m.groups[partGateway]) == 0 {
		m.told(&p, seconds)
	}
	served := load.ServedRate
	if served > 0 {
		p.CPUPerRequestUs = p.Cores[partGateway] / served * 1e6
		if before, after := m.before.mock, m.after.mock; before != nil && after != nil {
			p.DialsPerReq = float64(after.Connections-before.Connections) / (served * seconds)
		}
	}
	if c := m.stage.lane.counting; c.program != "" {
		c.used(&p, m.before.count, m.after.count, served*seconds)
	}
	if before, after := m.before.metrics, m.after.metrics; before != nil && after != nil {
		p.Goroutines = int(after[metricGoroutines])
		p.GCCycles = after[metricCycles] - before[metricCycles]
		if _, told := after[metricMallocs]; told && served > 0 {
			p.AllocsPerReq = max(0, after[metricMallocs]-before[metricMallocs]-m.stage.scrape) / (served * seconds)
		}
	}
	return p, nil
}

// told fills in what processes elsewhere tell of themselves.
func (m *measurement) told(p *report.Point, seconds float64) {
	if before, after := m.before.mock, m.after.mock; before != nil && after != nil {
		p.Cores[partMock] = (after.CPUSeconds - before.CPUSeconds) / seconds
	}
	if before, after := m.before.metrics, m.after.metrics; before != nil && after != nil {
		p.Cores[partGateway] = (after[metricCPU] - before[metricCPU]) / seconds
		p.RSSBytes = int64(after[metricMemory])
	}
}

// loadPoint is what the generator knows of a step.
func loadPoint(load *openloop.Result) report.Point {
	p := report.Point{
		Sent: load.SentRate, Served: load.ServedRate, ErrorShare: load.ErrorShare,
		OverheadP50Ms: load.Overhead.P50, OverheadP99Ms: load.Overhead.P99,
		RefusedShare: load.RefusedShare, RefusalP99Ms: load.Refusal.P99, LagP99Ms: load.Lag.P99,
		Cores: make(map[string]float64), Goroutines: -1, GCCycles: -1, AllocsPerReq: -1, DialsPerReq: -1,
	}
	for _, k := range load.ByKind {
		p.FirstEventP99Ms, p.GapP99Ms = max(p.FirstEventP99Ms, k.FirstEvent.P99), max(p.GapP99Ms, k.Gap.P99)
	}
	switch {
	case load.Late:
		p.Excluded = fmt.Sprintf("the generator was late: p99 %.1f ms behind its schedule", load.Lag.P99)
	case load.ServedRate == 0 && load.ErrorShare == 0:
		p.Excluded = "nothing was served within the hold, which is too short"
	}
	return p
}
