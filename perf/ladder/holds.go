package ladder

import (
	"context"
	"fmt"
	"time"

	"relay/perf/idle"
	"relay/perf/money"
	"relay/perf/openloop"
	"relay/perf/report"
	"relay/perf/soak"
	"relay/perf/streams"
	"relay/perf/target"
	"relay/usage"
	"relay/usage/spool"
)

const (
	bodyUsual    = 2 << 10
	bodyLarge    = 300 << 10
	streamTick   = 100 * time.Millisecond
	streamsPerS  = 1000 // opened per second
	streamsLarge = 1000 // with large bodies behind them
)

func openStreams(ctx context.Context, b *bench, out *report.Scenario) error {
	out.Notes = append(out.Notes, "Each stream has an event each 100 ms, and every byte of its content is checked.")
	usual := streamKind{bodyBytes: bodyUsual}
	if err := b.holdStreams(ctx, out, b.o.Systems, b.profile.streams, usual); err != nil {
		return err
	}
	large := streamKind{variant: "bodies of 300 KB", bodyBytes: bodyLarge}
	if err := b.holdStreams(ctx, out, b.o.Systems, []int{streamsLarge}, large); err != nil {
		return err
	}
	if b.left[target.NameHAProxy] {
		b.leave(out, "TLS to the provider is left out: HAProxy, which would terminate it, is not installed.")
		return nil
	}
	out.Notes = append(out.Notes, "By TLS the provider is reached through an HAProxy that ends it before the mock; an open connection holds some 16 KiB more in Go's TLS, which counts as cost of the stream here.")
	return b.holdStreams(ctx, out, b.among(gateways()...), []int{streamsLarge}, streamKind{variant: "TLS to the provider", bodyBytes: bodyUsual, tls: true})
}

// A streamKind is how streams are asked for.
type streamKind struct {
	variant   string
	bodyBytes int
	tls       bool // to the provider
}

// holdStreams holds open streams at each of some points; systems take turns at
// each.
func (b *bench) holdStreams(ctx context.Context, out *report.Scenario, systems []string, points []int, kind streamKind) error {
	for round := 1; round <= b.o.Rounds; round++ {
		for _, n := range points {
			if err := streams.Fits(n); err != nil {
				b.leave(out, fmt.Sprintf("%d streams are left out: %v", n, err))
				continue
			}
			for _, name := range systems {
				if b.left[name] {
					continue
				}
				p, err := b.streams(ctx, name, n, kind)
				if b.isLeft(name, err) {
					continue
				}
				if err != nil {
					return fmt.Errorf("round %d, %s, %d streams: %w", round, name, n, err)
				}
				p.Round = round
				out.Streams = append(out.Streams, p)
				b.tell("  round %d  %-9s %s: %d whole, %.1f KiB each, %.3f cores per 1,000, added gap p99 %.1f ms%s",
					round, name, join(fmt.Sprintf("%d streams", n), p.Variant), p.Completed, p.KiBPerStream, p.CoresPer1000, p.AddedGapP99Ms, excluded(p.Excluded))
			}
		}
	}
	return nil
}

func excluded(why string) string {
	if why == "" {
		return ""
	}
	return " — EXCLUDED: " + why
}

// leave notes, once, a point that this machine cannot hold.
func (b *bench) leave(out *report.Scenario, why string) {
	for _, note := range out.Notes {
		if note == why {
			return
		}
	}
	out.Notes = append(out.Notes, why)
	b.tell("  %s", why)
}

// streams holds streams through one system, with a mock whose streams have the
// right length.
func (b *bench) streams(ctx context.Context, name string, n int, kind streamKind) (report.StreamPoint, error) {
	hold := min(b.profile.streamHold, b.o.Hold)
	plan := streams.NewPlan(n, streamsPerS, hold, streamTick)
	setup, err := b.setup(ctx, &lane{pace: plan.Scenario()})
	if err != nil {
		return report.StreamPoint{}, err
	}
	defer setup.Mock.Close()
	if kind.tls {
		front, trusted, err := target.TLS(ctx, b.o.Workers, setup.Mock.Addr)
		if err != nil {
			return report.StreamPoint{}, err
		}
		defer front.Close()
		setup.Upstream = "https://" + front.Addr
		setup.RelayEnv = append(setup.RelayEnv, "SSL_CERT_FILE="+trusted)
	}
	folder, remove, err := dataFolder(&setup)
	if err != nil {
		return report.StreamPoint{}, err
	}
	defer remove()
	r, err := streams.Run(ctx, streams.Options{
		Setup: setup, Target: name, Streams: n, OpenRate: streamsPerS, Hold: hold, BodyBytes: kind.bodyBytes, Plan: plan,
	})
	if err != nil {
		return report.StreamPoint{}, err
	}
	p := report.StreamPoint{
		System: name, Variant: kind.variant, Streams: n, Completed: r.Completed, EventsMissing: r.EventsMissing, KiBPerStream: r.KiBPerStream,
		RSSBytes: r.RSSHeld, CoresPer1000: r.CoresPer1000, AddedGapP99Ms: r.AddedGapP99Ms, Goroutines: r.Goroutines, Excluded: r.Excluded,
	}
	if !keepsAccounts(name) {
		return p, nil
	}
	if p.Money, err = streamMoney(folder, r); err != nil {
		return p, err
	}
	if p.Money.Problem != "" {
		p.Excluded = "the money does not add up: " + p.Money.Problem
		b.fail(fmt.Sprintf("%s, %d streams", name, n), p.Excluded)
	}
	return p, nil
}

