// Command relay-perf holds the mock provider, the load generators and the
// side-by-side comparisons by which Relay is measured.
package main
