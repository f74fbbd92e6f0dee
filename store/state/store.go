package state

// A Store counts. One lane goroutine owns it.
type Store interface {
	// Apply works a batch off in order and fills in the answers. nowNs is a
	// monotonic clock; a store with a clock of its own does not read it.
	Apply(nowNs int64, batch []*Reservation)
}
