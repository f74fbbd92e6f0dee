// Package money holds the records that a gateway has left behind against what
// its callers have seen.
package money
