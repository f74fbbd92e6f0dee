package main

import (
	"context"

	"relay/loop"
	"relay/loop/reactor"
	"relay/store/state"
)

// A lane counts the limits of all loops on one goroutine, in memory.
type lane struct {
	box  *loop.Mailbox[*state.Reservation]
	wake chan struct{} // holds one
	life context.Context
	end  context.CancelFunc
	done chan struct{}
}

func newLane() *lane {
	l := &lane{wake: make(chan struct{}, 1), done: make(chan struct{})}
	l.life, l.end = context.WithCancel(context.Background())
	l.box = loop.NewMailbox[*state.Reservation](lanePendingMax, func() {
		select {
		case l.wake <- struct{}{}:
		default: // woken already
		}
	})
	return l
}

func (l *lane) start(post func(int, loop.Message) bool) {
	go func() {
		defer close(l.done)
		reactor.RunLane(l.life, state.NewMemory(), l.box, l.wake, post)
	}()
}

func (l *lane) stop() {
	l.end()
	<-l.done
}
