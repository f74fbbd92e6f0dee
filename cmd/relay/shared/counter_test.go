package shared

import (
	"fmt"
	"math/big"
	"slices"
	"time"
)

// A grant is what one request that was let through counts of a limit.
type grant struct {
	ns    int64 // store time, Unix
	units int64
}

// A counter says where grants, in the order of their times, exceed a limit;
// nil if nowhere.
type counter func(grants []grant, amount int64, window time.Duration) error

// byTime sorts grants by their time.
func byTime(grants []grant) {
	slices.SortFunc(grants, func(a, b grant) int { return int(min(max(a.ns-b.ns, -1), 1)) })
}

// countFixed counts in each window of the grid of the Unix epoch. Calendar
// hours and days of UTC are such windows as well.
func countFixed(grants []grant, amount int64, window time.Duration) error {
	for index, units := range byWindow(grants, window) {
		if units > amount {
			return fmt.Errorf("%d units in the window that begins at %s; allowed are %d", units, timeText(index*int64(window)), amount)
		}
	}
	return nil
}

// byWindow sums units by the windows of the grid.
func byWindow(grants []grant, window time.Duration) map[int64]int64 {
	sums := make(map[int64]int64)
	for _, g := range grants {
		sums[g.ns/int64(window)] += g.units
	}
	return sums
}

// countSliding wants at every grant that what was granted in this window of the
// grid, and the part of the window before that a window ending now still
// overlaps, is within the amount.
func countSliding(grants []grant, amount int64, window time.Duration) error {
	w := int64(window)
	var index, current, before int64
	for i, g := range grants {
		switch at := g.ns / w; {
		case at == index+1:
			index, before, current = at, current, 0
		case at > index:
			index, before, current = at, 0, 0
		}
		current += g.units
		if i+1 < len(grants) && grants[i+1].ns == g.ns {
			continue // granted together
		}
		left := (index+1)*w - g.ns
		if product(before, left).Cmp(product(amount-current, w)) > 0 {
			return fmt.Errorf("at %s there are %d units of this window and %d of the one before, of which %.1f %% overlap; allowed are %d",
				timeText(g.ns), current, before, 100*float64(left)/float64(w), amount)
		}
	}
	return nil
}

// countBucket pours all grants into a bucket that drains an amount per window:
// it overflows exactly if in some span more was granted than the amount and
// what drains in the span.
func countBucket(grants []grant, amount int64, window time.Duration) error {
	w := int64(window)
	level, full := new(big.Int), product(amount, w) // in units times ns
	var last int64
	for _, g := range grants {
		level.Sub(level, product(amount, g.ns-last))
		if level.Sign() < 0 {
			level.SetInt64(0)
		}
		level.Add(level, product(g.units, w))
		last = g.ns
		if level.Cmp(full) > 0 {
			over := new(big.Int).Div(level.Sub(level, full), big.NewInt(w))
			return fmt.Errorf("at %s a bucket of %d units in %v is over by %d.x units", timeText(g.ns), amount, window, over.Int64())
		}
	}
	return nil
}

// sessionHidden is how much earlier than its first row a session may have
// begun: with a request whose grant came back too late, or whose relay died.
const sessionHidden = time.Second

// countSession looks for beginnings of sessions that explain the grants. A
// session ends a window after its beginning, holds at most the amount, and the
// next one begins with the first use behind it. It begins at most sessionHidden
// before the first grant that is known.
func countSession(grants []grant, amount int64, window time.Duration) error {
	w := int64(window)
	const none = int64(-1)
	// began[i] is the earliest beginning of a last session behind which the
	// first i grants are explained.
	began := make([]int64, len(grants)+1)
	for i := range began {
		began[i] = none
	}
	began[0] = -w
	for i := range grants { // a session that holds grants i to j
		if began[i] == none {
			continue
		}
		first, units := grants[i].ns, int64(0)
		for j := i; j < len(grants); j++ {
			units += grants[j].units
			at := max(began[i]+w, first-int64(sessionHidden), grants[j].ns-w+1)
			if units > amount || at > first {
				break
			}
			if began[j+1] == none || at < began[j+1] {
				began[j+1] = at
			}
		}
	}
	if began[len(grants)] != none {
		return nil
	}
	most := 0
	for i := range began {
		if began[i] != none {
			most = i
		}
	}
	return fmt.Errorf("no beginnings of sessions of %d units in %v explain more than the first %d of %d grants: that at %s is too much",
		amount, window, most, len(grants), timeText(grants[min(most, len(grants)-1)].ns))
}

// A span is the time in which one request ran, from ≤ t < until.
type span struct{ fromNs, untilNs int64 }

// countOverlap wants that never more than amount spans overlap.
func countOverlap(spans []span, amount int) error {
	type edge struct {
		ns   int64
		step int
	}
	edges := make([]edge, 0, 2*len(spans))
	for _, s := range spans {
		if s.untilNs > s.fromNs {
			edges = append(edges, edge{s.fromNs, 1}, edge{s.untilNs, -1})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int {
		if a.ns != b.ns {
			return int(min(max(a.ns-b.ns, -1), 1))
		}
		return a.step - b.step // ends first
	})
	running := 0
	for _, e := range edges {
		if running += e.step; running > amount {
			return fmt.Errorf("%d requests run at %s; allowed are %d", running, timeText(e.ns), amount)
		}
	}
	return nil
}

// A share is how much of a limit was used in the whole windows of a time in
// which there was more to do than it allows.
type share struct {
	windows int
	units   int64
}

// denialLate is how long a denial may stand on a relay behind the end of the
// window that it is about.
const denialLate = 100 * time.Millisecond

// shareOf sums over the windows of the grid that lie within a time and have a
// denial, by the times of all of them: where nobody was denied, the callers were
// too slow, or too few.
func shareOf(grants []grant, denials []int64, window time.Duration, fromNs, untilNs int64) share {
	w := int64(window)
	busy := make(map[int64]bool)
	for _, ns := range denials {
		at := ns / w
		if at*w >= fromNs && (at+1)*w <= untilNs && ns-at*w > int64(denialLate) {
			busy[at] = true
		}
	}
	s := share{windows: len(busy)}
	for _, g := range grants {
		if busy[g.ns/w] {
			s.units += g.units
		}
	}
	return s
}

func product(a, b int64) *big.Int { return new(big.Int).Mul(big.NewInt(a), big.NewInt(b)) }

func timeText(ns int64) string { return time.Unix(0, ns).UTC().Format("15:04:05.000000") }
