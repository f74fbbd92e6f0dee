package redis_test

import (
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"relay/store/catalog"
	"relay/store/redis"
	"relay/store/redis/redistest"
	"relay/store/state"
)

// A player uses some groups of a store as the loops of a process do, and keeps
// books about it.
type player struct {
	store  *redis.Store
	asks   []state.Store // the lanes, or what is around them
	groups []*catalog.Group
	ops    [][]*state.Op // by group and loop
	spent  []int64       // granted, as far as the loops know, and charged
	lost   int
}

const playerLoops = 3

func newPlayer(s *redis.Store, groups int) *player {
	p := &player{store: s, spent: make([]int64, groups)}
	for i := range s.Lanes() {
		p.asks = append(p.asks, s.Lane(i))
	}
	for i := range groups {
		g := group(uint64(i+1), window(1<<40), slots(1<<30))
		p.groups = append(p.groups, g)
		ops := make([]*state.Op, playerLoops)
		for k := range ops {
			ops[k] = &state.Op{Group: g, Loop: k}
		}
		p.ops = append(p.ops, ops)
	}
	return p
}

// play sends one batch: some Ops that want, charge, return and hold slots.
func (p *player) play(rnd *rand.Rand) {
	batches := make([][]*state.Op, p.store.Lanes())
	for i, ops := range p.ops {
		for _, o := range ops {
			if rnd.IntN(4) == 0 {
				continue
			}
			was := *o
			again(o, rnd.Int64N(3))
			if o.Lent() > 0 {
				o.Slots = rnd.Int64N(o.Lent() + 1)
			}
			o.Charge[0] = rnd.Int64N(2)
			p.spent[i] += o.Charge[0]
			if n := was.Got[0]; n > 0 {
				o.Return[0] = state.Return{Units: n, GrantNs: was.NowNs}
				p.spent[i] -= n
			}
			o.More[0], o.More[1] = 5, 5
			lane := p.store.LaneOf(o.Group.ID)
			batches[lane] = append(batches[lane], o)
		}
	}
	for lane, batch := range batches {
		p.asks[lane].Apply(time.Now().UnixNano(), batch)
	}
	for i, ops := range p.ops {
		for _, o := range ops {
			if o.Lost {
				p.lost++
			}
			if o.Charge != [state.RulesMax]int64{} || o.Want != [state.RulesMax]int64{} || o.More[0] > 0 {
				p.spent[i] += o.Got[0] + o.Extra[0]
				o.Clear()
			}
		}
	}
}

// check holds the store to the books, when all has been told.
func (p *player) check(t *testing.T) {
	t.Helper()
	for i, g := range p.groups {
		o := ask(g, 0)
		lane := p.store.Lane(p.store.LaneOf(g.ID))
		until(t, func() bool {
			if lane.Apply(0, nil); lane.Owes() {
				return false
			}
			apply(p.store, o)
			return !o.Lost
		})
		held := int64(0)
		for _, o := range p.ops[i] {
			held += o.Lent()
		}
		if n := 1<<40 - o.Left[0]; n != p.spent[i] {
			t.Errorf("group %d: the store has counted %d, the loops %d", i, n, p.spent[i])
		}
		if n := 1<<30 - o.Left[1]; n != held {
			t.Errorf("group %d: the store has %d slots, the loops %d", i, n, held)
		}
	}
	if n := p.store.Forgotten(); n != 0 {
		t.Errorf("%d groups were forgotten", n)
	}
}

// TestExactlyOnce kills all connections again and again. With time to try again
// hardly anything is lost; without, much is, and comes to light later.
func TestExactlyOnce(t *testing.T) {
	for _, tt := range []struct {
		name     string
		lanes    int
		deadline time.Duration
	}{
		{"one lane", 1, 0}, {"two lanes", 2, 0}, {"no time", 1, 3 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := redistest.Start(t)
			s := open(t, redis.Options{Lanes: tt.lanes, Loops: playerLoops, Tags: 2 * tt.lanes, Deadline: tt.deadline}, server)
			p := newPlayer(s, 200)
			stop := kill(server, 15*time.Millisecond)
			rounds := 0
			rnd := rand.New(rand.NewPCG(1, uint64(tt.lanes)))
			for end := time.Now().Add(2 * time.Second); time.Now().Before(end); rounds++ {
				p.play(rnd)
			}
			stop()
			t.Logf("%d batches, %d Ops lost", rounds, p.lost)
			if tt.deadline != 0 && p.lost == 0 {
				t.Error("nothing was lost with hardly any time")
			}
			if !strings.Contains(server.Do("INFO", "commandstats").(string), "cmdstat_client|kill") {
				t.Error("no connection was killed")
			}
			p.check(t)
		})
	}
}

// kill closes all connections of a server from time to time, until stopped.
func kill(server *redistest.Server, every time.Duration) (stop func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(every):
				server.Try("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
			}
		}
	})
	return func() { close(done); wg.Wait() }
}

