//go:build integration

package shared

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// A traffic is callers who ask again and again. mu guards what they note.
type traffic struct {
	end  context.CancelFunc
	wait sync.WaitGroup

	mu       sync.Mutex
	answers  map[string]*noted // by name of the question
	firstBad map[string]answer
}

// A noted is what the callers of one question have seen.
type noted struct {
	status map[int]int // 0: no answer
	took   []time.Duration
}

func newTraffic() (*traffic, context.Context) {
	going, end := context.WithCancel(context.Background())
	return &traffic{end: end, answers: make(map[string]*noted), firstBad: make(map[string]answer)}, going
}

// send has so many callers ask one question, each with a pause behind every
// answer, until the traffic stops. Each goes round the relays that run.
func (l *traffic) send(going context.Context, f *fleet, q question, workers int, pause time.Duration, addresses func() []string) {
	for i := range workers {
		l.wait.Go(func() {
			rest(going, pause*time.Duration(i)/time.Duration(workers))
			for n := i; going.Err() == nil; n++ {
				list := addresses()
				l.note(q.name, f.callers.do(context.Background(), list[n%len(list)], q))
				rest(going, pause)
			}
		})
	}
}

// leave has callers that go away at a time before their answer.
func (l *traffic) leave(going context.Context, f *fleet, q question, workers int, patience time.Duration, addresses func() []string) {
	for i := range workers {
		l.wait.Go(func() {
			for n := i; going.Err() == nil; n++ {
				list := addresses()
				impatient, cancel := context.WithTimeout(context.Background(), patience)
				a := f.callers.do(impatient, list[n%len(list)], q)
				cancel()
				l.note(q.name, a)
				rest(going, patience)
			}
		})
	}
}

func (l *traffic) note(name string, a answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.answers[name]
	if n == nil {
		n = &noted{status: make(map[int]int)}
		l.answers[name] = n
	}
	n.status[a.status]++
	if a.status != 0 {
		n.took = append(n.took, a.took)
	}
	if _, known := l.firstBad[name]; !known && a.status != 200 && a.status != 429 && a.status != 0 {
		l.firstBad[name] = a
	}
}

// stop ends the traffic and waits for the last answers.
func (l *traffic) stop() {
	l.end()
	l.wait.Wait()
}

// of is what was seen so far of a name.
func (l *traffic) of(name string) (status map[int]int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	status = make(map[int]int)
	if n := l.answers[name]; n != nil {
		for k, v := range n.status {
			status[k] = v
		}
	}
	return status
}

// String is one line per name, for the log of a test.
func (l *traffic) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var lines []string
	for name, n := range l.answers {
		slices.Sort(n.took)
		line := fmt.Sprintf("%-10s %v", name, n.status)
		if len(n.took) > 0 {
			line += fmt.Sprintf(" p50 %v max %v", middle(n.took), n.took[len(n.took)-1].Round(time.Millisecond))
		}
		if a, bad := l.firstBad[name]; bad {
			line += fmt.Sprintf(" first %d: %.160s", a.status, a.body)
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// middle is the median of sorted times.
func middle(sorted []time.Duration) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[len(sorted)/2].Round(100 * time.Microsecond)
}
