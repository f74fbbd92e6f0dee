package statetest

const (
	randomRuns  = 30   // seeds of the comparison with the model
	randomSteps = 400  // operations of one run
	liveMax     = 40   // grants that a run has not settled, at a time
	epochNs     = 1e15 // of the fake clock: a day in January 1970
)
