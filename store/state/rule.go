package state

import (
	"fmt"

	"relay/store/catalog"
)

// A rule is the state of one limit. What is configured comes with each Op, so
// a new catalog needs no change here; the shape is kept to see that the rule at
// this place became another one. Zero is a rule at rest.
type rule struct {
	level    level    // buckets: what is in use
	count    int64    // windows: units of this one; may be more than the amount; buckets: the lowest level of this span, in units
	before   int64    // sliding windows: units of the one before; calendars: their end, Unix ns; buckets: lowest level of the span before
	at       int64    // windows: index on the grid, or Unix ns of the beginning; 0 = none; buckets: number of the span
	lent     [2]int64 // buckets: units lent in this epoch and in the one before
	epoch    int64    // of lent[0], in LeaseNs
	windowNs int64    // that level and at are counted by
	amount   int64    // of the limit when it was last seen
	meter    catalog.Meter
	strategy catalog.Strategy
}

// advance brings the rule to now and to the limit as it is configured. A limit
// of another shape starts anew; another amount keeps what was counted, and so
// does another window of a bucket.
func (u *rule) advance(elapsedNs, nowNs int64, l *catalog.Limit, b Bounds) {
	windowNs := int64(l.Window)
	if u.meter != l.Meter || u.strategy != l.Strategy {
		*u = rule{meter: l.Meter, strategy: l.Strategy, windowNs: windowNs}
	}
	switch {
	case l.Meter == catalog.Concurrency:
	case isBucket(l):
		u.level = u.level.rescale(u.windowNs, windowNs)
		if l.Amount < u.amount {
			u.level = u.level.cap(l.Amount, windowNs)
		}
		u.level = u.level.drain(elapsedNs, l.Amount)
		u.age(nowNs)
		u.floor(windowNs)
		u.ebb(nowNs, windowNs)
	default:
		if u.windowNs != windowNs {
			u.count, u.before, u.at = 0, 0, 0
		}
		u.turn(nowNs, l, b)
	}
	u.windowNs, u.amount = windowNs, l.Amount
}

// floor counts units that were lent as in use until their lease has ended: else
// the bucket would refill behind them, and a burst could be larger than the
// bucket.
func (u *rule) floor(windowNs int64) {
	if n := u.lent[0] + u.lent[1]; n > 0 {
		u.level = u.level.atLeast(n, windowNs)
	}
}

// age moves the count of lent units on by epochs.
func (u *rule) age(nowNs int64) {
	switch epoch := nowNs / LeaseNs; {
	case epoch == u.epoch+1:
		u.lent = [2]int64{0, u.lent[0]}
		u.epoch = epoch
	case epoch > u.epoch:
		u.lent = [2]int64{}
		u.epoch = epoch
	}
}

// ebb notes how low the bucket has become. It only falls between Ops, so what it
// is now is the lowest since the last one, in whichever span that was.
func (u *rule) ebb(nowNs, windowNs int64) {
	units := u.level.floorDiv(uint64(windowNs))
	switch span := nowNs / EbbNs; {
	case span <= u.at:
		u.count = min(u.count, units)
	case span == u.at+1:
		u.count, u.before, u.at = units, min(u.count, units), span
	default:
		u.count, u.before, u.at = units, units, span
	}
}

// turn goes to the window of now.
func (u *rule) turn(nowNs int64, l *catalog.Limit, b Bounds) {
	switch l.Strategy {
	case catalog.FixedWindow:
		if index := nowNs / int64(l.Window); index > u.at {
			u.count, u.at = 0, index
		}
	case catalog.SlidingWindow:
		switch index := nowNs / int64(l.Window); {
		case index == u.at+1:
			u.count, u.before, u.at = 0, u.count, index
		case index > u.at:
			u.count, u.before, u.at = 0, 0, index
		}
	case catalog.SessionWindow:
		if nowNs-u.at >= int64(l.Window) {
			u.count, u.at = 0, 0
		}
	case catalog.Calendar:
		// A loop's clock may be late or ahead. A period of another limit, as of a
		// month after one of a day, waits for the end of the one that is counted.
		ended := nowNs >= u.before
		if nowNs < b.FromNs || nowNs >= b.UntilNs || b.FromNs <= u.at && !ended {
			return
		}
		if ended { // grants before its end are in no count any more
			b.FromNs = max(b.FromNs, u.before)
		}
		u.count, u.at, u.before = 0, b.FromNs, b.UntilNs
	default:
		panic(fmt.Sprintf("BUG: no counter for a limit of %d %s in %v, strategy %d", l.Amount, l.Meter, l.Window, l.Strategy))
	}
}

// overlap is how much of the window before still counts, rounded up.
func (u *rule) overlap(nowNs int64, l *catalog.Limit) int64 {
	if u.before == 0 || l.Strategy != catalog.SlidingWindow {
		return 0
	}
	windowNs := int64(l.Window)
	leftNs := (u.at+1)*windowNs - nowNs
	return product(uint64(u.before), uint64(leftNs)).ceilDiv(uint64(windowNs))
}

// available is how many units the limit could grant now; 0 in debt.
func (u *rule) available(nowNs int64, l *catalog.Limit) int64 {
	if isBucket(l) {
		return u.level.units(l.Amount, int64(l.Window))
	}
	if l.Strategy == catalog.Calendar && nowNs >= u.before {
		return 0 // nobody has told of the period that is now
	}
	return max(0, l.Amount-u.count-u.overlap(nowNs, l))
}

