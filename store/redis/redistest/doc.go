// Package redistest starts real stores for tests: each on a loopback port of
// its own, with nothing on disk, and stopped with the test.
package redistest
