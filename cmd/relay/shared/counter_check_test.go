package shared

import (
	"math/rand/v2"
	"testing"
	"time"
)

// second is the window of the cases, whose times are in ms behind the start of
// one.
const second = time.Second

// at are grants of one unit at so many ms.
func at(ms ...int64) []grant {
	const base = int64(1_000_000) * int64(time.Second)
	grants := make([]grant, len(ms))
	for i, m := range ms {
		grants[i] = grant{base + m*int64(time.Millisecond), 1}
	}
	byTime(grants)
	return grants
}

// TestCounters plants violations. The amount is 3 in a second everywhere.
func TestCounters(t *testing.T) {
	for _, tt := range []struct {
		name   string
		count  counter
		grants []grant
		over   bool
	}{
		{"fixed, full windows", countFixed, at(0, 500, 999, 1000, 1001, 1999), false},
		{"fixed, four in one", countFixed, at(0, 500, 998, 999, 1000), true},
		{"fixed, four in a later one", countFixed, at(0, 3000, 3001, 3002, 3999), true},
		{"fixed, units", countFixed, []grant{{1, 2}, {2, 2}}, true},
		{"fixed, a grant of debt back", countFixed, []grant{{1, 3}, {int64(second), 3}}, false},

		{"sliding, full window", countSliding, at(0, 1, 2), false},
		{"sliding, one too many", countSliding, at(0, 1, 2, 999), true},
		{"sliding, too early in the next", countSliding, at(0, 1, 2, 1333), true},
		{"sliding, just in time in the next", countSliding, at(0, 1, 2, 1334), false},
		{"sliding, two in the next", countSliding, at(0, 1, 2, 1334, 1667), false},
		{"sliding, the second of them too early", countSliding, at(0, 1, 2, 1334, 1666), true},
		{"sliding, at once", countSliding, at(5, 5, 5, 5), true},
		{"sliding, a window of rest", countSliding, at(0, 1, 2, 2000, 2001, 2002), false},

		{"bucket, burst", countBucket, at(0, 0, 0), false},
		{"bucket, burst and one", countBucket, at(0, 0, 0, 0), true},
		{"bucket, refilled", countBucket, at(0, 0, 0, 334, 667, 1000), false},
		{"bucket, refilled too little", countBucket, at(0, 0, 0, 333), true},
		{"bucket, no more than full", countBucket, at(0, 5000, 5000, 5000, 5000), true},
		{"bucket, long excess of a tenth", countBucket, every(300*time.Millisecond, 200), true},
		{"bucket, long use at the rate", countBucket, every(334*time.Millisecond, 200), false},

		{"session, full", countSession, at(100, 500, 1099), false},
		{"session, two behind one another", countSession, at(100, 500, 1099, 1100, 1101, 2099), false},
		{"session, a pause between", countSession, at(100, 500, 1099, 1900, 2800, 2899), false},
		{"session, begun before its first row", countSession, at(600, 800, 900, 1000, 1100, 1200), false},
		{"session, four at once", countSession, at(100, 500, 500, 500, 500, 500, 500), true},
		{"session, long excess", countSession, every(300*time.Millisecond, 200), true},
		{"session, units", countSession, []grant{{1, 4}}, true},
		{"session, none", countSession, nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := tt.count(tt.grants, 3, second); (err != nil) != tt.over {
				t.Errorf("%v, want a violation: %t", err, tt.over)
			}
		})
	}
}

// every are n grants at one distance.
func every(d time.Duration, n int) []grant {
	grants := make([]grant, n)
	for i := range grants {
		grants[i] = grant{int64(second) + int64(i)*int64(d), 1}
	}
	return grants
}

func TestCountOverlap(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spans []span
		over  bool
	}{
		{"two at once", []span{{0, 10}, {5, 15}}, false},
		{"three at once", []span{{0, 10}, {5, 15}, {9, 11}}, true},
		{"one ends as the third begins", []span{{0, 10}, {5, 15}, {10, 12}}, false},
		{"all at the same time", []span{{5, 6}, {5, 6}, {5, 6}}, true},
		{"empty ones", []span{{5, 5}, {5, 5}, {5, 4}, {5, 6}, {5, 6}}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := countOverlap(tt.spans, 2); (err != nil) != tt.over {
				t.Errorf("%v, want a violation: %t", err, tt.over)
			}
		})
	}
}

func TestShareOf(t *testing.T) {
	grants := at(0, 999, 1000, 1500, 2999, 3000)
	from := grants[0].ns
	for _, tt := range []struct {
		fromMs, untilMs int64
		deniedMs        []int64
		want            share
	}{
		{0, 3000, []int64{500, 1500, 2500, 2600}, share{3, 5}},
		{1, 3000, []int64{500, 1500, 2500}, share{2, 3}},
		{1, 2999, []int64{500, 1500, 2500}, share{1, 2}},
		{1, 1999, []int64{500, 1500}, share{}},
		{0, 3000, []int64{500, 1010, 2500}, share{2, 3}}, // the second one is of the window before
		{0, 3000, nil, share{}},
	} {
		var denials []int64
		for _, g := range at(tt.deniedMs...) {
			denials = append(denials, g.ns)
		}
		got := shareOf(grants, denials, second, from+tt.fromMs*int64(time.Millisecond), from+tt.untilMs*int64(time.Millisecond))
		if got != tt.want {
			t.Errorf("from %d to %d ms, denied at %v: %+v, want %+v", tt.fromMs, tt.untilMs, tt.deniedMs, got, tt.want)
		}
	}
}

// TestCountersAgree has a limiter for each strategy, written the plain way,
// grant what random callers ask for. The counters find nothing wrong; with one
// unit more they find some of it.
func TestCountersAgree(t *testing.T) {
	const amount = 7
	for _, tt := range []struct {
		name  string
		count counter
		fits  func(grants []grant, ns int64) bool
	}{
		{"fixed", countFixed, func(grants []grant, ns int64) bool {
			return sum(grants, ns/int64(second)*int64(second)) < amount
		}},
		{"sliding", countSliding, func(grants []grant, ns int64) bool {
			begin := ns / int64(second) * int64(second)
			current := sum(grants, begin)
			before := sum(grants, begin-int64(second)) - current
			return float64(current+1)+float64(before)*(1-float64(ns-begin)/float64(second)) <= amount
		}},
		{"bucket", countBucket, func(grants []grant, ns int64) bool {
			for i := range grants { // every span that ends now
				if float64(len(grants)-i+1) > amount+amount*float64(ns-grants[i].ns)/float64(second)-1e-6 {
					return false
				}
			}
			return true
		}},
		{"session", countSession, func(grants []grant, ns int64) bool {
			begin, held := int64(-second), 0
			for _, g := range grants {
				if g.ns >= begin+int64(second) {
					begin, held = g.ns, 0
				}
				held++
			}
			return ns >= begin+int64(second) || held < amount
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			var grants []grant
			ns := int64(1000 * second)
			for len(grants) < 400 {
				ns += r.Int64N(int64(100 * time.Millisecond))
				if tt.fits(grants, ns) {
					grants = append(grants, grant{ns, 1})
				}
			}
			if err := tt.count(grants, amount, second); err != nil {
				t.Error(err)
			}
			if tt.count(grants, amount-1, second) == nil {
				t.Error("the limiter is never at its limit")
			}
		})
	}
}

// sum counts the grants from a time on.
func sum(grants []grant, fromNs int64) (n int64) {
	for _, g := range grants {
		if g.ns >= fromNs {
			n += g.units
		}
	}
	return n
}
