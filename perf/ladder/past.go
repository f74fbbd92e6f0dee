package ladder

import (
	"context"
	"fmt"
	"strings"
	"time"

	"relay/perf/report"
)

const (
	// pastCores is from how many cores on a machine that also makes the load has
	// any for what a gateway is offered past its capacity.
	pastCores = 8

	// A capacity that is a cap of requests in flight over the time that the mock
	// takes.
	capPerCore = 50
	capTime    = 100 * time.Millisecond

	belowCapacity = 0.9
	pastShare     = 0.97 // of what is offered: who serves less is past its capacity
)

// pastCapacity finds the capacity of each system, and offers more. On a machine
// that is shared with the generator that capacity is mostly one of the machine:
// past it no generator is in time. There it is a cap of requests in flight.
func pastCapacity(ctx context.Context, b *bench, out *report.Scenario) error {
	if b.cores >= pastCores {
		if err := pastFound(ctx, b, out); err != nil {
			return err
		}
	} else {
		out.Notes = append(out.Notes, fmt.Sprintf("Gateway, mock and generator share %d cores: what each can do at most is not seen past the capacity of the machine. The capacity here is a cap of requests in flight.", b.cores))
	}
	err := pastCap(ctx, b, out)
	out.Notes = append(out.Notes, kept(out.Points)...)
	return err
}

// past are the steps around a capacity.
func past(capacity float64) []step {
	return []step{
		{belowCapacity * capacity, "below capacity"}, {1.5 * capacity, "at 1.5 times"}, {2 * capacity, "at 2 times"},
		{capacity / 2, "afterwards, at half"},
	}
}

func pastFound(ctx context.Context, b *bench, out *report.Scenario) error {
	var found report.Scenario
	if err := b.upwards(ctx, &found, lanes(b.o.Systems)); err != nil {
		return err
	}
	var c climb
	for _, s := range summarize(found.Points) {
		if s.Capacity == 0 {
			out.Notes = append(out.Notes, fmt.Sprintf("%s has no capacity here: at no step it was without errors, with a generator in time.", s.System))
			continue
		}
		out.Notes = append(out.Notes, fmt.Sprintf("%s: its ladder showed a capacity of %.0f/s.", s.System, s.Capacity))
		c.lanes = append(c.lanes, lane{system: s.System, variant: "by its cores", steps: past(s.Capacity)})
	}
	return b.climb(ctx, out, c)
}

func pastCap(ctx context.Context, b *bench, out *report.Scenario) error {
	inflight := int(b.perCore(capPerCore))
	l := lane{
		variant: fmt.Sprintf("cap %d", inflight), env: []string{fmt.Sprintf("RELAY_MAX_INFLIGHT=%d", inflight)},
		pace: fmt.Sprintf("instant,first=%v,tokens=150", capTime), seconds: capTime.Seconds(),
		steps: past(float64(inflight) / capTime.Seconds()),
	}
	if len(b.o.Rates) > 0 {
		l.steps = b.rates()
	}
	return b.climb(ctx, out, climb{lanes: lanes(b.among(gateways()...), l)})
}

// kept says what each system served past its capacity, as a share of the most
// that it served, and how fast it refused the rest.
func kept(points []report.Point) []string {
	type step struct {
		title           string
		peak            string // the key of the most that the lane served
		served, refusal []float64
	}
	var order []*step
	peaks, by := make(map[string]float64), make(map[string]*step)
	for _, p := range points {
		if p.Excluded != "" {
			continue
		}
		settings, _, _ := strings.Cut(p.Variant, labelJoint)
		peak := join(p.System, settings)
		peaks[peak] = max(peaks[peak], p.Served)
		if p.Served >= pastShare*p.Sent {
			continue
		}
		title := fmt.Sprintf("%s (%.0f/s)", join(p.System, p.Variant), p.Offered)
		if by[title] == nil {
			by[title] = &step{title: title, peak: peak}
			order = append(order, by[title])
		}
		by[title].served, by[title].refusal = append(by[title].served, p.Served), append(by[title].refusal, p.RefusalP99Ms)
	}
	var notes []string
	for _, s := range order {
		served, peak := report.Of(s.served...).Median, peaks[s.peak]
		text := fmt.Sprintf("%s: %.0f/s were served, %.0f %% of the most that it ever served; a refusal took %.1f ms at p99",
			s.title, served, 100*served/peak, report.Of(s.refusal...).Median)
		if served < peakShare*peak {
			text += fmt.Sprintf("; it should keep %.0f %%", 100*peakShare)
		}
		notes = append(notes, text+".")
	}
	return notes
}
