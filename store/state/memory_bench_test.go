package state

import "testing"

// BenchmarkMemory is an Op on a group of three rules, over a thousand groups.
func BenchmarkMemory(b *testing.B) {
	m := NewMemory(1)
	var ops []*Op
	for id := range uint64(1000) {
		ops = append(ops, &Op{Group: limited(id+1, perMinute(1<<40), perMinute(1<<40), slotsOf(1<<40))})
	}
	batch := make([]*Op, 1)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		o := ops[i*7%1000]
		o.Slots = 0
		o.Want, o.Need = [RulesMax]int64{1, 1, 1}, [RulesMax]int64{1, 1, 1}
		batch[0] = o
		m.Apply(int64(i)*1000, batch)
	}
}
