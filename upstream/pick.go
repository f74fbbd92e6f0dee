package upstream

import (
	"math/bits"
	"math/rand/v2"

	"relay/store/catalog"
	"relay/upstream/wire"
)

// A Rotation spreads requests over bindings and host keys. Owner: one loop.
// Loops do not share a turn: each spreads its own requests evenly, from a start
// of its own, so all of them together do.
type Rotation struct {
	random rand.PCG
	turns  []uint64 // by Host.ID: picks so far, from a random start
}

// NewRotation makes a rotation. Equal seeds give equal picks.
func NewRotation(seed uint64) *Rotation {
	return &Rotation{random: *rand.NewPCG(seed, seed^0x9e3779b97f4a7c15)}
}

// below is a random number in [0, n), n ≥ 1. The bias is below n/2^64.
func (o *Rotation) below(n uint64) uint64 {
	hi, _ := bits.Mul64(o.random.Uint64(), n)
	return hi
}

// turn is the next place of a host's round over total places, total ≥ 1. Within
// a round every place comes once, and neighbours in place are far apart in
// time, so a heavy key is not taken many times in a row.
func (o *Rotation) turn(h *catalog.Host, total uint64) uint64 {
	for len(o.turns) <= h.ID { // a host of a new catalog
		o.turns = append(o.turns, o.random.Uint64()>>32)
	}
	n := o.turns[h.ID]
	o.turns[h.ID]++
	hi, lo := bits.Mul64(n%total, stride(total))
	return bits.Rem64(hi, lo, total)
}

// stride is a step through total places that meets each of them: a number near
// the golden part of total that has no factor in common with it.
func stride(total uint64) uint64 {
	step := total - total/21*8 - total%21*8/21
	for gcd(step, total) != 1 {
		step--
	}
	return step
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// Tried is what a request has tried already. Owner: the exchange. The zero
// value is empty.
type Tried struct {
	pairs [TriedMax]pair
	n     int
}

type pair struct {
	binding *catalog.Binding
	key     *catalog.HostKey
}

// Add notes a pair that Pick returned.
func (t *Tried) Add(b *catalog.Binding, k *catalog.HostKey) {
	if t.n == TriedMax {
		panic("BUG: more attempts than Pick allows")
	}
	t.pairs[t.n] = pair{b, k}
	t.n++
}

// Reset empties t and lets the catalog go.
func (t *Tried) Reset() { *t = Tried{} }

func (t *Tried) has(b *catalog.Binding, k *catalog.HostKey) bool {
	for i := range t.n {
		if t.pairs[i] == (pair{b, k}) {
			return true
		}
	}
	return false
}

// Pick chooses where a request for m goes next: the lowest priority that has an
// untried host key at a host of the shape, one of its bindings at random by
// weight, and the host's untried keys in turn by weight. It reports false when
// nothing is left, or TriedMax pairs have been tried.
func Pick(m *catalog.Model, s wire.Shape, o *Rotation, tried *Tried) (*catalog.Binding, *catalog.HostKey, bool) {
	if tried.n == TriedMax {
		return nil, nil, false
	}
	rest := m.Bindings
	for len(rest) > 0 {
		n := 1
		for n < len(rest) && rest[n].Priority == rest[0].Priority {
			n++
		}
		if b := pickBinding(rest[:n], s, o, tried); b != nil {
			return b, pickKey(b, o, tried), true
		}
		rest = rest[n:]
	}
	return nil, nil, false
}

// pickBinding chooses among bindings of one priority, or returns nil.
func pickBinding(bindings []*catalog.Binding, s wire.Shape, o *Rotation, tried *Tried) *catalog.Binding {
	var total uint64
	var last *catalog.Binding
	eligible := 0
	for _, b := range bindings {
		if b.Host.Shape == s && untriedWeight(b, tried) > 0 {
			total += uint64(b.Weight)
			last = b
			eligible++
		}
	}
	if eligible < 2 {
		return last
	}
	at := o.below(total)
	for _, b := range bindings {
		if b.Host.Shape != s || untriedWeight(b, tried) == 0 {
			continue
		}
		if at < uint64(b.Weight) {
			return b
		}
		at -= uint64(b.Weight)
	}
	panic("BUG: a binding beyond the total weight")
}

// pickKey chooses among the untried keys of a binding's host. There is one.
func pickKey(b *catalog.Binding, o *Rotation, tried *Tried) *catalog.HostKey {
	at := o.turn(b.Host, untriedWeight(b, tried))
	for _, k := range b.Host.Keys {
		if tried.has(b, k) {
			continue
		}
		if at < uint64(k.Weight) {
			return k
		}
		at -= uint64(k.Weight)
	}
	panic("BUG: a host key beyond the total weight")
}

// untriedWeight is the weight of the untried keys of a binding's host.
func untriedWeight(b *catalog.Binding, tried *Tried) (total uint64) {
	for _, k := range b.Host.Keys {
		if !tried.has(b, k) {
			total += uint64(k.Weight)
		}
	}
	return total
}
