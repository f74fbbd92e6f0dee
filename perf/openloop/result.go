package openloop

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// A tally counts the jobs of the hold. The run's mutex guards it.
type tally struct {
	holdBegin, holdEnd time.Time
	offered            int64
	answered           int64
	servedInHold       int64 // 2xx that were whole between holdBegin and holdEnd, whenever asked
	dials              int64
	unasked            int64
	unanswered         int64
	status             map[int]int64
	failures           map[string]int64
	lag                *hdrhistogram.Histogram
	byKind             [kinds]kindTally
}

type kindTally struct {
	sent, bad                  int64
	total, overhead, firstByte *hdrhistogram.Histogram
}

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(latencyMinUs, latencyMaxUs, digits)
}

func (t *tally) init() {
	t.status, t.failures, t.lag = make(map[int]int64), make(map[string]int64), newHistogram()
	for i := range t.byKind {
		t.byKind[i] = kindTally{total: newHistogram(), overhead: newHistogram(), firstByte: newHistogram()}
	}
}

func record(h *hdrhistogram.Histogram, us int64) {
	h.RecordValue(min(max(us, latencyMinUs), latencyMaxUs))
}

// take counts an answer.
func (t *tally) take(j job, a answer, firstByte, now time.Time) {
	good := a.status >= 200 && a.status < 300
	if good && !now.Before(t.holdBegin) && now.Before(t.holdEnd) {
		t.servedInHold++
	}
	if !j.held {
		return
	}
	t.answered++
	t.status[a.status]++
	k := &t.byKind[j.kind]
	k.sent++
	if !good {
		k.bad++
		return
	}
	total := now.Sub(j.due).Microseconds()
	record(k.total, total)
	record(k.firstByte, firstByte.Sub(j.due).Microseconds())
	if a.mockUs >= 0 {
		record(k.overhead, total-a.mockUs)
	}
}

// fail counts a request that ended without a whole answer.
func (t *tally) fail(j job, err error) {
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
	if !j.held {
		return
	}
	t.unanswered++
	k := &t.byKind[j.kind]
	k.sent++
	k.bad++
	record(k.total, time.Since(j.due).Microseconds())
}

// Quantiles of a histogram, in milliseconds.
type Quantiles struct {
	P50, P90, P99, Max float64
	Count              int64
}

func quantiles(h *hdrhistogram.Histogram) Quantiles {
	ms := func(us int64) float64 { return float64(us) / 1000 }
	return Quantiles{
		P50: ms(h.ValueAtQuantile(50)), P90: ms(h.ValueAtQuantile(90)), P99: ms(h.ValueAtQuantile(99)),
		Max: ms(h.Max()), Count: h.TotalCount(),
	}
}

// A Result is what one run showed. Everything but ServedInHold is about the
// requests that were scheduled within the hold.
type Result struct {
	Offered      int64
	Answered     int64
	ServedInHold int64            // good answers that were whole within the hold
	ServedRate   float64          // ServedInHold per second
	ByStatus     map[int]int64    // answers
	Failures     map[string]int64 // requests without a whole answer, by cause
	Unanswered   int64            // had no answer when the run ended
	Unasked      int64            // answers that nobody had asked for
	Dials        int64
	ErrorShare   float64 // not 2xx, failed or unanswered, of the worse kind
	Lag          Quantiles
	Late         bool // the generator was late: the run is void
	ByKind       map[string]KindResult
	// Overhead is that of the worse kind: time from the schedule to the last
	// byte, less what the mock reports for the request.
	Overhead Quantiles
}

// A KindResult is the share of one kind.
type KindResult struct {
	Sent, Bad                  int64
	Total, Overhead, FirstByte Quantiles
}

func (t *tally) result(o *Options) *Result {
	r := &Result{
		Offered: t.offered, Answered: t.answered, ServedInHold: t.servedInHold,
		ServedRate: float64(t.servedInHold) / o.Hold.Seconds(),
		ByStatus:   t.status, Failures: t.failures, Unanswered: t.unanswered, Unasked: t.unasked, Dials: t.dials,
		Lag: quantiles(t.lag), ByKind: make(map[string]KindResult),
	}
	r.Late = r.Lag.P99 > float64(lagMax.Microseconds())/1000
	for i := range t.byKind {
		k := &t.byKind[i]
		kr := KindResult{k.sent, k.bad, quantiles(k.total), quantiles(k.overhead), quantiles(k.firstByte)}
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
