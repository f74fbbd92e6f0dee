// Package statetest is the conformance suite of state stores: whatever counts
// behind state.Store passes it, so that limits mean the same in
// one process and over many.
//
// A strategy that is added gets its meaning in plain arithmetic in the model, its
// cases, and a place among the limits that the random runs draw.
package statetest
