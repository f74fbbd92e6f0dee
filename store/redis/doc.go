// Package redis counts limits in a store that several relays share: Redis,
// Valkey, Dragonfly, or a cluster of the former two.
//
// A lane collects the Ops of all loops of the process on its groups, and its
// Apply sends them to the store: one call of a script for up to 64 groups of a
// hash tag, all calls in one pipeline. The state of a group is one string of
// doubles. Ops of several loops on one group are one group operation: when
// everything that they ask for is there, only their sum is counted; when it is
// not, the script goes through them in order.
//
// Never counted twice: a call carries a sequence number, and the store keeps
// the number and the reply of the last one under a key of the caller (process,
// lane, tag, call of the batch). A call whose reply did not come is sent again,
// unchanged and before anything else of its tag, until it is answered. Its Ops
// have been answered Lost by then; what the store granted them goes back.
// Charges and returns of Ops that could not be sent at all are kept, added up
// by group, and sent later.
//
// Out of reach: what did not answer is not asked again before a probe of its
// own was answered, and its Ops come back Lost at once. So a server that hangs
// costs one batch its deadline, and a store that is down when the process starts
// is one that is reached later.
//
// Slots are not counted up and down: every operation tells the store how many
// this process has of the group. A process that is not heard of for 30 s has
// none.
//
// Exactness: the store counts microseconds, and in doubles. Products of units
// and microseconds up to 2^53 are exact (a million tokens in an hour are 4 in
// 10); beyond it a bucket is off by a part in 2^53 per operation. A batch is
// answered as of its end: Left and the waits see all Ops of the group, and what
// comes back with a batch is there for all of it.
//
// Moving a hash slot of a running cluster to another node makes its groups
// begin anew there.
//
// Ownership: a Lane belongs to one goroutine. A Store is safe for concurrent
// use.
package redis
