// Package state counts what limits limit.
//
// The unit of work is the Op: one loop's business with one counter group. A
// loop keeps at most one Op per group under way. Lanes collect the Ops of all
// loops and give them to a Store in batches; answers go back to the loops, and
// nobody waits. Memory is the store of a single process; every store has the
// same semantics.
//
// What an Op is granted is spent at the store at once, also what it is lent
// beyond its need (a lease): a loop that dies with it leaves a limit under-used
// and never exceeded. What was granted and not used goes back with the store
// time of its grant, so that it never enlarges another window.
//
// Ownership: an Op belongs to its loop until it is submitted, then to the lane
// until it comes back.
package state
