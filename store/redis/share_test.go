package redis_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"relay/store/catalog"
	"relay/store/redis"
	"relay/store/redis/redistest"
	"relay/store/state"
)

// TestTwoProcesses has two relays fight for one limit: together they are
// granted exactly all of it.
func TestTwoProcesses(t *testing.T) {
	server := redistest.Start(t)
	g := group(1, window(5000), slots(40), catalog.Limit{
		Meter: catalog.Tokens, Strategy: catalog.SessionWindow, Amount: 4000, Window: time.Hour,
	})
	var wg sync.WaitGroup
	var spent, most [2]int64
	for i := range 2 {
		s := open(t, redis.Options{Loops: 2}, server)
		wg.Go(func() {
			ops := []*state.Op{ask(g, 1), ask(g, 1), ask(g, 1)}
			for range 3000 {
				for k, o := range ops {
					again(o, 1+int64(k))
					o.Need = [state.RulesMax]int64{1, 1, 1}
					o.Slots = o.Lent() / 2
				}
				apply(s, ops...)
				for _, o := range ops {
					n := min(o.Got[0], o.Got[1], o.Got[2])
					spent[i] += n
					for k := range g.Limits {
						if k != 1 && o.Got[k] > n {
							o.Return[k] = state.Return{Units: o.Got[k] - n, GrantNs: o.NowNs}
						}
					}
					back := &state.Op{Group: g, Return: o.Return}
					apply(s, back)
					most[i] = max(most[i], o.Lent())
				}
			}
		})
	}
	wg.Wait()
	if n := spent[0] + spent[1]; n != 4000 || spent[0] == 0 || spent[1] == 0 {
		t.Fatalf("granted %v, want 4000 together", spent)
	}
	if most[0] > 40 || most[1] > 40 {
		t.Fatalf("one Op held %v slots of 40", most)
	}
}

// TestCrashed lets a process go without a word: its slots come back after the
// lease of its gauge, and what it was is forgotten.
func TestCrashed(t *testing.T) {
	server := redistest.Start(t)
	var mu sync.Mutex
	now := int64(1e15)
	clock := func() int64 { mu.Lock(); defer mu.Unlock(); return now }
	pass := func(d time.Duration) { mu.Lock(); now += int64(d); mu.Unlock() }
	o := redis.Options{}.WithClock(clock)
	g := group(1, slots(100))
	crashed := make([]*redis.Store, 8)
	for i := range crashed {
		crashed[i] = open(t, o, server)
		got(t, crashed[i], g, 10)
	}
	alive := open(t, o, server)
	mine := got(t, alive, g, 20)
	mine.Slots = 20
	key := "{s00}g:0000000000000001"
	full := server.Do("STRLEN", key).(int64)
	for range 3 {
		pass(9 * time.Second)
		again(mine, 1)
		if apply(alive, mine); mine.Got[0] != 0 || mine.RetryNs[0] != state.ConcurrencyRetryNs {
			t.Fatalf("got %d of a full limit", mine.Got[0])
		}
	}
	pass(4 * time.Second)
	again(mine, 80)
	if apply(alive, mine); mine.Got[0] != 80 {
		t.Fatalf("got %d, want what the crashed ones had", mine.Got[0])
	}
	if n := server.Do("STRLEN", key).(int64); n != full-8*24 {
		t.Fatalf("the record has %d bytes, of %d with the crashed ones", n, full)
	}
	// A process that was only slow tells its slots again: more than the limit
	// now, and nothing is granted until that has passed.
	slow := &state.Op{Group: g}
	slow.SetLent(10)
	slow.Slots = 10
	apply(crashed[0], slow)
	if slow.Left[0] != 0 {
		t.Fatalf("%d left", slow.Left[0])
	}
	mine.Slots = 0
	again(mine, 0)
	slow.Slots = 0
	apply(alive, mine)
	apply(crashed[0], slow)
	if n := server.Do("EXISTS", key).(int64); n != 0 {
		t.Fatal("a group at rest has a record")
	}
}

