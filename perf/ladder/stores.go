package ladder

import (
	"context"
	"fmt"

	"relay/perf/report"
	"relay/perf/target"
)

// Limits of the scenario, all with the same rules. Nobody reaches them.
const (
	limitsFar = "{meter: requests, amount: 100000000, window: 1m}, {meter: tokens, amount: 100000000000, window: 1m, strategy: sliding-window}, {meter: concurrency, amount: 100000}"
	// limitsNear are so small that nothing is lent in advance: each request asks.
	limitsNear = "{meter: requests, amount: 99, window: 1s}, {meter: tokens, amount: 100000000000, window: 1m, strategy: sliding-window}, {meter: concurrency, amount: 99}"

	policiesFar = 16 // so that each is hot
)

// counting says where the limits of a lane are counted, and how far off they
// are.
type counting struct {
	program string // report.StoreMemory, or a store that is started
	near    bool
}

// counts are the settings of a lane for it.
func counts(c counting) lane {
	l := lane{variant: c.program, counting: c, keys: keysUsed, policies: policiesFar, limits: limitsFar}
	switch {
	case c.near:
		l.variant, l.policies, l.limits = join(c.program, "exact"), keysUsed, limitsNear
	case c.program != report.StoreMemory:
		l.variant = join(c.program, "leases")
	}
	return l
}

// stores measures one relay over its own memory and over the stores that are
// installed, with leases and without.
func stores(ctx context.Context, b *bench, out *report.Scenario) error {
	out.Notes = append(out.Notes,
		fmt.Sprintf("With leases: %d policies whose limits are far off. Exact: %d policies with limits below 100, of which nothing is lent in advance, so that each request asks the store.", policiesFar, keysUsed))
	settings := []lane{counts(counting{program: report.StoreMemory})}
	for _, program := range []string{target.ProgramRedis, target.ProgramValkey, target.ProgramDragonfly} {
		if !target.Installed(program) {
			b.leave(out, fmt.Sprintf("Relay with %s is left out: it is not installed.", program))
			continue
		}
		settings = append(settings, counts(counting{program: program}), counts(counting{program: program, near: true}))
	}
	return b.climb(ctx, out, climb{lanes: lanes(b.among(target.NameRelay), settings...), steps: b.rates(500, 1000)})
}

// A count is what the counting of limits has taken so far.
type count struct {
	store    target.StoreStats // of the store, if there is one
	admitted target.Histogram  // seconds; nil = unknown
}

// look reads it. A gateway that is too busy to answer leaves it unknown.
func (s *stage) look(ctx context.Context) (c count, err error) {
	for _, t := range s.gateways {
		h, err := t.Histogram(ctx, metricAdmission)
		if err != nil {
			return count{}, nil
		}
		if c.admitted == nil {
			c.admitted = h
		} else {
			c.admitted = c.admitted.Add(h, 1)
		}
	}
	if s.store != nil {
		c.store, err = target.ReadStoreStats(s.store.Addr)
	}
	return c, err
}

// used is what a step took of so many requests. A store that nobody has asked
// makes the point void: the gateway counts elsewhere.
func (c counting) used(p *report.Point, before, after count, requests float64) {
	u := &report.StoreUse{Program: c.program, Leases: !c.near, AdmissionP50Ms: -1, AdmissionP99Ms: -1}
	p.Store = u
	if before.admitted != nil && after.admitted != nil {
		const ms = 1000
		took := after.admitted.Add(before.admitted, -1)
		if q := took.Quantile(0.5); q >= 0 {
			u.AdmissionP50Ms, u.AdmissionP99Ms = q*ms, took.Quantile(0.99)*ms
		}
	}
	if c.program == report.StoreMemory || requests <= 0 {
		return
	}
	u.CPUPerRequestUs = (after.store.CPU - before.store.CPU).Seconds() / requests * 1e6
	u.EvalsPerReq = float64(after.store.Evals-before.store.Evals) / requests
	u.CommandsPerReq = float64(after.store.Commands-before.store.Commands) / requests
	if u.EvalsPerReq*requests < evalsLeast && p.Excluded == "" {
		p.Excluded = "the store was asked nothing: the gateway counts its limits elsewhere"
	}
}
