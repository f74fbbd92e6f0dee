package redis

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/rueidis"
)

// suspect has nothing sent to a tag until a probe of it was answered. The lane
// calls it. Every tag has a probe of its own, as those of a cluster may be on
// several nodes, of which only one is gone.
func (l *Lane) suspect(tag int) {
	if l.down[tag].Swap(true) {
		return
	}
	// A server may answer probes and nothing else.
	again := time.Since(l.tags[tag].downAt) < 2*probeAfter
	l.tags[tag].downAt = time.Now()
	l.store.done.Go(func() { l.revive(tag, again) })
}

// distrust suspects all tags that did not answer in an exchange in which one
// stayed silent: they may be on the same node, and each would cost a batch its
// whole deadline. It costs those that are not a moment.
func (l *Lane) distrust() {
	for i := range l.down {
		if l.ours(i) && !l.answered[i] {
			l.suspect(i)
		}
	}
}

// ours reports whether groups of a tag may be of this lane.
func (l *Lane) ours(tag int) bool {
	lanes := l.store.options.Lanes
	return l.store.tagLane[tag] == l.index/lanes*lanes
}

// revive probes a tag until it answers, or the store is closed. If it is to wait
// it does so before the first time.
func (l *Lane) revive(tag int, wait bool) {
	for {
		if wait {
			select {
			case <-l.store.life.Done():
				return
			case <-time.After(probeAfter):
			}
		}
		if wait = true; !l.store.joined.Load() || l.store.refuse.Load() != nil {
			continue
		}
		ctx, cancel := context.WithTimeout(l.store.life, probeMax)
		err := l.probe(ctx, tag)
		if cancel(); err == nil {
			noteIn(&l.sick, nil)
			l.down[tag].Store(false)
			return
		}
		noteIn(&l.sick, fmt.Errorf("redis: lane %d: %w", l.index, err))
	}
}

// probe asks for something small of a tag, and makes the client if there is none.
func (l *Lane) probe(ctx context.Context, tag int) error {
	l.dial.Lock()
	if l.client == nil {
		client, err := l.store.endpoint.dial(fmt.Sprintf("relay-%x-%d", l.store.options.Process, l.index), l.dialer())
		if err != nil {
			l.dial.Unlock()
			return err
		}
		l.client = client
	}
	l.dial.Unlock()
	err := l.client.Do(ctx, l.client.B().Get().Key(tagName(tag)+"meta").Build()).Error()
	if errors.Is(err, rueidis.Nil) {
		return nil
	}
	return err
}
