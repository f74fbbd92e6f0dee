package statetest

import (
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"relay/store/catalog"
	"relay/store/state"
)

// A subject of random use: a group with the models of its rules, and the Ops
// of its loops.
type played struct {
	group *catalog.Group
	rules []*ruleModel
	ops   [Loops]*state.Op
	lent  [Loops]int64 // slots
	past  []state.Op   // answers with grants that can come back
}

var strategies = []catalog.Strategy{catalog.TokenBucket, catalog.LeakyBucket, catalog.FixedWindow, catalog.SlidingWindow, catalog.SessionWindow}

// draw makes a group of random limits: small ones, which deny, and odd and
// large ones, which ask the arithmetic.
func (b *bench) draw(rnd *rand.Rand) *played {
	var limits []catalog.Limit
	for range 1 + rnd.IntN(4) {
		s := strategies[rnd.IntN(len(strategies))]
		switch n := rnd.IntN(6); {
		case n == 0 && !hasConcurrency(limits):
			limits = append(limits, concurrency(1+rnd.Int64N(8)))
		case n == 1 && !b.Coarse:
			limits = append(limits, limit(s, 1+rnd.Int64N(state.AmountMax), time.Duration(1+rnd.Int64N(int64(state.WindowMax)))))
		case n == 2:
			limits = append(limits, limit(s, 1+rnd.Int64N(1000), time.Duration(1e6*(1+rnd.Int64N(1000)))))
		default:
			limits = append(limits, limit(s, 1+rnd.Int64N(20), time.Duration(1e6*(1+rnd.Int64N(20e3)))))
		}
	}
	p := &played{group: b.group(limits...)}
	for _, l := range limits {
		p.rules = append(p.rules, newRuleModel(l))
	}
	for i := range p.ops {
		p.ops[i] = &state.Op{Group: p.group, Loop: i}
	}
	return p
}

func hasConcurrency(limits []catalog.Limit) bool {
	for _, l := range limits {
		if l.Meter == catalog.Concurrency {
			return true
		}
	}
	return false
}

// random compares random use with the model.
func random(t *testing.T, s Subject) {
	for seed := range uint64(randomRuns) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		b := &bench{T: t, Subject: s, store: s.New(t), ids: seed << 32}
		groups := make([]*played, 1+rnd.IntN(12))
		for i := range groups {
			groups[i] = b.draw(rnd)
		}
		for step := range randomSteps {
			if rnd.IntN(3) == 0 {
				ns := [...]int64{rnd.Int64N(1000), rnd.Int64N(1e9), rnd.Int64N(30e9)}[rnd.IntN(3)]
				b.Clock.Advance(ns - ns%b.ResolutionNs)
			}
			p := groups[rnd.IntN(len(groups))]
			p.play(b, rnd)
			if t.Failed() {
				t.Fatalf("seed %d step %d, limits %+v", seed, step, p.group.Limits)
			}
		}
	}
}

// play makes one Op of random content and holds the answer to the model.
func (p *played) play(b *bench, rnd *rand.Rand) {
	loop := rnd.IntN(Loops)
	o := p.ops[loop]
	o.Clear()
	o.Slots = p.lent[loop]
	if o.Slots > 0 && rnd.IntN(2) == 0 {
		o.Slots -= 1 + rnd.Int64N(o.Slots)
	}
	n := rnd.Int64N(4)
	for k := range p.group.Limits {
		o.Want[k], o.Need[k] = n, n
		if p.group.Limits[k].Meter != catalog.Concurrency && rnd.IntN(6) == 0 {
			o.Charge[k] = rnd.Int64N(5)
		}
	}
	if len(p.past) > 0 && rnd.IntN(3) == 0 {
		i := rnd.IntN(len(p.past))
		for k := range p.group.Limits {
			if got := p.past[i].Got[k]; got > 0 {
				o.Return[k] = state.Return{Units: 1 + rnd.Int64N(got), GrantNs: p.past[i].NowNs}
			}
		}
		p.past[i] = p.past[len(p.past)-1]
		p.past = p.past[:len(p.past)-1]
	}
	asked := *o
	p.lent[loop] = o.Slots
	b.apply(o)
	p.compare(b, &asked, o)
	p.lent[loop] += o.Got[p.slotRule()]
	if len(p.past) < liveMax && n > 0 {
		p.past = append(p.past, *o)
	}
}

// slotRule is the place of the concurrency limit, or one that gives nothing.
func (p *played) slotRule() int {
	for k := range p.group.Limits {
		if p.group.Limits[k].Meter == catalog.Concurrency {
			return k
		}
	}
	return state.RulesMax - 1
}

// compare holds an answer to the model and counts it there.
func (p *played) compare(b *bench, asked, o *state.Op) {
	nowNs := o.NowNs
	denied := false
	avail := make([]int64, len(p.rules))
	for k, m := range p.rules {
		if m.limit.Meter == catalog.Concurrency {
			avail[k] = m.limit.Amount
			for _, n := range p.lent {
				avail[k] -= n
			}
			avail[k] = max(avail[k], 0)
		} else {
			m.giveBack(nowNs, asked.Return[k])
			m.take(nowNs, asked.Charge[k])
			avail[k] = m.available(nowNs)
		}
		denied = denied || avail[k] < asked.Need[k]
	}
	for k, m := range p.rules {
		got := min(asked.Want[k], avail[k])
		if denied {
			got = 0
		}
		if o.Got[k] != got {
			b.Errorf("rule %d gave %d of %d, want %d", k, o.Got[k], asked.Want[k], got)
		}
		if o.Left[k] != avail[k]-got {
			b.Errorf("rule %d has %d left, want %d", k, o.Left[k], avail[k]-got)
		}
		p.compareWait(b, k, avail[k], asked, o)
		if m.limit.Meter != catalog.Concurrency {
			m.take(nowNs, got)
		}
	}
}

// compareWait holds the wait of a rule to the model: as long as it says the
// units do not fit, and then they do.
func (p *played) compareWait(b *bench, k int, avail int64, asked, o *state.Op) {
	m, need, wait := p.rules[k], asked.Need[k], o.RetryNs[k]
	switch {
	case avail >= need:
		if wait != 0 {
			b.Errorf("rule %d fits and waits %d", k, wait)
		}
	case need > m.limit.Amount:
		if wait != state.NeverNs {
			b.Errorf("rule %d waits %d for more than there is", k, wait)
		}
	case m.limit.Meter == catalog.Concurrency:
		if wait != state.ConcurrencyRetryNs {
			b.Errorf("slots wait %d", wait)
		}
	default:
		if at := m.ahead(o.NowNs + wait); at < need {
			b.Errorf("rule %d waits %d, and then %d are available of %d", k, wait, at, need)
		}
		early := o.NowNs + wait - 2*b.ResolutionNs
		if b.ResolutionNs == 1 {
			early++
		}
		if at := m.ahead(early); early > o.NowNs && at >= need {
			b.Errorf("rule %d waits %d, and %d are available before", k, wait, at)
		}
	}
}

// ahead is what would be available at a later time.
func (m *ruleModel) ahead(atNs int64) int64 {
	level, nowNs, ebbs := *m.level, m.nowNs, len(m.ebbs)
	m.level = new(big.Rat).Set(&level)
	n := m.available(atNs)
	m.level, m.nowNs, m.ebbs = &level, nowNs, m.ebbs[:ebbs]
	return n
}
