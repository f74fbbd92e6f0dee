package redis

import (
	"testing"
	"time"

	"relay/store/catalog"
	"relay/store/state"
)

// TestCount does not believe that the others have gone when the store was away
// as well.
func TestCount(t *testing.T) {
	var s Store
	s.count(3, 12)
	s.heardAt = time.Now()
	if s.count(1, 4); s.relays.Load() != 3 || s.loops.Load() != 12 {
		t.Fatalf("%d relays at once after an outage", s.relays.Load())
	}
	if s.count(4, 16); s.relays.Load() != 4 {
		t.Fatalf("%d relays, one more was heard of", s.relays.Load())
	}
	s.heardAt = time.Now().Add(-heartTTL)
	if s.count(1, 4); s.relays.Load() != 1 || s.loops.Load() != 4 {
		t.Fatalf("%d relays when the others had time to say that they live", s.relays.Load())
	}
}

// TestDoubtIsKept has slots told again that could not be told.
func TestDoubtIsKept(t *testing.T) {
	l := newLedger()
	g := &catalog.Group{ID: 1, Limits: []catalog.Limit{{Meter: catalog.Concurrency, Amount: 10}}}
	l.hold(1, 3)
	l.doubt(g)
	for range 3 {
		list := l.debts(10, nil, func(uint64) bool { return false })
		if len(list) != 1 || l.held(1) != 3 {
			t.Fatalf("%d groups to be told, %d slots", len(list), l.held(1))
		}
		if !l.keep(list[0]) {
			t.Fatal("forgotten")
		}
	}
	l.debts(10, nil, func(uint64) bool { return false })
	wants := &state.Op{Group: g}
	wants.Want[0] = 1
	if l.keep(wants); len(l.owing) != 0 {
		t.Fatal("an Op that only asked is told later")
	}
}
