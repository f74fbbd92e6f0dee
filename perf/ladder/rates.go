package ladder

import (
	"context"
	"fmt"

	"relay/perf/report"
	"relay/perf/target"
)

// perCore is a rate that grows with the machine.
func (b *bench) perCore(rate float64) float64 { return rate * float64(b.cores) }

// rates are those that the run was told, or else some usual ones, per core.
func (b *bench) rates(usual ...float64) []step {
	if len(b.o.Rates) > 0 {
		return steps(b.o.Rates...)
	}
	out := make([]step, len(usual))
	for i, rate := range usual {
		out[i].rate = b.perCore(rate)
	}
	return out
}

// lanes are some systems with the same settings each.
func lanes(systems []string, settings ...lane) []lane {
	if len(settings) == 0 {
		settings = []lane{{}}
	}
	var out []lane
	for _, l := range settings {
		for _, name := range systems {
			l.system = name
			out = append(out, l)
		}
	}
	return out
}

func overview(ctx context.Context, b *bench, out *report.Scenario) error {
	if err := b.climb(ctx, out, climb{lanes: lanes(b.o.Systems), steps: b.rates(250, 1000)}); err != nil {
		return err
	}
	return b.holdStreams(ctx, out, b.o.Systems, b.profile.streams[:1], streamKind{bodyBytes: bodyUsual})
}

// upwards climbs until each system is at its end.
func (b *bench) upwards(ctx context.Context, out *report.Scenario, l []lane) error {
	return b.climb(ctx, out, climb{lanes: l, steps: b.rates(b.profile.rates...), toEnd: true})
}

// onCores are settings for one core and for all.
func (b *bench) onCores() []lane {
	one := lane{variant: "1 core", env: []string{"GOMAXPROCS=1", "RELAY_LOOPS=1"}, workers: 1}
	if b.cores == 1 || b.o.Gateway != "" {
		return []lane{{}}
	}
	return []lane{one, {variant: fmt.Sprintf("%d cores", b.cores)}}
}

func oneRelay(ctx context.Context, b *bench, out *report.Scenario) error {
	return b.upwards(ctx, out, lanes(b.among(target.NameRelay), b.onCores()...))
}

func goroutineBaseline(ctx context.Context, b *bench, out *report.Scenario) error {
	return b.upwards(ctx, out, lanes(b.among(gateways()...), b.onCores()...))
}

func plainProxies(ctx context.Context, b *bench, out *report.Scenario) error {
	return b.upwards(ctx, out, lanes(b.among(target.NameRelay, target.NameHAProxy, target.NameNginx, target.NameDirect)))
}

// relaysBehind is how many relays stand behind a balancer.
const relaysBehind = 4

func fourRelays(ctx context.Context, b *bench, out *report.Scenario) error {
	each := max(1, b.cores/relaysBehind)
	env := []string{fmt.Sprintf("GOMAXPROCS=%d", each), fmt.Sprintf("RELAY_LOOPS=%d", each)}
	out.Notes = append(out.Notes, fmt.Sprintf("Each relay has %d of the %d cores; cores and working set of the gateway are those of all relays together, and the proxy is HAProxy in front.", each, b.cores))
	if b.cores < relaysBehind {
		out.Notes = append(out.Notes, fmt.Sprintf("This machine has %d cores for %d relays, generator, mock and balancer: it tells what the balancer costs, and nothing about scale.", b.cores, relaysBehind))
	}
	return b.upwards(ctx, out, lanes(b.among(target.NameRelay),
		lane{variant: "1 relay", env: env}, lane{variant: fmt.Sprintf("%d behind HAProxy", relaysBehind), env: env, relays: relaysBehind}))
}

func upstreamIdle(ctx context.Context, b *bench, out *report.Scenario) error {
	idle := func(n string) lane {
		return lane{
			variant: "idle " + n, env: []string{"RELAY_UPSTREAM_MAX_IDLE_PER_HOST=" + n},
			pace: paceWaiting, seconds: secondsWaiting,
		}
	}
	all := lane{variant: "idle default", pace: paceWaiting, seconds: secondsWaiting}
	out.Notes = append(out.Notes, "The mock takes 300 ms, so that each of its two hosts has more requests in flight than the lower caps.")
	return b.upwards(ctx, out, lanes(b.among(gateways()...), idle("128"), idle("1024"), all))
}

// A pace at which many requests wait: at 1,000 requests per second 300 do.
const (
	paceWaiting    = "instant,first=300ms,tokens=150"
	secondsWaiting = 0.3
)

func capsAndGC(ctx context.Context, b *bench, out *report.Scenario) error {
	const memory = "GOMEMLIMIT=256MiB"
	out.Notes = append(out.Notes, "With a memory limit of 256 MiB the cap of requests in flight is 2,048 when it is not set; the mock takes 3 to 4.5 s, so that 2,048 in flight are about 546 requests per second.")
	err := b.climb(ctx, out, climb{
		lanes: lanes(b.among(target.NameRelay),
			lane{variant: "cap by memory", env: []string{memory, "RELAY_MAX_INFLIGHT="}, pace: "slow", seconds: secondsSlow},
			lane{variant: "cap 20000", env: []string{memory, "RELAY_MAX_INFLIGHT=20000"}, pace: "slow", seconds: secondsSlow}),
		steps: capSteps(b),
	})
	if err != nil {
		return err
	}
	return b.climb(ctx, out, climb{
		lanes: lanes(b.among(gateways()...),
			lane{variant: "GOGC=100", env: []string{"GOGC=100"}}, lane{variant: "GOGC=400", env: []string{"GOGC=400"}}),
		steps: b.rates(250, 1000),
	})
}

// secondsSlow is the mean of what the mock takes at the pace "slow".
const secondsSlow = 3.75

// capSteps are below and above 2,048 requests in flight of the pace "slow".
func capSteps(b *bench) []step {
	if len(b.o.Rates) > 0 {
		return steps(b.o.Rates...)
	}
	return steps(400, 800)
}
