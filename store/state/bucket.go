package state

// A level is how much of a bucket is in use, counted in units times
// nanoseconds of the window: a unit adds one window, and every nanosecond
// drains one amount. So the bucket is full at amount × window, all sums are
// exact for every amount, and the theoretical arrival time of the generic cell
// rate algorithm is now + level/amount. Above full it is a debt.
type level struct{ wide }

// drain is the level after elapsedNs ≥ 0.
func (l level) drain(elapsedNs, amount int64) level {
	if l.isZero() {
		return l
	}
	return level{l.minus(product(uint64(elapsedNs), uint64(amount)))}
}

// add is the level with n units more.
func (l level) add(n, windowNs int64) level {
	return level{l.plus(product(uint64(n), uint64(windowNs)))}
}

// sub is the level with n units less, at least zero.
func (l level) sub(n, windowNs int64) level {
	return level{l.minus(product(uint64(n), uint64(windowNs)))}
}

// atLeast is the level, or that of n units if it is higher.
func (l level) atLeast(n, windowNs int64) level {
	if floor := product(uint64(n), uint64(windowNs)); l.atMost(floor) {
		return level{floor}
	}
	return l
}

// cap is the level of the bucket when it was made smaller: at most full. An
// operator who lowers a limit wants the new limit, not a debt from the old.
func (l level) cap(amount, windowNs int64) level {
	if full := product(uint64(amount), uint64(windowNs)); full.atMost(l.wide) {
		return level{full}
	}
	return l
}

// rescale counts the same units by another window. It rounds up to the next
// unit of the level, which is less than a nanosecond's drain.
func (l level) rescale(fromNs, toNs int64) level {
	if l.isZero() || fromNs == toNs {
		return l
	}
	units := l.wide
	q := units.ceilDiv(uint64(fromNs)) - 1 // whole units, at least
	part := units.minus(product(uint64(q), uint64(fromNs)))
	part = product(part.lo, uint64(toNs)) // part ≤ fromNs
	return level{product(uint64(q), uint64(toNs)).plus(wide{0, uint64(part.ceilDiv(uint64(fromNs)))})}
}

// units is how many whole units fit; 0 in debt.
func (l level) units(amount, windowNs int64) int64 {
	free := product(uint64(amount), uint64(windowNs)).minus(l.wide)
	return free.floorDiv(uint64(windowNs))
}

// waitNs is how long until n more units fit; 0 = now.
func (l level) waitNs(n, amount, windowNs int64) int64 {
	over := l.add(n, windowNs).minus(product(uint64(amount), uint64(windowNs)))
	if over.isZero() {
		return 0
	}
	return over.ceilDivMost(uint64(amount), WaitMaxNs)
}

// restNs is how long until the bucket is empty of units.
func (l level) restNs(amount int64) int64 {
	if l.isZero() {
		return 0
	}
	return l.ceilDivMost(uint64(amount), WaitMaxNs)
}
