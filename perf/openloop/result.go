package openloop

import (
	"maps"
	"time"
)

// A tally counts the jobs of a run. The run's mutex guards it.
type tally struct {
	holdBegin, holdEnd time.Time
	offered            int64
	answered           int64
	servedInHold       int64 // good answers that were whole between holdBegin and holdEnd, whenever asked
	dials              int64
	unasked            int64
	unanswered         int64
	refused            int64
	statusAll          map[int]int64
	lostAll            int64
	status             map[int]int64
	failures           map[string]int64
	lag, refusal       *times
	byKind             [kinds]kindTally
}

type kindTally struct {
	sent, bad                                    int64
	total, overhead, firstByte, firstEvent, gaps *times
}

func (t *tally) init() {
	t.status, t.statusAll, t.failures = make(map[int]int64), make(map[int]int64), make(map[string]int64)
	t.lag, t.refusal = newTimes(), newTimes()
	for i := range t.byKind {
		t.byKind[i] = kindTally{total: newTimes(), overhead: newTimes(), firstByte: newTimes(), firstEvent: newTimes(), gaps: newTimes()}
	}
}

// take counts an answer.
func (t *tally) take(j job, a answer, watch *stream, firstByte, now time.Time) {
	good := a.status >= 200 && a.status < 300 && a.events == j.stream
	if good && !now.Before(t.holdBegin) && now.Before(t.holdEnd) {
		t.servedInHold++
	}
	t.statusAll[a.status]++
	if !j.held {
		return
	}
	t.answered++
	t.status[a.status]++
	k := &t.byKind[j.kind]
	k.sent++
	total := now.Sub(j.due).Microseconds()
	if !good {
		k.bad++
		if a.status == 503 || a.status == 529 {
			t.refused++
			t.refusal.record(total)
		}
		return
	}
	k.total.record(total)
	k.firstByte.record(firstByte.Sub(j.due).Microseconds())
	if a.mockUs >= 0 {
		k.overhead.record(total - a.mockUs)
	}
	if a.events {
		k.firstEvent.record(watch.first.Sub(j.due).Microseconds())
		for _, us := range watch.gaps {
			k.gaps.record(us)
		}
	}
}

// fail counts a request that ended without a whole answer.
func (t *tally) fail(j job, err error) {
	t.lostAll++
	if !j.held {
		return
	}
	k := &t.byKind[j.kind]
	k.sent++
	k.bad++
	const distinctMax = 20
	text := err.Error()
	if len(t.failures) >= distinctMax && t.failures[text] == 0 {
		text = "others"
	}
	t.failures[text]++
}

// lose counts a request that had no answer when the run ended. It has waited
// at least until now, which is what its latency counts as.
func (t *tally) lose(j job) {
	t.lostAll++
	if !j.held {
		return
	}
	t.unanswered++
	k := &t.byKind[j.kind]
	k.sent++
	k.bad++
	k.total.record(time.Since(j.due).Microseconds())
}

// A Result is what one run showed. Everything but ServedInHold and what ends
// in All is about the requests that were scheduled within the hold.
type Result struct {
	HoldSeconds  float64
	Offered      int64 // by the schedule, which is what was sent
	SentRate     float64
	Answered     int64
	ServedInHold int64            // good answers that were whole within the hold
	ServedRate   float64          // ServedInHold per second
	ByStatus     map[int]int64    // answers
	Failures     map[string]int64 // requests without a whole or a right answer, by cause
	Unanswered   int64            // had no answer when the run ended
	Unasked      int64            // answers that nobody had asked for
	Dials        int64
	ErrorShare   float64 // not 2xx, broken, failed or unanswered, of the worse kind
	RefusedShare float64 // 503 and 529
	Refusal      Quantiles
	Lag          Quantiles
	Late         bool // the generator was late: the run is void
	ByKind       map[string]KindResult
	// Overhead is that of the worse kind: time from the schedule to the last
	// byte, less what the mock reports for the request.
	Overhead Quantiles

	// ByStatusAll are the whole answers of the warm-up, the hold and the drain;
	// LostAll are the requests of which no whole answer was seen.
	ByStatusAll map[int]int64
	LostAll     int64
}

