// Package admit decides whether a request may go on: its relay key, policy and
// model, which limits it touches, and whether the process has room. It decides
// and does not act: no I/O, no goroutine.
//
// Limits are counted by a store that all loops, and maybe several processes,
// share. A loop does not ask it for every request. It keeps a lease per counter
// group: units that the store has counted as spent already, and lent to the
// loop for state.LeaseNs. A request whose groups all have units is granted with
// no hop. Otherwise it waits, together with all others that wait for the
// group, for one Op, which is granted for all of them or ends in a denial.
//
// What is bounded, and by how much:
//   - Never over: what all loops of all processes grant together is within
//     every limit, in each window of a fixed, session or calendar limit, and in
//     any span of a bucket. A request that waited counts when the store granted
//     it, one that was covered when it was granted here; a lease never outlives
//     its window. Reservations are bounded, not use: what a request uses beyond
//     its estimate is a debt, which has to go before the next one is granted.
//     What comes back to a bucket fills it at the time when it comes back.
//   - Under-use: units lent and not spent are at most, per loop, the amount /
//     state.LeaseShare and an equal part of a quarter of what is left, and go
//     back after state.LeaseNs. What a process had when it died is lost until
//     the window or bucket has moved on. Returns of two windows that meet in
//     one Op are cut to the newer.
//   - Near a limit nothing is lent, so its last units are counted one by one,
//     and a denial carries the store's wait. It stands on the loop for at most
//     50 ms, in which units that come back on other loops are not seen.
//   - Order: those who wait for a group are served first come first. One that
//     does not fit is denied at once and not queued, so it holds those behind
//     it up by one answer. So a great request never starves smaller ones, but
//     they may starve it: its wait says when there is enough if nobody else
//     comes, and nothing is kept for it.
//   - Slots: a loop keeps at most as many without use as the store says (Keep),
//     and asks every second whether it still may. Near the limit it keeps none:
//     they go back at once, before the end of an answer is written, unless the
//     store is just being asked for the same group, and then behind that.
//     Whoever finds no slot is therefore asked for once more 4 ms later, so that
//     as many callers as there are slots, each with one request after the other,
//     are not denied.
//   - A limit that reserves nothing (posthoc) is looked at every 200 ms at the
//     latest; between looks a loop grants as long as it knows of one unit.
package admit
