//go:build integration

package shared

import (
	"net/http"
	"testing"
	"time"

	"relay/store/catalog"
	"relay/store/state"
	"relay/usage"
)

// books are the rows of all relays, by the name of the relay key.
type books map[string][]usage.Event

// books reads the spools. Relays that are to be in them in full have been
// stopped, or run and are quiet.
func (f *fleet) books() books {
	f.t.Helper()
	b := make(books)
	seen := make(map[[16]byte]bool)
	for _, r := range f.relays {
		for _, row := range r.rows() {
			if seen[row.Event.RequestID] {
				f.t.Errorf("%s has two rows of one request", row.Event.Key)
			}
			seen[row.Event.RequestID] = true
			b[row.Event.Key] = append(b[row.Event.Key], row.Event)
		}
	}
	return b
}

// granted are the rows of a key that a limit let through.
func (b books) granted(key string) (list []usage.Event) {
	for _, e := range b[key] {
		if e.GrantUnixNs != 0 {
			list = append(list, e)
		}
	}
	return list
}

// grants are what these rows count of a meter.
func (b books) grants(meter catalog.Meter, keys ...string) (list []grant) {
	for _, key := range keys {
		for _, e := range b.granted(key) {
			if e.Outcome == usage.Interrupted && (meter == catalog.Tokens || meter == catalog.InputTokens) {
				continue // its input is a guess, and maybe a high one
			}
			list = append(list, grant{e.GrantUnixNs, unitsOf(meter, &e)})
		}
	}
	byTime(list)
	return list
}

// denials are the times at which limits refused a key.
func (b books) denials(keys ...string) (times []int64) {
	for _, key := range keys {
		for _, e := range b[key] {
			if e.Outcome == usage.Refused && e.Status == http.StatusTooManyRequests {
				times = append(times, e.EndUnixNs)
			}
		}
	}
	return times
}

// unitsOf is what a request counts of a meter in the end.
func unitsOf(meter catalog.Meter, e *usage.Event) int64 {
	in := e.Tokens.Input + e.Tokens.CachedInput + e.Tokens.CacheWrite5m + e.Tokens.CacheWrite1h
	switch meter {
	case catalog.Requests:
		return 1
	case catalog.Tokens:
		return in + e.Tokens.Output
	case catalog.InputTokens:
		return in
	case catalog.OutputTokens:
		return e.Tokens.Output
	case catalog.Cost:
		return e.Cost.Total
	}
	panic("BUG: no such units")
}

// clockSlack is how much the times of a row may be off: the relay's clock is
// read once per wake-up, and the store's is known as of its last answer.
const clockSlack = 20 * time.Millisecond

// spans are the times in which requests of a key ran for sure. When a relay
// died is in no row.
func (b books) spans(key string) (list []span) {
	for _, e := range b.granted(key) {
		if e.Outcome != usage.Interrupted {
			list = append(list, span{max(e.GrantUnixNs, e.StartUnixNs) + int64(clockSlack), e.EndUnixNs - int64(clockSlack)})
		}
	}
	return list
}

// fresh wants that no request was let through by units that had been lent too
// long before: for state.LeaseNs at most, and not beyond the end of a window of
// the grid (0 = there is none).
func (b books) fresh(t *testing.T, window time.Duration, keys ...string) {
	t.Helper()
	for _, key := range keys {
		for _, e := range b.granted(key) {
			endNs := e.GrantUnixNs + state.LeaseNs
			if window > 0 {
				endNs = min(endNs, (e.GrantUnixNs/int64(window)+1)*int64(window))
			}
			if e.StartUnixNs > endNs+int64(clockSlack) {
				t.Errorf("%s: a request that came at %s goes by a grant of %s", key, timeText(e.StartUnixNs), timeText(e.GrantUnixNs))
				break
			}
		}
	}
}

// complete wants that no request is missing in the books: neither one that
// reached the provider nor one that a caller was answered.
func (b books) complete(t *testing.T, p *provider, key string, answered int) {
	t.Helper()
	granted, good := b.granted(key), 0
	for _, e := range b[key] {
		if e.Status == 200 {
			good++
		}
	}
	if n := p.of(key).arrived; len(granted) < n {
		t.Errorf("%s: %d requests reached the provider, and %d rows tell of a grant", key, n, len(granted))
	}
	if good < answered {
		t.Errorf("%s: %d callers were answered, and %d rows say so", key, answered, good)
	}
}
