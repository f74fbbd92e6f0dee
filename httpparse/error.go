package httpparse

// An Error is why a message was refused. It is a value of a closed set, so
// refusing allocates nothing; OK is zero.
type Error uint8

// The refusals. The builder of this package adds the members it needs.
const (
	OK        Error = iota
	Malformed       // grammar error: 400
)

// Status is the status for a client whose request was refused so: 400, 413,
// 414, 417, 431, 501 or 505. A refused response is always a 502.
func (e Error) Status() int { panic("BUG: not built") }

// String says what was wrong, in words for an error message; never bytes of
// the input.
func (e Error) String() string { panic("BUG: not built") }
