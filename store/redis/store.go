package redis

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// Options say where the store is and how it is used. Only Addrs has to be
// given.
type Options struct {
	// Addrs are host:port or URLs (redis://user:password@host:port/db, rediss
	// for TLS). One is a single server, several are nodes of a cluster.
	Addrs    []string
	Username string      // unless the URL has one
	Password string      // unless the URL has one
	TLS      *tls.Config // of rediss; nil is the system's

	Process  uint64        // of this process, never used before; 0 = random
	Loops    int           // of this process; they share what is lent in advance
	Tags     int           // hash tags that groups are spread over; 0 = 1, of a cluster 64
	Lanes    int           // per node; 0 = 1
	Deadline time.Duration // of one Apply; 0 = 250 ms

	// Dial makes the connections of a lane by the settings of d; nil = d does.
	Dial func(ctx context.Context, lane int, d *net.Dialer, addr string) (net.Conn, error)

	clock    func() int64  // of tests, Unix ns: the store's time
	specials int           // of tests: how many shapes get a script of their own; 0 = shapesMax, -1 = none
	keep     time.Duration // of tests: how long a call is sent again; 0 = keepMax
}

// A Store is the way of one process to the shared store.
type Store struct {
	options  Options
	endpoint endpoint
	lanes    []*Lane
	tagLane  []int // the first lane of each tag; never changes, or a group would have two
	life     context.Context
	end      context.CancelFunc
	done     sync.WaitGroup

	// Of Open, then of beat, then of Close.
	client  rueidis.Client // nil: not reached yet
	heardAt time.Time      // from when on every pulse was answered; zero: the last one was not

	joined atomic.Bool  // it was reached once, and counts as we do
	loops  atomic.Int64 // of all relays that live, at least ours
	relays atomic.Int64
	refuse atomic.Pointer[fault] // counting here would be wrong
	fault  atomic.Pointer[fault] // of the heart
	forgot atomic.Int64
}

// A fault is what went wrong last.
type fault struct{ err error }

// Open makes the way to the store. When the store is down it comes up all the
// same, has every Op come back Lost, and goes on by itself when the store is
// there. Settings that are wrong, as far as that can be told, are an error, and
// so is a store that counts otherwise (MismatchError). What turns out wrong
// later is told by Err, and nothing is counted.
func Open(o Options) (*Store, error) {
	e, err := parseAddrs(o.Addrs)
	if err != nil {
		return nil, err
	}
	if err := o.complete(&e); err != nil {
		return nil, err
	}
	s := &Store{options: o, endpoint: e, tagLane: make([]int, o.Tags)}
	s.loops.Store(int64(o.Loops))
	s.relays.Store(1)
	s.life, s.end = context.WithCancel(context.Background())
	if err := s.open(); err != nil {
		s.Close()
		return nil, err
	}
	s.done.Go(s.beat)
	return s, nil
}

// complete fills in what is not given, and checks what is.
func (o *Options) complete(e *endpoint) error {
	if e.username == "" && e.password == "" {
		e.username, e.password = o.Username, o.Password
	}
	if e.tls != nil && o.TLS != nil {
		name := e.tls.ServerName
		if e.tls = o.TLS.Clone(); e.tls.ServerName == "" {
			e.tls.ServerName = name
		}
	}
	if o.Process == 0 {
		o.Process = rand.Uint64()
	}
	if o.Tags == 0 {
		if o.Tags = 1; len(e.addrs) > 1 {
			o.Tags = tagsCluster
		}
	}
	o.Loops, o.Lanes = max(o.Loops, 1), max(o.Lanes, 1)
	if o.Deadline == 0 {
		o.Deadline = deadlineDefault
	}
	switch {
	case o.Tags < 1 || o.Tags > tagsMax:
		return fmt.Errorf("redis: %d hash tags; allowed are 1 to %d", o.Tags, tagsMax)
	case o.Lanes > lanesMax:
		return fmt.Errorf("redis: %d lanes per node; allowed are 1 to %d", o.Lanes, lanesMax)
	case o.Deadline < time.Millisecond:
		return fmt.Errorf("redis: a deadline of %v; allowed is 1ms and more", o.Deadline)
	}
	if o.specials == 0 {
		o.specials = shapesMax
	}
	if o.keep == 0 {
		o.keep = keepMax
	}
	return nil
}

// open makes the lanes: so many per address, whatever the cluster looks like.
// Tags are spread over them by the node that has them, or, when the store is
// down, by number: then calls of a lane go to several nodes, which costs a
// little and is no less right.
func (s *Store) open() error {
	ctx, cancel := context.WithTimeout(s.life, openTimeout)
	defer cancel()
	nodes := len(s.endpoint.addrs)
	for tag := range s.tagLane {
		s.tagLane[tag] = tag % nodes * s.options.Lanes
	}
	err := s.join(ctx)
	if err == nil && nodes > 1 {
		err = s.place(ctx)
	}
	if err != nil && isSetting(err) {
		return err
	}
	for i := range nodes * s.options.Lanes {
		s.lanes = append(s.lanes, newLane(s, i))
	}
	s.start(ctx)
	s.note(err)
	return nil
}

