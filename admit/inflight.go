package admit

// An Inflight counts the requests in flight in the whole process against a
// hard cap. It is the one counter that all loops share.
type Inflight struct{}

// NewInflight makes a counter with a cap ≥ 1.
func NewInflight(limit int64) *Inflight { panic("BUG: not built") }

// Acquire takes a slot, or reports that there is none.
func (f *Inflight) Acquire() bool { panic("BUG: not built") }

// Release gives a slot back. More releases than acquires are a bug and panic.
func (f *Inflight) Release() { panic("BUG: not built") }

// Load is the number in flight and the cap.
func (f *Inflight) Load() (n, limit int64) { panic("BUG: not built") }

// HardCap is the cap that a setting and a memory limit give: setting if > 0,
// else as many as fit in 40 % of memoryBytes at RequestBudgetBytes each, at
// least InflightMin.
func HardCap(setting int64, memoryBytes int64) int64 { panic("BUG: not built") }
