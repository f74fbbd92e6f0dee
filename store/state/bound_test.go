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

func ask(m *Memory, nowNs int64, groups ...*catalog.Group) *Reservation {
	r := &Reservation{Count: len(groups)}
	copy(r.Groups[:], groups)
	m.Apply(nowNs, []*Reservation{r})
	return r
}

// Many groups are used once; when they are at rest, other use sweeps them
// out, and the arrays shrink with them.
func TestMemoryManyGroups(t *testing.T) {
	const n = manyGroups
	limits := []catalog.Limit{perMinute(60), slotsOf(10)}
	m := NewMemory()
	before := heapBytes()
	r := &Reservation{Count: 1}
	batch := []*Reservation{r}
	start := time.Now()
	var slowest time.Duration
	for id := range uint64(n) {
		began := time.Now()
		r.Verb, r.Groups[0] = Reserve, limited(id+1, limits...)
		m.Apply(0, batch)
		if !r.Granted {
			t.Fatalf("group %d denied", id)
		}
		r.Verb = Release
		m.Apply(0, batch)
		slowest = max(slowest, time.Since(began))
	}
	if m.Len() != n {
		t.Fatalf("%d groups, want %d: all are active", m.Len(), n)
	}
	perGroup := float64(heapBytes()-before) / n
	t.Logf("%v, slowest %v, %.0f bytes per group", time.Since(start), slowest, perGroup)
	if perGroup > 256 {
		t.Errorf("%.0f bytes per group, want at most 256", perGroup)
	}

	// One group goes on being used. At most n/sweepSteps operations and a turn
	// through the shards later the others have gone.
	one := limited(n+1, limits...)
	r.Groups[0] = one
	for i := range n/sweepSteps + shardCount {
		r.Verb = Reserve
		m.Apply(10*second+int64(i)*second, batch)
		r.Verb = Release
		m.Apply(10*second+int64(i)*second, batch)
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

// Groups that come and go never pile up: what is at rest is at most about as
// much as what is active.
func TestMemoryChurn(t *testing.T) {
	m := NewMemory()
	r := &Reservation{Count: GroupsMax}
	batch := []*Reservation{r}
	id, peak := uint64(0), 0
	for i := range int64(20_000) {
		for k := range GroupsMax {
			id++
			r.Groups[k] = limited(id, perMinute(60)) // at rest after one second
		}
		m.Apply(i*second/1000, batch)
		peak = max(peak, m.Len())
	}
	const active = 1000 * GroupsMax // requests per second × groups
	if peak > 3*active {
		t.Errorf("%d groups at a time, %d of them active", peak, active)
	}
}

func TestMemoryKeepsWhatIsHeld(t *testing.T) {
	m := NewMemory()
	g := limited(1, slotsOf(1))
	held := ask(m, 0, g)
	for i := range int64(10_000) {
		ask(m, i*second, limited(uint64(i+2), perMinute(1)))
	}
	if ask(m, 1e6*second, g).Granted {
		t.Fatal("a held slot was swept out")
	}
	held.Verb = Release
	m.Apply(1e6*second, []*Reservation{held})
	if !ask(m, 1e6*second, g).Granted {
		t.Fatal("the slot did not come back")
	}
}

// It makes no difference to a later request whether the sweep has dropped a
// group at rest, even when its limits have changed meanwhile.
func TestMemorySweepIsUnseen(t *testing.T) {
	for _, sweep := range []bool{false, true} {
		m := NewMemory()
		for range 10 {
			ask(m, 0, limited(1, perMinute(10)))
		}
		nowNs := 60 * second
		if sweep {
			m.sweep(nowNs, 10*shardCount)
		}
		if got := m.Len(); got != map[bool]int{false: 1, true: 0}[sweep] {
			t.Fatalf("%d groups, sweep %t", got, sweep)
		}
		slower := limited(1, catalog.Limit{Meter: catalog.Requests, Amount: 10, Window: time.Hour})
		granted := 0
		for range 20 {
			if ask(m, nowNs, slower).Granted {
				granted++
			}
		}
		if granted != 10 {
			t.Errorf("sweep %t: %d granted, want 10", sweep, granted)
		}
	}
}

func TestMemoryDeniedLeavesNothing(t *testing.T) {
	m := NewMemory()
	full := limited(1, slotsOf(1))
	ask(m, 0, full)
	for id := range uint64(100) {
		if r := ask(m, 0, limited(id+2, perMinute(1)), full); r.Granted {
			t.Fatal("granted")
		}
	}
	if m.Len() != 1 {
		t.Errorf("%d groups, want 1", m.Len())
	}
}

func TestMemoryAllocs(t *testing.T) {
	m := NewMemory()
	rnd := rand.New(rand.NewPCG(1, 2))
	var groups []*catalog.Group
	for id := range uint64(1000) {
		groups = append(groups, limited(id+1, perMinute(600), perMinute(6000), slotsOf(100)))
	}
	batch := make([]*Reservation, 16)
	for i := range batch {
		batch[i] = &Reservation{Count: GroupsMax}
	}
	nowNs := int64(0)
	round := func() {
		nowNs += second / 1000
		for _, r := range batch {
			r.Verb = Reserve
			for k := range r.Groups {
				r.Groups[k] = groups[rnd.IntN(len(groups))]
			}
		}
		m.Apply(nowNs, batch)
		for _, r := range batch {
			r.Verb = Release
		}
		m.Apply(nowNs, batch)
	}
	for range 5000 {
		round()
	}
	if n := testing.AllocsPerRun(1000, round); n != 0 {
		t.Errorf("%v allocations in steady state", n)
	}
}

// Two limits of the same group in use at once, as while a new catalog reaches
// one loop after the other, neither lose nor gain requests.
func TestMemoryTwoGenerations(t *testing.T) {
	m := NewMemory()
	older, newer := limited(1, perMinute(60)), limited(1, catalog.Limit{Meter: catalog.Requests, Amount: 60, Window: 2 * time.Minute})
	for i := range 30 {
		if !ask(m, 0, [...]*catalog.Group{older, newer}[i%2]).Granted {
			t.Fatalf("request %d denied", i)
		}
	}
	for range 30 {
		if !ask(m, 0, newer).Granted {
			t.Fatal("requests were lost")
		}
	}
	if r := ask(m, 0, newer); r.Granted || r.RetryNs != 2*second {
		t.Fatalf("granted %t, wait %d", r.Granted, r.RetryNs)
	}
	for i := range int64(1000) { // looking alternately does not hold the refill up
		if r := ask(m, i*2*second/1000, [...]*catalog.Group{older, newer}[i%2]); r.Granted {
			if i*2*second/1000 < second {
				t.Fatalf("granted after %d ms", i*2)
			}
			return
		}
	}
	t.Fatal("never refilled")
}

func TestReservationUsedTwice(t *testing.T) {
	m := NewMemory()
	r := ask(m, 0, limited(1, slotsOf(1)))
	defer func() {
		if recover() == nil {
			t.Error("a reservation that holds slots was reserved again")
		}
	}()
	m.Apply(0, []*Reservation{r})
}
