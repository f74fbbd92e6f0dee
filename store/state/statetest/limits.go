package statetest

const (
	randomRuns  = 30   // seeds of the comparison with the model
	randomSteps = 400  // operations of one run
	liveMax     = 40   // reservations that a run holds at a time
	epochNs     = 1e15 // of the fake clock: a day in January 1970
)
