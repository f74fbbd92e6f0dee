package reactor

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"relay/loop"
	"relay/store/state"
)

// An oddStore answers Ops of loops with an odd number with their own number,
// and owes until it has had a number of empty batches.
type oddStore struct {
	owing   int
	empties []time.Time
	ops     int
	calls   int
	lastNs  int64
}

func (s *oddStore) Apply(nowNs int64, batch []*state.Op) {
	s.calls++
	if nowNs < s.lastNs {
		panic("the lane's clock goes back")
	}
	s.lastNs = nowNs
	if len(batch) == 0 {
		s.empties = append(s.empties, time.Now())
		s.owing--
	}
	for _, o := range batch {
		s.ops++
		o.Begin()
		if o.Loop%2 == 1 {
			o.Got[0] = int64(o.Loop)
		}
	}
}

func (s *oddStore) Owes() bool { return s.owing > 0 }

// A laneRig is a lane that runs, and the box in front of it.
type laneRig struct {
	box   *loop.Mailbox[*state.Op]
	wake  chan struct{}
	end   context.CancelFunc
	ended chan struct{}
}

func newLaneRig() *laneRig {
	r := &laneRig{wake: make(chan struct{}, 1), ended: make(chan struct{})}
	r.box = loop.NewMailbox[*state.Op](1000, func() {
		select {
		case r.wake <- struct{}{}:
		default:
		}
	})
	return r
}

func (r *laneRig) run(s state.Store, post func(int, loop.Message) bool) {
	var ctx context.Context
	ctx, r.end = context.WithCancel(context.Background())
	go func() {
		defer close(r.ended)
		RunLane(ctx, s, r.box, r.wake, post)
	}()
}

// TestLane: each Op comes back once, answered, to its own loop, even when that
// has no room at first.
func TestLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newLaneRig()
		store := &oddStore{}
		got := make(chan *state.Op, 1000)
		refusals := 0
		before := time.Now().UnixNano()
		r.run(store, func(index int, m loop.Message) bool {
			if refusals < 20 {
				refusals++
				return false
			}
			o := m.(loop.Answer).Op
			if o.Loop != index {
				t.Errorf("an answer of loop %d went to %d", o.Loop, index)
			}
			got <- o
			return true
		})
		const n = 300
		asked := map[*state.Op]bool{}
		for i := range n {
			o := &state.Op{Loop: i % 4}
			asked[o] = true
			if !r.box.Put(o) {
				t.Fatal("box is full")
			}
		}
		for range n {
			o := <-got
			if want := int64(o.Loop % 2 * o.Loop); !asked[o] || o.Got[0] != want {
				t.Errorf("answer of loop %d: got %d, asked and not seen before: %v", o.Loop, o.Got[0], asked[o])
			}
			delete(asked, o)
		}
		if store.calls > n/2 || store.lastNs < before || store.lastNs > time.Now().UnixNano() {
			t.Errorf("%d calls for %d Ops, at %d", store.calls, n, store.lastNs)
		}
		r.end()
		<-r.ended
		if len(got) != 0 {
			t.Errorf("%d answers too many", len(got))
		}
	})
}

// TestLaneTellsWhatIsOwed: a store that owes gets an empty batch each
// owedEvery, and one that does not is left alone.
func TestLaneTellsWhatIsOwed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newLaneRig()
		store := &oddStore{owing: 3}
		answers := make(chan *state.Op, 1)
		began := time.Now()
		r.run(store, func(_ int, m loop.Message) bool { answers <- m.(loop.Answer).Op; return true })
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(store.empties) != 3 {
			t.Fatalf("%d empty batches, want 3", len(store.empties))
		}
		for i, at := range store.empties {
			if got, want := at.Sub(began), time.Duration(i+1)*owedEvery; got != want {
				t.Errorf("empty batch %d after %v, want %v", i, got, want)
			}
		}
		r.box.Put(&state.Op{})
		<-answers
		r.end()
		<-r.ended
		if len(store.empties) != 3 || store.ops != 1 {
			t.Errorf("%d empty batches and %d Ops at the end", len(store.empties), store.ops)
		}
	})
}

// TestLaneEnds: what is in the box at the end is answered, also when the loops
// have no room, and what is owed is told, for so long and no longer.
func TestLaneEnds(t *testing.T) {
	for _, tt := range []struct {
		name  string
		owing int
		room  bool
		most  time.Duration
	}{
		{"nothing owed", 0, true, 0},
		{"a little owed", 3, true, 3 * owedPause},
		{"loops are full", 0, false, 0},
		{"owes for ever", 1 << 30, true, laneEndMax + owedPause},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newLaneRig()
				store := &oddStore{owing: tt.owing}
				var posts atomic.Int64
				ops := make([]*state.Op, 100)
				for i := range ops {
					ops[i] = &state.Op{Loop: 1}
					r.box.Put(ops[i])
				}
				<-r.wake // the lane does not hear of them before its end
				r.run(store, func(int, loop.Message) bool { posts.Add(1); return tt.room })
				began := time.Now()
				r.end()
				<-r.ended
				if took := time.Since(began); took > tt.most {
					t.Errorf("took %v, want at most %v", took, tt.most)
				}
				for i, o := range ops {
					if o.Got[0] != 1 {
						t.Fatalf("Op %d is not answered", i)
					}
				}
				if n := posts.Load(); n != int64(len(ops)) {
					t.Errorf("%d posts of %d Ops", n, len(ops))
				}
				if tt.owing < 1000 && store.Owes() {
					t.Errorf("%d batches are still owed", store.owing)
				}
			})
		})
	}
}

// TestLaneAllocs: a batch costs no memory once the lane is warm.
func TestLaneAllocs(t *testing.T) {
	ops := make([]*state.Op, 64)
	for i := range ops {
		ops[i] = &state.Op{Loop: i}
	}
	r := newLaneRig()
	l := &lane{store: &oddStore{}, box: r.box, began: time.Now(), post: func(int, loop.Message) bool { return true }}
	ctx := context.Background()
	allocs := testing.AllocsPerRun(100, func() {
		for _, o := range ops {
			r.box.Put(o)
		}
		if !l.work(ctx) {
			t.Error("nothing in the box")
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations per batch", allocs)
	}
}
