// Package admit decides whether a request may go on: its relay key, policy and
// model, which limits it touches, and whether the process has room. It decides
// and does not act: no I/O, no goroutine.
package admit
