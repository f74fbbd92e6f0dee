// Package upstream decides about hosts: which host key a request goes to, what
// a failed attempt means, and which heads are written to a host and back to
// the caller. It decides and does not act: no I/O, no goroutine, no clock.
//
// Bytes: heads are appended to a slice of the caller; every view in a
// RequestHead, ResponseHead or AnswerHead is read during the call and not
// kept.
// Secrets: a relay key never goes to a host, and a host key goes nowhere but
// into the credential field of its own host.
package upstream
