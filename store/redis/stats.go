package redis

import (
	"sync/atomic"
	"time"
)

// Stats are what a store has done since it was opened. Numbers only grow,
// except for ApplyLast.
type Stats struct {
	Calls      int64         // calls of the script that were sent, also again
	Groups     int64         // group operations in them
	Failed     int64         // calls of them that brought no answer, or had to bring the script
	Applies    int64         // batches that asked the store something
	ApplyTotal time.Duration // that they took
	ApplyLast  time.Duration // that the last one of the lane took for which it was longest
}

// counts are the Stats of one lane. The lane writes, any goroutine reads.
type counts struct {
	calls, group, failed, applies, total, last atomic.Int64
	asked                                      bool // in the batch under way
}

// groups counts a call that is sent.
func (c *counts) groups(call *call) {
	c.asked = true
	c.calls.Add(1)
	c.group.Add(int64(len(call.runs)))
}

// done counts a batch.
func (c *counts) done(took time.Duration) {
	if !c.asked {
		return
	}
	c.asked = false
	c.applies.Add(1)
	c.total.Add(int64(took))
	c.last.Store(int64(took))
}

// Stats are the sums over all lanes. Any goroutine may ask.
func (s *Store) Stats() Stats {
	var t Stats
	for _, l := range s.lanes {
		c := &l.counts
		t.Calls += c.calls.Load()
		t.Groups += c.group.Load()
		t.Failed += c.failed.Load()
		t.Applies += c.applies.Load()
		t.ApplyTotal += time.Duration(c.total.Load())
		t.ApplyLast = max(t.ApplyLast, time.Duration(c.last.Load()))
	}
	return t
}
