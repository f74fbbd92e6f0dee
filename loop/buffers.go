package loop

import "math/bits"

// buffers keeps byte slices of a loop for reuse, in classes of powers of two,
// and charges what is out against the loop's byte budget. Owner: the loop.
type buffers struct {
	free   [pooledClassMax + 1][][]byte
	kept   int   // bytes in free
	used   int64 // bytes out
	budget int64
}

// take returns an empty slice with room for at least n bytes and charges its
// capacity. It never fails: who may be refused asks room first.
func (b *buffers) take(n int) []byte {
	class := classOf(n)
	if class > pooledClassMax {
		p := make([]byte, 0, n)
		b.used += int64(cap(p))
		return p
	}
	list := b.free[class]
	if len(list) == 0 {
		b.used += 1 << class
		return make([]byte, 0, 1<<class)
	}
	p := list[len(list)-1]
	b.free[class] = list[:len(list)-1]
	b.kept -= cap(p)
	b.used += int64(cap(p))
	return p
}

// give takes a slice back that take or grow returned; nil is harmless.
func (b *buffers) give(p []byte) {
	n := cap(p)
	if n == 0 {
		return
	}
	b.used -= int64(n)
	class := classOf(n)
	if class > pooledClassMax || 1<<class != n || b.kept+n > pooledBytesMax {
		return
	}
	b.kept += n
	b.free[class] = append(b.free[class], p[:0])
}

// grow returns p with room for more bytes behind its end. The old slice is
// given back when a new one was needed.
func (b *buffers) grow(p []byte, more int) []byte {
	if cap(p)-len(p) >= more {
		return p
	}
	need := len(p) + more
	if double := 2 * cap(p); double > need {
		need = double
	}
	q := append(b.take(need), p...)
	b.give(p)
	return q
}

// recharge tells the budget that p, which came from take, was grown by append
// since: its capacity was was.
func (b *buffers) recharge(p []byte, was int) { b.used += int64(cap(p) - was) }

// room reports whether n more bytes fit in the budget.
func (b *buffers) room(n int64) bool { return b.used+n <= b.budget }

// tight reports that more than half of the budget is out.
func (b *buffers) tight() bool { return b.used > b.budget/2 }

func classOf(n int) int {
	if n <= 1<<pooledClassMin {
		return pooledClassMin
	}
	return bits.Len(uint(n - 1))
}

// stock keeps objects of one kind for reuse. Owner: the loop.
type stock[T any] struct{ free []*T }

// take returns an object in whatever state it was given back.
func (s *stock[T]) take() *T {
	n := len(s.free)
	if n == 0 {
		return new(T)
	}
	it := s.free[n-1]
	s.free[n-1] = nil
	s.free = s.free[:n-1]
	return it
}

func (s *stock[T]) give(it *T) {
	if len(s.free) < exchangesKept {
		s.free = append(s.free, it)
	}
}