// used is how many units count now, rounded up: those that available lacks, and
// the debt.
func (u *rule) used(nowNs int64, l *catalog.Limit) int64 {
	switch {
	case l.Meter == catalog.Concurrency:
		return 0
	case isBucket(l):
		return u.level.ceilDiv(uint64(l.Window))
	case l.Strategy == catalog.Calendar && nowNs >= u.before:
		return 0
	}
	return u.count + u.overlap(nowNs, l)
}

// take counts n units.
func (u *rule) take(n, nowNs int64, l *catalog.Limit) {
	if isBucket(l) {
		u.level = u.level.add(n, int64(l.Window))
		return
	}
	u.count += n
	if l.Strategy == catalog.SessionWindow && u.at == 0 && n > 0 {
		u.at = nowNs
	}
}

// lend counts n units as lent.
func (u *rule) lend(n, nowNs int64, l *catalog.Limit) {
	u.take(n, nowNs, l)
	if isBucket(l) {
		u.lent[0] += n
	}
}

// giveBack takes units of an earlier grant off again, if they are still
// counted: what was granted in a window that has passed is in no count.
func (u *rule) giveBack(r Return, nowNs int64, l *catalog.Limit) {
	windowNs := int64(l.Window)
	switch {
	case isBucket(l):
		n := u.undrained(r, nowNs, l)
		u.level = u.level.sub(n, windowNs)
		u.count, u.before = max(0, u.count-n), max(0, u.before-n)
		u.floor(windowNs)
	case l.Strategy == catalog.FixedWindow && r.GrantNs/windowNs == u.at,
		l.Strategy == catalog.SlidingWindow && r.GrantNs/windowNs == u.at,
		l.Strategy == catalog.SessionWindow && r.GrantNs >= u.at,
		l.Strategy == catalog.Calendar && r.GrantNs >= u.at:
		u.count = max(0, u.count-r.Units)
	case l.Strategy == catalog.SlidingWindow && r.GrantNs/windowNs == u.at-1:
		u.before = max(0, u.before-r.Units)
	}
}

// undrained is how many units of a return are in the bucket still, at least.
// What has drained since the grant must not come off again, or it would make
// room for more than a bucket at once. A bucket that was busy all the time has
// drained what others have used, and all n are there; one that became empty has
// none. So it is the lowest level since the grant, as far as it is known, and
// never less than what could not drain in the time.
func (u *rule) undrained(r Return, nowNs int64, l *catalog.Limit) int64 {
	low := int64(0)
	switch span := r.GrantNs / EbbNs; {
	case span >= u.at:
		low = u.count
	case span == u.at-1:
		low = min(u.count, u.before)
	}
	drained := product(uint64(max(0, nowNs-r.GrantNs)), uint64(l.Amount))
	all := product(uint64(r.Units), uint64(l.Window))
	return max(min(r.Units, low), all.minus(drained).floorDiv(uint64(l.Window)))
}

// retryNs is how long until n units fit, at most the amount; 0 = now.
func (u *rule) retryNs(n, nowNs int64, l *catalog.Limit) int64 {
	windowNs := int64(l.Window)
	if isBucket(l) {
		return u.level.waitNs(n, l.Amount, windowNs)
	}
	if n <= u.available(nowNs, l) {
		return 0
	}
	switch l.Strategy {
	case catalog.FixedWindow:
		return (u.at+1)*windowNs - nowNs
	case catalog.SlidingWindow:
		return u.slideNs(n, nowNs, l)
	case catalog.SessionWindow:
		return u.at + windowNs - nowNs
	}
	return max(1, u.before-nowNs)
}

// slideNs is how long until n units fit in a sliding window: within this window
// as the one before slides out, or in the next as this one does.
func (u *rule) slideNs(n, nowNs int64, l *catalog.Limit) int64 {
	windowNs, endNs := int64(l.Window), (u.at+1)*int64(l.Window)
	if free := l.Amount - n - u.count; free >= 0 {
		// before × left/window ≤ free; the least left that may remain.
		leftNs := product(uint64(free), uint64(windowNs)).floorDiv(uint64(u.before))
		return endNs - leftNs - nowNs
	}
	free := l.Amount - n
	leftNs := min(product(uint64(free), uint64(windowNs)).floorDiv(uint64(u.count)), windowNs)
	return endNs + windowNs - leftNs - nowNs
}

// restNs is how long until the rule says the same as no rule at all.
func (u *rule) restNs(nowNs int64, l *catalog.Limit) int64 {
	windowNs := int64(l.Window)
	switch {
	case l.Meter == catalog.Concurrency:
		return 0
	case isBucket(l):
		ns := u.level.restNs(l.Amount)
		if u.lent != [2]int64{} {
			ns = max(ns, (u.epoch+2)*LeaseNs-nowNs)
		}
		return ns
	case l.Strategy == catalog.SessionWindow:
		return max(0, u.at+windowNs-nowNs)
	case u.count == 0 && (u.before == 0 || l.Strategy == catalog.Calendar):
		return 0
	case l.Strategy == catalog.SlidingWindow && u.count > 0:
		return (u.at+2)*windowNs - nowNs
	case l.Strategy == catalog.FixedWindow, l.Strategy == catalog.SlidingWindow:
		return (u.at+1)*windowNs - nowNs
	}
	return max(0, u.before-nowNs)
}

// isBucket tells the two kinds of time limits apart.
func isBucket(l *catalog.Limit) bool {
	return l.Strategy == catalog.TokenBucket || l.Strategy == catalog.LeakyBucket
}
