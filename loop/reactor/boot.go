package reactor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"reflect"
	"time"

	"github.com/panjf2000/gnet/v2"
	"golang.org/x/sys/unix"
)

// A bell is a socket pair with one end in an event loop. At the start it shows
// which loop that is and that reading can be paused; afterwards a byte in it
// makes the loop read its mail after it has looked at its sockets, which a
// task posted from the loop itself would not: gnet runs tasks until there are
// none.
type bell struct {
	shard *shard
	rope  int           // descriptor of the other end
	fd    int           // descriptor in the loop
	rang  chan struct{} // holds one ring; for the self-check
}

// gnetOptions are what the loops run with. Level-triggered is not a choice:
// gnet reads a closed descriptor when it is edge-triggered, which may be
// another connection's by then.
func (r *Reactor) gnetOptions() gnet.Options {
	return gnet.Options{
		NumEventLoop:    r.options.Loops,
		ReadBufferCap:   readBytesMax,
		EdgeTriggeredIO: false,
		LockOSThread:    false,
		Logger:          gnetLog{r.log},
	}
}

// boot starts gnet and finds out its loops.
func (r *Reactor) boot() error {
	client, err := gnet.NewClient(&events{}, gnet.WithOptions(r.gnetOptions()))
	if err != nil {
		return fmt.Errorf("reactor: make event loops: %w", err)
	}
	if err := client.Start(); err != nil {
		return fmt.Errorf("reactor: start event loops: %w", err)
	}
	r.client = client
	for i := range r.options.Loops {
		l := newShard(r, i)
		if err := l.anchor(); err != nil {
			return errors.Join(fmt.Errorf("reactor: loop %d: %w", i, err), r.abort())
		}
		r.shards = append(r.shards, l)
		for _, other := range r.shards[:i] {
			if other.el == l.el {
				return errors.Join(fmt.Errorf("reactor: loop %d: gnet placed two anchors on one loop", i), r.abort())
			}
		}
	}
	for i, l := range r.shards {
		if err := l.checkPause(); err != nil {
			return errors.Join(fmt.Errorf("reactor: loop %d: self-check of the read pause: %w", i, err), r.abort())
		}
	}
	return nil
}

// abort takes a half-started engine down.
func (r *Reactor) abort() error {
	err := r.client.Stop()
	r.hangBells()
	return err
}

// hangBells closes our ends of the bells.
func (r *Reactor) hangBells() {
	for _, l := range r.shards {
		_ = unix.Close(l.bell.rope)
	}
}

// newBell makes a bell; nc is the end for the loop.
func newBell(l *shard) (b *bell, nc net.Conn, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("socketpair: %w", err)
	}
	f := os.NewFile(uintptr(pair[0]), "bell")
	nc, err = net.FileConn(f)
	_ = f.Close()
	if err != nil {
		_ = unix.Close(pair[1])
		return nil, nil, fmt.Errorf("bell: %w", err)
	}
	return &bell{shard: l, rope: pair[1], rang: make(chan struct{}, 1)}, nc, nil
}

// anchor enrolls the bell. gnet gives it to the loop with the fewest
// connections, so anchors enrolled one after the other get a loop each.
func (l *shard) anchor() error {
	b, nc, err := newBell(l)
	if err != nil {
		return err
	}
	gc, err := l.r.client.EnrollContext(nc, b)
	if err == nil {
		l.bell, l.el, b.fd = b, gc.EventLoop(), gc.Fd()
		l.epfd, err = epollDescriptor(l.el)
	}
	if err != nil {
		_ = unix.Close(b.rope)
		return fmt.Errorf("enroll bell: %w", err)
	}
	return nil
}

// epollDescriptor reads the descriptor that a gnet loop waits on. gnet has no
// way to ask for it; its version is pinned for this.
func epollDescriptor(el gnet.EventLoop) (fd int, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("gnet keeps its epoll descriptor elsewhere: %v", p)
		}
	}()
	return int(reflect.ValueOf(el).Elem().FieldByName("poller").Elem().FieldByName("fd").Int()), nil
}

// checkPause proves on the bell that switching the interest off stops gnet
// from reading, and that switching it on again loses nothing. A second bell,
// rung later, shows that the loop has looked at its sockets.
func (l *shard) checkPause() error {
	witness, nc, err := newBell(l)
	if err != nil {
		return err
	}
	defer unix.Close(witness.rope) // gnet closes its end when it reads the FIN
	result, err := l.el.Enroll(gnet.NewContext(context.Background(), witness), nc)
	if err != nil {
		_ = nc.Close()
		return fmt.Errorf("enroll witness: %w", err)
	}
	if res := <-result; res.Err != nil {
		return fmt.Errorf("enroll witness: %w", res.Err)
	}
	if err := l.bell.listen(0); err != nil {
		return err
	}
	l.bell.ring()
	witness.ring()
	if !witness.heard() {
		return errors.New("the loop does not look at its sockets")
	}
	select {
	case <-l.bell.rang:
		return errors.New("a paused descriptor was read")
	default:
	}
	if err := l.bell.listen(unix.EPOLLIN | unix.EPOLLPRI); err != nil {
		return err
	}
	if !l.bell.heard() {
		return errors.New("a resumed descriptor was not read")
	}
	return nil
}

// listen sets the bell's events in the loop's epoll set.
func (b *bell) listen(events uint32) error {
	ev := unix.EpollEvent{Fd: int32(b.fd), Events: events}
	if err := unix.EpollCtl(b.shard.epfd, unix.EPOLL_CTL_MOD, b.fd, &ev); err != nil {
		return fmt.Errorf("epoll_ctl: %w", err)
	}
	return nil
}

// heard waits for a ring.
func (b *bell) heard() bool {
	select {
	case <-b.rang:
		return true
	case <-time.After(bellWait):
		return false
	}
}

// ring makes the loop run rung when it looks at its sockets next. A full pair
// needs no further byte.
func (b *bell) ring() { _, _ = unix.Write(b.rope, []byte{1}) }

// rung is the bell's OnTraffic.
func (b *bell) rung(c gnet.Conn) {
	_, _ = c.Discard(-1)
	select {
	case b.rang <- struct{}{}:
	default:
	}
	b.shard.runMail()
}
