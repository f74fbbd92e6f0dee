package admit

import (
	"relay/store/catalog"
)

// A Standing is how a limit stands, for what callers are told of it.
type Standing struct {
	Limit  catalog.Limit
	Left   int64 // units that this loop could still get, by the last answer of the store
	RestNs int64 // until the limit is full again
}

// Tightest is the limit on requests, or on tokens of any kind, that has least
// left, of all groups of a planned demand. ok is false when there is none of
// which the loop knows. The store is not asked.
func (t *Leases) Tightest(nowNs int64, d *Demand, tokens bool) (s Standing, ok bool) {
	for i := range d.count {
		l := t.groups[d.parts[i].group.ID]
		if l == nil || l.answerNs == 0 {
			continue
		}
		for k := range l.group.Limits {
			limit := &l.group.Limits[k]
			if !(tokens && isTokens(limit.Meter) || !tokens && limit.Meter == catalog.Requests) {
				continue
			}
			if left := max(0, l.left[k]+l.has(k)); !ok || left < s.Left {
				s, ok = Standing{*limit, left, max(0, l.restNs[k]-nowNs)}, true
			}
		}
	}
	return s, ok
}

func isTokens(m catalog.Meter) bool {
	return m == catalog.Tokens || m == catalog.InputTokens || m == catalog.OutputTokens
}
