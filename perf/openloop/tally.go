package openloop

import (
	"errors"
	"maps"
	"syscall"
	"time"
)

// A tally counts the jobs of a run. Owner: the generator. Times are on its clock.
type tally struct {
	holdBegin, holdEnd    int64
	offered, sent         int64
	answered              int64
	servedInHold          int64 // good answers that were whole between holdBegin and holdEnd, whenever asked
	dials                 int64
	unasked               int64
	unanswered            int64
	lostAll               int64
	cpuUs                 int64
	statusAll             map[int]int64
	status                map[int]int64
	failures              map[string]int64
	lag, readLag, refusal *times
	byKind                [kinds]kindTally
	mischief              [manners]Mischief
}

type kindTally struct {
	sent, bad                                    int64
	total, overhead, firstByte, firstEvent, gaps *times
}

func (t *tally) init() {
	t.status, t.statusAll, t.failures = make(map[int]int64), make(map[int]int64), make(map[string]int64)
	t.lag, t.readLag, t.refusal = newTimes(), newTimes(), newTimes()
	for i := range t.byKind {
		t.byKind[i] = kindTally{total: newTimes(), overhead: newTimes(), firstByte: newTimes(), firstEvent: newTimes(), gaps: newTimes()}
	}
	for i := range t.mischief {
		t.mischief[i].init()
	}
}

// wrote counts a request whose first bytes have left.
func (t *tally) wrote(j *job, now int64) {
	if j.held && j.manner == ordinary && now < t.holdEnd {
		t.sent++
	}
}

func isRefusal(status int) bool { return status == 503 || status == 529 }

// take counts a whole answer.
func (t *tally) take(j *job, r *reading, firstByte, now int64) {
	good := r.status >= 200 && r.status < 300 && r.events == j.stream
	if good && now >= t.holdBegin && now < t.holdEnd {
		t.servedInHold++
	}
	t.statusAll[r.status]++
	if !j.held {
		return
	}
	t.answered++
	t.status[r.status]++
	k := &t.byKind[j.kind]
	k.sent++
	totalUs := (now - j.due) / 1000
	if !good {
		k.bad++
		if isRefusal(r.status) {
			t.refusal.record(totalUs)
		}
		return
	}
	k.total.record(totalUs)
	k.firstByte.record((firstByte - j.due) / 1000)
	if r.events {
		k.stream(j, r, totalUs)
	} else if r.mockUs >= 0 {
		k.overhead.record(totalUs - r.mockUs)
	}
}

// stream takes the times of a good stream. Its overhead is that of all of it
// when the mock tells when it sent each event, or else up to the first one. Of
// the mock's ticks it is unknown, because nothing tells when the first was due.
func (k *kindTally) stream(j *job, r *reading, totalUs int64) {
	w := r.watch
	if w.events == 0 {
		return
	}
	firstUs := (w.first - j.due) / 1000
	k.firstEvent.record(firstUs)
	for _, ns := range w.gaps {
		k.gaps.record(ns / 1000)
	}
	switch sentUs := w.sentUs(); {
	case r.mockUs < 0 || w.pattern:
	case sentUs >= 0:
		k.overhead.record(totalUs - r.mockUs - sentUs)
	default:
		k.overhead.record(firstUs - r.mockUs)
	}
}

// fail counts a request that ended without a whole or a right answer. written
// says that the target may have seen it.
func (t *tally) fail(j *job, err error, written bool) {
	if written {
		t.lostAll++
	}
	if !j.held {
		return
	}
	k := &t.byKind[j.kind]
	k.sent++
	k.bad++
	count(t.failures, err)
}

// count counts a cause, of which there may be so many different ones.
func count(causes map[string]int64, err error) {
	text := err.Error()
	if len(causes) >= failuresMax && causes[text] == 0 {
		text = "others"
	}
	causes[text]++
}

// lose counts a request that had no answer when the run ended. It has waited
// at least until now, which is what its latency counts as.
func (t *tally) lose(j *job, written bool, now int64) {
	if written {
		t.lostAll++
	}
	if !j.held {
		return
	}
	t.unanswered++
	k := &t.byKind[j.kind]
	k.sent++
	k.bad++
	k.total.record((now - j.due) / 1000)
}

// misbehave counts the end of a request of mischief.
func (t *tally) misbehave(j *job, status int, err error, written bool) {
	if err == nil {
		t.statusAll[status]++
	} else if written {
		t.lostAll++
	}
	m := &t.mischief[j.manner]
	switch {
	case !j.held:
		return
	case err == errTooMany || errors.Is(err, syscall.EMFILE):
		m.Unsent++
		return
	case err == nil:
		m.Answered[status]++
	case err == errLeft:
		m.Left++
	default:
		count(m.Failures, err)
	}
	m.Sent++
}

func (t *tally) result(hold time.Duration) *Result {
	r := &Result{
		HoldSeconds: hold.Seconds(), Offered: t.offered, Sent: t.sent, SentRate: float64(t.sent) / hold.Seconds(),
		Answered: t.answered, ServedInHold: t.servedInHold, ServedRate: float64(t.servedInHold) / hold.Seconds(),
		ByStatus: t.status, Failures: t.failures, Unanswered: t.unanswered, Unasked: t.unasked, Dials: t.dials,
		Refusal: t.refusal.quantiles(), Lag: t.lag.quantiles(), ReadLag: t.readLag.quantiles(), ByKind: make(map[string]KindResult),
		ByStatusAll: t.statusAll, LostAll: t.lostAll, CPUUs: t.cpuUs,
	}
	if t.offered > 0 {
		r.RefusedShare = float64(t.status[503]+t.status[529]) / float64(t.offered)
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
	for by, m := range t.mischief {
		if m.Sent+m.Unsent > 0 {
			if r.Mischief == nil {
				r.Mischief = make(map[string]Mischief)
			}
			r.Mischief[mannerNames[by]] = m
		}
	}
	return r
}

// merge adds what another generator has seen.
func (t *tally) merge(r *Result) error {
	t.offered += r.Offered
	t.sent += r.Sent
	t.answered += r.Answered
	t.servedInHold += r.ServedInHold
	t.dials += r.Dials
	t.unasked += r.Unasked
	t.unanswered += r.Unanswered
	t.lostAll += r.LostAll
	t.cpuUs += r.CPUUs
	add(t.status, r.ByStatus)
	add(t.statusAll, r.ByStatusAll)
	add(t.failures, r.Failures)
	for by := range t.mischief {
		into, from := &t.mischief[by], r.Mischief[mannerNames[by]]
		into.Sent += from.Sent
		into.Left += from.Left
		into.Unsent += from.Unsent
		add(into.Answered, from.Answered)
		add(into.Failures, from.Failures)
	}
	parts := []part{{t.lag, r.Lag}, {t.readLag, r.ReadLag}, {t.refusal, r.Refusal}}
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
