package reactor

import (
	"sync/atomic"
	"time"

	"relay/loop"
)

// LagBounds are the upper bounds of the lag histogram's buckets; one more
// bucket holds what is above the last.
var LagBounds = [...]time.Duration{
	100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond,
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, time.Second, 5 * time.Second,
}

// A LagHistogram counts ticks by how long after their posting they ran.
type LagHistogram struct {
	Counts [len(LagBounds) + 1]uint64
	Sum    time.Duration
}

// Stats is a picture of a Reactor. Counts only grow; the other numbers are of
// the moment.
type Stats struct {
	Loops []LoopStats

	Waiting         int    // accepted connections that wait for a place, now
	Accepted        uint64 // got a place
	Queued          uint64 // had to wait for one
	Refused         uint64 // were answered 503, or closed
	AcceptExhausted uint64 // accepts that found no descriptor (EMFILE, ENFILE)
	AcceptFailed    uint64 // accepts that failed otherwise
	Untrusted       uint64 // closed: may not send a PROXY header
	EnrollFailed    uint64 // accepted connections that their loop could not take
	EnrollFull      uint64 // closed because too many waited for their loop

	Handshakes        int // inbound handshakes that run, now
	HandshakesDone    uint64
	HandshakesFailed  uint64
	HandshakesEvicted uint64 // silent ones that were closed because others wanted their place

	Dialing int // dials that run, now
	Dials   [loop.DialExhausted + 1]uint64
}

// LoopStats are of one loop.
type LoopStats struct {
	Clients   int // open, or on their way in
	Upstreams int // open
	Panics    uint64
	Pauses    uint64 // times that reading was paused
	Lag       LagHistogram
	LagNow    time.Duration // age of a tick that has not run yet; 0 when none waits
}

// counters are those that no single loop owns.
type counters struct {
	accepted, queued, refused                atomic.Uint64
	acceptExhausted, acceptFailed, untrusted atomic.Uint64
	enrollFailed, enrollFull                 atomic.Uint64
	handshakesDone, handshakesFailed         atomic.Uint64
	dials                                    [loop.DialExhausted + 1]atomic.Uint64
}

// shardCounters are written by the shard's goroutine only.
type shardCounters struct {
	upstreams atomic.Int64
	panics    atomic.Uint64
	pauses    atomic.Uint64
	lag       lagCounter
}

type lagCounter struct {
	counts [len(LagBounds) + 1]atomic.Uint64
	sumNs  atomic.Int64
}

func (c *lagCounter) add(ns int64) {
	i := 0
	for i < len(LagBounds) && ns > int64(LagBounds[i]) {
		i++
	}
	c.counts[i].Add(1)
	c.sumNs.Add(ns)
}

// Stats may be called from any goroutine, also while loops are stuck.
func (r *Reactor) Stats() Stats {
	perLoop, waiting := r.gate.count()
	c := &r.counts
	st := Stats{
		Waiting: waiting, Accepted: c.accepted.Load(), Queued: c.queued.Load(), Refused: c.refused.Load(),
		AcceptExhausted: c.acceptExhausted.Load(), AcceptFailed: c.acceptFailed.Load(), Untrusted: c.untrusted.Load(),
		EnrollFailed: c.enrollFailed.Load(), EnrollFull: c.enrollFull.Load(),
		HandshakesDone: c.handshakesDone.Load(), HandshakesFailed: c.handshakesFailed.Load(),
		Dialing: r.dialer.count(),
	}
	st.Handshakes, st.HandshakesEvicted = r.lobby.count()
	for i := range st.Dials {
		st.Dials[i] = c.dials[i].Load()
	}
	now := r.monoNs()
	for i, l := range r.shards {
		one := LoopStats{
			Clients: perLoop[i], Upstreams: int(l.counts.upstreams.Load()),
			Panics: l.counts.panics.Load(), Pauses: l.counts.pauses.Load(),
		}
		for b := range one.Lag.Counts {
			one.Lag.Counts[b] = l.counts.lag.counts[b].Load()
		}
		one.Lag.Sum = time.Duration(l.counts.lag.sumNs.Load())
		if at := l.tickedNs.Load(); at != 0 {
			one.LagNow = time.Duration(max(0, now-at))
		}
		st.Loops = append(st.Loops, one)
	}
	return st
}
