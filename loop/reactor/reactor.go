package reactor

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/panjf2000/gnet/v2"

	"relay/loop"
	"relay/store/catalog"
)

// Options say how a Reactor is built. They do not change.
type Options struct {
	Loops            int           // ≥ 1
	MaxConns         int           // client connections open at once, ≥ 1
	ConnQueue        int           // accepted connections that may wait for one to close
	ConnQueueTimeout time.Duration // how long one waits before it is refused
	RootCAs          *x509.CertPool
	Yield            func(*catalog.Host) // asks the loops to close one idle connection of a host that is at its limit while a dial waits; must not block; may be nil
	Log              *slog.Logger        // nil: nothing is logged
}

// A Core is what runs on a shard; *loop.Loop is one. All methods but Post are
// called on the shard's goroutine, and the Conns it hands out as well.
//
// End says whether the callback asked a lane for something, and when the Core
// wants a tick at the latest, on the clock of Begin; 0 = whenever. A callback
// that panics has no End; Panicked follows, between a Begin and an End of its
// own.
type Core interface {
	Post(loop.Message) bool
	Begin(monoNs, wallNs int64)
	End() (asked bool, nextNs int64)
	Tick()
	RunMail() (more bool)
	Accept(loop.Socket, loop.Peer) loop.Conn
	Opened(loop.Socket, *loop.Dial) loop.Conn
	Panicked(loop.Conn)
}

var _ Core = (*loop.Loop)(nil)

// A Reactor is the event loops of a process with their ways in and out.
type Reactor struct {
	options Options
	log     *slog.Logger
	started time.Time // zero of the monotonic clock of all loops
	client  *gnet.Client
	shards  []*shard
	gate    *gate
	dialer  *dialer
	counts  counters

	lobby    *lobby
	refusals turnstile

	life     context.Context // ends when Stop begins
	hurry    chan struct{}   // holds one: a loop has come into a hurry
	endLife  context.CancelFunc
	running  sync.WaitGroup // goroutines that end by life
	stopOnce sync.Once

	mu        sync.Mutex // guards listeners and closed
	listeners []*listener
	closed    bool // no listener may be added
}

// Start starts the loops. build makes the Core of each, before any socket
// opens; wake may be called from any goroutine, also from inside build.
func Start(o Options, build func(r *Reactor, index int, wake func()) Core) (*Reactor, error) {
	if o.Loops < 1 || o.MaxConns < 1 || o.ConnQueue < 0 {
		return nil, fmt.Errorf("reactor: loops %d, connections %d, queue %d: want at least 1, 1, 0", o.Loops, o.MaxConns, o.ConnQueue)
	}
	r := &Reactor{options: o, log: o.Log, started: time.Now()}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	r.life, r.endLife = context.WithCancel(context.Background())
	r.hurry = make(chan struct{}, 1)
	r.lobby = newLobby(handshakesMax)
	r.refusals = make(turnstile, refusalsMax)
	r.gate = newGate(o)
	r.dialer = newDialer(r)
	if err := r.boot(); err != nil {
		r.endLife()
		return nil, err
	}
	for _, l := range r.shards {
		l.core = build(r, l.index, l.wake)
	}
	for _, l := range r.shards {
		l.start()
		r.spawn(l.enroll)
	}
	r.spawn(r.tickAll)
	r.spawn(r.dialer.dispatch)
	r.spawn(r.admitQueued)
	return r, nil
}

// spawn starts a goroutine that ends by r.life.
func (r *Reactor) spawn(f func()) {
	r.running.Add(1)
	go func() {
		defer r.running.Done()
		f()
	}()
}

// tickAll posts ticks: to every loop each TickQuiet, and to those that are in a
// hurry each TickEvery.
func (r *Reactor) tickAll() {
	every := loop.TickQuiet
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for last := time.Now(); ; {
		want := every
		select {
		case <-r.life.Done():
			return
		case <-r.hurry:
			want = loop.TickEvery
		case now := <-ticker.C:
			all := now.Sub(last) >= loop.TickQuiet-loop.TickEvery/2
			if all {
				last = now
			}
			want = loop.TickQuiet
			for _, l := range r.shards {
				hurried := l.hurried.Load()
				if hurried {
					want = loop.TickEvery
				}
				if all || hurried {
					l.postTick()
				}
			}
		}
		if want != every {
			every = want
			ticker.Reset(every)
		}
	}
}

// monoNs is the loops' monotonic clock.
func (r *Reactor) monoNs() int64 { return int64(time.Since(r.started)) }

// Listen accepts client connections from ln, which it owns from now on, until
// StopAccept.
func (r *Reactor) Listen(ln net.Listener, o ListenOptions) error {
	tcp, ok := ln.(*net.TCPListener)
	if !ok {
		return fmt.Errorf("reactor: listen on %s: %T is not a TCP listener", ln.Addr(), ln)
	}
	a, err := newListener(r, tcp, o)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errors.New("reactor: listen after the end of accepting")
	}
	r.listeners = append(r.listeners, a)
	r.spawn(a.accept)
	return nil
}

// Dial hands d to the dialer; it comes back once, by Core.Opened or by Post.
// It reports false when the dialer's mailbox is full: d is then the caller's.
func (r *Reactor) Dial(d *loop.Dial) bool { return r.dialer.inbox.Put(d) }

// StopAccept closes the listeners and refuses the clients that wait for a
// place. Open connections go on.
func (r *Reactor) StopAccept() {
	r.mu.Lock()
	r.closed = true
	listeners := r.listeners
	r.listeners = nil
	r.mu.Unlock()
	for _, a := range listeners {
		a.close()
	}
	r.gate.shut()
}

// Stop ends everything: listeners, dials, and every connection, whose Conns
// are told by OnClosed. Mail is no longer read. It returns when the loops have
// ended.
func (r *Reactor) Stop() {
	r.stopOnce.Do(func() {
		r.StopAccept()
		r.endLife()
		r.running.Wait()
		for _, l := range r.shards {
			l.mail.Store(mailShut)
		}
		if err := r.client.Stop(); err != nil {
			r.log.Error("event loops ended with an error", "error", err)
		}
		r.hangBells()
	})
}