// TestExactlyOnceCluster does so on all nodes of a cluster.
func TestExactlyOnceCluster(t *testing.T) {
	nodes := redistest.StartCluster(t, 3)
	s := open(t, redis.Options{Tags: 12, Loops: playerLoops}, nodes...)
	if s.Lanes() != 3 {
		t.Fatalf("%d lanes, want one per node", s.Lanes())
	}
	p := newPlayer(s, 100)
	var stops []func()
	for _, n := range nodes {
		stops = append(stops, kill(n, 25*time.Millisecond))
	}
	rnd := rand.New(rand.NewPCG(2, 2))
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); {
		p.play(rnd)
	}
	for _, stop := range stops {
		stop()
	}
	t.Logf("%d Ops lost", p.lost)
	p.check(t)
}

// TestClusterNodeGone pauses one node: groups of the others do not notice.
func TestClusterNodeGone(t *testing.T) {
	nodes := redistest.StartCluster(t, 3)
	s := open(t, redis.Options{Tags: 12}, nodes...)
	groups := make([]*catalog.Group, s.Lanes())
	for id := uint64(1); slices.Contains(groups, nil); id++ {
		groups[s.LaneOf(id)] = group(id, window(100))
	}
	for _, g := range groups {
		got(t, s, g, 1)
	}
	nodes[1].Pause()
	lost := 0
	for _, g := range groups {
		o := ask(g, 1)
		began := time.Now()
		apply(s, o)
		switch took := time.Since(began); {
		case o.Lost:
			lost++
		case took > 100*time.Millisecond:
			t.Errorf("a node that answers took %v", took)
		}
	}
	nodes[1].Resume()
	if lost != 1 {
		t.Errorf("groups of %d nodes were lost, want 1", lost)
	}
	for _, g := range groups {
		until(t, func() bool {
			o := ask(g, 0)
			apply(s, o)
			s.Lane(s.LaneOf(g.ID)).Apply(0, nil)
			return !o.Lost
		})
	}
	for _, g := range groups {
		o := ask(g, 0)
		if apply(s, o); o.Lost || o.Left[0] < 98 {
			t.Errorf("lost %v, left %d", o.Lost, o.Left[0])
		}
	}
}

// TestPaused stops the server: one batch waits for its deadline, further ones
// are Lost at once, and everything is counted once when it goes on.
func TestPaused(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, redis.Options{Loops: playerLoops, Deadline: 250 * time.Millisecond, Tags: 16}, server)
	p := newPlayer(s, 50)
	rnd := rand.New(rand.NewPCG(3, 3))
	p.play(rnd)
	server.Pause()
	slow, fast := 0, 0
	for end := time.Now().Add(1500 * time.Millisecond); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		began := time.Now()
		p.play(rnd)
		switch took := time.Since(began); {
		case took > 500*time.Millisecond:
			t.Errorf("a batch took %v", took)
		case took > 100*time.Millisecond:
			slow++
		default:
			fast++
		}
	}
	if s.Err() == nil {
		t.Error("nothing is told of a store that does not answer")
	}
	server.Resume()
	if slow < 1 || slow > 2 || fast < 20 || p.lost == 0 {
		t.Errorf("%d batches waited and %d did not, %d Ops lost", slow, fast, p.lost)
	}
	p.check(t)
}

// TestRestarted starts the server anew, empty: counting goes on by itself.
func TestRestarted(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, redis.Options{}, server)
	g := group(1, window(10), slots(10))
	o := got(t, s, g, 4)
	server.Stop()
	o.Slots = 4
	again(o, 1)
	if apply(s, o); !o.Lost {
		t.Fatal("counted in a server that has gone")
	}
	server.Restart()
	until(t, func() bool {
		again(o, 0)
		apply(s, o)
		return !o.Lost
	})
	// The window is new, and the slots are told again.
	if o.Left[0] != 10 && o.Left[0] != 9 || o.Left[1] != 6 {
		t.Fatalf("left %v after a restart", o.Left[:2])
	}
	server.Do("SCRIPT", "FLUSH")
	got(t, s, group(2, window(10)), 1)
	got(t, s, g, 1)
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
}

