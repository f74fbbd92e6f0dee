package loop

import "net/netip"

// A Socket is one open connection as its loop sees it. All methods are called
// on the loop's goroutine, none of them blocks, and none of them calls back
// into the loop: what happens inside is reported after the current callback.
// After OnClosed or Close every method is a no-op.
type Socket interface {
	// Write sends p in order behind what was written before. What the kernel
	// does not take is copied; p is the caller's again when Write returns.
	Write(p []byte)
	// Buffered is how many written bytes the kernel has not taken yet.
	Buffered() int
	// NotifyDrained asks for one OnDrained as soon as Buffered is at most low.
	// A later call replaces an earlier one. If Buffered is low already, the
	// call comes at the next tick.
	NotifyDrained(low int)
	// PauseRead stops OnBytes; ResumeRead lets it go on, first with bytes that
	// came in between. Both may be called twice. watchHangUp says that the
	// peer's going away is to be reported by OnClosed all the same.
	PauseRead(watchHangUp bool)
	ResumeRead()
	// Mark notes what has been written so far, and Reached reports whether the
	// peer's kernel has acknowledged anything written after the mark: it then had
	// an open connection, and its program may have read it. Reached answers also
	// inside OnClosed.
	Mark()
	Reached() bool
	// CloseWrite sends a FIN behind what is written; reading goes on. It is
	// called only when Buffered is 0.
	CloseWrite()
	// Close gives the connection up now; output not taken yet is lost. OnClosed
	// is not called.
	Close()
	// Abort is Close with a reset, which the peer cannot take for the end of a
	// message.
	Abort()
}

// A Conn is the loop's side of a Socket: what the driver calls, on the loop's
// goroutine, between Begin and End of the loop, never from inside a Socket
// method.
type Conn interface {
	// OnBytes takes bytes that came. p is borrowed.
	OnBytes(p []byte)
	// OnDrained answers NotifyDrained.
	OnDrained()
	// OnClosed tells that the connection is gone; the Socket is dead.
	OnClosed(c Cause)
}

// A Cause is why a connection closed.
type Cause uint8

// The causes.
const (
	EOF    Cause = iota // the peer sent a FIN
	Reset               // a reset, or a failed write
	Broken              // a bug or a panic in a callback closed it
)

// A Peer is who connected to the inference listener.
type Peer struct {
	Addr netip.AddrPort // of the PROXY header when one was read by the driver, else of the socket
	TLS  bool
	// ProxyHeader says that a PROXY protocol header (v1 or v2) must come first
	// and has not been read yet: cleartext listeners only.
	ProxyHeader bool
}
