package admit

import (
	"container/heap"
	"time"

	"relay/store/catalog"
)

// An event is something that happens at a time.
type event struct {
	ns  int64
	seq int
	act func()
}

type eventQueue []event

func (q eventQueue) Len() int { return len(q) }
func (q eventQueue) Less(i, j int) bool {
	return q[i].ns < q[j].ns || q[i].ns == q[j].ns && q[i].seq < q[j].seq
}
func (q eventQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *eventQueue) Push(x any)   { *q = append(*q, x.(event)) }
func (q *eventQueue) Pop() any {
	was := *q
	e := was[len(was)-1]
	*q = was[:len(was)-1]
	return e
}

func (s *sim) after(ns int64, act func()) {
	s.seq++
	heap.Push(&s.events, event{s.nowNs + ns, s.seq, act})
}

// catalog makes groups of random limits, some small and some far away.
func (s *sim) catalog() (groups []*catalog.Group) {
	for id := range uint64(5) {
		g := group(id + 1)
		for range 1 + s.rnd.IntN(3) {
			g.Limits = append(g.Limits, s.limit())
		}
		groups = append(groups, g)
	}
	return groups
}

func (s *sim) limit() catalog.Limit {
	amount := []int64{int64(1 + s.rnd.IntN(20)), int64(100 + s.rnd.IntN(900)), int64(1000 + s.rnd.IntN(20_000))}[s.rnd.IntN(3)]
	l := catalog.Limit{Meter: catalog.Meter(s.rnd.IntN(6)), Amount: amount, Strategy: catalog.Strategy(s.rnd.IntN(6)), Reserve: catalog.Reserve(s.rnd.IntN(3))}
	switch l.Meter {
	case catalog.Concurrency:
		l.Strategy, l.Reserve = 0, 0
		return l
	case catalog.Requests:
		l.Reserve = 0
	default:
		l.Amount *= 100 // of which a request takes about so many
	}
	if l.Strategy == catalog.Calendar {
		l.Zone = time.UTC
		return l
	}
	l.Window = []time.Duration{50 * time.Millisecond, 700 * time.Millisecond, time.Second, 3 * time.Second, longWindow}[s.rnd.IntN(5)]
	if l.Window == longWindow && (l.Strategy == catalog.TokenBucket || l.Strategy == catalog.LeakyBucket) {
		l.Window = 5 * time.Second
	}
	return l
}

// longWindow is a window in which a whole run falls, so that what is left at
// its end tells what was counted.
const longWindow = 5000 * time.Hour

// newCatalog changes some groups; loops learn of it one after the other.
func (s *sim) newCatalog() {
	older := s.groups[len(s.groups)-1]
	var newer []*catalog.Group
	for _, g := range older {
		next := group(g.ID, append([]catalog.Limit(nil), g.Limits...)...)
		next.Generation = uint64(len(s.groups))
		switch s.rnd.IntN(4) {
		case 0:
			next.Limits[0].Amount = max(1, next.Limits[0].Amount*int64(1+s.rnd.IntN(4))/2)
		case 1:
			if s.kind.shapes {
				next.Limits = append(next.Limits[s.rnd.IntN(len(next.Limits)):], s.limit())
			}
		}
		newer = append(newer, next)
	}
	s.groups = append(s.groups, newer)
	for _, l := range s.loops {
		s.after(s.rnd.Int64N(50*milli), func() { l.generation++ })
	}
}