// streamMoney counts the rows of streams: one of a good answer for each that was
// whole, and no more than were opened.
func streamMoney(folder string, r *streams.Result) (*report.Money, error) {
	m := &report.Money{Answered: int64(r.Completed), Lost: int64(r.Streams - r.Completed)}
	c, err := money.ReadRows(folder, func(row *spool.Record) {
		if row.Event.Stream && row.Event.Status == 200 && row.Event.Outcome == usage.Completed {
			m.Rows++
		}
	})
	if err != nil {
		return nil, err
	}
	if m.Problem = money.Check(c, money.Seen{ByStatus: c.ByStatus, Lost: m.Lost}); m.Problem != "" {
		return m, nil
	}
	if m.Rows < m.Answered || m.Rows > m.Answered+m.Lost {
		m.Problem = fmt.Sprintf("%d streams were whole, %d were not, and there are %d rows of whole ones", m.Answered, m.Lost, m.Rows)
	}
	return m, nil
}

// soaks runs a soak for each of some systems and notes what was seen.
func (b *bench) soaks(ctx context.Context, out *report.Scenario, systems []string, variant string, o soak.Options) error {
	for round := 1; round <= b.o.Rounds; round++ {
		for _, name := range systems {
			if b.left[name] {
				continue
			}
			r, err := b.soak(ctx, name, o)
			if b.isLeft(name, err) {
				continue
			}
			if err != nil {
				return fmt.Errorf("round %d, %s: %w", round, name, err)
			}
			b.noteSoak(out, variant, round, r)
		}
	}
	return nil
}

func (b *bench) soak(ctx context.Context, name string, o soak.Options) (*soak.Result, error) {
	setup, err := b.setup(ctx, &lane{pace: o.Scenario()})
	if err != nil {
		return nil, err
	}
	defer setup.Mock.Close()
	o.Setup, o.Target = setup, name
	return soak.Run(ctx, o)
}

func (b *bench) noteSoak(out *report.Scenario, variant string, round int, r *soak.Result) {
	p := loadPoint(r.Load)
	p.System, p.Variant, p.Round, p.Offered = r.Target, variant, round, r.Rate
	p.CPUPerRequestUs, p.RSSBytes, p.Goroutines = r.CPUPerRequest, r.Most.RSS, r.Most.Goroutines
	p.Cores[partGateway] = r.CPUPerRequest * r.Rate / 1e6
	p.Excluded = r.Excluded
	p.Served = float64(r.Load.ByStatus[200]) / r.Load.HoldSeconds // of all that were asked, whenever they came
	text := fmt.Sprintf("%s: %d requests at %.0f/s; latency p50 %.0f ms, p99 %.0f ms; at most %d in flight, with %.1f KiB of memory each",
		join(r.Target, variant), r.Load.Offered, r.Rate, r.LatencyP50Ms, r.LatencyP99Ms, r.InFlight, r.KiBPerWaiting)
	if r.ReturnSeconds >= 0 {
		text += fmt.Sprintf("; all was given back %.1f s afterwards", r.ReturnSeconds)
	}
	if r.Count != nil {
		p.Money = &report.Money{Answered: r.Seen.ByStatus[200], Lost: r.Seen.Lost, Rows: r.Count.ByStatus[200], Problem: money.Check(*r.Count, r.Seen)}
		text += fmt.Sprintf("; %d rows in %d accounts", r.Count.Rows, r.Accounts)
		if p.Money.Problem != "" {
			p.Excluded = "the money does not add up: " + p.Money.Problem
		}
	}
	out.Points = append(out.Points, p)
	out.Notes = append(out.Notes, text+".")
	b.tell("  round %d  %s", round, text)
	for _, problem := range r.Problems {
		out.Notes = append(out.Notes, fmt.Sprintf("%s failed a check: %s.", join(r.Target, variant), problem))
		if r.Target == target.NameRelay {
			b.fail(join(r.Target, variant), problem)
		} else {
			b.tell("  %s failed a check: %s", join(r.Target, variant), problem)
		}
	}
}

// rate is the first rate that the run was told, or a usual one per core.
func (b *bench) rate(usual float64) float64 { return b.rates(usual)[0].rate }

