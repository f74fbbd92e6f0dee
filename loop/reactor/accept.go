package reactor

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"relay/loop"
)

// ListenOptions say what clients of a listener speak first.
type ListenOptions struct {
	// TLS makes it a TLS listener. It may hold no certificate when CertFile
	// and KeyFile are set, whose contents are then followed; these alone make
	// it a TLS listener with default settings.
	TLS               *tls.Config
	CertFile, KeyFile string
	ProxyProtocol     bool // a PROXY header (v1 or v2) comes first
	// ProxiesFrom are the peers that may send one; others are closed at once.
	// Empty: every peer may.
	ProxiesFrom []netip.Prefix
}

// A listener accepts clients. Owner: its accept goroutine, but for close.
type listener struct {
	r     *Reactor
	tcp   *net.TCPListener
	tls   *tls.Config // nil on cleartext
	proxy bool
	from  []netip.Prefix // ListenOptions.ProxiesFrom
	end   context.Context
	close context.CancelFunc // ends accepting, closes the socket
}

func newListener(r *Reactor, tcp *net.TCPListener, o ListenOptions) (*listener, error) {
	config, err := serverConfig(o)
	if err != nil {
		return nil, err
	}
	a := &listener{r: r, tcp: tcp, tls: config, proxy: o.ProxyProtocol, from: o.ProxiesFrom}
	a.end, a.close = context.WithCancel(r.life)
	context.AfterFunc(a.end, func() { _ = tcp.Close() })
	return a, nil
}

// accept runs until the listener is closed. An error that says that something
// has run out is waited out; it never ends accepting.
func (a *listener) accept() {
	pause := acceptPauseMin
	for {
		c, err := a.tcp.AcceptTCP()
		if err == nil {
			pause = acceptPauseMin
			a.arrived(c)
			continue
		}
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
			a.r.counts.acceptExhausted.Add(1)
		} else {
			a.r.counts.acceptFailed.Add(1)
		}
		select {
		case <-a.end.Done():
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, acceptPauseMax)
	}
}

// arrived sends a new connection to its place, into the queue, or away. Go
// has set TCP_NODELAY and keep-alive on it.
func (a *listener) arrived(c *net.TCPConn) {
	if a.proxy && !a.trusts(addrPort(c.RemoteAddr()).Addr()) {
		a.r.counts.untrusted.Add(1)
		_ = c.Close()
		return
	}
	index, v := a.r.gate.arrive(c, a)
	switch v {
	case admitted:
		a.enter(c, index)
	case queued:
		a.r.counts.queued.Add(1)
	case refused:
		a.refuse(c)
	}
}

// trusts reports whether a peer may say for whom it speaks.
func (a *listener) trusts(peer netip.Addr) bool {
	return len(a.from) == 0 || slices.ContainsFunc(a.from, func(p netip.Prefix) bool { return p.Contains(peer) })
}

// enter brings a connection that has a place onto its loop, behind its
// handshake if it needs one.
func (a *listener) enter(c *net.TCPConn, index int) {
	a.r.counts.accepted.Add(1)
	w := &clientWay{r: a.r, index: index, peer: loop.Peer{Addr: addrPort(c.RemoteAddr()), TLS: a.tls != nil}}
	s := newSocket(a.r.shards[index], w)
	if a.tls == nil {
		w.peer.ProxyHeader = a.proxy
		a.offer(c, s)
		return
	}
	g := a.usher(c)
	if g == nil {
		_ = c.Close()
		w.left()
		return
	}
	a.r.spawn(func() {
		err := a.greet(g, s, w)
		switch {
		case !g.leave(): // counted there
		case err != nil:
			a.r.counts.handshakesFailed.Add(1)
		default:
			a.r.counts.handshakesDone.Add(1)
			a.offer(c, s)
			return
		}
		_ = c.Close()
		w.left()
	})
}

// usher waits for room in the lobby. Who stands in front of it is held up, but
// not for long: every guest falls silent in its turn, or is done. It returns
// nil when accepting ends.
func (a *listener) usher(c *net.TCPConn) *guest {
	for {
		if g := a.r.lobby.enter(c); g != nil {
			return g
		}
		select {
		case <-a.end.Done():
			return nil
		case <-time.After(roomPause):
		}
	}
}

// greet does what comes before the first request on a TLS listener.
func (a *listener) greet(g *guest, s *socket, w *clientWay) error {
	ctx, cancel := context.WithTimeout(a.r.life, handshakeTimeout)
	defer cancel()
	peer, conn, wire, err := a.handshake(ctx, g)
	if err != nil {
		return err
	}
	if peer.IsValid() {
		w.peer.Addr = peer
	}
	s.secured(conn, wire)
	return nil
}

// handshake reads the PROXY header if there must be one, and runs the TLS
// handshake. peer is the zero value if no header names one.
func (a *listener) handshake(ctx context.Context, g *guest) (peer netip.AddrPort, conn *tls.Conn, w *wire, err error) {
	c := g.conn
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	var early []byte
	if a.proxy {
		if peer, early, err = readProxyHeader(c); err != nil {
			return peer, nil, nil, err
		}
	}
	w = newWire(c, early)
	w.guest = g
	conn = tls.Server(w, a.tls)
	if err = conn.Handshake(); err != nil {
		return peer, nil, nil, err
	}
	if !stop() {
		return peer, nil, nil, context.Cause(ctx)
	}
	return peer, conn, w, nil
}

// offer queues the connection for its loop.
func (a *listener) offer(c *net.TCPConn, s *socket) {
	select {
	case s.shard.enrolls <- enrollment{conn: c, socket: s}:
	default:
		a.r.counts.enrollFull.Add(1)
		_ = c.Close()
		s.way.left()
	}
}

// A clientWay is the way of accepted connections.
type clientWay struct {
	r     *Reactor
	index int
	peer  loop.Peer
}

func (w *clientWay) entered(s *socket) loop.Conn { return s.shard.core.Accept(s, w.peer) }
func (w *clientWay) left()                       { w.r.gate.leave(w.index) }

// addrPort is the address without what names it on this machine only.
func addrPort(a net.Addr) netip.AddrPort {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	ap := tcp.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap().WithZone(""), ap.Port())
}

// A turnstile lets a bounded number through at a time.
type turnstile chan struct{}

func (t turnstile) take() bool {
	select {
	case t <- struct{}{}:
		return true
	default:
		return false
	}
}

func (t turnstile) give() { <-t }
