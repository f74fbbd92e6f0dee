package statetest

import (
	"math/big"

	"relay/store/catalog"
	"relay/store/state"
)

// A grant is units that were counted at a time.
type grant struct {
	atNs  int64
	units int64
}

// A ruleModel is what a limit means, in plain arithmetic over all grants that
// were ever made.
type ruleModel struct {
	limit  catalog.Limit
	grants []grant
	// Of buckets: what is in use, as a fraction, at a time.
	level *big.Rat
	nowNs int64
	ebbs  []grant // whole units in use, whenever somebody looked
}

func newRuleModel(l catalog.Limit) *ruleModel {
	return &ruleModel{limit: l, level: new(big.Rat)}
}

func (m *ruleModel) isBucket() bool {
	return m.limit.Strategy == catalog.TokenBucket || m.limit.Strategy == catalog.LeakyBucket
}

// drain brings a bucket to now.
func (m *ruleModel) drain(nowNs int64) {
	m.level.Sub(m.level, m.drop(nowNs-m.nowNs))
	if m.level.Sign() < 0 {
		m.level.SetInt64(0)
	}
	m.nowNs = nowNs
	m.ebbs = append(m.ebbs, grant{nowNs, new(big.Int).Quo(m.level.Num(), m.level.Denom()).Int64()})
}

// undrained is how many units of a return are in the bucket still: what could
// not drain since the grant, or the lowest level since the span of the grant, if
// that is this one or the one before.
func (m *ruleModel) undrained(nowNs int64, r state.Return) int64 {
	low, span := r.Units, r.GrantNs/state.EbbNs
	for _, e := range m.ebbs {
		if e.atNs/state.EbbNs >= span {
			low = min(low, e.units)
		}
	}
	if span < nowNs/state.EbbNs-1 {
		low = 0
	}
	stays := new(big.Rat).Sub(new(big.Rat).SetInt64(r.Units), m.drop(nowNs-r.GrantNs))
	if stays.Sign() < 0 {
		return low
	}
	return max(low, new(big.Int).Quo(stays.Num(), stays.Denom()).Int64())
}

// drop is how much drains in so many nanoseconds.
func (m *ruleModel) drop(ns int64) *big.Rat {
	return new(big.Rat).Mul(big.NewRat(m.limit.Amount, int64(m.limit.Window)), new(big.Rat).SetInt64(ns))
}

// beginNs is the beginning of the window of now.
func (m *ruleModel) beginNs(nowNs int64) int64 {
	windowNs := int64(m.limit.Window)
	if m.limit.Strategy != catalog.SessionWindow {
		return nowNs - nowNs%windowNs
	}
	begin := nowNs
	for i, g := range m.grants { // the sessions one after the other
		if i == 0 || g.atNs >= begin+windowNs {
			begin = g.atNs
		}
	}
	if len(m.grants) == 0 || nowNs >= begin+windowNs {
		return nowNs
	}
	return begin
}

// used is what counts at now.
func (m *ruleModel) used(nowNs int64) *big.Rat {
	if m.isBucket() {
		m.drain(nowNs)
		return m.level
	}
	beginNs, windowNs := m.beginNs(nowNs), int64(m.limit.Window)
	var count, before int64
	for _, g := range m.grants {
		switch {
		case g.atNs >= beginNs:
			count += g.units
		case g.atNs >= beginNs-windowNs && m.limit.Strategy == catalog.SlidingWindow:
			before += g.units
		}
	}
	sum := new(big.Rat).SetInt64(count)
	return sum.Add(sum, new(big.Rat).Mul(new(big.Rat).SetInt64(before), big.NewRat(beginNs+windowNs-nowNs, windowNs)))
}

// available is how many whole units fit.
func (m *ruleModel) available(nowNs int64) int64 {
	free := new(big.Rat).Sub(new(big.Rat).SetInt64(m.limit.Amount), m.used(nowNs))
	if free.Sign() <= 0 {
		return 0
	}
	return new(big.Int).Quo(free.Num(), free.Denom()).Int64()
}

// take counts units.
func (m *ruleModel) take(nowNs, n int64) {
	if n == 0 {
		return
	}
	if m.isBucket() {
		m.drain(nowNs)
		m.level.Add(m.level, new(big.Rat).SetInt64(n))
		return
	}
	m.grants = append(m.grants, grant{nowNs, n})
}

// giveBack takes units off the grants of one time.
func (m *ruleModel) giveBack(nowNs int64, r state.Return) {
	if m.isBucket() {
		m.drain(nowNs)
		n := m.undrained(nowNs, r)
		m.level.Sub(m.level, new(big.Rat).SetInt64(n))
		for i := range m.ebbs {
			m.ebbs[i].units = max(0, m.ebbs[i].units-n)
		}
		return
	}
	left := r.Units
	for i := range m.grants {
		if g := &m.grants[i]; g.atNs == r.GrantNs {
			n := min(left, g.units)
			g.units -= n
			left -= n
		}
	}
}