// A KindResult is the share of one kind. FirstEvent and Gap are of streams:
// from the schedule to the first content, and between two contents.
type KindResult struct {
	Sent, Bad                                   int64
	Total, Overhead, FirstByte, FirstEvent, Gap Quantiles
}

func (t *tally) result(hold time.Duration) *Result {
	r := &Result{
		HoldSeconds: hold.Seconds(), Offered: t.offered, SentRate: float64(t.offered) / hold.Seconds(),
		Answered: t.answered, ServedInHold: t.servedInHold, ServedRate: float64(t.servedInHold) / hold.Seconds(),
		ByStatus: t.status, Failures: t.failures, Unanswered: t.unanswered, Unasked: t.unasked, Dials: t.dials,
		Refusal: t.refusal.quantiles(), Lag: t.lag.quantiles(), ByKind: make(map[string]KindResult),
		ByStatusAll: t.statusAll, LostAll: t.lostAll,
	}
	if t.offered > 0 {
		r.RefusedShare = float64(t.refused) / float64(t.offered)
	}
	r.Late = r.Lag.P99 > float64(lagMax.Microseconds())/1000
	for i := range t.byKind {
		k := &t.byKind[i]
		kr := KindResult{k.sent, k.bad, k.total.quantiles(), k.overhead.quantiles(), k.firstByte.quantiles(), k.firstEvent.quantiles(), k.gaps.quantiles()}
		r.ByKind[Kind(i).String()] = kr
		if k.sent > 0 {
			r.ErrorShare = max(r.ErrorShare, float64(k.bad)/float64(k.sent))
		}
		if kr.Overhead.P99 >= r.Overhead.P99 {
			r.Overhead = kr.Overhead
		}
	}
	return r
}

// merge adds what another generator has seen.
func (t *tally) merge(r *Result) error {
	t.offered += r.Offered
	t.answered += r.Answered
	t.servedInHold += r.ServedInHold
	t.dials += r.Dials
	t.unasked += r.Unasked
	t.unanswered += r.Unanswered
	t.lostAll += r.LostAll
	t.refused += r.ByStatus[503] + r.ByStatus[529]
	add(t.status, r.ByStatus)
	add(t.statusAll, r.ByStatusAll)
	add(t.failures, r.Failures)
	parts := []part{{t.lag, r.Lag}, {t.refusal, r.Refusal}}
	for i := range t.byKind {
		k, seen := &t.byKind[i], r.ByKind[Kind(i).String()]
		k.sent += seen.Sent
		k.bad += seen.Bad
		parts = append(parts, part{k.total, seen.Total}, part{k.overhead, seen.Overhead}, part{k.firstByte, seen.FirstByte},
			part{k.firstEvent, seen.FirstEvent}, part{k.gaps, seen.Gap})
	}
	for _, p := range parts {
		if err := p.into.merge(p.from); err != nil {
			return err
		}
	}
	return nil
}

// A part is one histogram of a merge.
type part struct {
	into *times
	from Quantiles
}

func add[K comparable](into, from map[K]int64) {
	for key := range maps.Keys(from) {
		into[key] += from[key]
	}
}

// Plain is the result without its histograms, for people.
func (r *Result) Plain() *Result {
	plain := *r
	plain.Refusal.Histogram, plain.Lag.Histogram, plain.Overhead.Histogram = nil, nil, nil
	plain.ByKind = make(map[string]KindResult, len(r.ByKind))
	for name, k := range r.ByKind {
		for _, q := range []*Quantiles{&k.Total, &k.Overhead, &k.FirstByte, &k.FirstEvent, &k.Gap} {
			q.Histogram = nil
		}
		plain.ByKind[name] = k
	}
	return &plain
}
