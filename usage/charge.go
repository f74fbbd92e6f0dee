package usage

import (
	"math"
	"math/bits"

	"relay/store/catalog"
)

// picoPerNano divides a product of tokens and pico-USD into nano-USD.
const picoPerNano = 1000

// Charge computes the cost of tokens at a price. Every part is the exact
// product rounded half-even once; the total is the sum of the rounded parts.
// What does not fit is math.MaxInt64, and a negative count or price is 0: a
// cost is never negative.
//
// Where the price has no audio rate, audio tokens are plain input and output.
// Where it has one they leave those parts for Audio, at most as many as the
// part holds: audio beyond Input was served from a cache and is paid there.
//
// The fee per request is always included: call Charge only for an exchange
// that is to be paid.
func Charge(t *Tokens, p *catalog.Price) Cost {
	input, output := count(t.Input), count(t.Output)
	var audio uint64
	if p.Audio > 0 {
		in, out := min(count(t.AudioInput), input), min(count(t.AudioOutput), output)
		input, output, audio = input-in, output-out, in+out
	}
	c := Cost{
		Input:        nanoUSD(input, p.Input),
		CachedInput:  nanoUSD(count(t.CachedInput), p.CachedInput),
		CacheWrite5m: nanoUSD(count(t.CacheWrite5m), p.CacheWrite5m),
		CacheWrite1h: nanoUSD(count(t.CacheWrite1h), p.CacheWrite1h),
		Output:       nanoUSD(output, p.Output),
		Audio:        nanoUSD(audio, p.Audio),
		WebSearch:    product(count(t.WebSearches), p.WebSearchNano),
		Request:      int64(count(p.RequestNano)),
	}
	for _, part := range [...]int64{
		c.Input, c.CachedInput, c.CacheWrite5m, c.CacheWrite1h,
		c.Output, c.Audio, c.WebSearch, c.Request,
	} {
		c.Total = sum(c.Total, part)
	}
	return c
}

// count reads a number that cannot be negative.
func count(n int64) uint64 { return uint64(max(n, 0)) }

// nanoUSD is tokens × pico-USD in nano-USD, rounded half-even.
func nanoUSD(tokens uint64, pico int64) int64 {
	hi, lo := bits.Mul64(tokens, count(pico))
	if hi >= picoPerNano { // the quotient has more than 64 bits
		return math.MaxInt64
	}
	nano, rest := bits.Div64(hi, lo, picoPerNano)
	if nano >= math.MaxInt64 {
		return math.MaxInt64
	}
	if rest > picoPerNano/2 || rest == picoPerNano/2 && nano&1 == 1 {
		nano++
	}
	return int64(nano)
}

// product is n × nano, or math.MaxInt64.
func product(n uint64, nano int64) int64 {
	hi, lo := bits.Mul64(n, count(nano))
	if hi != 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(lo)
}

// sum adds two costs, or is math.MaxInt64.
func sum(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
