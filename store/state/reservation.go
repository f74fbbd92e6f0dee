package state

import "relay/store/catalog"

// GroupsMax is how many counter groups one request may touch: policy, relay
// key, account, host key.
const GroupsMax = 4

// RulesMax is how many limits one group may have.
const RulesMax = 8

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

	held [GroupsMax]uint8 // slots taken, builder's use
}
