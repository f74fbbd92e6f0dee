//go:build race

package state

// manyGroups is smaller here: one goroutine owns the memory, and what the race
// detector has to see is seen with fewer.
const manyGroups = 100_000
