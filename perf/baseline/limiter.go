package baseline

import (
	"strconv"
	"sync"
	"time"

	"relay/admit"
	"relay/store/catalog"
	"relay/store/state"
	"relay/upstream/wire"
	"relay/usage"
)

// A limiter counts what the catalog limits, for all connections: the leases of
// one loop over a store in memory, both under one mutex. What the leases ask of
// the store is answered before the mutex is let go, so no goroutine waits for
// an answer; only for a second question when all slots are taken.
type limiter struct {
	mu        sync.Mutex
	leases    *admit.Leases
	estimates *admit.Estimates
	calendar  *admit.Calendar
	store     *state.Memory
	asked     []*state.Op // submitted and not answered; none while nobody has the mutex
	answering []*state.Op
	nowNs     int64     // of who has the mutex, since began
	began     time.Time // of the monotonic clock
	beganNs   int64     // the same, Unix

	stop  chan struct{}
	ended chan struct{}
}

func newLimiter() *limiter {
	l := &limiter{
		estimates: admit.NewEstimates(), calendar: admit.NewCalendar(), store: state.NewMemory(1),
		began: time.Now(), stop: make(chan struct{}), ended: make(chan struct{}),
	}
	l.beganNs = l.began.UnixNano()
	l.leases = admit.NewLeases(0, func(o *state.Op) bool {
		l.asked = append(l.asked, o)
		return true
	}, func(limit *catalog.Limit) state.Bounds { return l.calendar.Bounds(limit, l.beganNs+l.nowNs) })
	go l.tick()
	return l
}

// lock takes the mutex and the time, which does not run backwards from one
// holder to the next.
func (l *limiter) lock() {
	l.mu.Lock()
	l.nowNs = int64(time.Since(l.began))
}

// answer has the store answer everything that was asked.
func (l *limiter) answer() {
	for len(l.asked) > 0 {
		l.asked, l.answering = l.answering[:0], l.asked
		l.store.Apply(l.beganNs+l.nowNs, l.answering)
		for _, o := range l.answering {
			for _, d := range l.leases.Answered(l.nowNs, o) {
				t := d.Demand.Owner.(*ticket)
				if t.verdict = d.Verdict; t.decided != nil {
					close(t.decided)
					t.decided = nil
				}
			}
		}
	}
}

// ask decides about the demand of a ticket, which says what it may use. Whoever
// finds no slot is asked for once more a few milliseconds later, and waits.
func (l *limiter) ask(t *ticket) admit.Verdict {
	decided := l.begin(t)
	if decided == nil {
		return t.verdict
	}
	select {
	case <-decided:
		return t.verdict
	case <-l.stop:
	}
	l.lock()
	defer l.mu.Unlock()
	if t.verdict == admit.Parked {
		l.leases.Cancel(l.nowNs, &t.demand)
		t.verdict = admit.Lost
	}
	return t.verdict
}

// begin asks, and returns what ends the wait when there is one.
func (l *limiter) begin(t *ticket) (decided <-chan struct{}) {
	l.lock()
	defer l.mu.Unlock()
	if t.route.ID.Metered() {
		answers := max(t.scan.N, 1)
		if t.route.ID == wire.Embeddings {
			answers = 0
		}
		t.demand.Estimate = l.estimates.Of(t.key.Policy, t.model, t.binding.Price, int64(len(t.body.bytes)), t.scan.MaxTokens, answers)
	}
	t.verdict = l.leases.Ask(l.nowNs, &t.demand)
	l.answer()
	if t.verdict != admit.Parked {
		return nil
	}
	t.decided = make(chan struct{})
	return t.decided
}

// settle ends a granted demand with what its row says was used.
func (l *limiter) settle(t *ticket) {
	row, k := &t.event, &t.event.Tokens
	used := admit.Use{Input: k.Input + k.CachedInput + k.CacheWrite5m + k.CacheWrite1h, Output: k.Output, Cost: row.Cost.Total}
	l.lock()
	defer l.mu.Unlock()
	l.leases.Settle(l.nowNs, &t.demand, used, !t.sentAt.IsZero())
	if row.Source == usage.Reported {
		l.estimates.Learn(t.key.Policy, t.model, row.BytesIn, used.Input, used.Output)
	}
	l.answer()
}

// tick has the leases do what is due, until the limiter is closed.
func (l *limiter) tick() {
	defer close(l.ended)
	ticker := time.NewTicker(tickEvery)
	defer ticker.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-ticker.C:
		}
		for again := true; again; { // each with the mutex for a bounded time
			l.lock()
			dueNs := l.leases.Tick(l.nowNs)
			again = dueNs != 0 && dueNs <= l.nowNs
			l.answer()
			l.mu.Unlock()
		}
	}
}

func (l *limiter) close() {
	close(l.stop)
	<-l.ended
}

// reserve counts the request against all limits that it touches.
func (t *ticket) reserve() refusal {
	d := &t.demand
	if !d.Plan(t.key, t.hostKey) {
		return refusal{}
	}
	d.Owner = t
	switch t.core.limiter.ask(t) {
	case admit.Granted:
		t.event.GrantUnixNs = d.GrantNs()
		return refusal{}
	case admit.Denied:
		return refusal{e: wire.RateLimited, retryNs: d.RetryNs, message: denialText(d)}
	}
	return refusal{e: wire.Overloaded} // of too many groups; a store in memory loses nothing
}

// denialText says which limit denied, in the words of Relay.
func denialText(d *admit.Demand) string {
	limit := &d.Limit
	text := "limit of " + d.Group.Name
	if d.RetryNs == state.NeverNs {
		text += " is less than this request may use: "
	} else {
		text += " reached: "
	}
	switch limit.Meter {
	case catalog.Concurrency:
		return text + strconv.FormatInt(limit.Amount, 10) + " requests at a time"
	case catalog.Cost:
		text += usage.FormatUSD(limit.Amount) + " USD"
	default:
		text += strconv.FormatInt(limit.Amount, 10) + " " + limit.Meter.String()
	}
	if limit.Strategy == catalog.Calendar {
		return text + " per " + limit.Period.String()
	}
	return text + " per " + limit.Window.String()
}
