package reactor

import (
	"context"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"relay/loop"
)

// TestMailLeavesRoom: a message that always posts the next one does not keep
// the loop from its sockets, as a task that posts itself to gnet would.
func TestMailLeavesRoom(t *testing.T) {
	st := play(t, Options{Loops: 1}, func(c *core) {
		c.accept = echo
		c.batchMax = 1
	})
	c := st.dialClient()
	roundTrip(t, c, "before")
	var runs atomic.Int64
	var stop atomic.Bool
	var again note
	again = func(c *core) {
		runs.Add(1)
		if !stop.Load() {
			c.Post(again)
		}
	}
	for range 3 {
		st.cores[0].Post(again)
	}
	for range 100 {
		roundTrip(t, c, "while mail runs")
	}
	seen := runs.Load()
	eventually(t, "mail goes on", func() bool { return runs.Load() > seen+10 })
	stop.Store(true)
}

// TestMailIsNotLost posts from many goroutines at once.
func TestMailIsNotLost(t *testing.T) {
	for _, batch := range []int{0, 1, 7} {
		st := playSilent(t, Options{}, func(c *core) { c.batchMax = batch })
		const senders, each = 8, 500
		var got atomic.Int64
		var wg sync.WaitGroup
		for i := range senders {
			wg.Go(func() {
				for range each {
					st.cores[i%2].Post(note(func(*core) { got.Add(1) }))
				}
			})
		}
		wg.Wait()
		eventually(t, "all messages run", func() bool { return got.Load() == senders*each })
	}
}

// A taskNote is a task of gnet that runs a function.
type taskNote func()

func (f taskNote) Run(context.Context) error { f(); return nil }

