// Package control is the listener for operators and their tools: metrics,
// health, profiles. It speaks net/http and shares nothing with the inference
// listener, so that it answers when that one is full.
//
// It owns no number. Each request asks the loops for a copy of their counters
// through their mailboxes and waits a bounded time; a loop that is stuck shows
// as one that does not answer.
package control
