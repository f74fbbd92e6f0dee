package state

import (
	"testing"

	"relay/store/catalog"
)

// BenchmarkMemory is a request of two groups, three rules each, reserved and
// released, over a thousand groups.
func BenchmarkMemory(b *testing.B) {
	m := NewMemory()
	var groups []*catalog.Group
	for id := range uint64(1000) {
		groups = append(groups, limited(id+1, perMinute(1<<40), perMinute(1<<40), slotsOf(1<<40)))
	}
	r := &Reservation{Count: 2}
	batch := []*Reservation{r}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		r.Verb, r.Groups[0], r.Groups[1] = Reserve, groups[i%1000], groups[(i*7+1)%1000]
		m.Apply(int64(i)*1000, batch)
		r.Verb = Release
		m.Apply(int64(i)*1000, batch)
	}
}
