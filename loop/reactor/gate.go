package reactor

import (
	"net"
	"sync"
	"time"
)

// A gate gives out the places for client connections: at most max at a time,
// each on the loop that has the fewest. Connections past that wait in a queue,
// first come, first served. It is used once at the start and once at the end
// of a connection.
type gate struct {
	max      int
	queueMax int
	wait     time.Duration
	kick     chan struct{} // wakes Reactor.admitQueued

	mu      sync.Mutex
	open    int
	perLoop []int
	waiting []arrival // in order of arrival, so in order of deadline
	shutOff bool      // nobody is let in any more
}

// An arrival is an accepted connection that has no place yet.
type arrival struct {
	conn     *net.TCPConn
	from     *listener
	deadline time.Time
}

// A verdict is what becomes of an arrival.
type verdict uint8

const (
	admitted verdict = iota // has a place on a loop
	queued                  // waits
	refused                 // gets a 503
)

func newGate(o Options) *gate {
	return &gate{
		max:      o.MaxConns,
		queueMax: o.ConnQueue,
		wait:     o.ConnQueueTimeout,
		kick:     make(chan struct{}, 1),
		perLoop:  make([]int, o.Loops),
	}
}

// arrive finds a place for a new connection; index is its loop if admitted.
func (g *gate) arrive(c *net.TCPConn, from *listener) (index int, v verdict) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.shutOff:
		return 0, refused
	case g.open < g.max && len(g.waiting) == 0:
		return g.place(), admitted
	case len(g.waiting) >= g.queueMax:
		return 0, refused
	}
	g.waiting = append(g.waiting, arrival{c, from, time.Now().Add(g.wait)})
	if len(g.waiting) == 1 {
		g.signal()
	}
	return 0, queued
}

// place takes a place on the loop with the fewest clients; g.mu is held.
func (g *gate) place() int {
	index := 0
	for i, n := range g.perLoop {
		if n < g.perLoop[index] {
			index = i
		}
	}
	g.perLoop[index]++
	g.open++
	return index
}

// leave gives a place back. Any goroutine.
func (g *gate) leave(index int) {
	g.mu.Lock()
	g.perLoop[index]--
	g.open--
	if len(g.waiting) > 0 {
		g.signal()
	}
	g.mu.Unlock()
}

// next takes the first arrival for which something is decided. Without one it
// reports queued, and until when the first may wait; zero when none does.
func (g *gate) next(now time.Time) (a arrival, index int, v verdict, until time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) == 0 {
		g.waiting = nil
		return a, 0, queued, time.Time{}
	}
	a = g.waiting[0]
	switch {
	case g.shutOff || !now.Before(a.deadline):
		v = refused
	case g.open < g.max:
		index, v = g.place(), admitted
	default:
		return arrival{}, 0, queued, a.deadline
	}
	g.waiting[0] = arrival{}
	g.waiting = g.waiting[1:]
	return a, index, v, time.Time{}
}

// shut refuses all that wait and all that come.
func (g *gate) shut() {
	g.mu.Lock()
	g.shutOff = true
	g.signal()
	g.mu.Unlock()
}

func (g *gate) signal() {
	select {
	case g.kick <- struct{}{}:
	default:
	}
}

// count reports the open connections of each loop, and how many wait.
func (g *gate) count() (perLoop []int, waiting int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]int(nil), g.perLoop...), len(g.waiting)
}

// admitQueued lets queued connections in as others leave, and refuses those
// that have waited too long.
func (r *Reactor) admitQueued() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-r.life.Done():
			r.gate.shut()
			for a, _, v, _ := r.gate.next(time.Now()); v == refused; a, _, v, _ = r.gate.next(time.Now()) {
				_ = a.conn.Close()
			}
			return
		case <-r.gate.kick:
		case <-timer.C:
		}
		for {
			a, index, v, until := r.gate.next(time.Now())
			if v == queued {
				if !until.IsZero() {
					timer.Reset(time.Until(until))
				}
				break
			}
			if v == admitted {
				a.from.enter(a.conn, index)
			} else {
				a.from.refuse(a.conn)
			}
		}
	}
}
