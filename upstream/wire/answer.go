package wire

// An Answer watches one JSON answer that is not streamed: it finds the usage
// object at depth 1, in one pass, cut at any byte, and tells whether the JSON
// was whole and valid.
type Answer struct {
	Usage Usage
	// more: builder of this package
}

// Reset makes a ready for an answer of the route.
func (a *Answer) Reset(id RouteID) { panic("BUG: not built") }

// Feed takes the next bytes; p is borrowed.
func (a *Answer) Feed(p []byte) { panic("BUG: not built") }

// End tells that the body ended, and reports whether it was one whole JSON
// value.
func (a *Answer) End() (valid bool) { panic("BUG: not built") }
