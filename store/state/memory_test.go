package state_test

import (
	"testing"

	"relay/store/state"
	"relay/store/state/statetest"
)

func TestMemoryConforms(t *testing.T) {
	statetest.Run(t, statetest.Subject{
		New:          func(*testing.T) state.Store { return state.NewMemory() },
		Clock:        statetest.NewFakeClock(),
		ResolutionNs: 1,
	})
}
