package httpparse

// Chunks decodes one chunked body (RFC 9112 §7.1). The zero value is ready.
type Chunks struct {
	left  int64 // bytes of data left in the current chunk
	state uint8
	count int32 // bytes of the line or trailer section so far, for the limits
}

// Next reads the next piece of the body from p. It returns the data in it (a
// view into p, maybe empty), how many bytes of p are used up, and whether the
// body ended with them. It is called until n == len(p) or done. Input may be
// cut at any byte.
func (c *Chunks) Next(p []byte) (data []byte, n int, done bool, err Error) {
	panic("BUG: not built")
}
