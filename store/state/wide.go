package state

import "math/bits"

// wide is an unsigned integer of 128 bits. The level of a bucket is a number
// of requests (53 bits) times nanoseconds (55 bits), so 64 would not do.
type wide struct{ hi, lo uint64 }

func product(x, y uint64) wide {
	hi, lo := bits.Mul64(x, y)
	return wide{hi, lo}
}

func (w wide) isZero() bool { return w == wide{} }

func (w wide) atMost(o wide) bool { return w.hi < o.hi || w.hi == o.hi && w.lo <= o.lo }

func (w wide) plus(o wide) wide {
	lo, carry := bits.Add64(w.lo, o.lo, 0)
	hi, _ := bits.Add64(w.hi, o.hi, carry)
	return wide{hi, lo}
}

// minus is w - o, or zero when o is the greater.
func (w wide) minus(o wide) wide {
	if w.atMost(o) {
		return wide{}
	}
	lo, borrow := bits.Sub64(w.lo, o.lo, 0)
	hi, _ := bits.Sub64(w.hi, o.hi, borrow)
	return wide{hi, lo}
}

// ceilDivMost is w / d, rounded up, and at most so many.
func (w wide) ceilDivMost(d uint64, most int64) int64 {
	if w.hi >= d {
		return most
	}
	q, rest := bits.Div64(w.hi, w.lo, d)
	if q >= uint64(most) {
		return most
	}
	if rest != 0 {
		q++
	}
	return int64(q)
}

// ceilDiv is w / d, rounded up. The quotient must fit in 63 bits.
func (w wide) ceilDiv(d uint64) int64 {
	q, rest := bits.Div64(w.hi, w.lo, d)
	if rest != 0 {
		q++
	}
	return int64(q)
}

// floorDiv is w / d, rounded down. The quotient must fit in 63 bits.
func (w wide) floorDiv(d uint64) int64 {
	q, _ := bits.Div64(w.hi, w.lo, d)
	return int64(q)
}
