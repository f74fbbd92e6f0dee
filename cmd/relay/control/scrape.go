package control

import (
	"sync"
	"time"

	"relay/loop"
)

// A Poster is a loop as others see it; see loop.Loop.Post.
type Poster interface {
	Post(loop.Message) bool
}

// An Answer is what one loop said about itself.
type Answer struct {
	OK      bool // false: the loop did not answer in time
	Drained bool
	Metrics *loop.Metrics // nil unless OK
}

// Ask asks all loops at once and returns their answers by index, after timeout
// at the latest.
func Ask(loops []Poster, timeout time.Duration) []Answer {
	answers := make([]Answer, len(loops))
	type reply struct {
		index  int
		scrape *loop.Scrape
	}
	replies := make(chan reply, len(loops)) // room for all: a loop never waits here
	asked := 0
	for i, l := range loops {
		s := &loop.Scrape{}
		s.Reply = func(s *loop.Scrape) { replies <- reply{i, s} }
		if l.Post(s) {
			asked++
		}
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for range asked {
		select {
		case r := <-replies:
			answers[r.index] = Answer{OK: true, Drained: r.scrape.Drained, Metrics: &r.scrape.Metrics}
		case <-timer.C:
			return answers
		}
	}
	return answers
}

// A memory keeps the last counters of each loop, so that a sum does not fall
// while a loop is stuck.
type memory struct {
	mu   sync.Mutex
	last []*loop.Metrics
}

// fill remembers what came and returns, by loop, the newest that is known
// (nil: never heard of).
func (m *memory) fill(answers []Answer) []*loop.Metrics {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last == nil {
		m.last = make([]*loop.Metrics, len(answers))
	}
	for i, a := range answers {
		if a.OK {
			m.last[i] = a.Metrics
		}
	}
	return append([]*loop.Metrics(nil), m.last...)
}
