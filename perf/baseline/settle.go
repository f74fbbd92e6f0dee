package baseline

import (
	"time"

	"relay/upstream/wire"
	"relay/usage"
)

// describe fills in what the usage row says about who asked for what.
func (t *ticket) describe() {
	e := &t.event
	e.Generation = t.core.tables.Generation
	e.StartUnixNs = t.start.UnixNano()
	e.Key, e.Account, e.Policy = t.key.Name, t.key.Account.Name, t.key.Policy.Name
	e.Route = t.route.ID.String()
	e.ShapeIn = t.route.Shape.String()
	e.Stream = t.scan.Stream
	if t.model != nil {
		e.Model = t.model.Name
	}
	if b := t.binding; b != nil {
		e.UpstreamModel, e.Host, e.HostKey = b.UpstreamModel, b.Host.Name, t.hostKey.Name
		e.ShapeOut = b.Host.Shape.String()
		e.Price = *b.Price
	}
}

// settle ends a request: what admission granted goes back, and its one row is
// written, before the last bytes of its answer go out.
func (t *ticket) settle(outcome usage.Outcome, e wire.Error) {
	t.accounted = true
	c, row, a := t.core, &t.event, &t.answer
	if t.slot {
		t.slot = false
		c.inflight.Release()
	}
	now := time.Now()
	t.observe(now)
	if t.key == nil { // nobody to bill
		return
	}
	if row.Key == "" {
		t.describe()
	}
	row.Outcome, row.Error = outcome, ""
	if e != wire.NoError {
		row.Error = e.String()
	}
	if outcome == usage.Cancelled {
		row.HungUp = true
	}
	row.EndUnixNs = now.UnixNano()
	row.UpstreamStatus, row.BytesOut = a.status, a.bodyOut
	if t.body != nil {
		row.BytesIn = int64(len(t.body.bytes))
	}
	t.count(outcome)
	if t.demand.Holds() {
		c.limiter.settle(t)
	}
	if !t.lane.row(row, c.options.SpoolSync == 0) {
		c.metrics.rowsLost.Add(1)
	}
}

// observe measures the request and counts it.
func (t *ticket) observe(now time.Time) {
	row := &t.event
	total := now.Sub(t.start)
	own := total
	switch {
	case !t.sentAt.IsZero():
		upstream := max(t.answer.lastAt.Sub(t.sentAt), 0)
		row.UpstreamNs = int64(upstream)
		own = now.Sub(t.readAt) - upstream
	case !t.readAt.IsZero():
		own = now.Sub(t.readAt)
	}
	row.OverheadNs = int64(own)
	if first := t.answer.firstAt; !first.IsZero() {
		row.FirstTokenNs = int64(first.Sub(t.start))
	}
	m := &t.core.metrics
	m.requests[min(row.Status, statusEnd-1)].Add(1)
	m.seconds.Observe(total.Seconds())
	m.overhead.Observe(own.Seconds())
}

// count fills in the tokens and what they cost, by the rules of Relay: what the
// caller got is charged, by the upstream's report or by an estimate.
func (t *ticket) count(outcome usage.Outcome) {
	row, a := &t.event, &t.answer
	row.Tokens, row.Source, row.Cost = usage.Tokens{}, usage.NoTokens, usage.Cost{}
	cancelled := outcome == usage.Cancelled && !t.sentAt.IsZero() && a.status < 300
	answered := a.status >= 200 && a.status < 300 && outcome != usage.Failed
	if !t.route.ID.Metered() || !(answered || cancelled) {
		return
	}
	used, text := a.used(t.route.ID)
	k := &row.Tokens
	*k = usage.Tokens{
		Input: used.Input, CachedInput: used.CachedInput,
		CacheWrite5m: used.CacheWrite5m, CacheWrite1h: used.CacheWrite1h,
		Output: used.Output, Reasoning: used.Reasoning,
		AudioInput: used.AudioInput, AudioOutput: used.AudioOutput, WebSearches: used.WebSearches,
	}
	switch {
	case !used.Reported:
		row.Source = usage.Estimated
		k.Input, k.Output = usage.EstimateTokens(row.BytesIn), usage.EstimateTokens(text)
	case outcome == usage.Completed:
		row.Source = usage.Reported
	default:
		row.Source = usage.Partial
		k.Output = max(k.Output, usage.EstimateTokens(text))
	}
	row.Cost = usage.Charge(k, &row.Price)
}
