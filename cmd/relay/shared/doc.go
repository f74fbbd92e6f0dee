// Package shared judges limits that several relays count together: built
// binaries over a real store, which is cut off, stopped and slowed down
// meanwhile, and relays that are killed. It holds tests only, built with the
// tag integration:
//
//	go test -count=1 -tags integration ./cmd/relay/shared
//
// What was let through is counted by an independent counter: it reads the rows
// of every relay and computes each limit again, by its documented arithmetic,
// from the store time of the grant and the units alone. How many requests ran
// at once, and that no row is missing, is told by the provider, which is of
// this package too and counts what reaches it.
//
// The load of TestFourRelays is short here; a long one is
//
//	go test -count=1 -tags integration ./cmd/relay/shared -run FourRelays -load 60s
//
// The counter and its own tests need neither the tag nor a store.
package shared
