package state

import (
	"fmt"

	"relay/store/catalog"
)

// A rule is the state of one limit. What is configured comes with each
// reservation, so a new catalog needs no change here; the shape is kept to see
// that the rule at this place became another one. Zero is a rule at rest.
type rule struct {
	level    level
	windowNs int64 // that level is counted by; 0 for concurrency
	meter    catalog.Meter
	strategy catalog.Strategy
}

// A group is the state of one counter group. It holds no pointer, so a million
// of them cost the garbage collector nothing. Owner: the shard that it is in.
//
// Slots are counted per group and not per rule: all concurrency limits of a
// group count the same requests, and the count stays true when a new catalog
// moves, removes or adds such a limit while requests run.
type group struct {
	id      uint64
	stampNs int64 // to which the levels have drained
	restNs  int64 // from then on all levels are zero
	slots   int64 // of concurrency in use
	rules   int32 // place of the rules in the shard's runs of that count
	count   uint8 // of rules; 0 = this place is free
}

// atRest reports whether g says the same as no group at all.
func (g *group) atRest(nowNs int64) bool { return g.slots == 0 && g.restNs <= nowNs }

// reform makes the rule ready for the limit at its place: a limit of another
// shape starts anew, another amount or window keeps what was counted.
func (u *rule) reform(l *catalog.Limit) {
	windowNs := int64(l.Window)
	if u.meter != l.Meter || u.strategy != l.Strategy {
		*u = rule{meter: l.Meter, strategy: l.Strategy, windowNs: windowNs}
		return
	}
	if isBucket(l) {
		u.level = u.level.rescale(u.windowNs, windowNs).cap(l.Amount, windowNs)
	}
	u.windowNs = windowNs
}

// waitNs is how long until the limit could grant one request more; 0 = now.
// slots is the group's count.
func (u *rule) waitNs(l *catalog.Limit, slots int64) int64 {
	if isBucket(l) {
		return u.level.waitNs(l.Amount, int64(l.Window))
	}
	if slots >= l.Amount {
		return ConcurrencyRetryNs
	}
	return 0
}

// isBucket tells the two kinds of limit apart that are counted, and refuses
// what a catalog must not hold: it would be a limit that limits nothing.
func isBucket(l *catalog.Limit) bool {
	switch {
	case l.Meter == catalog.Concurrency:
		return false
	case l.Meter == catalog.Requests && l.Strategy == catalog.TokenBucket && l.Amount > 0 && l.Window > 0:
		return true
	}
	panic(fmt.Sprintf("BUG: no counter for a limit of %d %s in %v, strategy %d", l.Amount, l.Meter, l.Window, l.Strategy))
}
