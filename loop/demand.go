package loop

import (
	"strconv"

	"relay/admit"
	"relay/store/catalog"
	"relay/store/state"
	"relay/upstream"
	"relay/upstream/wire"
	"relay/usage"
)

// An Answer is a Message: an Op that its lane has worked off.
type Answer struct{ Op *state.Op }

// Deliver goes on with the requests that the Op decided.
func (a Answer) Deliver(l *Loop) {
	l.decisions = append(l.decisions, l.leases.Answered(l.nowNs, a.Op)...)
	l.workDecisions()
}

// workDecisions goes on with the requests that are decided. Each decision
// leaves the list before it is worked off, so that a panic loses none of the
// others.
func (l *Loop) workDecisions() {
	for l.decided < len(l.decisions) {
		d := l.decisions[l.decided]
		l.decided++
		if d.Demand == nil { // its caller has left
			continue
		}
		x := d.Demand.Owner.(*exchange)
		l.suspect = x
		x.decide(d.Verdict)
	}
	clear(l.decisions)
	l.decisions, l.decided = l.decisions[:0], 0
	l.suspect = nil
}

// forget takes a decision out that nobody waits for any more.
func (l *Loop) forget(d *admit.Demand) {
	for i := l.decided; i < len(l.decisions); i++ {
		if l.decisions[i].Demand == d {
			l.decisions[i].Demand = nil
		}
	}
}

// submit is the way of the leases to their lanes.
func (l *Loop) submit(o *state.Op) bool {
	if l.ports.Submit(o) {
		l.metrics.StoreOps++
		return true
	}
	return false
}

// bounds is the period of a calendar limit that is now.
func (l *Loop) bounds(limit *catalog.Limit) state.Bounds { return l.calendar.Bounds(limit, l.wallNs) }

// demand asks for what the request may use of its limits, and goes on with it
// once that is granted.
func (x *exchange) demand() {
	l, d := x.loop, &x.limits
	if !d.Plan(x.key, x.hostKey) {
		x.proceed()
		return
	}
	d.Owner, d.Estimate = x, admit.Estimate{}
	if x.route.ID.Metered() {
		answers := max(int64(x.scan.N), 1)
		if x.route.ID == wire.Embeddings {
			answers = 0
		}
		d.Estimate = l.estimates.Of(x.key.Policy, x.model, x.binding.Price, int64(len(x.body)), x.scan.MaxTokens, answers)
	}
	verdict := l.leases.Ask(l.nowNs, d)
	if verdict != admit.Parked {
		x.decide(verdict)
		return
	}
	x.enter(parked)
	x.undecided = true
	l.asked = true
	l.wheel.arm(&x.timer, l.nowNs+int64(parkedMax))
}

// decide goes on by what became of the demand.
func (x *exchange) decide(v admit.Verdict) {
	l, d := x.loop, &x.limits
	x.undecided = false
	l.wheel.disarm(&x.timer)
	switch v {
	case admit.Granted:
		x.event.GrantUnixNs = d.GrantNs()
		x.topUpAt = (d.Estimate.Expected.Output + topUpTokens) * topUpBytesPerToken
		x.proceed()
	case admit.Denied:
		l.metrics.Denials[d.Limit.Meter]++
		x.refuse(wire.RateLimited, l.denialText(d), "", d.RetryNs)
	case admit.Lost:
		x.refuse(wire.StoreUnavailable, "", "", 0)
	default:
		l.metrics.Shed[ShedMailbox]++
		x.refuse(wire.Overloaded, "", "", 0)
	}
}

// parkedTimer gives up on a lane that does not answer: it always does, but
// whoever waits must not depend on it.
func (x *exchange) parkedTimer() {
	x.loop.leases.Cancel(x.loop.nowNs, &x.limits)
	x.refuse(wire.StoreUnavailable, "", "", 0)
}

