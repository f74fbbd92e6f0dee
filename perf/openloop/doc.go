// Package openloop sends requests by a schedule that replies do not change.
// Latency counts from the scheduled time, so a target that stalls shows as
// latency and not as fewer requests; the generator's own lateness is measured
// and makes a run void when it is too large.
//
// Ownership: one goroutine, on a thread of its own, follows the schedule and
// writes; one goroutine per connection reads. A mutex guards what they share.
// Requests are made before the run starts and written as they are.
package openloop
