package loop

import "time"

// Limits of a client connection.
const (
	clientSilent     = 60 * time.Second       // from accept to the first byte
	clientIdle       = 90 * time.Second       // between requests
	headTime         = 10 * time.Second       // from the first byte of a head to its end
	proxyHeaderTime  = 5 * time.Second        // for the PROXY header
	bodyGrace        = 30 * time.Second       // before the rate of a body counts
	bodyRateMin      = 4 << 10                // bytes per second, averaged from the start of the body
	lingerTime       = 1 * time.Second        // reading on after the last answer, so that no reset eats it
	lingerBytesMax   = 256 << 10              // read and thrown away in that time
	failureDelay     = 100 * time.Millisecond // between the error frame of a cut stream and the close
	pipelineBytesMax = 32 << 10               // of requests behind the running one; then reading pauses
)

// Limits of output, in bytes. A producer is paused while a consumer has more
// than the high mark in front of it, and goes on below a quarter of the mark.
const (
	outHigh      = 256 << 10
	outHighTight = 32 << 10 // while more than half of the loop's byte budget is in use
	flushAt      = 64 << 10 // gathered output goes out within a callback
	sendPiece    = 256 << 10
)

// Limits of an upstream connection and its answer.
const (
	upstreamIdle     = 55 * time.Second // kept unused; below the usual 60 s of servers
	heldBytesMax     = 256 << 10        // of a JSON answer, before it is passed on unproved
	chunkFrameMax    = 16               // bytes around the data of one chunk that goes out
	informationalMax = 8                // 1xx answers dropped before the real one
	connectSlack     = 2 * time.Second  // added to the dialer's own timeout before the loop gives up on it
)

// Limits of what a request is counted by.
const (
	parkedMax          = 5 * time.Second // for the answer of a lane; a store has less
	topUpTokens        = 1024            // output of a stream beyond what is counted, until it is
	topUpBytesPerToken = 6               // text takes less per token, as a rule
)

// Limits of a loop.
const (
	mailboxMax      = 1 << 16 // messages
	wheelSlots      = 4096    // of TickEvery each: 41 s in one turn
	pooledClassMin  = 10      // 1 KiB: smallest pooled buffer, as a power of two
	pooledClassMax  = 17      // 128 KiB: largest pooled buffer; a read of 64 KiB fits with its framing
	pooledBytesMax  = 8 << 20 // idle bytes kept by the buffer pool
	exchangesKept   = 4096    // idle exchange objects kept
	drainQuietTime  = 1 * time.Second
	requestIDMax    = 128 // bytes of X-Request-ID
	modelNameMax    = 256 // bytes of a model name in a body
	upstreamIDMax   = 64  // bytes kept of the upstream's request id
	textScratchKept = 4 << 10
)
