package state

import "relay/store/catalog"

// A Store counts. One lane goroutine owns it.
type Store interface {
	// Apply works a batch off in order and fills in the answers. nowNs is Unix
	// time that never goes back; a store with a clock of its own does not read it.
	Apply(nowNs int64, batch []*Op)
}

// A Remote is a Store that may be out of reach. What an Op that it answers Lost
// had to say is told later, exactly once.
type Remote interface {
	Store

	// Reaches reports whether the next batch would ask the store about a group.
	// When it would not, Ops of the group come back Lost at once.
	Reaches(group uint64) bool

	// Owes reports whether the store has to be told something that no Op will
	// tell it: then a batch is due soon, an empty one if need be.
	Owes() bool

	// Held is how many slots of a group this process has: the sum of Lent over
	// all Ops of the group.
	Held(group uint64) int64

	// Moved says that Ops of a group have been lent n slots by somebody else, or
	// have given them back if n < 0. The store is told soon.
	Moved(g *catalog.Group, n int64)
}
