package openloop

import "time"

const (
	rateMax        = 200_000 // requests per second
	durationMax    = time.Hour
	connectionsMax = 18_000 // open at once
	callersMax     = 1_024  // open at once by mischief, beside the others
	variantsMade   = 512    // different requests of each kind

	bodyBytesMin      = 256
	bodyBytesMax      = 256 << 10 // of a drawn length
	bodyBytesExactMax = 64 << 20

	readBytes    = 128 << 10 // taken from a socket at once
	lineBytesMax = 64 << 10  // of an answer's head, chunk sizes and events

	latencyMinUs = 1
	latencyMaxUs = 600_000_000
	digits       = 3 // significant, of the histograms

	eventsAtOnce = 64 // handled before the schedule is looked at again, and requests sent before events
	// waitRawMax is the longest wait that keeps the runtime out of it: to give a
	// processor away and take it back costs more than the wait.
	waitRawMax = 2 * time.Millisecond
	sleepMax   = time.Millisecond       // the longest without being woken by answers
	lookEvery  = 200 * time.Microsecond // that answers are looked for between sleeps
	waitMax    = 50 * time.Millisecond  // the longest without a look at the context

	dialTimeout  = 5 * time.Second
	dialsAtOnce  = 64 // before the start
	failuresMax  = 20 // different texts
	gapsMax      = 1 << 16
	beginDelay   = 10 * time.Millisecond
	workersDelay = 50 * time.Millisecond // from the last worker being ready to the beginning
	workersReady = 30 * time.Second      // until workers have connected
	processesMax = 64

	slowPieceBytes  = 256 // that a slow reader takes at once
	slowPieceTime   = 20 * time.Millisecond
	slowWindowBytes = 4 << 10                // of its socket
	leaveBytesMax   = 1 << 10                // of an answer that a leaver reads
	leaveWaitFirst  = 100 * time.Millisecond // the wait of a leaver before any answer is known

	// lagMax is the lateness of the generator at p99 from which a run is void.
	lagMax = 5 * time.Millisecond
)
