//go:build integration && race

package main

// buildFlags make the binary under test what the test itself is.
var buildFlags = []string{"-race"}

const cgo = "CGO_ENABLED=1" // the race detector needs it

// memoryFactor is how much more memory the binary may need than without.
const memoryFactor = 4
