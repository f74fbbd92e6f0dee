package reactor

import (
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A lobby holds the connections whose inbound handshake runs, at most max at a
// time. When it is full, the guest that was silent for longest makes room for
// a newcomer: connections that say nothing cost places, but keep nobody out.
// By whom a place is held is not looked at, since all that comes through one
// balancer has one address. Any goroutine.
type lobby struct {
	max int

	mu      sync.Mutex
	quiet   guest // list head: guests in the order in which they were last heard
	guests  int
	evicted uint64
}

// A guest is one connection in the lobby.
type guest struct {
	lobby      *lobby
	conn       *net.TCPConn
	next, prev *guest // nil once it has left
	heardAt    time.Time
}

func newLobby(max int) *lobby {
	l := &lobby{max: max}
	l.quiet.next, l.quiet.prev = &l.quiet, &l.quiet
	return l
}

// enter takes c in, or returns nil when all guests have spoken lately.
func (l *lobby) enter(c *net.TCPConn) *guest {
	g := &guest{lobby: l, conn: c}
	now := time.Now()
	var out *guest
	l.mu.Lock()
	if l.guests == l.max {
		if out = l.silent(now); out == nil {
			l.mu.Unlock()
			return nil
		}
		l.unlink(out)
		l.evicted++
	}
	l.link(g, now)
	l.mu.Unlock()
	if out != nil {
		_ = out.conn.Close() // ends its handshake
	}
	return g
}

// silent finds the guest to be turned out; l.mu is held. Bytes that wait in the
// kernel are not silence: they wait for this process.
func (l *lobby) silent(now time.Time) *guest {
	for {
		g := l.quiet.next
		if g == &l.quiet || now.Sub(g.heardAt) < silenceMin {
			return nil
		}
		if unreadBytes(g.conn) == 0 {
			return g
		}
		l.unlink(g)
		l.link(g, now)
	}
}

// heard notes that a whole ClientHello has come. Single bytes do not count:
// they would hold a place for the price of one each.
func (g *guest) heard() {
	g.lobby.mu.Lock()
	defer g.lobby.mu.Unlock()
	if g.next != nil {
		g.lobby.unlink(g)
		g.lobby.link(g, time.Now())
	}
}

// leave gives the place back. It reports false when the guest had lost it, and
// with it the connection.
func (g *guest) leave() bool {
	g.lobby.mu.Lock()
	defer g.lobby.mu.Unlock()
	if g.next == nil {
		return false
	}
	g.lobby.unlink(g)
	return true
}

// link and unlink move a guest in and out of the list; l.mu is held.
func (l *lobby) link(g *guest, now time.Time) {
	g.heardAt = now
	g.prev, g.next = l.quiet.prev, &l.quiet
	g.prev.next, l.quiet.prev = g, g
	l.guests++
}

func (l *lobby) unlink(g *guest) {
	g.prev.next, g.next.prev = g.next, g.prev
	g.next, g.prev = nil, nil
	l.guests--
}

// count reports how many guests there are, and how many were turned out.
func (l *lobby) count() (guests int, evicted uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.guests, l.evicted
}

// unreadBytes is how much the kernel holds for a reader of c; 0 when that
// cannot be told.
func unreadBytes(c *net.TCPConn) (n int) {
	conn, err := c.SyscallConn()
	if err != nil {
		return 0
	}
	_ = conn.Control(func(fd uintptr) {
		if n, err = unix.IoctlGetInt(int(fd), unix.SIOCINQ); err != nil {
			n = 0
		}
	})
	return n
}
