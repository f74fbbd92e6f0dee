package ladder

import (
	"context"
	"fmt"
	"io"

	"relay/perf/openloop"
	"relay/perf/report"
)

// A lane is one system with one set of settings, that climbs.
type lane struct {
	system   string
	variant  string   // the name of the settings; "" = the usual ones
	env      []string // settings of a gateway
	workers  int      // threads of a plain proxy; 0 = as the run was told
	keys     int      // relay keys; 0 = as the run was told
	policies int      // 1 when 0
	limits   string   // of every policy, in YAML; the usual ones when empty
	counting counting // where limits are counted; zero: in memory, and nobody looks
	relays   int      // of the system, behind HAProxy; 0 = one, and no HAProxy
	pace     string   // scenario words of the mock; "fast" when empty
	seconds  float64  // that the mock takes; those of "fast" when 0
	steps    []step   // instead of those of the climb
	mix      func(*openloop.Mix)
}

// A step is one rate of a lane.
type step struct {
	rate  float64 // requests per second
	label string  // added to the variant; "" = none
}

func steps(rates ...float64) []step {
	out := make([]step, len(rates))
	for i, rate := range rates {
		out[i].rate = rate
	}
	return out
}

// A running is the system of a lane while it runs.
type running interface {
	// step offers a load and measures. An error says that nothing can be
	// measured any more.
	step(ctx context.Context, rate float64) (report.Point, error)
	// books stops the system and holds its accounts against all answers so far;
	// nil = it keeps none.
	books() (*report.Money, error)
	// stop ends everything. It may be called more than once.
	stop()
}

// A climb measures lanes step by step: A B C at the first rate, A B C at the
// next. Each lane has one process for all steps of a round, and a fresh one in
// the next round.
type climb struct {
	lanes    []lane
	steps    []step
	toEnd    bool // a lane whose system is at its end takes no further step
	rounds   int
	begin    func(context.Context, *lane) (running, error)
	isLeft   func(system string, err error) bool // the error says that the system is not there
	broken   func(system, problem string)        // told of money that does not add up
	progress io.Writer
}

// run climbs in all rounds. What was measured until an error is returned with it.
func (c *climb) run(ctx context.Context) ([]report.Point, error) {
	var points []report.Point
	for n := 1; n <= c.rounds; n++ {
		r := round{climb: c, number: n, systems: make([]running, len(c.lanes)), points: make([][]report.Point, len(c.lanes))}
		err := r.run(ctx)
		points = append(points, r.all...)
		if err != nil {
			return points, fmt.Errorf("round %d: %w", n, err)
		}
	}
	return points, nil
}

// A round is one climb of all lanes.
type round struct {
	*climb
	number  int
	systems []running        // by lane; nil = not there
	points  [][]report.Point // by lane
	all     []report.Point   // in the order in which they were measured
	places  [][]int          // of the points of each lane in all
}

func (r *round) run(ctx context.Context) (err error) {
	r.places = make([][]int, len(r.lanes))
	defer func() {
		for _, s := range r.systems {
			if s != nil {
				s.stop()
			}
		}
		if err != nil {
			r.exclude("the run ended in the middle of the round")
		}
	}()
	for i := range r.lanes {
		s, err := r.begin(ctx, &r.lanes[i])
		if err != nil && !r.isLeft(r.lanes[i].system, err) {
			return fmt.Errorf("%s: %w", r.lanes[i].title(), err)
		}
		if err == nil {
			r.systems[i] = s
		}
	}
	for k, more := 0, true; more; k++ {
		more = false
		for i := range r.lanes {
			stepped, err := r.step(ctx, i, k)
			if err != nil {
				return fmt.Errorf("%s: %w", r.lanes[i].title(), err)
			}
			more = more || stepped
		}
	}
	for i := range r.lanes {
		if err := r.check(i); err != nil {
			return fmt.Errorf("%s: %w", r.lanes[i].title(), err)
		}
	}
	return nil
}

// step takes step k of a lane, if it has one.
func (r *round) step(ctx context.Context, i, k int) (bool, error) {
	l, own := &r.lanes[i], r.steps
	if l.steps != nil {
		own = l.steps
	}
	if r.systems[i] == nil || k >= len(own) || r.toEnd && isEnd(r.points[i]) {
		return false, nil
	}
	p, err := r.systems[i].step(ctx, own[k].rate)
	if err != nil {
		return false, err
	}
	p.System, p.Variant, p.Round, p.Offered = l.system, join(l.variant, own[k].label), r.number, own[k].rate
	r.points[i] = append(r.points[i], p)
	r.places[i] = append(r.places[i], len(r.all))
	r.all = append(r.all, p)
	fmt.Fprintf(r.progress, "  round %d  %-9s %s\n", r.number, p.System, line(&p))
	return true, nil
}

// check stops the system of a lane and looks at its money. When that does not
// add up, the lane has no other result.
func (r *round) check(i int) error {
	if r.systems[i] == nil || len(r.places[i]) == 0 {
		return nil
	}
	m, err := r.systems[i].books()
	r.systems[i].stop()
	if err != nil || m == nil {
		return err
	}
	for _, place := range r.places[i] {
		p := &r.all[place]
		p.Money = m
		if m.Problem != "" {
			p.Excluded = "the money does not add up: " + m.Problem
		}
	}
	if m.Problem != "" {
		r.broken(r.lanes[i].title(), m.Problem)
	}
	return nil
}

// exclude takes the points whose money nobody has looked at out of all figures.
func (r *round) exclude(why string) {
	for i := range r.all {
		if p := &r.all[i]; p.Money == nil && p.Excluded == "" {
			p.Excluded = why
		}
	}
}

// title names the lane.
func (l *lane) title() string { return join(l.system, l.variant) }

// labelJoint stands between the parts of a name.
const labelJoint = ", "

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + labelJoint + b
}

// line tells a point while the run goes on.
func line(p *report.Point) string {
	text := fmt.Sprintf("%7.0f/s offered %7.0f served, errors %.3f %%, overhead p50 %.2f p99 %.2f ms, %.1f µs/request, %.1f MiB, lag p99 %.2f ms",
		p.Offered, p.Served, p.ErrorShare*100, p.OverheadP50Ms, p.OverheadP99Ms, p.CPUPerRequestUs, float64(p.RSSBytes)/(1<<20), p.LagP99Ms)
	if u := p.Store; u != nil {
		text += fmt.Sprintf(", admission p50 %.3f p99 %.3f ms, store %.2f µs and %.4f EVALSHA per request", u.AdmissionP50Ms, u.AdmissionP99Ms, u.CPUPerRequestUs, u.EvalsPerReq)
	}
	if p.Variant != "" {
		text = p.Variant + ": " + text
	}
	if p.Excluded != "" {
		text += " — EXCLUDED: " + p.Excluded
	}
	return text
}
