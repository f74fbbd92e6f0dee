//go:build integration

package shared

import (
	"net/http"
	"testing"
	"time"
)

// moves is a catalog in which two keys are under policies that may change, and
// a limit has an amount that may change.
func moves(mover, runner, amount string) []tenant {
	return []tenant{
		{name: "first", limits: []string{"meter: requests, amount: " + amount + ", window: 24h, strategy: fixed-window"}},
		{name: "second", limits: []string{"meter: requests, amount: 2, window: 24h, strategy: fixed-window"}},
		{name: "third", limits: []string{"meter: concurrency, amount: 2"}},
		{name: "fourth", limits: []string{"meter: concurrency, amount: 2"}},
		{name: "mover", policy: mover},
		{name: "runner", policy: runner},
	}
}

// passes makes calls in turn at the relays, and counts how many are let through
// before some are refused at every relay.
func (f *fleet) passes(q question) (n int) {
	f.t.Helper()
	for refused, i := 0, 0; refused < 2*len(f.relays); i++ {
		if i > 100 {
			f.t.Errorf("%s is never refused", q.name)
			break
		}
		switch a := f.ask(i%len(f.relays), q); a.status {
		case http.StatusOK:
			n++
			refused = 0
		case http.StatusTooManyRequests:
			refused++
		default:
			f.t.Errorf("%s: status %d: %v %s", q.name, a.status, a.err, a.body)
			refused++
		}
	}
	return n
}

// TestMoves moves keys between policies and changes a limit while requests run:
// counters belong to policies and stay with them.
func TestMoves(t *testing.T) {
	t.Parallel()
	eachBackend(t, moves("first", "third", "3"), func(t *testing.T, f *fleet) {
		awayFrom(24 * time.Hour)
		want := func(what string, q question, n int) {
			t.Helper()
			if got := f.passes(q); got != n {
				t.Errorf("%s: %d calls of %s pass, want %d", what, got, q.name, n)
			}
		}
		mover, last := question{name: "mover"}, len(f.relays)-1
		for i := range 2 {
			if a := f.ask(i%len(f.relays), mover); a.status != http.StatusOK {
				t.Errorf("call %d: %d", i, a.status)
			}
		}
		var held []*stream
		for i := range 2 {
			held = append(held, f.open(i%len(f.relays), question{name: "runner", words: "hold=60s"}))
		}
		shaped(t, question{name: "third"}, f.ask(last, question{name: "third"}), http.StatusTooManyRequests)

		f.reload(moves("second", "fourth", "3"))
		want("moved", mover, 2)
		want("under the policy that it has left", question{name: "first"}, 1)
		f.fills("moved, while streams run under the other policy", 5*time.Second, 2, question{name: "runner"})
		shaped(t, question{name: "third"}, f.ask(0, question{name: "third"}), http.StatusTooManyRequests)
		for _, s := range held {
			s.leave()
			<-s.done
		}
		f.fills("the streams have ended", 5*time.Second, 2, question{name: "third"})
		f.fills("the streams have ended", 5*time.Second, 2, question{name: "fourth"})

		f.reload(moves("first", "third", "3"))
		want("moved back", mover, 0)
		f.reload(moves("first", "third", "5"))
		want("with a larger limit", mover, 2)
		f.reload(moves("first", "third", "1"))
		want("with a smaller limit", mover, 0)
		for _, r := range f.relays {
			r.awaitQuiet()
		}
	})
}
