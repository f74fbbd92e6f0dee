package baseline

import "time"

// Limits of a gateway.
const (
	headBytesMax     = 64 << 10  // of a request or an answer
	heldBytesMax     = 256 << 10 // of a JSON answer, before it is passed on unproved
	readBytes        = 4 << 10   // one read of a streamed answer
	keptBytesMax     = 64 << 10  // a larger buffer is not kept for other requests
	requestIDMax     = 128       // bytes of X-Request-ID
	upstreamIDMax    = 64        // bytes kept of the upstream's request id
	fieldNamesMax    = 4096      // field names remembered in each direction
	attemptsMax      = 2         // one more where the host refused the connection
	statusEnd        = 600
	transportReading = 4 << 10 // buffers of an upstream connection
	transportWriting = 8 << 10
	inlineBytesMax   = 7 << 10 // a body that goes out in one write with its head
	ownFieldsMost    = 5       // fields that the gateway adds to a request
	fastReading      = 8 << 10 // of a client or an upstream; a head must fit
)

// Times of a gateway.
const (
	headTime     = 10 * time.Second // for a request's head
	clientIdle   = 90 * time.Second // between requests
	upstreamIdle = 55 * time.Second // kept unused; below the usual 60 s of servers
	closeGrace   = 2 * time.Second  // behind the deadline of a shutdown
	closeLook    = 5 * time.Millisecond
	tickEvery    = 10 * time.Millisecond // of the limiter
)

// gcPercent is GOGC when the environment does not set it, as Relay has it.
const gcPercent = 400
