package state

import (
	"math/rand/v2"
	"testing"

	"relay/store/catalog"
)

// The index finds what is there and nothing else, whatever came and went.
func TestShardIndex(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	var s shard
	there := map[uint64]int64{}
	for step := range 100_000 {
		growing := step/20_000%2 == 0
		id := rnd.Uint64N(3000) + 1
		place := s.find(id)
		want, ok := there[id]
		if (place >= 0) != ok || ok && s.groups[place].slots != want {
			t.Fatalf("step %d: group %d at %d, want %t %d", step, id, place, ok, want)
		}
		switch {
		case !ok && (growing || rnd.IntN(4) == 0):
			place = s.insert(0, &catalog.Group{ID: id, Limits: make([]catalog.Limit, 1+rnd.IntN(RulesMax))})
			there[id] = int64(step)
			s.groups[place].slots = int64(step)
		case ok && (!growing || rnd.IntN(4) == 0):
			s.drop(place)
			delete(there, id)
		}
		if s.live != len(there) {
			t.Fatalf("step %d: %d live, want %d", step, s.live, len(there))
		}
	}
}
