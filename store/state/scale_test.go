//go:build !race

package state

// manyGroups is how many groups the test of the bound makes.
const manyGroups = 1_000_000
