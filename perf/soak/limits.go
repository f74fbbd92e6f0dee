package soak

import "time"

const (
	rateMax     = 20_000     // requests per second
	requestsMax = 20_000_000 // of one run; the spool keeps fewer
	bodyMax     = 256 << 10  // bytes of a request

	warmUpRequests = 2000                   // or as many as the load has, if that is fewer
	warmUpRate     = 500.0                  // requests per second
	restTime       = 2 * time.Second        // between the warm-up and the readings that are compared with
	burstSeconds   = 6.0                    // of arrivals
	fillRests      = 6                      // rests between the burst and the load
	sampleEvery    = 500 * time.Millisecond // the target's metrics are asked so often: their cost is in its CPU
	drainTime      = 30 * time.Second       // how long late answers are awaited

	connectionsAhead = 5.0    // seconds of arrivals for which connections are open before the start
	connectionsMost  = 17_000 // open at once
	descriptorsOwn   = 500    // of this process, for everything else

	shareMax      = 0.5              // of the rate, of one kind of trouble
	troubleAtOnce = 2000             // callers of one kind; more wait for a place
	troubleTime   = 60 * time.Second // within which one has to be through
	causesMax     = 20               // causes that are told apart
	leaveTime     = 600 * time.Millisecond

	slowBodyBytes  = 4 << 10
	slowPieces     = 8                      // of a request
	slowPieceBytes = 16 << 10               // of an answer
	slowPieceTime  = 100 * time.Millisecond // between pieces: 160 KB/s
	slowBytes      = 1 << 20                // content of the answer

	// How far from its base a gateway may be to count as back; memory by the larger
	// of a size and a share of what it had when its pools were full, because a
	// collector lets some garbage lie.
	returnedFiles      = 16
	returnedGoroutines = 16
	returnedBytes      = 16 << 20
	returnedShare      = 0.5

	// The usage that the mock reports for each request.
	tokensIn  = 120
	tokensOut = 80

	problemsMax = 5 // accounts that are named one by one
)
