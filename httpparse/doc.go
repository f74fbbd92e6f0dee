// Package httpparse reads and writes HTTP/1.1 messages (RFC 9112) on byte
// slices. It does no I/O and starts no goroutine.
//
// Bytes: every slice in a parsed head is a view into the input. It is borrowed
// and dies with the input; whoever keeps it copies it. Its capacity ends with
// it, so that appending to it never writes into the input.
// Strictness: a message that two readers could understand differently is
// refused, never repaired.
// Pieces: input may be cut at any byte. The verdict never depends on the cuts:
// of several faults the one is told that the shortest prefix shows.
package httpparse
