//go:build integration

package shared

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// A passage is how a proxy treats bytes.
type passage uint8

const (
	open     passage = iota // they pass, later by the delay
	swallows                // they vanish, and connections stay
)

// A proxy stands between relays and the store, and can do to their connections
// what networks do.
type proxy struct {
	listener net.Listener
	to       string // address
	wait     sync.WaitGroup

	mu      sync.Mutex
	passage passage
	delay   time.Duration // of each direction
	conns   map[net.Conn]struct{}
	closed  bool
}

func startProxy(t *testing.T, to string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, to: to, conns: make(map[net.Conn]struct{})}
	p.wait.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

func (p *proxy) address() string { return p.listener.Addr().String() }

func (p *proxy) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	_ = p.listener.Close()
	p.cut()
	p.wait.Wait()
}

// set changes how bytes are treated, also those of connections that are there.
// Connections that have lost bytes do not live on.
func (p *proxy) set(how passage, delay time.Duration) {
	p.mu.Lock()
	lost := p.passage == swallows && how != swallows
	p.passage, p.delay = how, delay
	p.mu.Unlock()
	if lost {
		p.cut()
	}
}

// cut ends all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}

func (p *proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.wait.Go(func() { p.join(c) })
	}
}

// join carries bytes between a relay and the store. While bytes are swallowed
// a new connection is taken and reaches nobody.
func (p *proxy) join(near net.Conn) {
	defer near.Close()
	far, err := net.DialTimeout("tcp", p.to, time.Second)
	if err != nil {
		return
	}
	defer far.Close()
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return
	}
	p.conns[near], p.conns[far] = struct{}{}, struct{}{}
	p.mu.Unlock()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
		both.Go(func() {
			p.carry(way[0], way[1])
			_ = near.Close()
			_ = far.Close()
		})
	}
	both.Wait()
	p.mu.Lock()
	delete(p.conns, near)
	delete(p.conns, far)
	p.mu.Unlock()
}

// A parcel is bytes under way.
type parcel struct {
	due   time.Time
	bytes []byte
}

// carry moves bytes one way, each piece later by the delay that held when it
// came.
func (p *proxy) carry(from io.Reader, to io.Writer) {
	parcels := make(chan parcel, 1024)
	var sending sync.WaitGroup
	sending.Go(func() {
		for b := range parcels {
			time.Sleep(time.Until(b.due))
			if _, err := to.Write(b.bytes); err != nil {
				break
			}
		}
		for range parcels { // the reader must not be stuck
		}
	})
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		p.mu.Lock()
		how, delay := p.passage, p.delay
		p.mu.Unlock()
		if n > 0 && how == open {
			parcels <- parcel{time.Now().Add(delay), append([]byte(nil), buffer[:n]...)}
		}
		if err != nil {
			break
		}
	}
	close(parcels)
	sending.Wait()
}
