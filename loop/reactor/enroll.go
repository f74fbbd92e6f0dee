package reactor

import (
	"context"
	"errors"
	"net"
	"slices"

	"github.com/panjf2000/gnet/v2"
)

// errNotOpened says that the loop could not add the descriptor to its epoll
// set, which gnet does not report.
var errNotOpened = errors.New("the loop did not take the connection")

// An enrollment is an accepted connection on its way to its loop. Owner: the
// shard's enroll goroutine.
type enrollment struct {
	conn   *net.TCPConn
	socket *socket
	result <-chan gnet.RegisteredResult
}

func newSocket(l *shard, w way) *socket { return &socket{shard: l, way: w, drainLow: -1} }

// scrub takes the zone out of c's addresses: gnet returns the bytes of zone
// strings to a pool of buffers when a connection closes, and they are not its
// own.
func scrub(c net.Conn) {
	for _, a := range []net.Addr{c.LocalAddr(), c.RemoteAddr()} {
		if tcp, ok := a.(*net.TCPAddr); ok && tcp.Zone != "" {
			tcp.Zone = ""
		}
	}
}

// submit hands c to the loop of s; c is gnet's from here. The result comes
// when Core has seen the socket, or not at all if the engine stops.
func submit(s *socket, c *net.TCPConn) (<-chan gnet.RegisteredResult, error) {
	scrub(c)
	result, err := s.shard.el.Enroll(gnet.NewContext(context.Background(), s), c)
	if err != nil {
		_ = c.Close()
	}
	return result, err
}

// registered checks what came of a submit. The receive from the result channel
// is behind all that OnOpen did.
func (s *socket) registered(res gnet.RegisteredResult) error {
	if res.Err != nil {
		return res.Err
	}
	if !s.opened {
		return errNotOpened
	}
	return nil
}

// enroll brings accepted connections onto the loop, a few at a time. It is a
// goroutine of the shard, so that a stuck loop delays its own only.
func (l *shard) enroll() {
	var flying []enrollment
	for {
		in := l.enrolls
		if len(flying) == enrollInflightMax {
			in = nil
		}
		var result <-chan gnet.RegisteredResult
		if len(flying) > 0 {
			result = flying[0].result
		}
		select {
		case <-l.r.life.Done():
			l.dropEnrolls()
			return
		case e := <-in:
			var err error
			if e.result, err = submit(e.socket, e.conn); err != nil {
				l.notEnrolled(e, err)
				continue
			}
			flying = append(flying, e)
		case res := <-result:
			if err := flying[0].socket.registered(res); err != nil {
				l.notEnrolled(flying[0], err)
			}
			flying = slices.Delete(flying, 0, 1)
		}
	}
}

// notEnrolled ends a connection that the loop never had.
func (l *shard) notEnrolled(e enrollment, err error) {
	l.r.counts.enrollFailed.Add(1)
	l.r.log.Warn("an accepted connection could not be given to its loop", "loop", l.index, "error", err)
	e.socket.way.left()
}

// dropEnrolls closes what waits when the reactor stops.
func (l *shard) dropEnrolls() {
	for {
		select {
		case e := <-l.enrolls:
			_ = e.conn.Close()
			e.socket.way.left()
		default:
			return
		}
	}
}
