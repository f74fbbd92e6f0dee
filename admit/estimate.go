package admit

import (
	"math/bits"

	"relay/store/catalog"
	"relay/store/state"
)

// A Use is what a request is taken to use, or has used.
type Use struct {
	Input, Output int64 // tokens; of input all kinds together
	Cost          int64 // nano-USD
}

// An Estimate is what a request may use, told before it is made.
type Estimate struct {
	Expected Use // what such requests usually use
	Strict   Use // all that the request allows
}

// want is how many units of a limit a request reserves. What is only expected
// is at most the whole limit: else a limit below what requests usually use
// would never grant one, instead of going into debt.
func (e *Estimate) want(l *catalog.Limit) int64 {
	switch {
	case l.Meter == catalog.Requests || l.Meter == catalog.Concurrency:
		return 1
	case l.Reserve == catalog.Posthoc:
		return 0
	case l.Reserve == catalog.Strict:
		return e.Strict.of(l.Meter)
	}
	return min(e.Expected.of(l.Meter), l.Amount)
}

// of is how many units of a meter the use counts, within what stores count.
func (u *Use) of(m catalog.Meter) int64 {
	n := int64(1)
	switch m {
	case catalog.Tokens:
		n = min(max(u.Input, 0), tokensMax) + min(max(u.Output, 0), tokensMax)
	case catalog.InputTokens:
		n = u.Input
	case catalog.OutputTokens:
		n = u.Output
	case catalog.Cost:
		n = u.Cost
	}
	return min(max(n, 0), state.AmountMax)
}

// Estimates remember what requests of a policy and a model used lately. They
// are bounded: what has not been asked for longest is forgotten. Owner: the
// loop.
type Estimates struct {
	ratios  recent[string] // tokens per byte of the request, by model
	outputs recent[pair]   // tokens of the answer
}

// A pair is known by names, so that a new catalog forgets nothing.
type pair struct{ policy, model string }

// NewEstimates makes estimates that know nothing yet.
func NewEstimates() *Estimates {
	return &Estimates{ratios: newRecent[string](), outputs: newRecent[pair]()}
}

// Of estimates a request of so many bytes. maxTokens is the bound of an answer
// that the caller named; 0 = none. answers is how many answers are asked for; 0
// where the route gives no text. price may be nil.
func (t *Estimates) Of(policy *catalog.Policy, model *catalog.Model, price *catalog.Price, bodyBytes, maxTokens, answers int64) Estimate {
	bodyBytes = min(max(bodyBytes, 0), tokensMax)
	input := (bodyBytes + bytesPerToken - 1) / bytesPerToken
	if ratio := t.ratios.find(model.Name); ratio != nil {
		input = int64(min(float64(bodyBytes)**ratio, tokensMax-1)) + 1
	}
	most := int64(tokensMax)
	if maxTokens > 0 {
		most = min(most, maxTokens)
	}
	if model.MaxOutputTokens > 0 {
		most = min(most, model.MaxOutputTokens)
	}
	output := int64(outputTokensFirst)
	if usual := t.outputs.find(pair{policy.Name, model.Name}); usual != nil {
		output = int64(*usual) + 1
	}
	e := Estimate{
		Expected: Use{Input: input, Output: min(output, most)},
		Strict:   Use{Input: input, Output: most},
	}
	if most == tokensMax {
		e.Strict.Output = outputTokensMost
	}
	e.Strict.Output = min(e.Strict.Output*answers, tokensMax)
	e.Expected.Output = min(e.Expected.Output, e.Strict.Output)
	if price != nil {
		e.Expected.Cost, e.Strict.Cost = e.Expected.costs(price), e.Strict.costs(price)
	}
	return e
}

// Learn takes in what a request has used. Counts of 0 say nothing.
func (t *Estimates) Learn(policy *catalog.Policy, model *catalog.Model, bodyBytes, input, output int64) {
	if bodyBytes > 0 && input > 0 {
		seen := float64(input) / float64(bodyBytes)
		if ratio, known := t.ratios.at(model.Name); known {
			*ratio += (seen - *ratio) / ratioInertia
		} else {
			*ratio = seen
		}
	}
	if output <= 0 {
		return
	}
	seen := float64(min(output, tokensMax))
	switch usual, known := t.outputs.at(pair{policy.Name, model.Name}); {
	case !known:
		*usual = seen
	case seen > *usual:
		*usual += (seen - *usual) / riseInertia
	default:
		*usual += (seen - *usual) / fallInertia
	}
}

// costs is the cost of the tokens in nano-USD, rounded up: a reservation may
// be too much, and is corrected.
func (u *Use) costs(p *catalog.Price) int64 {
	const picoPerNano = 1000
	hi, lo := bits.Mul64(uint64(u.Input), uint64(max(p.Input, 0)))
	hi2, lo2 := bits.Mul64(uint64(u.Output), uint64(max(p.Output, 0)))
	lo, carry := bits.Add64(lo, lo2, 0)
	hi, _ = bits.Add64(hi, hi2, carry)
	if hi >= picoPerNano {
		return state.AmountMax
	}
	nano, rest := bits.Div64(hi, lo, picoPerNano)
	if rest > 0 {
		nano++
	}
	return int64(min(min(nano, state.AmountMax)+uint64(max(p.RequestNano, 0)), state.AmountMax))
}

// A recent remembers numbers by key in two generations: a key that is found in
// the elder moves to the younger, and when the younger is full the elder is
// forgotten.
type recent[K comparable] struct{ young, old map[K]*float64 }

func newRecent[K comparable]() recent[K] {
	return recent[K]{young: make(map[K]*float64), old: make(map[K]*float64)}
}

// find is the number of a key, or nil.
func (t *recent[K]) find(key K) *float64 {
	if v := t.young[key]; v != nil {
		return v
	}
	v := t.old[key]
	if v != nil {
		t.add(key, v)
	}
	return v
}

// at is the number of a key, and whether it was known.
func (t *recent[K]) at(key K) (v *float64, known bool) {
	if v = t.find(key); v != nil {
		return v, true
	}
	v = new(float64)
	t.add(key, v)
	return v, false
}

func (t *recent[K]) add(key K, v *float64) {
	if len(t.young) >= estimatesMax/2 {
		t.young, t.old = t.old, t.young
		clear(t.young)
	}
	t.young[key] = v
}
