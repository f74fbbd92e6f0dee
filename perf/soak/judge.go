package soak

import (
	"fmt"
	"maps"
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"

	"relay/perf/openloop"
)

func (r *Result) problem(check, format string, args ...any) {
	r.Problems = append(r.Problems, check+": "+fmt.Sprintf(format, args...))
}

// judgeLoad asks whether each request was answered well and in time.
func (s *soak) judgeLoad() {
	r := s.result
	if r.Load.Offered != s.o.Requests {
		r.problem("requests", "%d were sent, not %d", r.Load.Offered, s.o.Requests)
	}
	r.judgeAnswers("warm-up", r.WarmUp)
	r.judgeAnswers("burst", r.Burst)
	r.judgeAnswers("load", r.Load)
	for _, k := range r.Load.ByKind {
		r.LatencyP50Ms, r.LatencyP99Ms = max(r.LatencyP50Ms, k.Total.P50), max(r.LatencyP99Ms, k.Total.P99)
		r.LatencyP95Ms, r.OverheadP95Ms = max(r.LatencyP95Ms, p95(k.Total)), max(r.OverheadP95Ms, p95(k.Overhead))
	}
	if r.InFlight == 0 {
		if r.InFlight = int(s.o.Rate * r.LatencyP50Ms / 1000); r.InFlight > 0 {
			r.KiBPerWaiting = float64(r.Most.RSS-r.Base.RSS) / 1024 / float64(r.InFlight)
		}
	}
	if r.Load.Late {
		r.Excluded = fmt.Sprintf("the generator was late (p99 %.1f ms): latencies count in no figure", r.Load.Lag.P99)
		return
	}
	if most := s.o.LatencyMax.Seconds() * 1000; most > 0 && r.LatencyP95Ms > most {
		r.problem("latency", "p95 %.0f ms, allowed are %v", r.LatencyP95Ms, s.o.LatencyMax)
	}
	if most := s.o.OverheadMax.Seconds() * 1000; most > 0 && r.OverheadP95Ms > most {
		r.problem("overhead", "p95 %.1f ms, allowed are %v", r.OverheadP95Ms, s.o.OverheadMax)
	}
}

// p95 is the 95th percentile of a histogram in milliseconds; 0 when it is empty.
func p95(q openloop.Quantiles) float64 {
	if q.Count == 0 {
		return 0
	}
	h, err := hdrhistogram.Decode(q.Histogram)
	if err != nil {
		panic("BUG: a histogram that was encoded cannot be decoded: " + err.Error())
	}
	return float64(h.ValueAtQuantile(95)) / 1000
}

// judgeAnswers finds everything but good answers.
func (r *Result) judgeAnswers(part string, load *openloop.Result) {
	for _, status := range slices.Sorted(maps.Keys(load.ByStatus)) {
		if status < 200 || status > 299 {
			r.problem("answers", "%d requests of the %s had status %d", load.ByStatus[status], part, status)
		}
	}
	for _, why := range slices.Sorted(maps.Keys(load.Failures)) {
		r.problem("failures", "%d requests of the %s had no whole answer: %s", load.Failures[why], part, why)
	}
	if load.Unanswered > 0 {
		r.problem("failures", "%d requests of the %s had no answer within %v", load.Unanswered, part, drainTime)
	}
	if load.Unasked > 0 {
		r.problem("answers", "%d came unasked in the %s", load.Unasked, part)
	}
}

// judgeTrouble asks whether slow callers got all of their answers. What those
// who leave or are failed get is a matter of the books only.
func (s *soak) judgeTrouble() {
	t := s.result.Trouble[slow]
	if whole := t.ByStatus[200]; whole != t.Callers {
		s.result.problem("slow callers", "%d of %d got all of their answer: by status %v, lost by cause %v", whole, t.Callers, t.ByStatus, t.Causes)
	}
}

// judgeReturn asks whether the target is as small as it was.
func (s *soak) judgeReturn() {
	if s.result.ReturnSeconds >= 0 {
		return
	}
	for _, what := range s.result.larger() {
		s.result.problem("return", "after %v %s", s.o.Return, what)
	}
}
