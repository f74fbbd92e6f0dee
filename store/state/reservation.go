package state

import "relay/store/catalog"

// A Verb says what a Reservation wants.
type Verb uint8

// The verbs.
const (
	Reserve Verb = iota // take in all groups or in none
	Release             // give back what a granted Reserve holds: concurrency slots
)

// A Reservation is one request's demand on several counter groups, all or
// nothing, and later the return of what it holds. It is part of the exchange
// that it belongs to and is used again.
type Reservation struct {
	Verb   Verb
	Loop   int // where the answer goes
	Owner  any // the exchange; not touched here
	Groups [GroupsMax]*catalog.Group
	Count  int // groups in use

	// The answer to Reserve. Release has no answer.
	Granted bool
	Denied  int           // index of the group that denied
	Limit   catalog.Limit // the rule that denied
	RetryNs int64         // until the rule could grant; for concurrency a hint
	Lost    bool          // the store could not be asked: neither granted nor denied

	// held is how many concurrency slots each group has lent. A granted Reserve
	// sets it, Release takes it back to zero, nothing else touches it.
	held [GroupsMax]uint8
}

// Holds reports whether the reservation keeps slots, so that a Release must
// follow. It is false before the grant, after a denial and after the Release.
func (r *Reservation) Holds() bool { return r.held != [GroupsMax]uint8{} }

// begin clears the answer of an earlier use.
func (r *Reservation) begin() {
	if r.Holds() {
		panic("BUG: a reservation is used again before its release")
	}
	r.Granted, r.Lost, r.Denied, r.RetryNs, r.Limit = false, false, 0, 0, catalog.Limit{}
}

// group is the i-th group that counts, or nil: a group without limits counts
// nothing, and a group that is named twice counts once.
func (r *Reservation) group(i int) *catalog.Group {
	g := r.Groups[i]
	if len(g.Limits) == 0 {
		return nil
	}
	for _, earlier := range r.Groups[:i] {
		if earlier.ID == g.ID {
			return nil
		}
	}
	return g
}