// TestMailAwaited: an answer that is there as soon as its goroutine may run is
// read before the loop looks at its sockets and tasks; one that comes later is
// not lost.
func TestMailAwaited(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // the loop makes way for the other goroutine
	questions := make(chan loop.Socket, 1)
	var atOnce, answers atomic.Int64
	var late atomic.Bool
	st := play(t, Options{Loops: 1}, func(c *core) {
		c.accept = func(c *core, s loop.Socket, _ loop.Peer) loop.Conn {
			return &conn{core: c, bytes: func([]byte) {
				answered := answers.Load()
				_ = raw(s).shard.el.Execute(context.Background(), taskNote(func() {
					if answers.Load() > answered {
						atOnce.Add(1)
					}
				}))
				c.asked = true
				questions <- s
			}}
		}
	})
	go func() {
		for s := range questions {
			for range 100 {
				if !late.Load() {
					break
				}
				runtime.Gosched()
			}
			st.cores[0].Post(note(func(*core) {
				answers.Add(1)
				s.Write([]byte("x"))
			}))
		}
	}()
	t.Cleanup(func() { st.r.Stop(); close(questions) })
	c := st.dialClient()
	ask := func() {
		time.Sleep(2 * quietGap) // the loop has nothing to do
		if _, err := c.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	for range 200 {
		ask()
	}
	if n := atOnce.Load(); n < 100 { // the runtime may choose another goroutine
		t.Errorf("%d of 200 answers were read at once", n)
	}
	late.Store(true)
	for range 200 {
		ask()
	}
}

// TestMailBeforeStart: a wake while the Cores are being built is kept.
func TestMailBeforeStart(t *testing.T) {
	done := make(chan struct{})
	playSilent(t, Options{Loops: 1}, func(c *core) {
		c.Post(note(func(*core) { close(done) }))
	})
	receive(t, done)
}

// TestTicksCoalesce: a stuck loop gets one tick when it goes on, not one for
// each that it missed; meanwhile its lag shows.
func TestTicksCoalesce(t *testing.T) {
	st := playSilent(t, Options{}, nil)
	stuck, release := make(chan struct{}), make(chan struct{})
	st.cores[0].Post(note(func(*core) { close(stuck); <-release }))
	receive(t, stuck)
	other := st.cores[1].ticks.Load()
	before := st.cores[0].ticks.Load()
	eventually(t, "the other loop ticks on", func() bool { return st.cores[1].ticks.Load() > other+30 })
	if lag := st.r.Stats().Loops[0].LagNow; lag < 10*loop.TickEvery {
		t.Errorf("lag shows as %v", lag)
	}
	other = st.cores[1].ticks.Load()
	close(release)
	st.on(0, func(c *core) {
		if ran := c.ticks.Load() - before; ran > 2+st.cores[1].ticks.Load()-other {
			t.Errorf("%d ticks ran at once", ran)
		}
	})
	eventually(t, "the lag is counted", func() bool {
		lag := st.r.Stats().Loops[0].Lag
		late := uint64(0)
		for i, n := range lag.Counts {
			if i > 0 && LagBounds[i-1] >= 100*time.Millisecond {
				late += n
			}
		}
		return late >= 1 && lag.Sum >= 10*loop.TickEvery
	})
}

// TestTickWishes: a Core that wants a tick soon gets one each TickEvery for as
// long as it wants; one that has time does not.
func TestTickWishes(t *testing.T) {
	var aheadNs atomic.Int64
	st := playSilent(t, Options{}, func(c *core) {
		if c.index == 0 {
			c.wish = func(c *core) int64 { return c.lastNs + aheadNs.Load() }
		}
	})
	for _, tt := range []struct {
		name    string
		ahead   time.Duration
		hurries bool
	}{
		{"far", time.Minute, false},
		{"due", -time.Second, true},
		{"far again", loop.TickQuiet, false},
		{"near", loop.TickQuiet - 1, true},
	} {
		aheadNs.Store(int64(tt.ahead))
		seen := st.cores[0].ticks.Load()
		eventually(t, tt.name+": a tick", func() bool { return st.cores[0].ticks.Load() > seen+1 })
		if got := st.r.shards[0].hurried.Load(); got != tt.hurries {
			t.Errorf("%s: in a hurry: %v", tt.name, got)
		}
	}
	mine, others := st.cores[0].ticks.Load(), st.cores[1].ticks.Load()
	eventually(t, "the other loop ticks", func() bool { return st.cores[1].ticks.Load() > others+10 })
	if n := st.cores[0].ticks.Load() - mine; n < 20 { // 100 on a machine with nothing else to do
		t.Errorf("%d ticks in the time of 10 quiet ones", n)
	}
	if st.r.shards[1].hurried.Load() {
		t.Error("a loop without a wish is in a hurry")
	}
}

// TestPanicCostsOneConnection: a panic in any callback, and one in Panicked on
// top, closes that connection and leaves all others alone.
func TestPanicCostsOneConnection(t *testing.T) {
	told := make(chan loop.Conn, 10)
	var twice atomic.Bool
	st := play(t, Options{Loops: 1}, func(c *core) {
		c.panicked = func(c *core, x loop.Conn) {
			told <- x
			if twice.Load() {
				c.spring()
			}
		}
		c.accept = func(c *core, s loop.Socket, p loop.Peer) loop.Conn {
			if twice.Load() && len(c.sockets) == 1 {
				c.spring()
			}
			x := &conn{core: c}
			x.drained = c.spring
			x.bytes = func(p []byte) {
				switch p[0] {
				case 'b':
					c.spring()
				case 'd':
					s.NotifyDrained(0)
				case 'c':
					x.closed = func(loop.Cause) { c.spring() }
				}
				s.Write(p)
			}
			return x
		}
	})
	good := st.dialClient()
	roundTrip(t, good, "good")
	panics := uint64(0)
	for _, second := range []bool{false, true} {
		twice.Store(second)
		for _, how := range []string{"b", "d", "c", "mail"} {
			panics++
			if second {
				panics++
			}
			if how == "mail" {
				st.cores[0].Post(note((*core).spring))
				if x := receive(t, told); x != nil {
					t.Error("a message's panic is blamed on a connection")
				}
			} else {
				bad := st.dialClient()
				_, _ = io.WriteString(bad, how)
				if how == "c" {
					_ = bad.CloseWrite()
				}
				if x := receive(t, told); x == nil {
					t.Errorf("%s: no connection is blamed", how)
				}
				_, _ = io.ReadAll(bad) // ends
			}
			roundTrip(t, good, "still good")
			eventually(t, "the panics are counted", func() bool { return st.r.Stats().Loops[0].Panics == panics })
		}
	}
	eventually(t, "the others are closed", func() bool { return clients(st.r) == 1 })
}

// TestPanicAtOpen: the connection whose Conn could not be made is closed.
func TestPanicAtOpen(t *testing.T) {
	st := play(t, Options{Loops: 1}, func(c *core) {
		c.accept = func(c *core, s loop.Socket, p loop.Peer) loop.Conn {
			c.spring()
			return nil
		}
	})
	if got, err := io.ReadAll(st.dialClient()); len(got) != 0 || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	eventually(t, "it is not counted", func() bool { return clients(st.r) == 0 })
}

// TestStopTellsConnections: Stop ends every connection by OnClosed.
func TestStopTellsConnections(t *testing.T) {
	closed := make(chan loop.Cause, 10)
	st := play(t, Options{}, func(c *core) {
		c.accept = func(c *core, s loop.Socket, _ loop.Peer) loop.Conn {
			return &conn{core: c, bytes: s.Write, closed: func(cause loop.Cause) { closed <- cause }}
		}
	})
	for range 10 {
		roundTrip(t, st.dialClient(), "x")
	}
	st.r.Stop()
	if len(closed) != 10 {
		t.Errorf("%d connections were told", len(closed))
	}
	if n := clients(st.r); n != 0 {
		t.Errorf("%d clients are counted", n)
	}
}

// TestFewGoroutines: connections cost no goroutine.
func TestFewGoroutines(t *testing.T) {
	before := runtime.NumGoroutine()
	st := play(t, Options{}, func(c *core) { c.accept = echo })
	for range 2000 {
		st.dialClient()
	}
	eventually(t, "all are in", func() bool { return clients(st.r) == 2000 })
	// gnet's pool lets idle goroutines go after 10 s.
	defer func() {
		if t.Failed() {
			buf := make([]byte, 1<<20)
			t.Logf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
		}
	}()
	eventually(t, "fewer than 40 goroutines", func() bool { return runtime.NumGoroutine()-before < 40 })
}

// TestMailAfterStop: a message posted to a loop that has ended goes nowhere;
// above all not into a descriptor that was gnet's.
func TestMailAfterStop(t *testing.T) {
	st := playSilent(t, Options{}, nil)
	st.on(0, func(*core) {})
	st.r.Stop()
	st.cores[0].Post(note(func(*core) { t.Error("mail after the end") }))
	for range 3 {
		st.r.shards[1].wake()
	}
	if got := st.r.shards[1].mail.Load(); got != mailShut {
		t.Errorf("mail state is %d", got)
	}
}
