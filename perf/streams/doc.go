// Package streams holds many open streams through a target, checks every byte
// of each, and sees what a stream costs.
package streams
