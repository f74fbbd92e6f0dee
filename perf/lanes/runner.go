package lanes

import (
	"sync"
	"time"

	"relay/store/state"
)

// A runner is a lane: it has all that waits counted at once, and posts the
// answers to the loops. Owner of the store: its goroutine.
type runner struct {
	store state.Store
	owes  func() bool // the store has to be told something that no Op will tell
	loops []*box[*state.Op]
	box   box[*state.Op]
	woken chan struct{}
	stop  chan struct{}
	ended sync.WaitGroup
}

// startRunner starts a lane of these loops.
func startRunner(store state.Store, owes func() bool, loops []*box[*state.Op]) *runner {
	r := &runner{store: store, owes: owes, loops: loops, woken: make(chan struct{}, 1), stop: make(chan struct{})}
	r.box.wake = func() { r.woken <- struct{}{} }
	r.ended.Go(r.run)
	return r
}

func (r *runner) run() {
	var batch []*state.Op
	answers := make([][]*state.Op, len(r.loops))
	for {
		var owed <-chan time.Time
		if r.owes() {
			owed = time.After(owedEvery)
		}
		select {
		case <-r.woken:
		case <-owed:
		case <-r.stop:
			return
		}
		batch = r.box.take(batch)
		r.store.Apply(time.Now().UnixNano(), batch)
		for _, o := range batch {
			answers[o.Loop] = append(answers[o.Loop], o)
		}
		for i, list := range answers {
			if len(list) > 0 {
				r.loops[i].put(list...)
				clear(list)
				answers[i] = list[:0]
			}
		}
	}
}

func (r *runner) close() {
	close(r.stop)
	r.ended.Wait()
}
