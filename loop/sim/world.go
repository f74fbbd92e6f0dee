package sim

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"time"

	"relay/admit"
	"relay/loop"
	"relay/store/catalog"
	"relay/store/state"
)

// World is one run: the loop, its clock, and everything around it.
type World struct {
	seed    uint64
	rng     *rand.Rand
	nowNs   int64
	queue   events
	order   uint64
	loop    *loop.Loop
	store   *state.Memory
	spool   *spool
	cap     *admit.Inflight
	clients []*client
	sockets []*socket
	trouble trouble

	mailQueued bool
	laneNs     int64 // when the last Op is worked off
	dials      int   // on their way
	quiet      bool
	panics     int
	problems   []string
	seen       map[string]bool // markers of requests that a host has read whole
}

// trouble is how much goes wrong in a run, as chances in a thousand.
type trouble struct {
	panic, dialFail, storeFull, storeLost, spoolFull, syncEvery, upstream, leave, slow int
}

// NewWorld builds a world of a seed.
// tables is the catalog: see Run.
func NewWorld(seed uint64, tables *catalog.Tables) *World {
	w := &World{seed: seed, rng: rand.New(rand.NewPCG(seed, 0x51e)), nowNs: int64(time.Hour), seen: map[string]bool{}}
	w.store = state.NewMemory(1)
	w.cap = admit.NewInflight(int64(4 + w.rng.IntN(60)))
	w.spool = &spool{world: w, rows: map[[16]byte]int{}}
	w.trouble = trouble{
		panic: w.pick(0, 0, 0, 2), dialFail: w.pick(0, 30, 300), storeFull: w.pick(0, 0, 50), storeLost: w.pick(0, 0, 0, 100),
		spoolFull: w.pick(0, 0, 50), syncEvery: w.pick(0, 0, 1000), upstream: w.pick(0, 100, 500),
		leave: w.pick(0, 50, 300), slow: w.pick(0, 100, 500),
	}
	c := loop.Config{
		Loops: 1, RequestBytesMax: 64 << 10, BudgetBytes: int64(w.pick(256<<10, 64<<20)),
		IdlePerHostMax: w.pick(1, 4, 100), StreamIdle: 4 * time.Second, KeepAlive: time.Second, Seed: seed,
	}
	p := loop.Ports{Dial: w.dial, Submit: w.submit, Spool: w.spool, Inflight: w.cap}
	w.loop = loop.New(c, p, tables, w.wake)
	w.after(int64(loop.TickEvery), w.tick)
	return w
}

func (w *World) pick(values ...int) int   { return values[w.rng.IntN(len(values))] }
func (w *World) chance(thousand int) bool { return w.rng.IntN(1000) < thousand }

// delay is a short random time.
func (w *World) delay() int64 { return int64(w.rng.IntN(int(3 * time.Millisecond))) }

// fault notes a broken promise; the run goes on.
func (w *World) fault(format string, a ...any) {
	if len(w.problems) < 20 {
		w.problems = append(w.problems, fmt.Sprintf(format, a...))
	}
}

// after queues do.
func (w *World) after(ns int64, do func()) {
	w.order++
	heap.Push(&w.queue, event{atNs: w.nowNs + ns, order: w.order, do: do})
}

// callback runs do as a driver runs a callback of the loop, panic boundary
// included. c is whose callback it is, or nil.
func (w *World) callback(c loop.Conn, do func()) {
	if w.guard(c, do) {
		w.panics++
		w.guard(nil, func() { w.loop.Panicked(c) })
		for _, s := range w.sockets { // a driver closes the socket, whatever the loop did
			if c != nil && s.conn == c {
				s.Close()
			}
		}
	}
}

func (w *World) guard(c loop.Conn, do func()) (panicked bool) {
	defer func() {
		if r := recover(); r != nil {
			panicked = true
			if r != injected {
				w.fault("panic: %v", r)
				panic(r)
			}
		}
	}()
	w.loop.Begin(w.nowNs, w.wallNs())
	do()
	w.loop.End()
	return false
}

// injected is what an injected panic carries.
const injected = "sim: injected panic"

func (w *World) tick() {
	w.callback(nil, w.loop.Tick)
	every := int64(loop.TickEvery)
	if w.quiet {
		every = int64(time.Second)
	}
	w.after(every, w.tick)
}

func (w *World) wake() {
	if !w.mailQueued {
		w.mailQueued = true
		w.after(w.delay(), w.runMail)
	}
}

func (w *World) runMail() {
	w.mailQueued = false
	more := false
	w.callback(nil, func() { more = w.loop.RunMail() })
	if more {
		w.wake()
	}
}

// wallNs is the time of day, which is also the store's.
func (w *World) wallNs() int64 { return w.nowNs + 1e18 }

// submit is the lane to the store: Ops come back in order.
func (w *World) submit(o *state.Op) bool {
	if w.chance(w.trouble.storeFull) {
		return false
	}
	w.laneNs = max(w.laneNs, w.nowNs+w.delay())
	w.after(w.laneNs-w.nowNs, func() {
		if w.chance(w.trouble.storeLost) {
			w.lose(o)
		} else {
			w.store.Apply(w.wallNs(), []*state.Op{o})
		}
		if !w.loop.Post(loop.Answer{Op: o}) {
			w.fault("mailbox full")
		}
	})
	return true
}

// lose answers that the store is lost. What the Op says of slots, and of what
// was used, a lane keeps and tells the store later: here at once.
func (w *World) lose(o *state.Op) {
	o.Want, o.Need, o.More = [state.RulesMax]int64{}, [state.RulesMax]int64{}, [state.RulesMax]int64{}
	w.store.Apply(w.wallNs(), []*state.Op{o})
	o.Lose()
}

// dial is the dialer.
func (w *World) dial(d *loop.Dial) bool {
	if w.chance(w.trouble.dialFail / 10) {
		return false
	}
	w.dials++
	fails := w.chance(w.trouble.dialFail)
	slow := w.chance(w.trouble.dialFail)
	wait := w.delay()
	if slow {
		wait = int64(w.rng.IntN(int(6 * time.Second)))
	}
	w.after(wait, func() {
		w.dials--
		if fails {
			d.Fault = loop.DialFault(1 + w.rng.IntN(5))
			w.loop.Post(d)
			return
		}
		s := newSocket(w, newUpstream(w, d.Host))
		w.callback(nil, func() { s.conn = w.loop.Opened(s, d) })
	})
	return true
}

type event struct {
	atNs  int64
	order uint64
	do    func()
}

type events []event

func (q events) Len() int { return len(q) }
func (q events) Less(i, j int) bool {
	if q[i].atNs != q[j].atNs {
		return q[i].atNs < q[j].atNs
	}
	return q[i].order < q[j].order
}
func (q events) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *events) Push(x any)   { *q = append(*q, x.(event)) }
func (q *events) Pop() any {
	old := *q
	e := old[len(old)-1]
	old[len(old)-1] = event{}
	*q = old[:len(old)-1]
	return e
}

// step runs the next event.
func (w *World) step() {
	e := heap.Pop(&w.queue).(event)
	w.nowNs = max(w.nowNs, e.atNs)
	e.do()
}
