package openloop

import (
	"errors"
	"fmt"
	"time"
)

// Merge makes one result of those of several generators that ran at the same
// time: as if one had sent everything. It is late if any of them was.
func Merge(results ...*Result) (*Result, error) {
	if len(results) == 0 {
		return nil, errors.New("openloop: nothing to merge")
	}
	var t tally
	t.init()
	late := false
	for _, r := range results {
		if r.HoldSeconds != results[0].HoldSeconds || r.HoldSeconds <= 0 {
			return nil, fmt.Errorf("openloop: results of holds of %v and %v seconds do not go together", results[0].HoldSeconds, r.HoldSeconds)
		}
		if err := t.merge(r); err != nil {
			return nil, err
		}
		late = late || r.Late
	}
	merged := t.result(time.Duration(results[0].HoldSeconds * float64(time.Second)))
	merged.Late = merged.Late || late
	return merged, nil
}
