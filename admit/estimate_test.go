package admit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"relay/store/catalog"
	"relay/store/state"
)

func TestEstimate(t *testing.T) {
	policy := &catalog.Policy{Name: "p"}
	open, bounded := &catalog.Model{Name: "open"}, &catalog.Model{Name: "bounded", MaxOutputTokens: 100}
	price := &catalog.Price{Input: 1_000_001, Output: 3_000_000, RequestNano: 7} // 1 and 3 nano-USD a token
	for _, tt := range []struct {
		name             string
		model            *catalog.Model
		price            *catalog.Price
		bytes, maxTokens int64
		answers          int64
		want             Estimate
	}{
		{"nothing known", open, nil, 1001, 0, 1, Estimate{Use{251, 256, 0}, Use{251, 131072, 0}}},
		{"caller bounds", open, nil, 0, 1000, 1, Estimate{Use{0, 256, 0}, Use{0, 1000, 0}}},
		{"caller bounds below the usual", open, nil, 4, 10, 1, Estimate{Use{1, 10, 0}, Use{1, 10, 0}}},
		{"model bounds", bounded, nil, 4, 0, 1, Estimate{Use{1, 100, 0}, Use{1, 100, 0}}},
		{"model bounds the caller", bounded, nil, 4, 1000, 1, Estimate{Use{1, 100, 0}, Use{1, 100, 0}}},
		{"cost is rounded up", bounded, price, 4, 2, 1, Estimate{Use{1, 2, 1000 + 6000 + 1 + 7}, Use{1, 2, 1000 + 6000 + 1 + 7}}},
		{"several answers", bounded, nil, 4, 0, 3, Estimate{Use{1, 100, 0}, Use{1, 300, 0}}},
		{"no answer", open, price, 4, 0, 0, Estimate{Use{1, 0, 1000 + 1 + 7}, Use{1, 0, 1000 + 1 + 7}}},
		{"nonsense", open, nil, -1, -1, 1, Estimate{Use{0, 256, 0}, Use{0, 131072, 0}}},
		{"absurd", open, &catalog.Price{Input: math.MaxInt64, Output: math.MaxInt64, RequestNano: math.MaxInt64}, math.MaxInt64, math.MaxInt64, 1,
			Estimate{Use{tokensMax / 4, 256, state.AmountMax}, Use{tokensMax / 4, outputTokensMost, state.AmountMax}}},
	} {
		if got := NewEstimates().Of(policy, tt.model, tt.price, tt.bytes, tt.maxTokens, tt.answers); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func TestEstimateLearns(t *testing.T) {
	p, m := &catalog.Policy{Name: "p"}, &catalog.Model{Name: "m"}
	e := NewEstimates()
	e.Learn(p, m, 1000, 500, 40)
	if got := e.Of(p, m, nil, 2000, 0, 1).Expected; got != (Use{Input: 1001, Output: 41}) {
		t.Errorf("after one request %+v", got)
	}
	e.Learn(p, m, 0, 0, 0) // says nothing
	if got := e.Of(&catalog.Policy{Name: "other"}, m, nil, 2000, 0, 1).Expected; got != (Use{Input: 1001, Output: outputTokensFirst}) {
		t.Errorf("of another policy %+v", got)
	}
	// Of exponential sizes about 200 most are below the estimate, which is not
	// far from what they are.
	rnd := rand.New(rand.NewPCG(1, 2))
	below, sum, rounds := 0, int64(0), 5000
	for i := range 2 * rounds {
		output := int64(rnd.ExpFloat64()*200) + 1
		if i >= rounds {
			usual := e.Of(p, m, nil, 1000, 0, 1).Expected.Output
			sum += usual
			if output <= usual {
				below++
			}
		}
		e.Learn(p, m, 1000, 250, output)
	}
	share, mean := float64(below)/float64(rounds), float64(sum)/float64(rounds)
	if share < 0.75 || share > 0.95 || mean < 250 || mean > 600 {
		t.Errorf("%.2f are below the estimate, whose mean is %.0f", share, mean)
	}
	if got := e.Of(p, m, nil, 1000, 0, 1).Expected.Input; got < 245 || got > 255 {
		t.Errorf("input %d, want about 250", got)
	}
}

func TestEstimatesAreBounded(t *testing.T) {
	p, e := &catalog.Policy{Name: "p"}, NewEstimates()
	hot := &catalog.Model{Name: "hot"}
	e.Learn(p, hot, 100, 100, 1000)
	for i := range 3 * estimatesMax {
		e.Learn(p, &catalog.Model{Name: fmt.Sprint(i)}, 100, 50, 60)
		if e.Of(p, hot, nil, 100, 0, 1).Expected.Output != 1001 {
			t.Fatalf("after %d models what is in use is forgotten", i)
		}
		if n := len(e.outputs.young) + len(e.outputs.old); n > estimatesMax {
			t.Fatalf("%d estimates", n)
		}
	}
	if n := testing.AllocsPerRun(1000, func() {
		e.Of(p, hot, nil, 100, 0, 1)
		e.Learn(p, hot, 100, 50, 60)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