// start has all lanes reach the store before anything is sent. Who does not
// answer soon does so later.
func (s *Store) start(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, probeMax)
	defer cancel()
	for _, l := range s.lanes {
		for tag := range s.tagLane {
			if l.ours(tag) {
				l.suspect(tag)
			}
		}
	}
	tick := time.NewTicker(startPoll)
	defer tick.Stop()
	for s.joined.Load() && !s.up() {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// up reports whether every tag answers.
func (s *Store) up() bool {
	for _, l := range s.lanes {
		for tag := range l.down {
			if l.down[tag].Load() {
				return false
			}
		}
	}
	return true
}

// join reaches the store for the first time.
func (s *Store) join(ctx context.Context) error {
	if s.client == nil {
		client, err := s.endpoint.dial("relay", nil)
		if err != nil {
			return err
		}
		s.client = client
	}
	if err := s.pulse(ctx, true); err != nil {
		if r := redisError(err); r != nil {
			if _, moved := r.IsMoved(); moved {
				return s.errOneOfMany()
			}
		}
		return err
	}
	if err := s.checkSingle(ctx); err != nil {
		return err
	}
	s.joined.Store(true)
	return nil
}

// errOneOfMany says that a cluster is to be given as such.
func (s *Store) errOneOfMany() error {
	return &settingError{fmt.Sprintf("redis: %v is a node of a cluster: give the addresses of several nodes", s.endpoint.addrs)}
}

// checkSingle wants a single address to be of a single server. The only node
// of a cluster will do.
func (s *Store) checkSingle(ctx context.Context) error {
	if len(s.endpoint.addrs) > 1 {
		return nil
	}
	info, err := s.client.Do(ctx, s.client.B().Info().Section("cluster").Build()).ToString()
	if err != nil || !strings.Contains(info, "cluster_enabled:1") {
		return nil // those who do not know the section are no cluster
	}
	_, nodes, err := s.slots(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("redis: read the slots of the cluster: %w", err)
	case nodes > 1:
		return s.errOneOfMany()
	}
	return nil
}

// place gives each tag the lanes of the node that holds it. A tag that moves
// later stays with its lanes, which find it by the redirections of the cluster.
func (s *Store) place(ctx context.Context) error {
	slotNode, _, err := s.slots(ctx)
	if err != nil {
		return fmt.Errorf("redis: read the slots of the cluster: %w", err)
	}
	for tag := range s.tagLane {
		cmd := s.client.B().Get().Key(tagName(tag)).Build()
		s.tagLane[tag] = slotNode[cmd.Slot()] % len(s.endpoint.addrs) * s.options.Lanes
	}
	return nil
}

// slotCount is how many hash slots a cluster has.
const slotCount = 1 << 14

var errSlots = errors.New("unknown form")

// slots says which node holds each hash slot, by numbers from 0.
func (s *Store) slots(ctx context.Context) (slotNode *[slotCount]int, nodes int, err error) {
	ranges, err := s.client.Do(ctx, s.client.B().ClusterSlots().Build()).ToArray()
	if err != nil {
		return nil, 0, err
	}
	slotNode = new([slotCount]int)
	nodeOf := make(map[string]int)
	for _, r := range ranges {
		f, err := r.ToArray()
		if err != nil || len(f) < 3 {
			return nil, 0, errSlots
		}
		first, err1 := f[0].AsInt64()
		last, err2 := f[1].AsInt64()
		node, err3 := f[2].ToArray()
		if errors.Join(err1, err2, err3) != nil || len(node) < 2 || first < 0 || last >= slotCount {
			return nil, 0, errSlots
		}
		host, _ := node[0].ToString() // may be nil: the node that was asked
		port, _ := node[1].AsInt64()
		name := fmt.Sprint(host, ":", port)
		if _, known := nodeOf[name]; !known {
			nodeOf[name] = len(nodeOf)
		}
		for slot := first; slot <= last; slot++ {
			slotNode[slot] = nodeOf[name]
		}
	}
	return slotNode, len(nodeOf), nil
}

// tagName is the hash tag of that number.
func tagName(tag int) string { return fmt.Sprintf("{s%02d}", tag) }

// Lanes is how many lanes there are.
func (s *Store) Lanes() int { return len(s.lanes) }

// Lane is one of them.
func (s *Store) Lane(i int) *Lane { return s.lanes[i] }

// LaneOf is the lane of a group, always the same in one process.
func (s *Store) LaneOf(groupID uint64) int {
	h := scatter(groupID)
	return s.tagLane[h%uint64(len(s.tagLane))] + int(h>>40%uint64(s.options.Lanes))
}

// scatter spreads ids that differ in few bits.
func scatter(id uint64) uint64 {
	h := id * 0x9e3779b97f4a7c15
	return h ^ h>>29
}

// Live is how many relays used the store when it was last reached, this one
// among them.
func (s *Store) Live() int { return int(s.relays.Load()) }

// Err is why the store could not be asked the last time; nil when it could. Any
// goroutine may ask.
func (s *Store) Err() error {
	if f := s.refuse.Load(); f != nil {
		return f.err
	}
	if f := s.fault.Load(); f != nil {
		return f.err
	}
	for _, l := range s.lanes {
		for _, at := range []*atomic.Pointer[fault]{&l.fault, &l.sick} {
			if f := at.Load(); f != nil {
				return f.err
			}
		}
	}
	return nil
}

// Forgotten is how many groups the lanes had to forget something of, because
// the store was gone for too long: charges that were never counted, or units
// that never came back.
func (s *Store) Forgotten() int64 { return s.forgot.Load() }

// note keeps what went wrong with the heart, or that nothing does any more.
func (s *Store) note(err error) { noteIn(&s.fault, err) }

// noteIn keeps what went wrong, or that nothing does any more.
func noteIn(at *atomic.Pointer[fault], err error) {
	switch {
	case err != nil:
		at.Store(&fault{err})
	case at.Load() != nil:
		at.Store(nil)
	}
}

// Close leaves the store. Lanes must be at rest.
func (s *Store) Close() {
	s.end()
	s.done.Wait()
	if s.client != nil {
		if s.joined.Load() {
			s.leave()
		}
		s.client.Close()
	}
	for _, l := range s.lanes {
		if l.client != nil {
			l.client.Close()
		}
	}
}
