// Package sim runs the production state machines of package loop on a fake
// network and a fake clock: clients and upstreams that misbehave in every way,
// a store and a spool that are slow or full, panics in callbacks. One seed is
// one run, and the same seed is the same run.
//
// At the end of a run nothing may be left: no exchange, connection, timer,
// buffer, slot or lease; every request of a known key has exactly one
// usage row; every answer that a client took for whole was its own.
package sim
