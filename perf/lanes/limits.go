package lanes

import "time"

const (
	rateMax     = 1_000_000 // requests per second
	policiesMax = 50_000    // below admit.LeasesMax
	loopsMax    = 64
	roundsMax   = 100
	holdMax     = 10 * time.Minute

	// openMax is how many requests of one loop may be open. What comes meanwhile
	// by the schedule is not sent, and counted as such.
	openMax = 1 << 15

	// heldShare is the part of a rate that has to be decided for it to be held,
	// and lagMax how late a loop may be at p99.
	heldShare = 0.99
	lagMax    = 5 * time.Millisecond
)

// Times of a loop.
const (
	lookEvery  = 100 * time.Microsecond // at the schedule
	tickEvery  = 5 * time.Millisecond   // of the leases
	owedEvery  = 100 * time.Millisecond // until a lane tells the store what no Op will tell
	drainMax   = 5 * time.Second
	scheduleIn = 50 * time.Millisecond // behind the start of the loops

	storeTimeout = 5 * time.Second // to connect, and to load a script
)

// What requests are taken to use, in tokens, and what they do use: nine of ten
// use less than was estimated.
const (
	tokensExpected = 500
	tokensLeast    = 100
	tokensRange    = 440
)

// The amounts of the rules: nobody is limited.
const (
	requestsAmount = 1_000_000_000
	tokensAmount   = 1_000_000_000_000
	slotsAmount    = 1_000_000
	window         = time.Minute
)

// Policies of a hot load, and what a saturated one lets through.
const (
	policiesHot    = 16
	saturatedShare = 0.5
)

// Buckets of latencies, in nanoseconds.
const (
	latencyMaxNs = int64(60 * time.Second)
	digits       = 2
)
