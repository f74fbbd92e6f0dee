package state

// Memory counts in this process. It is not safe for concurrent use: one lane
// goroutine owns it.
type Memory struct{}

// NewMemory makes an empty store.
func NewMemory() *Memory { panic("BUG: not built") }

// Apply works a batch off in order and fills in the answers. nowNs is a
// monotonic clock. Group state that has returned to its rest is dropped, so
// memory is bounded by what is active.
func (m *Memory) Apply(nowNs int64, batch []*Reservation) { panic("BUG: not built") }
