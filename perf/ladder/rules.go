package ladder

import (
	"cmp"
	"slices"

	"relay/perf/report"
)

// A rung is one step of one system, over all rounds that count: medians.
type rung struct {
	offered, served, errorShare, overheadP99Ms, cores float64
}

// rungs sums up the points of one system by their rate, lowest first.
func rungs(points []report.Point) []rung {
	byRate := make(map[float64][]report.Point)
	for _, p := range points {
		if p.Excluded == "" {
			byRate[p.Offered] = append(byRate[p.Offered], p)
		}
	}
	var out []rung
	for offered, of := range byRate {
		median := func(value func(*report.Point) float64) float64 {
			values := make([]float64, len(of))
			for i := range of {
				values[i] = value(&of[i])
			}
			return report.Of(values...).Median
		}
		out = append(out, rung{
			offered:       offered,
			served:        median(func(p *report.Point) float64 { return p.Served }),
			errorShare:    median(func(p *report.Point) float64 { return p.ErrorShare }),
			overheadP99Ms: median(func(p *report.Point) float64 { return p.OverheadP99Ms }),
			cores:         median(func(p *report.Point) float64 { return p.Cores[partGateway] }),
		})
	}
	slices.SortFunc(out, func(a, b rung) int { return cmp.Compare(a.offered, b.offered) })
	return out
}

// knee is what was served at the highest step that is fast and without errors,
// as all lower ones are; 0 = not even the lowest.
func knee(steps []rung) float64 {
	served := 0.0
	for _, s := range steps {
		if s.overheadP99Ms > report.KneeOverheadMs || s.errorShare > report.ErrorShareMax {
			break
		}
		served = s.served
	}
	return served
}

// capacity is the step that served most without errors.
func capacity(steps []rung) (best rung) {
	for _, s := range steps {
		if s.errorShare <= report.ErrorShareMax && s.served > best.served {
			best = s
		}
	}
	return best
}

// highest is the step that served most.
func highest(steps []rung) (best rung) {
	for _, s := range steps {
		if s.served > best.served {
			best = s
		}
	}
	return best
}

// summarize sums up each system and variant, in the order in which they came.
func summarize(points []report.Point) []report.Summary {
	type name struct{ system, variant string }
	grouped := make(map[name][]report.Point)
	var order []name
	for _, p := range points {
		n := name{p.System, p.Variant}
		if grouped[n] == nil {
			order = append(order, n)
		}
		grouped[n] = append(grouped[n], p)
	}
	out := make([]report.Summary, len(order))
	for i, n := range order {
		steps := rungs(grouped[n])
		most, top := capacity(steps), highest(steps)
		out[i] = report.Summary{
			System: n.system, Variant: n.variant, Knee: knee(steps),
			Capacity: most.served, CapacityP99Ms: most.overheadP99Ms,
			Highest: top.served, HighestErrorShare: top.errorShare,
		}
		if most.cores > 0 {
			out[i].PerCore = most.served / most.cores
		}
	}
	return out
}

// isEnd says whether higher steps of a system have nothing more to show: own are
// its points of the round so far.
func isEnd(own []report.Point) bool {
	late := 0
	for _, p := range slices.Backward(own) {
		if p.Excluded == "" {
			break
		}
		late++
	}
	if late > 0 || len(own) == 0 {
		return late >= lateEnd
	}
	last := own[len(own)-1]
	return last.ErrorShare > errorsEnd || last.Served < servedEnd*last.Sent
}
