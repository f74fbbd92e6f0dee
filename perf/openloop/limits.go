package openloop

import "time"

const (
	rateMax        = 200_000 // requests per second
	durationMax    = time.Hour
	connectionsMax = 18_000 // open at once
	variantsMade   = 512    // different requests of each kind

	bodyBytesMin = 256
	bodyBytesMax = 256 << 10

	lineBytesMax = 64 << 10 // of an answer's head or chunk sizes

	latencyMinUs = 1
	latencyMaxUs = 600_000_000
	digits       = 3 // significant, of the histograms

	sleepSlack = 30 * time.Microsecond // sleeps end this much early, the rest is spent in short sleeps

	dialTimeout = 5 * time.Second

	beginDelay        = 10 * time.Millisecond
	beginDelayProcess = 500 * time.Millisecond // for processes to start
	processesMax      = 64
	gapsMax           = 1 << 16 // of one stream that are measured

	// lagMax is the lateness of the generator at p99 from which a run is void.
	lagMax = 5 * time.Millisecond
)
