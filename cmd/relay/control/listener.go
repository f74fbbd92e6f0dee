package control

import (
	"net"
	"sync"
)

// A boundedListener accepts while fewer than so many of its connections are
// open. Others wait in the kernel's queue: the timeouts of the server see to it
// that room comes.
type boundedListener struct {
	net.Listener
	slots chan struct{} // one for each open connection
	ended chan struct{}
	once  sync.Once
}

func newBoundedListener(l net.Listener, most int) *boundedListener {
	return &boundedListener{Listener: l, slots: make(chan struct{}, most), ended: make(chan struct{})}
}

// Accept waits for room, then for a connection.
func (l *boundedListener) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.ended:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &boundedConn{Conn: c, leave: sync.OnceFunc(func() { <-l.slots })}, nil
}

// Close also ends an Accept that waits for room.
func (l *boundedListener) Close() error {
	l.once.Do(func() { close(l.ended) })
	return l.Listener.Close()
}

// boundedConn gives its room back when it is closed.
type boundedConn struct {
	net.Conn
	leave func()
}

// Close closes the connection, once or more.
func (c *boundedConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
