package reactor

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/panjf2000/gnet/v2"

	"relay/loop"
)

// A shard is one event loop with the Core on it. Owner: the loop's goroutine,
// except for the atomic fields.
type shard struct {
	r     *Reactor
	index int
	core  Core
	el    gnet.EventLoop
	epfd  int // gnet's epoll descriptor
	bell  *bell

	busy     bool      // a callback runs: what gnet reports now is noted in due
	asked    bool      // a callback asked for mail: see awaitMail
	beganNs  int64     // when the last callback began
	gapNs    int64     // how long after the one before that was
	wishNs   int64     // when the Core wants a tick at the latest; 0 = whenever
	due      []*socket // to be settled after the current callback, in order
	draining []*socket // wait for OnDrained
	attended []*socket // need the tick: see socket.attend
	drained  []*socket // tick's scratch
	plain    []byte    // decrypted text of the current read
	cipher   []byte    // encrypted text of the current write

	mail     atomic.Uint32 // mailState
	hurried  atomic.Bool   // something waits that only ticks attend to
	tickedNs atomic.Int64  // when the outstanding tick was posted; 0 = none
	enrolls  chan enrollment
	counts   shardCounters
}

// A mailState says what the loop knows of its mailbox.
type mailState = uint32

const (
	mailHeld   mailState = iota // the loop has not started; a wake is remembered
	mailNoted                   // as mailHeld, and there was one
	mailIdle                    // the next wake posts a task
	mailPosted                  // a task or the bell is on its way
	mailRuns                    // the loop reads its mail
	mailAgain                   // as mailRuns, and there was a wake since
	mailShut                    // the loop ends: gnet's wake-up descriptor may be another's
)

// mailWoken is what a wake makes of a state.
var mailWoken = [...]mailState{
	mailHeld:   mailNoted,
	mailNoted:  mailNoted,
	mailIdle:   mailPosted,
	mailPosted: mailPosted,
	mailRuns:   mailAgain,
	mailAgain:  mailAgain,
	mailShut:   mailShut,
}

func newShard(r *Reactor, index int) *shard {
	return &shard{
		r:       r,
		index:   index,
		plain:   make([]byte, plainBytesMax),
		enrolls: make(chan enrollment, enrollQueueMax),
	}
}

// start lets wakes through.
func (l *shard) start() {
	if !l.mail.CompareAndSwap(mailHeld, mailIdle) {
		l.mail.Store(mailPosted)
		l.postMail()
	}
}

// wake makes the loop run its mail soon. Any goroutine.
func (l *shard) wake() {
	for {
		was := l.mail.Load()
		next := mailWoken[was]
		if next == was {
			return
		}
		if l.mail.CompareAndSwap(was, next) {
			if was == mailIdle {
				l.postMail()
			}
			return
		}
	}
}

func (l *shard) postMail() { _ = l.el.Execute(context.Background(), mailTask{l}) }

// A mailTask is the wake-up of a loop.
type mailTask struct{ shard *shard }

func (t mailTask) Run(context.Context) error {
	t.shard.runMail()
	return nil
}

// runMail reads one batch of mail. What came meanwhile waits until the sockets
// have had their turn.
func (l *shard) runMail() {
	if !l.mail.CompareAndSwap(mailPosted, mailRuns) {
		return
	}
	more := l.handle(workMail, nil)
	if !more && l.mail.CompareAndSwap(mailRuns, mailIdle) {
		return
	}
	if l.mail.CompareAndSwap(mailRuns, mailPosted) || l.mail.CompareAndSwap(mailAgain, mailPosted) {
		l.bell.ring()
	}
}

// postTick posts a tick unless the last one has not run. Ticker's goroutine.
func (l *shard) postTick() {
	if l.tickedNs.CompareAndSwap(0, l.r.monoNs()) {
		_ = l.el.Execute(context.Background(), tickTask{l})
	}
}

// A tickTask is one tick of a loop.
type tickTask struct{ shard *shard }

func (t tickTask) Run(context.Context) error {
	l := t.shard
	l.counts.lag.add(l.r.monoNs() - l.tickedNs.Load())
	l.handle(workTick, nil)
	l.notifyDrained()
	if len(l.draining) == 0 && len(l.attended) == 0 && !l.wishes() {
		l.hurried.Store(false)
	}
	l.tickedNs.Store(0)
	return nil
}

// A work is one kind of callback.
type work uint8

const (
	workOpen    work = iota // socket opened
	workRead                // gnet has bytes
	workAgain               // reading was resumed
	workDrained             // output is low
	workClosed              // connection is gone
	workTick
	workMail
)

// handle is one event: a callback, and what it left to settle.
func (l *shard) handle(w work, s *socket) (more bool) {
	if l.busy {
		panic("BUG: an event inside an event")
	}
	l.busy = true
	more = l.run(w, s)
	l.settle()
	l.busy = false
	if l.asked {
		l.asked = false
		if w == workRead && l.gapNs > int64(quietGap) {
			l.awaitMail()
		}
	}
	return more
}