// TestExpires checks that groups vanish when they are at rest.
func TestExpires(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, redis.Options{}, server)
	bucket := catalog.Limit{Meter: catalog.Requests, Strategy: catalog.TokenBucket, Amount: 100, Window: time.Second}
	for id := range uint64(50) {
		got(t, s, group(id+1, bucket), 5)
		apply(s, ask(group(id+1000, bucket), 101)) // denied: leaves nothing
	}
	if n := server.Do("DBSIZE").(int64); n != 50+3 { // guard, meta, relays
		t.Fatalf("%d keys", n)
	}
	until(t, func() bool { return server.Do("DBSIZE").(int64) == 3 })
}

// TestBatch holds batches with several Ops of a group to the memory: whether
// they are counted as a sum or one by one makes no difference.
func TestBatch(t *testing.T) {
	server := redistest.Start(t)
	strategies := []catalog.Strategy{catalog.TokenBucket, catalog.FixedWindow, catalog.SlidingWindow, catalog.SessionWindow}
	for _, specials := range []int{0, -1} {
		server.Do("FLUSHALL")
		now := int64(1e15)
		s := open(t, redis.Options{}.WithClock(func() int64 { return now }).WithSpecials(specials), server)
		memory := state.NewMemory(1)
		rnd := rand.New(rand.NewPCG(4, uint64(specials)))
		var groups []*catalog.Group
		for id := range uint64(100) {
			g := group(id+1, slots(1+rnd.Int64N(50)))
			for range 1 + rnd.IntN(3) {
				g.Limits = append(g.Limits, catalog.Limit{
					Meter: catalog.Tokens, Strategy: strategies[rnd.IntN(len(strategies))],
					Amount: 1 + rnd.Int64N(200), Window: time.Duration(1+rnd.IntN(100)) * 100 * time.Millisecond,
				})
			}
			groups = append(groups, g)
		}
		for step := range 300 {
			now += rnd.Int64N(1e9) / 1000 * 1000
			var ours, theirs []*state.Op
			for range 150 {
				o := ask(groups[rnd.IntN(len(groups))], rnd.Int64N(6))
				if rnd.IntN(3) == 0 {
					o.Charge[1] = rnd.Int64N(3)
				}
				if rnd.IntN(5) == 0 { // it only looks
					o.Want = [state.RulesMax]int64{}
				}
				twin := *o
				ours, theirs = append(ours, o), append(theirs, &twin)
			}
			s.Lane(0).Apply(0, ours)
			memory.Apply(now, theirs)
			back := make([]*state.Op, 0, 2*len(ours))
			for i := range ours {
				if ours[i].Lost || ours[i].Got != theirs[i].Got {
					t.Fatalf("step %d: lost %v, got %v, the memory gave %v, of %+v", step, ours[i].Lost, ours[i].Got, theirs[i].Got, ours[i].Group.Limits)
				}
				again(ours[i], 0)
				again(theirs[i], 0)
				back = append(back, ours[i])
			}
			s.Lane(0).Apply(0, back) // the slots
			memory.Apply(now, theirs)
		}
	}
}

// TestLentTogether lends to several loops at once what they ask for, and near
// the limit no more than a quarter of what is left.
func TestLentTogether(t *testing.T) {
	server := redistest.Start(t)
	for specials, id := range map[int]uint64{0: 1, -1: 2} {
		t.Run(fmt.Sprint(specials), func(t *testing.T) {
			s := open(t, redis.Options{Loops: 4}.WithSpecials(specials), server)
			g := group(id, window(100_000))
			var ops []*state.Op
			for range 4 {
				o := ask(g, 10)
				o.More[0] = 1000
				ops = append(ops, o)
			}
			apply(s, ops...)
			for _, o := range ops {
				if o.Got[0] != 10 || o.Extra[0] != 1000 || o.Left[0] != 100_000-4*1010 {
					t.Fatalf("got %d, lent %d, left %d", o.Got[0], o.Extra[0], o.Left[0])
				}
			}
			got(t, s, g, ops[0].Left[0]-1000)
			for _, o := range ops {
				again(o, 1)
				o.More[0] = 1000
			}
			apply(s, ops...)
			sum := int64(0)
			for _, o := range ops {
				if o.Got[0] != 1 || o.Extra[0] == 0 {
					t.Fatalf("got %d, lent %d", o.Got[0], o.Extra[0])
				}
				sum += o.Extra[0]
			}
			if sum > 1000/state.LeaseParts {
				t.Fatalf("lent %d of 1000", sum)
			}
		})
	}
}

