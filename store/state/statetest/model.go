package statetest

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"relay/store/catalog"
	"relay/store/state"
)

// A strategyModel is what a strategy means, in plain arithmetic.
type strategyModel interface {
	// waitNs is how long a request more would have to wait at a time; 0 = it
	// would not.
	waitNs(nowNs int64) int64
	take(nowNs int64)
	release()
}

func newStrategyModel(l catalog.Limit) strategyModel {
	switch {
	case l.Meter == catalog.Concurrency:
		return &gaugeModel{amount: l.Amount}
	case l.Strategy == catalog.TokenBucket:
		return &bucketModel{
			content: new(big.Rat).SetInt64(l.Amount),
			amount:  new(big.Rat).SetInt64(l.Amount),
			perNs:   big.NewRat(l.Amount, int64(l.Window)),
		}
	}
	panic(fmt.Sprintf("BUG: no model of strategy %d", l.Strategy))
}

// A bucketModel is a bucket of fractions.
type bucketModel struct {
	content, amount, perNs *big.Rat
	nowNs                  int64
}

func (m *bucketModel) refill(nowNs int64) {
	drop := new(big.Rat).Mul(m.perNs, new(big.Rat).SetInt64(nowNs-m.nowNs))
	m.content.Add(m.content, drop)
	if m.nowNs = nowNs; m.content.Cmp(m.amount) > 0 {
		m.content.Set(m.amount)
	}
}

func (m *bucketModel) waitNs(nowNs int64) int64 {
	m.refill(nowNs)
	missing := new(big.Rat).Sub(big.NewRat(1, 1), m.content)
	if missing.Sign() <= 0 {
		return 0
	}
	missing.Quo(missing, m.perNs)
	ns, part := new(big.Int).QuoRem(missing.Num(), missing.Denom(), new(big.Int))
	if part.Sign() > 0 {
		return ns.Int64() + 1
	}
	return ns.Int64()
}

func (m *bucketModel) take(nowNs int64) {
	m.refill(nowNs)
	m.content.Sub(m.content, big.NewRat(1, 1))
}

func (m *bucketModel) release() {}

// A gaugeModel counts what is lent.
type gaugeModel struct{ amount, lent int64 }

func (m *gaugeModel) waitNs(int64) int64 {
	if m.lent < m.amount {
		return 0
	}
	return state.ConcurrencyRetryNs
}

func (m *gaugeModel) take(int64) { m.lent++ }
func (m *gaugeModel) release()   { m.lent-- }

// A groupModel is a group with the models of its limits.
type groupModel struct {
	group *catalog.Group
	rules []strategyModel
}

// draw makes a group of random limits: small ones, which deny, and odd and
// large ones, which ask the arithmetic.
func (b *bench) draw(rnd *rand.Rand) groupModel {
	var limits []catalog.Limit
	for range 1 + rnd.IntN(4) {
		var l catalog.Limit
		switch rnd.IntN(5) {
		case 0:
			l = concurrency(1 + rnd.Int64N(8))
		case 1:
			l = requests(1+rnd.Int64N(state.AmountMax), time.Duration(1+rnd.Int64N(int64(state.WindowMax))))
		case 2:
			l = requests(1+rnd.Int64N(5), time.Duration(1+rnd.Int64N(1e6)))
		default:
			l = requests(1+rnd.Int64N(20), time.Duration(1+rnd.Int64N(20e9)))
		}
		limits = append(limits, l)
	}
	m := groupModel{group: b.group(limits...)}
	for _, l := range limits {
		m.rules = append(m.rules, newStrategyModel(l))
	}
	return m
}

// random compares random use with the model.
func random(t *testing.T, s Subject) {
	for seed := range uint64(randomRuns) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		b := &bench{T: t, Subject: s, store: s.New(t), ids: seed << 32}
		groups := make([]groupModel, 1+rnd.IntN(12))
		for i := range groups {
			groups[i] = b.draw(rnd)
		}
		var live []*lent
		var retryNs int64 = 1
		for step := range randomSteps {
			switch {
			case rnd.IntN(3) == 0:
				b.pass(rnd, retryNs)
			case len(live) > 0 && (len(live) == liveMax || rnd.IntN(3) == 0):
				i := rnd.IntN(len(live))
				live[i].release(b)
				live[i] = live[len(live)-1]
				live = live[:len(live)-1]
			default:
				l := &lent{chosen: choose(rnd, groups)}
				l.reserve(b, fmt.Sprintf("seed %d step %d", seed, step))
				if l.Granted {
					live = append(live, l)
				} else {
					retryNs = l.RetryNs
				}
			}
		}
	}
}

// pass lets time pass: a bit, a lot, or just as long as a denied caller was
// told, or a step less.
func (b *bench) pass(rnd *rand.Rand, retryNs int64) {
	ns := [...]int64{rnd.Int64N(1000), rnd.Int64N(1e9), rnd.Int64N(30e9), retryNs, retryNs - b.ResolutionNs}[rnd.IntN(5)]
	ns -= ns % b.ResolutionNs
	b.Clock.Advance(max(0, min(ns, int64(time.Hour))))
}

func choose(rnd *rand.Rand, groups []groupModel) []groupModel {
	var chosen []groupModel
	for _, i := range rnd.Perm(len(groups))[:rnd.IntN(min(len(groups), state.GroupsMax)+1)] {
		chosen = append(chosen, groups[i])
	}
	return chosen
}

// lent is a reservation with the groups that it was drawn for.
type lent struct {
	*state.Reservation
	chosen []groupModel
}

// reserve asks the store and the model, and compares.
func (l *lent) reserve(b *bench, at string) {
	var groups []*catalog.Group
	for _, g := range l.chosen {
		groups = append(groups, g.group)
	}
	nowNs := b.Clock.NowNs()
	var waitNs int64
	var denied int
	var limit catalog.Limit
	for i, g := range l.chosen {
		for k, m := range g.rules {
			if ns := m.waitNs(nowNs); ns > waitNs {
				waitNs, denied, limit = ns, i, g.group.Limits[k]
			}
		}
	}
	l.Reservation = b.ask(groups...)
	if l.Granted != (waitNs == 0) {
		b.Fatalf("%s: granted %t, and the model waits %d ns for %+v", at, l.Granted, waitNs, limit)
	}
	if l.Granted {
		for _, g := range l.chosen {
			for _, m := range g.rules {
				m.take(nowNs)
			}
		}
		return
	}
	b.waits(l.Reservation, waitNs)
	if b.ResolutionNs == 1 && (l.Denied != denied || l.Limit != limit) {
		b.Fatalf("%s: denied by group %d, %+v, want %d, %+v", at, l.Denied, l.Limit, denied, limit)
	}
}

// release gives it back, and now and then more than once.
func (l *lent) release(b *bench) {
	b.release(l.Reservation)
	b.release(l.Reservation)
	for _, g := range l.chosen {
		for _, m := range g.rules {
			m.release()
		}
	}
}
