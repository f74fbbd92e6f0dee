package loop

import (
	"slices"

	"relay/httpparse"
	"relay/upstream"
	"relay/upstream/wire"
	"relay/usage"
)

// end accounts for an exchange and lets its client go on.
func (x *exchange) end(outcome usage.Outcome, e wire.Error) {
	x.account(outcome, e)
	x.detach()
}

// account records how the exchange ended: one row in the spool, before the
// last bytes of the answer go out, and the metrics. It gives back what
// admission granted.
func (x *exchange) account(outcome usage.Outcome, e wire.Error) {
	l := x.loop
	x.enter(over)
	x.attempt.cancel()
	x.observe()
	if x.key == nil { // nobody to bill, and strangers must not fill the disk
		x.release()
		return
	}
	row := &x.event
	if row.Key == "" {
		x.describe()
	}
	row.Outcome, row.Error = outcome, ""
	if e != wire.NoError {
		row.Error = e.String()
	}
	row.EndUnixNs = l.wallNs
	if x.answer.status != 0 {
		row.UpstreamStatus = x.answer.status
	}
	row.BytesOut = x.answer.bodyOut
	x.count(outcome)
	x.learn()
	x.release()
	l.metrics.Events++
	if !l.ports.Spool.Row(row) {
		l.metrics.EventsLost++
	}
	if c := x.client; c != nil && l.ports.Spool.Pending() {
		c.held = true
		c.syncAt = l.ports.Spool.Position()
	}
}

// count fills in the tokens and what they cost. What the caller got is
// charged: nothing for a failure before any output, an estimate where the
// upstream's report is missing or was cut off.
func (x *exchange) count(outcome usage.Outcome) {
	row, a := &x.event, &x.answer
	row.Tokens, row.Source, row.Cost = usage.Tokens{}, usage.NoTokens, usage.Cost{}
	cancelled := outcome == usage.Cancelled && x.attempt.sentNs != 0 && a.status < 300
	answered := a.status >= 200 && a.status < 300 && outcome != usage.Failed
	if !x.route.ID.Metered() || !(answered || cancelled) {
		return
	}
	used, text := a.used(x.route.ID)
	t := &row.Tokens
	*t = usage.Tokens{
		Input: used.Input, CachedInput: used.CachedInput,
		CacheWrite5m: used.CacheWrite5m, CacheWrite1h: used.CacheWrite1h,
		Output: used.Output, Reasoning: used.Reasoning,
		AudioInput: used.AudioInput, AudioOutput: used.AudioOutput, WebSearches: used.WebSearches,
	}
	switch {
	case !used.Reported:
		row.Source = usage.Estimated
		t.Input, t.Output = usage.EstimateTokens(x.bodyBytes), usage.EstimateTokens(text)
	case outcome == usage.Completed:
		row.Source = usage.Reported
	default:
		row.Source = usage.Partial
		t.Output = max(t.Output, usage.EstimateTokens(text))
	}
	row.Cost = usage.Charge(t, &row.Price)
}

// used is what the upstream reported, and how many bytes of text an estimate
// may count on.
func (a *answer) used(id wire.RouteID) (used wire.Usage, text int64) {
	switch {
	case a.stream != nil:
		return a.stream.Usage, a.stream.OutputBytes
	case a.json != nil:
		used = a.json.Usage
	}
	if id != wire.Embeddings && id != wire.Audio && id != wire.Images {
		text = a.bodyOut
	}
	return used, text
}

// observe counts the exchange in the metrics.
func (x *exchange) observe() {
	l := x.loop
	m := &l.metrics
	row := &x.event
	m.Requests[x.answer.source][row.Status]++
	totalNs := l.nowNs - x.startNs
	m.RequestTime.observe(totalNs)
	ownNs := totalNs
	if sent := x.attempt.sentNs; sent != 0 {
		row.UpstreamNs = max(x.answer.lastNs, sent) - sent
		ownNs = l.nowNs - x.readNs - row.UpstreamNs
	} else if x.readNs != 0 {
		ownNs = l.nowNs - x.readNs
	}
	row.OverheadNs = ownNs
	m.OverheadTime.observe(ownNs)
	if x.firstNs != 0 {
		row.FirstTokenNs = x.firstNs - x.startNs
	}
	if x.body != nil {
		x.bodyBytes = int64(len(x.body))
	}
}

// detach parts the exchange and its client, and keeps the object for reuse.
func (x *exchange) detach() {
	l, c := x.loop, x.client
	x.detached = true
	x.freeRequest()
	x.answer.discard(l)
	l.metrics.Exchanges--
	if c != nil {
		c.exchange, x.client = nil, nil
		l.metrics.BytesOut += uint64(x.answer.bodyOut)
		if c.held {
			c.enter(settling)
			l.wheel.arm(&c.timer, l.nowNs+int64(l.config.StreamIdle)) // a disk that hangs must not hold it for ever
			l.unsynced = append(l.unsynced, c)
		} else {
			c.after()
		}
	}
	l.recycle(x)
}

// after goes on with a client whose exchange is over.
func (c *client) after() {
	if c.broken {
		c.finishLater()
		return
	}
	c.next()
}

// Synced is a Message of the spool: more rows are safe on disk.
type Synced struct{}

// Deliver sends the answers that waited for it.
func (Synced) Deliver(l *Loop) {
	safe := l.ports.Spool.SyncedTo()
	n := 0
	for ; n < len(l.unsynced) && l.unsynced[n].syncAt <= safe; n++ {
		if c := l.unsynced[n]; c.state == settling {
			c.held = false
			c.touch()
			c.after()
		}
	}
	l.unsynced = slices.Delete(l.unsynced, 0, n)
}

// takeHostID keeps the upstream's own request id for the row.
func (x *exchange) takeHostID(r *httpparse.Response) {
	id := upstream.UpstreamRequestID(r.Fields, x.binding.Host.Shape)
	if !printable(id) {
		return
	}
	n := copy(x.hostID[:], id)
	x.event.UpstreamRequestID = viewString(x.hostID[:n])
}
