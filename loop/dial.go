package loop

import "relay/store/catalog"

// A Dial is a wish for an upstream connection. Owner: the loop until it is
// handed to the dialer, then the dialer until it comes back by Opened (in
// success) or by the mailbox (in failure). It always comes back once.
type Dial struct {
	Loop int           // index of the loop that wants it
	Host *catalog.Host // pinned by the exchange that asked

	Fault DialFault // set by the dialer on failure
	Text  string    // its error text, for the log
	owner *attempt  // loop's own: who waits for it; nil when nobody does any more
}

// A DialFault is why a dial failed.
type DialFault uint8

// The dial faults.
const (
	DialOK        DialFault = iota
	DialRefused             // refused, unreachable, DNS failure
	DialTimeout             // no connection within the host's connect timeout
	DialTLS                 // handshake or certificate failure
	DialFull                // the host's max_connections are in use
	DialExhausted           // our own descriptors or ports are used up: trips no breaker
)
