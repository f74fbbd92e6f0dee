// Package pattern follows a stream of the mock provider and checks each byte
// of its content against the mock's pattern.
package pattern
