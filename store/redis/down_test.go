package redis_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"relay/store/redis"
	"relay/store/redis/redistest"
	"relay/store/state"
)

// openMax is far more than Open may take when nobody answers.
const openMax = 8 * time.Second

// openDown opens a store that cannot be reached: it comes up, and loses Ops at
// once.
func openDown(t *testing.T, o redis.Options, servers ...*redistest.Server) *redis.Store {
	t.Helper()
	began := time.Now()
	s := open(t, o, servers...)
	if took := time.Since(began); took > openMax {
		t.Errorf("opened after %v", took)
	}
	began = time.Now()
	o1 := ask(group(1, window(10)), 1)
	if apply(s, o1); !o1.Lost || s.Err() == nil || s.Lane(s.LaneOf(1)).Reaches(1) {
		t.Fatalf("lost %t, error %v with a store that is down", o1.Lost, s.Err())
	}
	if took := time.Since(began); took > 100*time.Millisecond {
		t.Errorf("an Op was lost after %v", took)
	}
	return s
}

// back waits until Ops of a group are answered again.
func back(t *testing.T, s *redis.Store, id uint64) {
	t.Helper()
	until(t, func() bool {
		o := ask(group(id, window(10)), 0)
		apply(s, o)
		return !o.Lost
	})
}

// TestOpenDown opens a store whose server is started later, or does not answer
// when it is opened.
func TestOpenDown(t *testing.T) {
	for _, tt := range []struct {
		name     string
		down, up func(s *redistest.Server)
	}{
		{"stopped", (*redistest.Server).Stop, (*redistest.Server).Restart},
		{"silent", (*redistest.Server).Pause, (*redistest.Server).Resume},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := redistest.Start(t)
			tt.down(server)
			s := openDown(t, redis.Options{Tags: 4, Lanes: 2}, server)
			o := ask(group(5, window(100)), 0)
			o.Charge[0] = 7 // told when there is somebody to tell
			if apply(s, o); !o.Lost || !s.Lane(s.LaneOf(5)).Owes() {
				t.Fatalf("lost %t, and nothing is owed", o.Lost)
			}
			tt.up(server)
			back(t, s, 1)
			back(t, s, 2)
			until(t, func() bool {
				s.Lane(s.LaneOf(5)).Apply(0, nil)
				return s.Err() == nil && !s.Lane(s.LaneOf(5)).Owes()
			})
			got(t, s, group(5, window(100)), 93)
			if s.Live() != 1 {
				t.Fatalf("%d relays live", s.Live())
			}
		})
	}
}

// TestOpenDownCluster does not know which node has which tag, and it does not
// matter: also when one of them does not answer.
func TestOpenDownCluster(t *testing.T) {
	nodes := redistest.StartCluster(t, 3)
	for _, n := range nodes {
		n.Pause()
	}
	s := openDown(t, redis.Options{Tags: 12, Loops: playerLoops}, nodes...)
	lanes := make([]int, 100)
	for id := range lanes {
		lanes[id] = s.LaneOf(uint64(id))
	}
	for _, n := range nodes {
		n.Resume()
	}
	for id := range lanes {
		back(t, s, uint64(id))
		if s.LaneOf(uint64(id)) != lanes[id] {
			t.Fatal("a group has moved to another lane")
		}
	}
	nodes[1].Pause()
	slow, lost := 0, 0
	for round := range 3 {
		for id := range lanes {
			o := ask(group(uint64(id), window(1000)), 1)
			began := time.Now()
			apply(s, o)
			if time.Since(began) > 200*time.Millisecond {
				slow++
			}
			if o.Lost && round > 0 {
				lost++
			}
		}
		time.Sleep(20 * time.Millisecond) // the probes of those that are well are answered
	}
	nodes[1].Resume()
	if slow > s.Lanes() {
		t.Errorf("%d batches waited, of %d lanes", slow, s.Lanes())
	}
	if lost == 0 || lost > 150 {
		t.Errorf("%d of 200 Ops were lost with one of three nodes", lost)
	}
	for id := range lanes {
		back(t, s, uint64(id))
	}
}

// TestOpenDownWrong finds out later that the store is not one to count in.
func TestOpenDownWrong(t *testing.T) {
	server := redistest.Start(t)
	server.Do("SET", "{s00}meta", "1 8")
	server.Pause()
	s := openDown(t, redis.Options{Tags: 4}, server)
	server.Resume()
	var m *redis.MismatchError
	until(t, func() bool { return errors.As(s.Err(), &m) })
	for range 20 {
		o := ask(group(1, window(10)), 1)
		if apply(s, o); !o.Lost {
			t.Fatal("counted in a store of other tags")
		}
		time.Sleep(10 * time.Millisecond) // time for probes
	}
	server.Do("DEL", "{s00}meta")
	back(t, s, 1)

	nodes := redistest.StartCluster(t, 3)
	nodes[2].Pause()
	s = openDown(t, redis.Options{}, nodes[2])
	nodes[2].Resume()
	until(t, func() bool { return s.Err() != nil && strings.Contains(s.Err().Error(), "addresses of several nodes") })
	o := ask(group(1, window(10)), 1)
	if apply(s, o); !o.Lost {
		t.Fatal("counted in one node of a cluster")
	}
}

