package loop

import "relay/store/catalog"

// pool holds a loop's connections to one endpoint. Owner: the loop.
type pool struct {
	loop    *Loop
	idle    []*upstreamConn // least recently used first; taken from the end
	waiters attemptList     // attempts that wait for a connection, oldest first
	key     uint64          // Host.Endpoint
	dialing int             // dials on their way
	open    int             // connections, busy and idle
}

// pool returns the pool of a host's endpoint.
func (l *Loop) pool(h *catalog.Host) *pool {
	p := l.pools[h.Endpoint]
	if p == nil {
		p = &pool{loop: l, key: h.Endpoint}
		p.waiters.init()
		l.pools[h.Endpoint] = p
	}
	return p
}

// take returns the connection used last, or nil.
func (p *pool) take() *upstreamConn {
	n := len(p.idle)
	if n == 0 {
		return nil
	}
	u := p.idle[n-1]
	p.idle[n-1] = nil
	p.idle = p.idle[:n-1]
	p.loop.metrics.IdleUpstreams--
	p.loop.wheel.disarm(&u.timer)
	return u
}

// forget takes a connection that died out of the idle ones.
func (p *pool) forget(u *upstreamConn) {
	for i, other := range p.idle {
		if other == u {
			p.idle = append(p.idle[:i], p.idle[i+1:]...)
			p.loop.metrics.IdleUpstreams--
			return
		}
	}
}

// sweep drops a pool that nothing uses: its host may have left the catalog.
func (p *pool) sweep() {
	if p.open == 0 && p.dialing == 0 && p.waiters.empty() {
		delete(p.loop.pools, p.key)
	}
}

// attemptList is an intrusive list of waiting attempts.
type attemptList struct{ root attempt }

func (s *attemptList) init() { s.root.next, s.root.prev = &s.root, &s.root }

func (s *attemptList) empty() bool { return s.root.next == &s.root }

func (s *attemptList) add(a *attempt) {
	a.prev, a.next = s.root.prev, &s.root
	a.prev.next, s.root.prev = a, a
}

// first removes and returns the oldest, or nil.
func (s *attemptList) first() *attempt {
	if s.empty() {
		return nil
	}
	a := s.root.next
	a.unlink()
	return a
}

// unlink is harmless on an attempt that does not wait.
func (a *attempt) unlink() {
	if a.next == nil {
		return
	}
	a.prev.next, a.next.prev = a.next, a.prev
	a.next, a.prev = nil, nil
}
