package state_test

import (
	"testing"

	"relay/store/state"
	"relay/store/state/statetest"
)

func TestMemory(t *testing.T) {
	clock := statetest.NewFakeClock()
	statetest.Run(t, statetest.Subject{
		New:          func(*testing.T) state.Store { return state.NewMemory(statetest.Loops) },
		Clock:        clock,
		ResolutionNs: 1,
	})
}