// TestOutage loses the server under a fallback: Ops are answered all the same,
// and in the end the store knows of everything.
func TestOutage(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, redis.Options{}, server)
	lane := s.Lane(0)
	outage := state.NewOutage(lane, true, 1, s.Live)
	g := group(1, window(1000), slots(100))
	o := ask(g, 0)
	granted := int64(0)
	ask := func(units, keep int64) {
		t.Helper()
		again(o, units)
		o.Want[1], o.Need[1], o.Slots = min(units, 3), min(units, 1), keep
		outage.Apply(time.Now().UnixNano(), []*state.Op{o})
		if o.Lost || o.Got[0] != units {
			t.Fatalf("lost %t, got %d of %d", o.Lost, o.Got[0], units)
		}
		granted += units
	}
	tell := func() {
		t.Helper()
		until(t, func() bool {
			outage.Apply(time.Now().UnixNano(), nil)
			return !outage.Owes()
		})
	}
	ask(10, 0)
	for range 3 {
		server.Pause()
		for range 20 {
			ask(5, o.Lent()-2)
		}
		if !outage.Out() || outage.Answered() == 0 {
			t.Fatal("nobody was answered without the store")
		}
		server.Resume()
		tell()
		if ask(0, o.Lent()); o.Left[0] != 1000-granted || o.Left[1] != 100-o.Lent() || outage.Out() {
			t.Fatalf("left %v, want %d and %d", o.Left[:2], 1000-granted, 100-o.Lent())
		}
	}
	server.Stop() // and comes back empty: what was granted meanwhile is known
	granted = 0
	for range 20 {
		ask(5, o.Lent()-2)
	}
	server.Restart()
	tell()
	ask(0, o.Lent())
	if n := 1000 - o.Left[0]; n < granted || n > granted+10 || o.Left[1] != 100-o.Lent() {
		t.Fatalf("left %v after %d and %d slots", o.Left[:2], granted, o.Lent())
	}
	if outage.Lost() != 0 || s.Forgotten() != 0 {
		t.Fatalf("%d lost, %d forgotten", outage.Lost(), s.Forgotten())
	}
}

// TestOutageChaos has a fallback around lanes whose connections are killed and
// whose server hangs again and again: everything is counted once.
func TestOutageChaos(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, redis.Options{Lanes: 2, Loops: playerLoops, Tags: 4, Deadline: 20 * time.Millisecond}, server)
	p := newPlayer(s, 100)
	var outages []*state.Outage
	for i := range p.asks {
		outages = append(outages, state.NewOutage(s.Lane(i), true, playerLoops, s.Live))
		p.asks[i] = outages[i]
	}
	stop := kill(server, 30*time.Millisecond)
	rnd := rand.New(rand.NewPCG(6, 6))
	for range 8 {
		for _, act := range []func(){server.Pause, server.Resume} {
			act()
			for end := time.Now().Add(200 * time.Millisecond); time.Now().Before(end); {
				p.play(rnd)
			}
		}
	}
	stop()
	answered := int64(0)
	for _, o := range outages {
		until(t, func() bool {
			o.Apply(time.Now().UnixNano(), nil)
			return !o.Owes()
		})
		answered += o.Answered()
	}
	if t.Logf("%d Ops were answered without the store", answered); answered < 1000 || p.lost > 0 {
		t.Errorf("%d Ops were answered without the store, %d were lost", answered, p.lost)
	}
	p.check(t)
}

// TestStats counts what is sent.
func TestStats(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, redis.Options{}, server)
	var ops []*state.Op
	for id := range uint64(100) {
		ops = append(ops, ask(group(id+1, window(10)), 1), ask(group(id+1, window(10)), 1))
	}
	apply(s, ops...)
	n := s.Stats()
	// The first calls have to bring the script.
	if n.Groups < 100 || n.Groups != 100*n.Calls/2 || n.Failed != n.Calls-2 || n.Applies != 1 {
		t.Fatalf("%+v of 100 groups in 2 calls", n)
	}
	if n.ApplyTotal <= 0 || n.ApplyLast != n.ApplyTotal {
		t.Fatalf("%+v", n)
	}
	server.Pause()
	o := ask(group(1, window(10)), 1)
	apply(s, o)
	apply(s, o)
	server.Resume()
	if m := s.Stats(); m.Calls != n.Calls+1 || m.Failed != n.Failed+1 || m.Applies != 2 || m.ApplyLast < 200*time.Millisecond {
		t.Fatalf("%+v after one call without an answer, %+v before", m, n)
	}
}
