package state

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"relay/store/catalog"
)

const second = int64(time.Second)

func limited(id uint64, limits ...catalog.Limit) *catalog.Group {
	return &catalog.Group{ID: id, Name: "key/test", Limits: limits}
}

func perMinute(n int64) catalog.Limit {
	return catalog.Limit{Meter: catalog.Requests, Amount: n, Window: time.Minute}
}

func slotsOf(n int64) catalog.Limit { return catalog.Limit{Meter: catalog.Concurrency, Amount: n} }

// ask has an Op keep so many slots and want n units of every rule.
func ask(m *Memory, nowNs int64, o *Op, keep, n int64) *Op {
	o.Clear()
	o.Slots = keep
	for k := range o.Group.Limits {
		o.Want[k], o.Need[k] = n, n
	}
	m.Apply(nowNs, []*Op{o})
	return o
}

// TestMemoryManyGroups uses many groups once; when they are at rest, other use
// sweeps them out, and the arrays shrink with them.
func TestMemoryManyGroups(t *testing.T) {
	const n = manyGroups
	limits := []catalog.Limit{perMinute(60), slotsOf(10)}
	m := NewMemory(1)
	before := heapBytes()
	var o Op
	began, slowest := time.Now(), time.Duration(0)
	for id := range uint64(n) {
		at := time.Now()
		o = Op{Group: limited(id+1, limits...)}
		if ask(m, 0, &o, 0, 1); o.Got[0] != 1 {
			t.Fatalf("group %d denied", id)
		}
		ask(m, 0, &o, 0, 0)
		slowest = max(slowest, time.Since(at))
	}
	if m.Len() != n {
		t.Fatalf("%d groups, want %d: all are active", m.Len(), n)
	}
	perGroup := float64(heapBytes()-before) / n
	t.Logf("%v, slowest %v, %.0f bytes per group", time.Since(began), slowest, perGroup)
	if perGroup > 400 { // 250, and more under the race detector
		t.Errorf("%.0f bytes per group, want at most 400", perGroup)
	}

	// One group goes on being used. At most n/sweepSteps Ops and a turn through
	// the shards later the others have gone.
	o = Op{Group: limited(n+1, limits...)}
	for i := range int64(n/sweepSteps + shardCount) {
		ask(m, (10+i)*second, &o, 0, 1)
	}
	if m.Len() > 1 {
		t.Errorf("%d groups are left of those at rest", m.Len())
	}
	if left := int64(heapBytes()) - int64(before); left > 4<<20 {
		t.Errorf("%d bytes are left", left)
	}
	runtime.KeepAlive(m)
}

func heapBytes() uint64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}

// TestMemoryChurn has groups come and go: what is at rest is at most about as
// much as what is active.
func TestMemoryChurn(t *testing.T) {
	const perSecond = 4000
	m := NewMemory(1)
	peak := 0
	for i := range int64(20 * perSecond) {
		ask(m, i*second/perSecond, &Op{Group: limited(uint64(i+1), perMinute(60))}, 0, 1) // at rest after a second
		peak = max(peak, m.Len())
	}
	if peak > 3*perSecond {
		t.Errorf("%d groups at a time, %d of them active", peak, perSecond)
	}
}

// TestMemoryKeepsSlots sweeps no group of which slots are held.
func TestMemoryKeepsSlots(t *testing.T) {
	m := NewMemory(1)
	g := limited(1, slotsOf(1))
	held := ask(m, 0, &Op{Group: g}, 0, 1)
	for i := range int64(10_000) {
		ask(m, i*second, &Op{Group: limited(uint64(i+2), perMinute(1))}, 0, 1)
	}
	if ask(m, 1e6*second, &Op{Group: g}, 0, 1).Got[0] != 0 {
		t.Fatal("a held slot was swept out")
	}
	ask(m, 1e6*second, held, 0, 0)
	if ask(m, 1e6*second, &Op{Group: g}, 0, 1).Got[0] != 1 {
		t.Fatal("the slot did not come back")
	}
}