// TestScriptError gives up what the store cannot work off, and goes on.
func TestScriptError(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, redis.Options{Process: 0xabc}, server)
	g := group(1, window(10))
	server.Do("LPUSH", "{s00}b:0000000000000abc.0.0", "x") // where the guard belongs
	o := ask(g, 1)
	if apply(s, o); !o.Lost || s.Err() == nil || s.Forgotten() == 0 {
		t.Fatalf("lost %v, error %v, %d forgotten", o.Lost, s.Err(), s.Forgotten())
	}
	server.Do("DEL", "{s00}b:0000000000000abc.0.0")
	server.Do("LPUSH", "{s00}g:0000000000000001", "x") // where the group belongs
	time.Sleep(150 * time.Millisecond)                 // a store that fails is left alone so long
	got(t, s, g, 1)
	server.Do("CONFIG", "SET", "maxmemory", "1")
	again(o, 1)
	if apply(s, o); !o.Lost || !strings.Contains(s.Err().Error(), "OOM") {
		t.Fatalf("lost %v, error %v", o.Lost, s.Err())
	}
	server.Do("CONFIG", "SET", "maxmemory", "0")
	until(t, func() bool {
		again(o, 1)
		apply(s, o)
		return !o.Lost
	})
	s.Lane(0).Apply(0, nil)
	again(o, 0)
	if apply(s, o); o.Left[0] != 8 {
		t.Fatalf("%d left, want 8: two were granted", o.Left[0])
	}
}

// TestSpoiledRecord: a record that somebody else has written into is none, and
// harms no other group.
func TestSpoiledRecord(t *testing.T) {
	for name, spoil := range map[string][]string{
		"limits and kinds": {"SETRANGE", "{s00}g:0000000000000001", "6", "ZZZZZ"},
		"kinds":            {"SETRANGE", "{s00}g:0000000000000001", "8", "\x00\x00\x00\x00\x00\x00\xf8\x7f"},
		"longer":           {"APPEND", "{s00}g:0000000000000001", "12345"},
		"short":            {"SET", "{s00}g:0000000000000001", strings.Repeat("x", 57)},
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			s := open(t, redis.Options{}, server)
			got(t, s, group(1, window(10)), 1)
			server.Do(spoil...)
			other, o := ask(group(2, window(10)), 1), ask(group(1, window(20), slots(5)), 1)
			apply(s, other, o)
			if other.Lost || o.Lost || o.Got[0] != 1 {
				t.Errorf("lost %v and %v, got %d: %v", other.Lost, o.Lost, o.Got[0], s.Err())
			}
		})
	}
}

// TestPausedTags loses the groups of all tags with the first one: they are on
// one server, and each would wait for the deadline.
func TestPausedTags(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, redis.Options{Tags: 16}, server)
	server.Pause()
	began := time.Now()
	for id := range uint64(64) {
		o := ask(group(id+1, window(10)), 1)
		if apply(s, o); !o.Lost {
			t.Fatal("answered by a server that does not run")
		}
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("64 groups were lost after %v", took)
	}
	server.Resume()
}

// TestDeadline has one batch that takes several rounds, and a server that is
// slow: the deadline is for all of them.
func TestDeadline(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, redis.Options{Addrs: []string{slowed(t, server, 100*time.Millisecond)}})
	apply(s, ask(group(1, window(1)), 0)) // it learns the script
	var ops []*state.Op
	for n := range int64(16) { // one group under many limits
		ops = append(ops, ask(group(1, window(100+n)), 0))
		ops[n].Charge[0] = 1
	}
	began := time.Now()
	apply(s, ops...)
	if took := time.Since(began); took > time.Second {
		t.Errorf("a batch took %v", took)
	}
	if ops[0].Lost || !ops[15].Lost {
		t.Errorf("the first Op was lost: %t, the last: %t", ops[0].Lost, ops[15].Lost)
	}
	o := ask(group(1, window(1000)), 0)
	until(t, func() bool {
		apply(s, o)
		return !o.Lost && !s.Lane(0).Owes()
	})
	if apply(s, o); o.Left[0] != 1000-16 {
		t.Fatalf("the store has counted %d of 16", 1000-o.Left[0])
	}
}

// slowed is a way to a server whose replies take some time.
func slowed(t *testing.T, server *redistest.Server, delay time.Duration) (addr string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", server.Addr())
			if err != nil {
				in.Close()
				continue
			}
			go func() { io.Copy(out, in); out.Close() }()
			go func() {
				defer in.Close()
				buf := make([]byte, 64<<10)
				for {
					n, err := out.Read(buf)
					if err != nil {
						return
					}
					time.Sleep(delay)
					if _, err = in.Write(buf[:n]); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

// TestGivenUp does not send again what the store may have forgotten.
func TestGivenUp(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, redis.Options{}.WithKeep(time.Millisecond), server)
	o := got(t, s, group(1, window(100), slots(10)), 3)
	server.Pause()
	o.Slots = 2
	again(o, 1)
	if apply(s, o); !o.Lost {
		t.Fatal("answered by a server that does not run")
	}
	calls := s.Stats().Calls
	server.Resume()
	again(o, 0)
	until(t, func() bool {
		apply(s, o)
		return !o.Lost
	})
	// It was counted when the server went on, and it is not known here.
	if s.Forgotten() != 1 || o.Left[0] != 96 || o.Left[1] != 8 {
		t.Fatalf("%d forgotten, left %v after %d calls more", s.Forgotten(), o.Left[:2], s.Stats().Calls-calls)
	}
}
