package admit

import (
	"fmt"
	"sync/atomic" //loop:allow one count for the whole process, or the cap would be split unevenly over the loops
)

// An Inflight counts the requests in flight in the whole process against a
// hard cap. It is the one counter that all loops share.
type Inflight struct {
	limit int64        // never changes
	_     [120]byte    // keeps the count on a cache line of its own
	n     atomic.Int64 //loop:allow two uncontended nanoseconds per request, and no loop waits for another
	_     [120]byte
}

// NewInflight makes a counter with a cap ≥ 1.
func NewInflight(limit int64) *Inflight {
	if limit < 1 {
		panic(fmt.Sprintf("BUG: in-flight cap of %d", limit))
	}
	return &Inflight{limit: limit}
}

// Acquire takes a slot, or reports that there is none.
func (f *Inflight) Acquire() bool {
	// Compare and swap, not add and undo: an add past the cap would for a
	// moment refuse others for whom there is room.
	for {
		n := f.n.Load()
		if n >= f.limit {
			return false
		}
		if f.n.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Release gives a slot back. More releases than acquires are a bug and panic.
func (f *Inflight) Release() {
	if n := f.n.Add(-1); n < 0 {
		f.n.Add(1) // so that the count of the others stays true
		panic("BUG: more requests released than acquired")
	}
}

// Load is the number in flight and the cap.
func (f *Inflight) Load() (n, limit int64) { return f.n.Load(), f.limit }

// HardCap is the cap that a setting and a memory limit give: setting if > 0,
// else as many as fit in 40 % of memoryBytes at RequestBudgetBytes each, at
// least InflightMin.
func HardCap(setting int64, memoryBytes int64) int64 {
	if setting > 0 {
		return setting
	}
	return max(memoryBytes/5*2/RequestBudgetBytes, InflightMin)
}
