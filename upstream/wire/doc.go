// Package wire knows the OpenAI and Anthropic shapes: which path is which
// route, where the interesting values of a request lie, how an answer reports
// usage, and how errors look. It is pure: no I/O, no goroutine, no clock.
//
// Bytes: a Scan reads a body that its caller owns and only keeps offsets into
// it. What is not edited is passed on as it came.
package wire
