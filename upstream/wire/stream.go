package wire

// A Stream watches one streamed answer (SSE) on its way to a caller of the
// same shape: it passes whole events on byte for byte, reads usage in passing,
// and, when told, leaves out the usage chunk that the caller did not ask for.
//
// An event is held until its blank line has come, up to HeldBytesMax; longer
// ones are passed on in pieces. So AtBoundary is nearly always true, and a
// comment or an error frame never lands inside an event.
type Stream struct {
	Usage       Usage
	Events      int64 // events passed on
	OutputBytes int64 // bytes of generated text seen, for an estimate
	Done        bool  // the terminal event came: [DONE], message_stop, response.completed...
	Finished    bool  // a finish_reason or stop_reason came: EOF now is complete
	Failed      bool  // the upstream sent an error event, which was passed on
	// more: builder of this package
}

// Reset makes s ready. strip says that Relay injected include_usage.
func (s *Stream) Reset(id RouteID, strip bool) { panic("BUG: not built") }

// Feed takes the next bytes of the body and appends to dst what is to be
// passed on. p is borrowed.
func (s *Stream) Feed(dst, p []byte) []byte { panic("BUG: not built") }

// End tells that the upstream body ended cleanly. It appends what is still
// held if the stream is complete, and reports whether it is; a held rest of an
// incomplete stream is dropped.
func (s *Stream) End(dst []byte) (out []byte, complete bool) { panic("BUG: not built") }

// AtBoundary reports whether the caller has got whole events only.
func (s *Stream) AtBoundary() bool { panic("BUG: not built") }

// Held is how many bytes s keeps, for the byte budget.
func (s *Stream) Held() int { panic("BUG: not built") }

// AppendKeepAlive appends what keeps a silent stream alive in the shape:
// a comment line for OpenAI, a ping event for Anthropic once message_start has
// passed (a comment before). Call it only at a boundary.
func (s *Stream) AppendKeepAlive(dst []byte) []byte { panic("BUG: not built") }

// AppendFailure appends the error frame that ends a broken stream (no [DONE],
// no message_stop). If the caller has half an event, that is closed first.
func (s *Stream) AppendFailure(dst []byte, e Error, requestID []byte) []byte { panic("BUG: not built") }
