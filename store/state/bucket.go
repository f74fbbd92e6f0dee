package state

// A level is how much of a token bucket is in use, counted in requests times
// nanoseconds of the window: a request adds one window, and every nanosecond
// drains one amount. So the bucket is full at amount × window, all sums are
// exact for every amount, and the theoretical arrival time of the generic cell
// rate algorithm is now + level/amount.
type level struct{ wide }

// drain is the level after elapsedNs ≥ 0.
func (l level) drain(elapsedNs, amount int64) level {
	if l.isZero() {
		return l
	}
	return level{l.minus(product(uint64(elapsedNs), uint64(amount)))}
}

// add is the level after one more request.
func (l level) add(windowNs int64) level {
	return level{l.plus(wide{0, uint64(windowNs)})}
}

// cap is the level of the bucket when it was made smaller: at most full. An
// operator who lowers a limit wants the new limit, not a debt from the old.
func (l level) cap(amount, windowNs int64) level {
	if full := product(uint64(amount), uint64(windowNs)); full.atMost(l.wide) {
		return level{full}
	}
	return l
}

// rescale counts the same requests by another window. It rounds up to the next
// unit, which is less than a nanosecond's drain.
func (l level) rescale(fromNs, toNs int64) level {
	if l.isZero() || fromNs == toNs {
		return l
	}
	requests := l.wide
	q := requests.ceilDiv(uint64(fromNs)) - 1 // whole requests, at least
	part := requests.minus(product(uint64(q), uint64(fromNs)))
	part = product(part.lo, uint64(toNs)) // part ≤ fromNs
	return level{product(uint64(q), uint64(toNs)).plus(wide{0, uint64(part.ceilDiv(uint64(fromNs)))})}
}

// waitNs is how long until one more request fits; 0 = now.
func (l level) waitNs(amount, windowNs int64) int64 {
	over := l.add(windowNs).minus(product(uint64(amount), uint64(windowNs)))
	if over.isZero() {
		return 0
	}
	return over.ceilDiv(uint64(amount))
}

// restNs is how long until the bucket is empty of requests.
func (l level) restNs(amount int64) int64 {
	if l.isZero() {
		return 0
	}
	return l.ceilDiv(uint64(amount))
}
