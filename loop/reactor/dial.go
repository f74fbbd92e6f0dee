package reactor

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"relay/loop"
	"relay/store/catalog"
)

// A dialer opens upstream connections for the loops. Its dispatch goroutine
// decides who is dialed when; each dial then runs on a goroutine of its own.
//
// Fairness: dials of one host are served in order, hosts in turn. A host has
// at most dialsPerHostMax running, so one that swallows connections leaves
// room for others; and at most max_connections open or being opened.
type dialer struct {
	r       *Reactor
	inbox   *loop.Mailbox[*loop.Dial]
	kick    chan struct{} // something changed
	origins origins

	mu      sync.Mutex
	running int
	lines   map[lineKey]*dialLine
	queue   []*dialLine // those with waiting dials, next first
}

// A lineKey tells hosts apart over generations of the catalog.
type lineKey struct {
	endpoint uint64
	name     string
}

// A dialLine is what the dialer knows of one host. Guarded by dialer.mu. It
// exists while anything is open, running or waiting.
type dialLine struct {
	key     lineKey
	open    int // connections, those being dialed included
	running int // being dialed
	waiting []waitingDial
	asked   time.Time // when Yield was last called for those that wait
}

// A waitingDial waits for its turn, in order of arrival.
type waitingDial struct {
	dial     *loop.Dial
	deadline time.Time
}

// full says that the host of d may not have another connection.
func (n *dialLine) full(d *loop.Dial) bool {
	return d.Host.MaxConnections > 0 && n.open >= d.Host.MaxConnections
}

func newDialer(r *Reactor) *dialer {
	d := &dialer{r: r, kick: make(chan struct{}, 1), lines: map[lineKey]*dialLine{}}
	d.inbox = loop.NewMailbox[*loop.Dial](dialQueueMax, d.signal)
	return d
}

func (d *dialer) signal() {
	select {
	case d.kick <- struct{}{}:
	default:
	}
}

// A failure is a dial that goes back to its loop without a connection.
type failure struct {
	dial  *loop.Dial
	fault loop.DialFault
	text  string
}

// dispatch runs until the reactor stops.
func (d *dialer) dispatch() {
	var spare []*loop.Dial
	var back []failure // wait for room in their loop's mailbox
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-d.r.life.Done():
			return
		case <-d.kick:
		case <-timer.C:
		}
		batch := d.inbox.Take(spare)
		failed, yields, until := d.arrange(batch, time.Now())
		spare = batch
		if d.r.options.Yield != nil {
			for _, host := range yields {
				d.r.options.Yield(host)
			}
		}
		for _, f := range failed {
			d.r.counts.dials[f.fault].Add(1)
		}
		back = slices.DeleteFunc(append(back, failed...), d.r.giveBack)
		if len(back) > 0 {
			until = time.Now().Add(postPause)
		}
		if !until.IsZero() {
			timer.Reset(time.Until(until))
		}
	}
}

// arrange queues new dials, starts those whose turn it is, and drops those
// that have waited for too long. yields are hosts that are full while a dial
// waits; they are asked again and again, since a connection may become idle on
// another loop at any time. until is when there is something to do without a
// kick; zero when nothing waits.
func (d *dialer) arrange(batch []*loop.Dial, now time.Time) (failed []failure, yields []*catalog.Host, until time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, dial := range batch {
		n := d.line(dial.Host)
		if len(n.waiting) >= dialWaitMax {
			failed = append(failed, failure{dial, loop.DialFull, fmt.Sprintf("%d dials wait for host %s already", dialWaitMax, dial.Host.Name)})
			continue
		}
		if len(n.waiting) == 0 {
			d.queue = append(d.queue, n)
		}
		n.waiting = append(n.waiting, waitingDial{dial, now.Add(dial.Host.Timeouts.Connect)})
	}
	for stuck := 0; stuck < len(d.queue); {
		n := d.queue[0]
		first := n.waiting[0]
		f, gone := n.expired(first, now)
		switch {
		case gone:
			failed = append(failed, f)
		case d.running < dialsMax && n.running < dialsPerHostMax && !n.full(first.dial):
			d.start(n, first.dial)
		default:
			next := first.deadline
			if n.full(first.dial) {
				if now.Sub(n.asked) >= yieldEvery {
					n.asked = now
					yields = append(yields, first.dial.Host)
				}
				next = earliest(next, n.asked.Add(yieldEvery))
			}
			until = earliest(until, next)
			d.queue = append(d.queue[1:], n)
			stuck++
			continue
		}
		stuck = 0
		n.waiting[0] = waitingDial{}
		n.waiting = n.waiting[1:]
		d.queue = d.queue[1:]
		if len(n.waiting) > 0 {
			d.queue = append(d.queue, n)
		} else {
			n.waiting = nil
			d.prune(n)
		}
	}
	return failed, yields, until
}

// earliest is the earlier of two times, of which a zero one is none.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// expired says what becomes of a dial that has waited for too long.
func (n *dialLine) expired(first waitingDial, now time.Time) (f failure, gone bool) {
	switch {
	case now.Before(first.deadline):
		return failure{}, false
	case n.full(first.dial):
		text := fmt.Sprintf("max_connections %d of host %s are in use", first.dial.Host.MaxConnections, n.key.name)
		return failure{first.dial, loop.DialFull, text}, true
	}
	text := fmt.Sprintf("no turn within %v: %d dials to host %s run", first.dial.Host.Timeouts.Connect, n.running, n.key.name)
	return failure{first.dial, loop.DialExhausted, text}, true
}

// line finds or makes the line of a host; d.mu is held.
func (d *dialer) line(h *catalog.Host) *dialLine {
	key := lineKey{h.Endpoint, h.Name}
	n := d.lines[key]
	if n == nil {
		n = &dialLine{key: key}
		d.lines[key] = n
	}
	return n
}

// start lets a dial run; d.mu is held.
func (d *dialer) start(n *dialLine, dial *loop.Dial) {
	d.running++
	n.running++
	n.open++
	d.r.spawn(func() { d.run(n, dial) })
}

// finished ends a dial, whatever came of it.
func (d *dialer) finished(n *dialLine) {
	d.mu.Lock()
	d.running--
	n.running--
	d.mu.Unlock()
	d.signal()
}

// closed takes one connection off its host's count. Any goroutine.
func (d *dialer) closed(n *dialLine) {
	d.mu.Lock()
	n.open--
	waits := len(n.waiting) > 0
	d.prune(n)
	d.mu.Unlock()
	if waits {
		d.signal()
	}
}

// prune forgets a line that stands for nothing; d.mu is held.
func (d *dialer) prune(n *dialLine) {
	if n.open == 0 && len(n.waiting) == 0 {
		delete(d.lines, n.key)
	}
}

// giveBack posts a failed dial to its loop, and reports false when the loop's
// mailbox is full.
func (r *Reactor) giveBack(f failure) bool {
	f.dial.Fault, f.dial.Text = f.fault, f.text
	return r.shards[f.dial.Loop].core.Post(f.dial)
}

// count is how many dials run.
func (d *dialer) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.running
}
