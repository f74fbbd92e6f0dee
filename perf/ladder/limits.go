package ladder

import "time"

const (
	roundsMax    = 100
	stepsMax     = 100
	rateMax      = 200_000 // requests per second
	processesMax = 64      // of the generator
	keysMax      = 100_000
	holdMax      = time.Hour

	accountsUsual = 60

	sampleEvery = 200 * time.Millisecond // of a working set
	linkEvery   = time.Second            // looks for new files of a spool

	// Connections of the generator to one system: no more than the descriptors
	// of the system allow, which needs another one to the mock for each.
	descriptorsOwn  = 1000
	descriptorsEach = 2
	connectionsMost = 17_000
	connectionsMin  = 32
	connectionsOver = 1.5 // how many more than are in use at once are open before the start

	warmUpOver = 1.4 // how much longer than a request of a slow pace the load before a step lasts, at least

	// The ladder of a system ends at a step with more errors than this, or with
	// less than this served of what was sent, or when the generator was late in
	// so many steps in a row.
	errorsEnd = 0.05
	servedEnd = 0.9
	lateEnd   = 2

	evalsLeast = 5 // in a hold, of a store that is asked at all; its heart beats without

	peakShare = 0.95 // of its peak, that a system should serve past its capacity

	generatorMemoryShare = 0.25 // of the machine, that the requests of a generator may take
	variantsMade         = 1024 // requests that a generator makes before it starts
	keysUsed             = 512  // relay keys in them, of however many there are
)
