package usage

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"relay/store/catalog"
)

func TestCharge(t *testing.T) {
	const huge = math.MaxInt64
	for _, tt := range []struct {
		name   string
		tokens Tokens
		price  catalog.Price
		want   Cost
	}{
		{"nothing", Tokens{}, catalog.Price{Input: 3_000_000}, Cost{}},
		{
			"cache creation is charged once: 0.0544 USD",
			Tokens{Input: 3, CacheWrite5m: 12304, Output: 550},
			catalog.Price{Input: 3_000_000, CacheWrite5m: 3_750_000, CachedInput: 300_000, Output: 15_000_000},
			Cost{Input: 9_000, CacheWrite5m: 46_140_000, Output: 8_250_000, Total: 54_399_000},
		},
		{"half to even, down", Tokens{Input: 1}, catalog.Price{Input: 500}, Cost{}},
		{"half to even, up", Tokens{Input: 3}, catalog.Price{Input: 500}, Cost{Input: 2, Total: 2}},
		{"above the half", Tokens{Input: 1}, catalog.Price{Input: 501}, Cost{Input: 1, Total: 1}},
		{
			"each part is rounded by itself", Tokens{Input: 1, Output: 1, CachedInput: 1},
			catalog.Price{Input: 600, Output: 600, CachedInput: 400}, Cost{Input: 1, Output: 1, Total: 2},
		},
		{
			"reasoning is part of output", Tokens{Output: 10, Reasoning: 8},
			catalog.Price{Output: 1000}, Cost{Output: 10, Total: 10},
		},
		{
			"audio at its own rate", Tokens{Input: 100, AudioInput: 40, Output: 50, AudioOutput: 50},
			catalog.Price{Input: 1000, Output: 2000, Audio: 10_000},
			Cost{Input: 60, Audio: 900, Total: 960},
		},
		{
			"audio without a rate", Tokens{Input: 100, AudioInput: 40, Output: 50, AudioOutput: 50},
			catalog.Price{Input: 1000, Output: 2000}, Cost{Input: 100, Output: 100, Total: 200},
		},
		{
			"more audio than input", Tokens{Input: 10, AudioInput: 40}, catalog.Price{Input: 1000, Audio: 2000},
			Cost{Audio: 20, Total: 20},
		},
		{
			"fees", Tokens{WebSearches: 3, CacheWrite1h: 2},
			catalog.Price{WebSearchNano: 10_000_000, RequestNano: 7, CacheWrite1h: 1000},
			Cost{WebSearch: 30_000_000, Request: 7, CacheWrite1h: 2, Total: 30_000_009},
		},
		{
			"overflow of a product", Tokens{Input: huge, WebSearches: huge},
			catalog.Price{Input: huge, WebSearchNano: 2}, Cost{Input: huge, WebSearch: huge, Total: huge},
		},
		{
			"overflow of the sum", Tokens{Input: huge, Output: huge}, catalog.Price{Input: 1000, Output: 1000},
			Cost{Input: huge, Output: huge, Total: huge},
		},
		{
			"negative is nothing", Tokens{Input: -5, Output: 5, AudioInput: -1}, catalog.Price{Input: 1000, Output: -1000, RequestNano: -1, Audio: 1},
			Cost{},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Charge(&tt.tokens, &tt.price); got != tt.want {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

// exact is the model of a part: big numbers, rounded half-even, cut at the top.
func exact(n, price *big.Int, divisor int64) int64 {
	quotient, rest := new(big.Int).QuoRem(new(big.Int).Mul(n, price), big.NewInt(divisor), new(big.Int))
	twice := rest.Lsh(rest, 1).Cmp(big.NewInt(divisor))
	if divisor > 1 && (twice > 0 || twice == 0 && quotient.Bit(0) == 1) {
		quotient.Add(quotient, big.NewInt(1))
	}
	return cut(quotient)
}

func cut(n *big.Int) int64 {
	if !n.IsInt64() {
		return math.MaxInt64
	}
	return n.Int64()
}

// draw picks a number of any magnitude, and now and then an edge.
func draw(r *rand.Rand) int64 {
	switch r.IntN(12) {
	case 0:
		return math.MaxInt64 - r.Int64N(3)
	case 1:
		return -r.Int64N(1000)
	case 2:
		return 500 * r.Int64N(20)
	}
	return r.Int64() >> r.IntN(63)
}

func TestChargeAgainstBig(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		tokens := Tokens{
			Input: draw(r), CachedInput: draw(r), CacheWrite5m: draw(r), CacheWrite1h: draw(r),
			Output: draw(r), AudioInput: draw(r), AudioOutput: draw(r), WebSearches: draw(r),
		}
		price := catalog.Price{
			Input: draw(r), CachedInput: draw(r), CacheWrite5m: draw(r), CacheWrite1h: draw(r),
			Output: draw(r), Audio: draw(r), RequestNano: draw(r), WebSearchNano: draw(r),
		}
		natural := func(n int64) *big.Int { return big.NewInt(max(n, 0)) }
		least := func(a, b *big.Int) *big.Int {
			if a.Cmp(b) < 0 {
				return a
			}
			return b
		}
		in, out, audio := natural(tokens.Input), natural(tokens.Output), new(big.Int)
		if price.Audio > 0 {
			audioIn, audioOut := least(natural(tokens.AudioInput), in), least(natural(tokens.AudioOutput), out)
			in, out = new(big.Int).Sub(in, audioIn), new(big.Int).Sub(out, audioOut)
			audio.Add(audioIn, audioOut)
		}
		want := Cost{
			Input:        exact(in, natural(price.Input), 1000),
			CachedInput:  exact(natural(tokens.CachedInput), natural(price.CachedInput), 1000),
			CacheWrite5m: exact(natural(tokens.CacheWrite5m), natural(price.CacheWrite5m), 1000),
			CacheWrite1h: exact(natural(tokens.CacheWrite1h), natural(price.CacheWrite1h), 1000),
			Output:       exact(out, natural(price.Output), 1000),
			Audio:        exact(audio, natural(price.Audio), 1000),
			WebSearch:    exact(natural(tokens.WebSearches), natural(price.WebSearchNano), 1),
			Request:      max(price.RequestNano, 0),
		}
		total := new(big.Int)
		for _, part := range []int64{
			want.Input, want.CachedInput, want.CacheWrite5m, want.CacheWrite1h,
			want.Output, want.Audio, want.WebSearch, want.Request,
		} {
			total.Add(total, big.NewInt(part))
		}
		want.Total = cut(total)
		if got := Charge(&tokens, &price); got != want {
			t.Fatalf("tokens %+v\nprice %+v\ngot  %+v\nwant %+v", tokens, price, got, want)
		}
	}
}

func TestChargeAllocs(t *testing.T) {
	tokens, price := Tokens{Input: 1234, Output: 567}, catalog.Price{Input: 1_250_000, Output: 10_000_000}
	var total int64
	if n := testing.AllocsPerRun(1000, func() { total += Charge(&tokens, &price).Total }); n != 0 {
		t.Errorf("%v allocations, want 0 (total %d)", n, total)
	}
}

func TestEstimateTokens(t *testing.T) {
	for bytes, want := range map[int64]int64{0: 0, 1: 1, 4: 1, 5: 2, 4000: 1000} {
		if got := EstimateTokens(bytes); got != want {
			t.Errorf("EstimateTokens(%d) = %d, want %d", bytes, got, want)
		}
	}
}

func TestFormatUSD(t *testing.T) {
	for nano, want := range map[int64]string{
		0: "0", 1: "0.000000001", 54_399_000: "0.054399", 1_000_000_000: "1", 12_500_000_000: "12.5",
		-1: "-0.000000001", math.MaxInt64: "9223372036.854775807", math.MinInt64: "-9223372036.854775808",
	} {
		if got := FormatUSD(nano); got != want {
			t.Errorf("FormatUSD(%d) = %q, want %q", nano, got, want)
		}
	}
}

func TestLabels(t *testing.T) {
	seen := map[string]bool{}
	for i := range Outcomes {
		seen[Outcome(i).String()] = true
	}
	for i := range Sources {
		seen[Source(i).String()] = true
	}
	if len(seen) != Outcomes+Sources || seen[""] {
		t.Errorf("labels are not distinct: %v", seen)
	}
	if got := Outcome(99).String() + Source(99).String(); got != "outcome 99source 99" {
		t.Errorf("labels of strangers: %q", got)
	}
}
