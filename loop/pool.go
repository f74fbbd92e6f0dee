package loop

import "relay/store/catalog"

// pool holds a loop's connections to one endpoint. Owner: the loop.
type pool struct {
	loop    *Loop
	idle    idleList    // taken from the end
	waiters attemptList // attempts that wait for a connection, oldest first
	key     uint64      // Host.Endpoint
	dialing int         // dials on their way
	open    int         // connections, busy and idle
}

// pool returns the pool of a host's endpoint.
func (l *Loop) pool(h *catalog.Host) *pool {
	p := l.pools[h.Endpoint]
	if p == nil {
		p = &pool{loop: l, key: h.Endpoint}
		p.waiters.init()
		p.idle.init()
		l.pools[h.Endpoint] = p
	}
	return p
}

// keep adds a connection that nobody needs now.
func (p *pool) keep(u *upstreamConn) {
	p.idle.add(u)
	p.loop.metrics.IdleUpstreams++
}

// take returns the connection used last, or nil.
func (p *pool) take() *upstreamConn {
	u := p.idle.newest()
	if u != nil {
		p.forget(u)
		p.loop.wheel.disarm(&u.timer)
	}
	return u
}

// forget takes a connection out of the idle ones, if it is one of them.
func (p *pool) forget(u *upstreamConn) {
	if p.idle.remove(u) {
		p.loop.metrics.IdleUpstreams--
	}
}

// sweep drops a pool that nothing uses: its host may have left the catalog.
func (p *pool) sweep() {
	if p.open == 0 && p.dialing == 0 && p.waiters.empty() {
		delete(p.loop.pools, p.key)
	}
}

// idleLinks and idleList are an intrusive list of idle connections, least
// recently used first: thousands may close at once, in any order.
type idleLinks struct{ next, prev *upstreamConn }

type idleList struct {
	root upstreamConn
	n    int
}

func (s *idleList) init() { s.root.idle.next, s.root.idle.prev = &s.root, &s.root }

func (s *idleList) add(u *upstreamConn) {
	u.idle.prev, u.idle.next = s.root.idle.prev, &s.root
	u.idle.prev.idle.next, s.root.idle.prev = u, u
	s.n++
}

// oldest and newest are nil when there is none.
func (s *idleList) oldest() *upstreamConn { return s.unlessRoot(s.root.idle.next) }
func (s *idleList) newest() *upstreamConn { return s.unlessRoot(s.root.idle.prev) }

func (s *idleList) unlessRoot(u *upstreamConn) *upstreamConn {
	if u == &s.root {
		return nil
	}
	return u
}

// remove reports false for a connection that is not in the list.
func (s *idleList) remove(u *upstreamConn) bool {
	if u.idle.next == nil {
		return false
	}
	u.idle.prev.idle.next, u.idle.next.idle.prev = u.idle.next, u.idle.prev
	u.idle = idleLinks{}
	s.n--
	return true
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