// TestMemorySweepIsUnseen makes no difference to a later Op by a sweep that has
// dropped a group at rest, even when its limits have changed meanwhile.
func TestMemorySweepIsUnseen(t *testing.T) {
	for swept, groups := range map[bool]int{false: 1, true: 0} {
		m := NewMemory(1)
		ask(m, 0, &Op{Group: limited(1, perMinute(10))}, 0, 10)
		nowNs := 60 * second
		if swept {
			m.sweep(nowNs, 10*shardCount)
		}
		if m.Len() != groups {
			t.Fatalf("%d groups, swept %t", m.Len(), swept)
		}
		hourly := catalog.Limit{Meter: catalog.Requests, Amount: 10, Window: time.Hour}
		o := ask(m, nowNs, &Op{Group: limited(1, hourly)}, 0, 8)
		if o.Got[0] != 8 || o.Left[0] != 2 {
			t.Errorf("swept %t: got %d, left %d", swept, o.Got[0], o.Left[0])
		}
	}
}

// TestMemoryDeniedLeavesNothing makes no state for what is denied or only looks.
func TestMemoryDeniedLeavesNothing(t *testing.T) {
	m := NewMemory(1)
	for id := range uint64(100) {
		if ask(m, 0, &Op{Group: limited(id+1, perMinute(10))}, 0, 11).RetryNs[0] != NeverNs {
			t.Fatal("granted")
		}
		ask(m, 0, &Op{Group: limited(id+1, perMinute(10), slotsOf(1))}, 0, 0)
	}
	if m.Len() != 0 {
		t.Errorf("%d groups, want 0", m.Len())
	}
}

// TestMemoryAllocs wants no allocation in the steady state.
func TestMemoryAllocs(t *testing.T) {
	m := NewMemory(1)
	rnd := rand.New(rand.NewPCG(1, 2))
	var ops []*Op
	for id := range uint64(1000) {
		ops = append(ops, &Op{Group: limited(id+1, perMinute(600), perMinute(6000), slotsOf(100))})
	}
	nowNs, batch := int64(0), make([]*Op, 0, 64)
	round := func() {
		nowNs += second / 1000
		for batch = batch[:0]; len(batch) < cap(batch); {
			o := ops[rnd.IntN(len(ops))]
			o.Clear()
			o.Want, o.Need, o.Slots = [RulesMax]int64{1, 1, 1}, [RulesMax]int64{1, 1, 1}, min(o.Lent(), int64(len(batch)%3))
			batch = append(batch, o)
		}
		m.Apply(nowNs, batch)
	}
	for range 5000 {
		round()
	}
	if n := testing.AllocsPerRun(1000, round); n != 0 {
		t.Errorf("%v allocations in the steady state", n)
	}
}

// TestMemoryTwoGenerations has two limits of the same group in use at once, as
// while a new catalog reaches one loop after the other: none loses or gains.
func TestMemoryTwoGenerations(t *testing.T) {
	m := NewMemory(1)
	slower := perMinute(60)
	slower.Window = 2 * time.Minute
	ops := [...]*Op{{Group: limited(1, perMinute(60))}, {Group: limited(1, slower)}}
	for i := range 60 {
		if ask(m, 0, ops[i%2], 0, 1).Got[0] != 1 {
			t.Fatalf("request %d denied", i)
		}
	}
	if o := ask(m, 0, ops[1], 0, 1); o.Got[0] != 0 || o.RetryNs[0] != 2*second {
		t.Fatalf("got %d, wait %d", o.Got[0], o.RetryNs[0])
	}
	for i := range int64(1000) { // looking alternately does not hold the refill up
		if nowNs := i * second / 500; ask(m, nowNs, ops[i%2], 0, 1).Got[0] == 1 {
			if nowNs < second {
				t.Fatalf("granted after %d ms", i*2)
			}
			return
		}
	}
	t.Fatal("never refilled")
}

// TestMemorySlotsTwice panics on a slot that comes back and was never lent.
func TestMemorySlotsTwice(t *testing.T) {
	m := NewMemory(1)
	o := ask(m, 0, &Op{Group: limited(1, slotsOf(3))}, 0, 1)
	twin := *o
	ask(m, 0, o, 0, 0)
	defer func() {
		if recover() == nil {
			t.Error("a slot came back that was not lent")
		}
	}()
	ask(m, 0, &twin, 0, 0)
}
