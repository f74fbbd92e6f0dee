//go:build integration && !race

package main

// buildFlags make the binary under test what the test itself is.
var buildFlags []string

const cgo = "CGO_ENABLED=0"

// memoryFactor is for the race detector only.
const memoryFactor = 1