func slowSoak(ctx context.Context, b *bench, out *report.Scenario) error {
	for _, s := range b.rates(b.profile.soakRates...) {
		o := soak.Options{Rate: s.rate, Requests: int64(s.rate*b.soakSeconds()) + 1, OverheadMax: time.Second}
		if err := b.soaks(ctx, out, b.among(target.NameRelay), "", o); err != nil {
			return err
		}
	}
	return nil
}

// soakSeconds is how long a soak offers its load.
func (b *bench) soakSeconds() float64 {
	if b.o.Hold != b.profile.hold {
		return b.o.Hold.Seconds()
	}
	return b.profile.soakSeconds
}

// mischiefShare is how many callers of each bad kind there are beside the load.
const mischiefShare = 0.05

func mischief(ctx context.Context, b *bench, out *report.Scenario) error {
	out.Notes = append(out.Notes, fmt.Sprintf("Beside the load there are callers who send and read slowly, callers who leave, and callers whom the provider fails: %.0f %% of each. The figures are those of the others.", 100*mischiefShare))
	o := soak.Options{Rate: b.rate(500), Pace: "fast"}
	o.Requests = int64(o.Rate * b.soakSeconds())
	if err := b.soaks(ctx, out, b.among(gateways()...), "all well", o); err != nil {
		return err
	}
	o.Trouble = soak.Trouble{SlowShare: mischiefShare, LeaveShare: mischiefShare, FaultShare: mischiefShare}
	return b.soaks(ctx, out, b.among(gateways()...), "with mischief", o)
}

func growth(ctx context.Context, b *bench, out *report.Scenario) error {
	keys := func(n int) lane {
		return lane{variant: fmt.Sprintf("%d keys and policies", n), keys: n, policies: n}
	}
	out.Notes = append(out.Notes, fmt.Sprintf("Requests use at most %d of the keys, from all over the catalog.", keysUsed))
	if err := b.climb(ctx, out, climb{lanes: lanes(b.among(gateways()...), keys(10), keys(1000), keys(keysMax)), steps: b.rates(500)}); err != nil {
		return err
	}
	for _, size := range []struct {
		name  string
		bytes int
		rate  float64 // per core
	}{{"1 KB", 1 << 10, 500}, {"16 KB", 16 << 10, 250}, {"256 KB", 256 << 10, 50}, {"1 MB", 1 << 20, 20}, {"4 MB", 4 << 20, 5}} {
		if need := float64(size.bytes) * variantsMade; need > generatorMemoryShare*float64(b.run.Host.MemoryBytes) {
			b.leave(out, fmt.Sprintf("Bodies of %s are left out: the generator would need %.1f GB for its requests.", size.name, need/1e9))
			continue
		}
		body := lane{variant: "bodies of " + size.name, mix: func(m *openloop.Mix) { m.BodyBytesExact = size.bytes }}
		if err := b.climb(ctx, out, climb{lanes: lanes(b.o.Systems, body), steps: steps(b.perCore(size.rate))}); err != nil {
			return err
		}
	}
	return b.holdIdle(ctx, out, b.profile.idle)
}

// holdIdle holds idle connections at each of some points.
func (b *bench) holdIdle(ctx context.Context, out *report.Scenario, points []int) error {
	for round := 1; round <= b.o.Rounds; round++ {
		for _, n := range points {
			if err := idle.Fits(n); err != nil {
				b.leave(out, fmt.Sprintf("%d idle connections are left out: %v", n, err))
				continue
			}
			for _, name := range b.o.Systems {
				if b.left[name] {
					continue
				}
				p, err := b.idle(ctx, name, n)
				if b.isLeft(name, err) {
					continue
				}
				if err != nil {
					return fmt.Errorf("round %d, %s, %d idle connections: %w", round, name, n, err)
				}
				p.Round = round
				out.Idle = append(out.Idle, p)
				b.tell("  round %d  %-9s %d idle connections: %.2f KiB each, %d failed, a new caller waits %.1f ms at p99",
					round, name, n, p.KiBPerConnection, p.ConnectionsFailed, p.ProbeP99Ms)
			}
		}
	}
	return nil
}

func (b *bench) idle(ctx context.Context, name string, n int) (report.IdlePoint, error) {
	setup, err := b.setup(ctx, &lane{pace: "instant"})
	if err != nil {
		return report.IdlePoint{}, err
	}
	defer setup.Mock.Close()
	r, err := idle.Run(ctx, idle.Options{Setup: setup, Target: name, Connections: n, Hold: min(b.o.Hold, b.profile.streamHold)})
	if err != nil {
		return report.IdlePoint{}, err
	}
	return report.IdlePoint{
		System: name, Connections: n, KiBPerConnection: r.KiBPerIdle, RSSBytes: r.RSSHeld,
		ProbeP99Ms: r.Probe.P99Ms, ConnectionsFailed: n - r.StillOpen,
	}, nil
}
