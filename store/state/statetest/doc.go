// Package statetest is the conformance suite of state stores: whatever counts
// behind state.Store passes it, so that limits mean the same in
// one process and over many.
//
// A strategy that is added brings a strategyModel, which says what it means in
// plain arithmetic, and a place in the tables of limits that the random runs
// draw from.
package statetest