// TestBatchApart has loops of one batch give back units of different windows,
// and come with different limits and periods.
func TestBatchApart(t *testing.T) {
	server := redistest.Start(t)
	now := int64(1e15)
	minute := int64(time.Minute)
	now += minute - now%minute
	s := open(t, redis.Options{}.WithClock(func() int64 { return now }), server)
	limit := catalog.Limit{Meter: catalog.Requests, Strategy: catalog.SlidingWindow, Amount: 10, Window: time.Minute}
	g := group(1, limit)
	early := got(t, s, g, 6)
	now += minute
	late := got(t, s, g, 4)
	back := func(of *state.Op, n int64) *state.Op {
		o := ask(g, 0)
		o.Return[0] = state.Return{Units: n, GrantNs: of.NowNs}
		return o
	}
	want := ask(g, 5)
	apply(s, back(early, 3), back(late, 2), want)
	if want.Got[0] != 5 || want.Left[0] != 0 {
		t.Fatalf("got %d, left %d, want what came back", want.Got[0], want.Left[0])
	}

	// A new catalog arrives on the loops one after the other.
	limit.Amount = 20
	newer := ask(group(1, limit), 10)
	older := ask(g, 1)
	apply(s, older, newer)
	if older.Got[0] != 0 || newer.Got[0] != 10 {
		t.Fatalf("got %d of the old limit and %d of the new one", older.Got[0], newer.Got[0])
	}

	// Midnight comes to the loops one after the other.
	day := group(2, catalog.Limit{Meter: catalog.Cost, Strategy: catalog.Calendar, Amount: 10, Period: catalog.Day})
	spend := func(from, until int64) *state.Op {
		o := ask(day, 10)
		o.Bounds[0] = state.Bounds{FromNs: from, UntilNs: until}
		return o
	}
	o := spend(now-minute, now)
	if apply(s, o); o.Got[0] != 0 {
		t.Fatal("got of a day that is over")
	}
	first, second := spend(now-minute, now), spend(now, now+minute)
	apply(s, first, second)
	if first.Got[0]+second.Got[0] != 10 {
		t.Fatalf("got %d and %d of one day", first.Got[0], second.Got[0])
	}
}

// TestApplyAllocs bounds what a batch costs the collector: the reply, and what
// the driver needs per call of the script.
func TestApplyAllocs(t *testing.T) {
	server := redistest.Start(t)
	for _, specials := range []int{0, -1} {
		s := open(t, redis.Options{}.WithSpecials(specials), server)
		var ops []*state.Op
		for id := range uint64(64) {
			ops = append(ops, ask(benchGroup(id+1), 1), ask(benchGroup(id+1), 1))
		}
		n := testing.AllocsPerRun(200, func() {
			for _, o := range ops {
				o.Slots = 0
				again(o, 1)
			}
			s.Lane(0).Apply(0, ops)
		})
		if n > 20 {
			t.Errorf("%v allocations for 128 Ops, want at most 20", n)
		}
	}
}

// TestLongShapes has the longest shapes with a script of their own, and the
// first ones without: Lua has room for 200 variables.
func TestLongShapes(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, redis.Options{}, server)
	id := uint64(0)
	for n := 4; n <= state.RulesMax; n++ {
		for strategy := catalog.TokenBucket; strategy <= catalog.Calendar; strategy++ {
			id++
			g := group(id)
			for k := range n {
				g.Limits = append(g.Limits, catalog.Limit{Meter: catalog.Tokens, Strategy: strategy, Amount: 100, Window: time.Duration(k+1) * time.Hour})
			}
			now := time.Now()
			bounds := state.Bounds{FromNs: now.Add(-time.Hour).UnixNano(), UntilNs: now.Add(time.Hour).UnixNano()}
			a, b := ask(g, 5), ask(g, 7)
			for k := range g.Limits {
				a.Bounds[k], b.Bounds[k] = bounds, bounds
				if strategy == catalog.Calendar {
					g.Limits[k].Window = 0
				}
			}
			apply(s, a, b)
			for k := range g.Limits {
				if a.Lost || a.Got[k] != 5 || b.Got[k] != 7 || b.Left[k] != 88 {
					t.Fatalf("%d rules of strategy %d: got %v and %v, left %v: %v", n, strategy, a.Got, b.Got, b.Left, s.Err())
				}
			}
		}
	}
}