// awaitMail lets another goroutine, which was made ready by the callback that
// asked it, answer before the loop looks at its sockets: the answer then costs
// no wake-up, which is a write and two waits. It is not worth it on a loop that
// has other events at hand, which would wait for it: there one wake-up brings
// many answers.
func (l *shard) awaitMail() {
	if !l.mail.CompareAndSwap(mailIdle, mailRuns) {
		return
	}
	runtime.Gosched()
	if !l.mail.CompareAndSwap(mailRuns, mailIdle) && l.mail.CompareAndSwap(mailAgain, mailPosted) {
		l.runMail()
	}
}

// run is one callback between Begin and End, inside the panic boundary.
func (l *shard) run(w work, s *socket) (more bool) {
	defer l.boundary(s)
	l.begin()
	switch w {
	case workOpen:
		s.open()
	case workRead:
		s.read()
	case workAgain:
		s.again()
	case workDrained:
		s.conn.OnDrained()
	case workClosed:
		s.conn.OnClosed(s.cause)
	case workTick:
		l.core.Tick()
		l.attend()
	case workMail:
		more = l.core.RunMail()
	}
	l.end()
	return more
}

// begin reads the clock for one callback.
func (l *shard) begin() {
	now := time.Now()
	ns := int64(now.Sub(l.r.started))
	l.gapNs, l.beganNs = ns-l.beganNs, ns
	l.core.Begin(ns, now.UnixNano())
}

// end ends one callback, and sees to it that the next tick comes in time.
func (l *shard) end() {
	asked, wishNs := l.core.End()
	l.asked = l.asked || asked
	l.wishNs = wishNs
	if l.wishes() {
		l.inHurry()
	}
}

// wishes reports whether the Core wants a tick before the next one that comes
// anyway.
func (l *shard) wishes() bool {
	return l.wishNs != 0 && l.wishNs-l.beganNs < int64(loop.TickQuiet)
}

// boundary is deferred by run: a panic costs the connection that it came from.
func (l *shard) boundary(s *socket) {
	p := recover()
	if p == nil {
		return
	}
	l.counts.panics.Add(1)
	l.r.log.Error("panic in a callback", "loop", l.index, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	l.contain(s)
	l.wake() // messages may have been left
}

// contain tells the Core of a panic and closes the connection, whatever the
// Core does.
func (l *shard) contain(s *socket) {
	defer func() {
		if p := recover(); p != nil {
			l.counts.panics.Add(1)
			l.r.log.Error("panic after a panic", "loop", l.index, "panic", fmt.Sprint(p))
		}
		if s != nil {
			s.Close()
		}
	}()
	l.begin()
	if s == nil {
		l.core.Panicked(nil)
	} else {
		l.core.Panicked(s.conn)
	}
	l.end()
}

// settle tells what happened inside the callback: connections that gnet
// closed, and bytes that waited for ResumeRead. It may grow while it runs; it
// ends because every entry uses up a connection or held bytes.
func (l *shard) settle() {
	for i := 0; i < len(l.due); i++ {
		s := l.due[i]
		l.due[i] = nil
		s.due = false
		switch {
		case s.state == lost:
			s.state = dead
			if s.conn != nil {
				l.run(workClosed, s)
			}
		case s.state == live || s.state == ended:
			l.run(workAgain, s)
		}
	}
	l.due = l.due[:0]
}

// inHurry asks for ticks each TickEvery, until nothing waits for them.
func (l *shard) inHurry() {
	if l.hurried.Load() { // only this goroutine writes it
		return
	}
	l.hurried.Store(true)
	select {
	case l.r.hurry <- struct{}{}:
	default: // known already
	}
}

// notifyDrained answers NotifyDrained where output is low.
func (l *shard) notifyDrained() {
	kept := l.draining[:0]
	for _, s := range l.draining {
		switch {
		case s.state != live || s.drainLow < 0:
			s.drainWatched = false
		case s.Buffered() <= s.drainLow:
			s.drainWatched = false
			l.drained = append(l.drained, s)
		default:
			kept = append(kept, s)
		}
	}
	clear(l.draining[len(kept):])
	l.draining = kept
	for i, s := range l.drained {
		l.drained[i] = nil
		// An earlier answer may have closed it or filled it again.
		if s.state == live && s.drainLow >= 0 && s.Buffered() <= s.drainLow {
			s.drainLow = -1
			l.handle(workDrained, s)
		} else if s.state == live && s.drainLow >= 0 {
			s.watchDrain()
		}
	}
	l.drained = l.drained[:0]
}

// attend serves the sockets that cannot rely on gnet's events; see
// socket.attend.
func (l *shard) attend() {
	kept := l.attended[:0]
	for _, s := range l.attended {
		if s.state == live && s.attend() {
			kept = append(kept, s)
		} else {
			s.attending = false
		}
	}
	clear(l.attended[len(kept):])
	l.attended = kept
}
