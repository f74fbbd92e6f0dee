package reactor

import (
	"context"
	"time"

	"relay/loop"
	"relay/store/state"
)

// A debtor is a store that may have something to tell that no Op tells: then
// an empty batch is due.
type debtor interface{ Owes() bool }

// RunLane takes Ops out of box, has the store answer them, and posts each back
// to its loop. wake is sent to by the box. post is one try; a full mailbox is
// tried again, since an answer always comes back once. A store that owes gets
// an empty batch each owedEvery.
//
// It runs until ctx ends. What is in the box then is still answered, by one try
// each: the loops may have ended. A store that owes has laneEndMax to tell it.
func RunLane(ctx context.Context, store state.Store, box *loop.Mailbox[*state.Op], wake <-chan struct{}, post func(index int, m loop.Message) bool) {
	began := time.Now()
	l := &lane{store: store, box: box, post: post, began: began, unixNs: began.UnixNano()}
	l.debtor, _ = store.(debtor)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		var due <-chan time.Time
		if l.owes() {
			timer.Reset(owedEvery)
			due = timer.C
		}
		select {
		case <-ctx.Done():
			l.end(ctx)
			return
		case <-wake:
			l.work(ctx)
		case <-due:
			l.apply(nil)
		}
	}
}

// A lane is one run of RunLane. Owner: its goroutine.
type lane struct {
	store  state.Store
	debtor debtor // the store, if it is one
	box    *loop.Mailbox[*state.Op]
	spare  []*state.Op // memory of the batch before
	post   func(int, loop.Message) bool
	began  time.Time
	unixNs int64 // time of day then
}

// apply gives the store a batch at the lane's time: that of day at its start,
// and what has passed since. It does not follow a clock that is set back.
func (l *lane) apply(batch []*state.Op) {
	l.store.Apply(l.unixNs+int64(time.Since(l.began)), batch)
}

func (l *lane) owes() bool { return l.debtor != nil && l.debtor.Owes() }

// work answers what is in the box, and reports whether there was anything.
func (l *lane) work(ctx context.Context) bool {
	batch := l.box.Take(l.spare)
	l.spare = batch
	if len(batch) == 0 {
		return false
	}
	l.apply(batch)
	for i, o := range batch {
		batch[i] = nil // it is the loop's from here
		for !l.post(o.Loop, loop.Answer{Op: o}) && ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-time.After(postPause):
			}
		}
	}
	return true
}

// end answers what is left, and lets the store tell what it owes.
func (l *lane) end(ctx context.Context) {
	for l.work(ctx) {
	}
	for end := time.Now().Add(laneEndMax); l.owes() && time.Now().Before(end); {
		l.apply(nil)
		if l.owes() {
			time.Sleep(owedPause)
		}
	}
}

// Post gives a loop a message. It reports false when its mailbox is full.
func (r *Reactor) Post(index int, m loop.Message) bool { return r.shards[index].core.Post(m) }
