package reactor

import (
	"context"
	"time"

	"relay/loop"
	"relay/store/state"
)

// A Store applies reservations; *state.Memory is one. It is used by one lane.
type Store interface {
	Apply(nowNs int64, batch []*state.Reservation)
}

// RunLane takes reservations out of box, has the store answer them, and posts
// each Reserve back to its loop. wake is sent to by the box. post is one try;
// a full mailbox is tried again, since an answer always comes back once. A
// Release is not answered, and not touched after Apply. It runs until ctx ends.
func RunLane(ctx context.Context, store Store, box *loop.Mailbox[*state.Reservation], wake <-chan struct{}, post func(index int, m loop.Message) bool) {
	started := time.Now()
	var spare, answers []*state.Reservation
	for {
		select {
		case <-ctx.Done():
			return
		case <-wake:
		}
		batch := box.Take(spare)
		spare = batch
		if len(batch) == 0 {
			continue
		}
		answers = answers[:0]
		for _, r := range batch {
			if r.Verb == state.Reserve {
				answers = append(answers, r)
			}
		}
		store.Apply(int64(time.Since(started)), batch)
		for i, r := range answers {
			answers[i] = nil
			for !post(r.Loop, r.Owner.(loop.Message)) {
				select {
				case <-ctx.Done():
					return
				case <-time.After(postPause):
				}
			}
		}
	}
}

// Post gives a loop a message. It reports false when its mailbox is full.
func (r *Reactor) Post(index int, m loop.Message) bool { return r.shards[index].core.Post(m) }