// denialText says which limit denied: its owner, meter, amount and window, and
// whether it could ever grant what was asked for.
func (l *Loop) denialText(d *admit.Demand) string {
	limit := &d.Limit
	b := append(l.scratch[:0], "limit of "...)
	b = append(b, d.Group.Name...)
	if d.RetryNs == state.NeverNs {
		b = append(b, " is less than this request may use: "...)
	} else {
		b = append(b, " reached: "...)
	}
	switch limit.Meter {
	case catalog.Cost:
		b = append(append(b, usage.FormatUSD(limit.Amount)...), " USD"...)
	case catalog.Concurrency:
		b = strconv.AppendInt(b, limit.Amount, 10)
		if limit.Amount == 1 {
			b = append(b, " request at a time"...)
		} else {
			b = append(b, " requests at a time"...)
		}
	default:
		b = append(strconv.AppendInt(b, limit.Amount, 10), ' ')
		b = append(b, limit.Meter.String()...)
	}
	switch {
	case limit.Meter == catalog.Concurrency:
	case limit.Strategy == catalog.Calendar:
		b = append(append(b, " per "...), limit.Period.String()...)
	default:
		b = append(append(b, " per "...), limit.Window.String()...)
	}
	l.scratch = b
	return string(b)
}

// settleLimits gives back what the exchange has of its limits: all of it when
// it was never granted, else what it has not used.
func (x *exchange) settleLimits() {
	l, d := x.loop, &x.limits
	if x.undecided { // its decision may be on its way
		x.undecided = false
		l.forget(d)
	}
	switch {
	case d.Parked():
		l.leases.Cancel(l.nowNs, d)
	case d.Holds():
		l.leases.Settle(l.nowNs, d, useOf(&x.event.Tokens, &x.event.Cost), true)
	}
}

// learn has later requests be estimated by what this one has used.
func (x *exchange) learn() {
	if x.event.Source == usage.Reported {
		used := useOf(&x.event.Tokens, &x.event.Cost)
		x.loop.estimates.Learn(x.key.Policy, x.model, x.bodyBytes, used.Input, used.Output)
	}
}

// topUp charges the limits of a long stream while it runs, in steps, by a low
// guess of what it has used: what is charged does not come back, and the end
// counts the rest.
func (x *exchange) topUp() {
	text := x.answer.stream.OutputBytes
	if text < x.topUpAt || !x.limits.Holds() {
		return
	}
	x.topUpAt = text + topUpTokens*topUpBytesPerToken
	tokens := usage.Tokens{Output: text / topUpBytesPerToken}
	cost := usage.Charge(&tokens, &x.event.Price)
	used := admit.Use{Output: tokens.Output, Cost: cost.Total}
	x.loop.leases.Charge(x.loop.nowNs, &x.limits, used)
}

// useOf is what a row's counts are for limits.
func useOf(t *usage.Tokens, c *usage.Cost) admit.Use {
	return admit.Use{Input: t.Input + t.CachedInput + t.CacheWrite5m + t.CacheWrite1h, Output: t.Output, Cost: c.Total}
}

// rateLimits is how the tightest limits stand, for the head of the answer.
func (x *exchange) rateLimits() (told upstream.RateLimits) {
	l := x.loop
	for i := range told {
		s, ok := l.leases.Tightest(l.nowNs, &x.limits, i == 1)
		if ok {
			told[i] = upstream.RateLimit{
				Counts: counts[s.Limit.Meter], Limit: s.Limit.Amount, Left: s.Left,
				RestNs: s.RestNs, RestAtUnixNs: l.wallNs + s.RestNs,
			}
		}
	}
	return told
}

// counts are the limits that callers are told of, by meter.
var counts = [...]upstream.Counted{
	catalog.Requests: upstream.CountedRequests, catalog.Tokens: upstream.CountedTokens,
	catalog.InputTokens: upstream.CountedInputTokens, catalog.OutputTokens: upstream.CountedOutputTokens,
}
