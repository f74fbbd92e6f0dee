// Package lanes measures what it costs to count limits in a shared store, with
// loops and lanes alone: no gateway, no connection, no provider.
//
// A loop here is a goroutine with leases of its own, which follows a schedule
// that answers do not change: at each time of it a request asks, and when it
// was granted it settles some milliseconds later. Loops hand what has to be
// asked to the lanes of package store/redis, and are woken for the answers by
// an eventfd, as the loops of a gateway are. They look at the schedule every
// 100 µs: under such a load a gateway's loops wake as often for their sockets.
//
// The ways of asking that are compared:
//   - leases: as Relay does.
//   - exact: the same, with nothing lent in advance: every request waits for
//     the store, and those that wait for a group together are one operation.
//   - plain: the usual design. One EVALSHA reserves and one settles, for each
//     request, and nothing is merged. The script is written for just this: the
//     three rules of a policy in one packed string, no list of processes, no
//     guard against being counted twice. Calls go out together over one
//     connection per loop as far as they have come together. So it is cheaper
//     than what it stands for, in the store and here.
//   - memory: leases over a store in this process, to tell what loops, leases
//     and this package themselves take.
//
// All take turns, in one run on one store. Policies have the same three rules:
// requests in a bucket, tokens in a sliding window, and concurrency.
//
// Ownership: a loop, its leases and its requests belong to one goroutine; a
// lane belongs to another; boxes under mutexes are between them.
package lanes
