package loop

import "sync" //loop:allow the one queue by which other goroutines reach a loop

// A Mailbox is a bounded queue that many goroutines put into and one owner
// takes from. It is how loops, lanes, the dialer and workers reach each other.
// The owner is woken once per batch: by the first Put behind a Take.
type Mailbox[T any] struct {
	mu    sync.Mutex //loop:allow held for an append or a swap, never across a call
	items []T
	woken bool // since the last Take
	max   int
	wake  func()
}

// NewMailbox makes a box for at most max items ≥ 1. wake is called by the
// first Put behind a Take, on the caller's goroutine, after the item is in; it
// must not block.
func NewMailbox[T any](max int, wake func()) *Mailbox[T] {
	return &Mailbox[T]{max: max, wake: wake}
}

// Put adds an item, or reports false when the box is full: the sender refuses
// what it was about as overloaded.
func (b *Mailbox[T]) Put(item T) bool {
	b.mu.Lock()
	if len(b.items) >= b.max {
		b.mu.Unlock()
		return false
	}
	b.items = append(b.items, item)
	wake := !b.woken
	b.woken = true
	b.mu.Unlock()
	if wake {
		b.wake()
	}
	return true
}

// Take empties the box into a batch. spare is an earlier batch whose memory
// becomes the next box; the owner alternates two slices, so a steady state
// allocates nothing.
func (b *Mailbox[T]) Take(spare []T) []T {
	clear(spare)
	b.mu.Lock()
	batch := b.items
	b.items = spare[:0]
	b.woken = false
	b.mu.Unlock()
	return batch
}

// Len is how many items wait.
func (b *Mailbox[T]) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.items)
}
