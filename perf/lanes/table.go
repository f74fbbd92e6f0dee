package lanes

import (
	"fmt"

	"relay/perf/report"
)

// The targets of leases, per request, from a rate on: what wakes an idle store
// costs it the same for one request as for many.
const (
	targetRate = 50_000
	storeUsMax = 10.0
	evalsMax   = 0.1
)

// A row is all rounds of a mode at a rate.
type row struct {
	mode   string
	rate   float64
	rounds []*Point
}

func rows(points []Point) []row {
	var out []row
	for i := range points {
		p := &points[i]
		at := -1
		for k := range out {
			if out[k].mode == p.Mode && out[k].rate == p.Offered {
				at = k
			}
		}
		if at < 0 {
			at = len(out)
			out = append(out, row{mode: p.Mode, rate: p.Offered})
		}
		out[at].rounds = append(out[at].rounds, p)
	}
	return out
}

// of is the spread of a value over the rounds.
func (r *row) of(value func(*Point) float64) report.Spread {
	values := make([]float64, len(r.rounds))
	for i, p := range r.rounds {
		values[i] = value(p)
	}
	return report.Of(values...)
}

// heldIn tells in how many rounds the rate was held.
func (r *row) heldIn() string {
	held := 0
	for _, p := range r.rounds {
		if p.NotHeld == "" {
			held++
		}
	}
	switch held {
	case len(r.rounds):
		return "yes"
	case 0:
		return "NO"
	}
	return fmt.Sprintf("in %d of %d", held, len(r.rounds))
}

// Table is the points as a table: medians over the rounds.
func Table(points []Point) (head []string, cells [][]string) {
	head = []string{
		"offered/s", "asked by", "decided/s", "held", "store µs", "EVALSHA", "commands", "operations", "client µs",
		"admission p50 µs", "p99 µs", "lag p99 µs", "denied/s",
	}
	for _, r := range rows(points) {
		text := func(decimals int, value func(*Point) float64) string {
			s := r.of(value)
			if len(s.Values) == 1 {
				return fmt.Sprintf("%.*f", decimals, s.Median)
			}
			return s.Text(decimals)
		}
		cells = append(cells, []string{
			fmt.Sprintf("%.0f", r.rate), r.mode, text(0, func(p *Point) float64 { return p.Decided }), r.heldIn(),
			text(2, func(p *Point) float64 { return p.StoreUs }), text(4, func(p *Point) float64 { return p.Evals }),
			text(2, func(p *Point) float64 { return p.Commands }), text(3, func(p *Point) float64 { return p.Ops }),
			text(2, func(p *Point) float64 { return p.ClientUs }), text(0, func(p *Point) float64 { return p.P50Us }),
			text(0, func(p *Point) float64 { return p.P99Us }), text(0, func(p *Point) float64 { return p.LagP99Us }),
			text(0, func(p *Point) float64 { return p.DeniedRate }),
		})
	}
	return head, cells
}

// Verdicts says what leases cost against their targets, and which rates were
// not held, with the reason.
func Verdicts(points []Point) []string {
	var lines []string
	for _, r := range rows(points) {
		if r.mode != Leases {
			continue
		}
		us, evals := r.of(func(p *Point) float64 { return p.StoreUs }).Median, r.of(func(p *Point) float64 { return p.Evals }).Median
		line := fmt.Sprintf("Leases at %.0f/s: %.2f µs of the store's CPU and %.4f EVALSHA per request", r.rate, us, evals)
		switch {
		case r.rate < targetRate:
		case us > storeUsMax || evals > evalsMax:
			line += fmt.Sprintf(", NOT within the targets of %.0f µs and %.1f", storeUsMax, evalsMax)
		default:
			line += fmt.Sprintf(", within the targets of %.0f µs and %.1f", storeUsMax, evalsMax)
		}
		lines = append(lines, line+".")
	}
	for i := range points {
		if p := &points[i]; p.NotHeld != "" {
			lines = append(lines, fmt.Sprintf("%s did not hold %.0f/s in round %d: %s.", p.Mode, p.Offered, p.Round, p.NotHeld))
		}
	}
	return lines
}
