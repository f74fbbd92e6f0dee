// Package state counts what limits limit. Loops hand Reservations to a lane,
// the lane applies them to a store in batches, and the answers go back to the
// loops; nobody waits. Memory is the store of a single process; every store
// has the same semantics.
//
// Ownership: a Reservation belongs to the loop until it is submitted, then to
// the lane until it comes back.
package state
