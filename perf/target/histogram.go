package target

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A Histogram is one of a target's metrics, by the upper bounds of its buckets.
type Histogram []Bucket

// A Bucket counts all values up to a bound.
type Bucket struct{ UpTo, Count float64 }

// Histogram reads a histogram whose only label is that of its bounds.
func (t *Target) Histogram(ctx context.Context, name string) (Histogram, error) {
	answer, err := get(ctx, "http://"+t.Control+"/metrics")
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var h Histogram
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		rest, ok := strings.CutPrefix(lines.Text(), name+`_bucket{le="`)
		if !ok {
			continue
		}
		bound, count, _ := strings.Cut(rest, `"} `)
		upTo, err1 := strconv.ParseFloat(bound, 64)
		n, err2 := strconv.ParseFloat(count, 64)
		if err1 != nil || err2 != nil {
			return nil, fmt.Errorf("target: metric %s of %s: %q", name, t.Name, lines.Text())
		}
		h = append(h, Bucket{upTo, n})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("target: metrics of %s: %w", t.Name, err)
	}
	if len(h) == 0 {
		return nil, fmt.Errorf("target: %s has no histogram %s", t.Name, name)
	}
	return h, nil
}

// Add adds another of the same bounds, sign times.
func (h Histogram) Add(other Histogram, sign float64) Histogram {
	out := make(Histogram, len(h))
	copy(out, h)
	for i := range min(len(out), len(other)) {
		out[i].Count += sign * other[i].Count
	}
	return out
}

// Quantile is a value that a share of all stays below, as even as they may lie
// in their bucket; of the last bucket, which has no end, it is its beginning.
// -1 = there are no values.
func (h Histogram) Quantile(share float64) float64 {
	if len(h) == 0 || h[len(h)-1].Count <= 0 {
		return -1
	}
	rank := share * h[len(h)-1].Count
	from, below := 0.0, 0.0
	for _, b := range h {
		if b.Count >= rank && b.Count > below {
			if math.IsInf(b.UpTo, 1) {
				return from
			}
			return from + (b.UpTo-from)*(rank-below)/(b.Count-below)
		}
		from, below = b.UpTo, b.Count
	}
	return from
}
