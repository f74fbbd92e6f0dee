package main

import (
	"context"
	"sync"

	"relay/loop"
	"relay/loop/reactor"
	"relay/store/state"
)

// A lane asks a store about some of the counter groups, for all loops, on a
// goroutine of its own.
type lane struct {
	store state.Store
	box   *loop.Mailbox[*state.Op]
	wake  chan struct{} // holds one
}

// lanes are those of a process. A group is always with the same one.
type lanes struct {
	list    []*lane
	of      func(group uint64) int // place in list
	life    context.Context
	end     context.CancelFunc
	running sync.WaitGroup
}

// newLanes makes a lane in front of each store, in which at most pending Ops
// wait.
func newLanes(stores []state.Store, pending int, of func(group uint64) int) *lanes {
	l := &lanes{of: of}
	l.life, l.end = context.WithCancel(context.Background())
	for _, s := range stores {
		one := &lane{store: s, wake: make(chan struct{}, 1)}
		one.box = loop.NewMailbox[*state.Op](pending, func() {
			select {
			case one.wake <- struct{}{}:
			default: // woken already
			}
		})
		l.list = append(l.list, one)
	}
	return l
}

// submit gives an Op to the lane of its group. It reports false when that has
// no room. Any goroutine.
func (l *lanes) submit(o *state.Op) bool { return l.list[l.of(o.Group.ID)].box.Put(o) }

// start lets the lanes run. post is one try to give a loop a message.
func (l *lanes) start(post func(int, loop.Message) bool) {
	for _, one := range l.list {
		l.running.Go(func() { reactor.RunLane(l.life, one.store, one.box, one.wake, post) })
	}
}

// stop ends the lanes: what they hold is answered, and what stores owe is told
// as far as that goes in a second or so.
func (l *lanes) stop() {
	l.end()
	l.running.Wait()
}

// pending is how many Ops wait.
func (l *lanes) pending() (n int) {
	for _, one := range l.list {
		n += one.box.Len()
	}
	return n
}
