package reactor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strconv"
	"sync"
	"syscall"
	"time"

	"relay/loop"
	"relay/store/catalog"
)

// run is one dial, from its turn to its end.
func (d *dialer) run(n *dialLine, dial *loop.Dial) {
	l := d.r.shards[dial.Loop]
	s := newSocket(l, &upstreamWay{dialer: d, line: n, dial: dial, shard: l})
	fault, err := d.connect(s, dial.Host)
	d.finished(n)
	d.r.counts.dials[fault].Add(1)
	if fault == loop.DialOK {
		return
	}
	d.closed(n)
	f := failure{dial, fault, err.Error()}
	for !d.r.giveBack(f) {
		select {
		case <-d.r.life.Done():
			return
		case <-time.After(postPause):
		}
	}
}

// connect opens a connection to h and brings it onto the loop of s.
func (d *dialer) connect(s *socket, h *catalog.Host) (loop.DialFault, error) {
	address := net.JoinHostPort(h.Hostname, strconv.Itoa(int(h.Port)))
	to := net.Dialer{Timeout: h.Timeouts.Connect}
	c, err := to.DialContext(d.r.life, "tcp", address)
	if err != nil {
		return faultOf(err), err
	}
	tcp := c.(*net.TCPConn)
	if h.TLS {
		if err := d.greet(s, tcp, h); err != nil {
			_ = tcp.Close()
			return tlsFaultOf(err), err
		}
	}
	result, err := submit(s, tcp)
	if err != nil {
		return loop.DialExhausted, err
	}
	select {
	case res := <-result:
		if err := s.registered(res); err != nil {
			return loop.DialExhausted, err
		}
		return loop.DialOK, nil
	case <-d.r.life.Done():
		// The loop has it or never will; either way nobody waits for the dial.
		return loop.DialOK, nil
	}
}

// greet runs the TLS handshake with an upstream.
func (d *dialer) greet(s *socket, tcp *net.TCPConn, h *catalog.Host) error {
	ctx, cancel := context.WithTimeout(d.r.life, handshakeTimeout)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = tcp.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	w := newWire(tcp, nil)
	conn := tls.Client(w, d.origins.config(h, d.r.options.RootCAs))
	if err := conn.Handshake(); err != nil {
		return err
	}
	if !stop() {
		return context.Cause(ctx)
	}
	s.secured(conn, w)
	return nil
}

// exhaustion are the errors by which the kernel says that this machine, not
// the other, has run out of something.
var exhaustion = [...]error{syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL, syscall.ENOBUFS, syscall.ENOMEM}

// faultOf classifies what net.Dialer says.
func faultOf(err error) loop.DialFault {
	for _, e := range exhaustion {
		if errors.Is(err, e) {
			return loop.DialExhausted
		}
	}
	if isTimeout(err) {
		return loop.DialTimeout
	}
	return loop.DialRefused
}

// tlsFaultOf classifies what a handshake says.
func tlsFaultOf(err error) loop.DialFault {
	if isTimeout(err) {
		return loop.DialTimeout
	}
	return loop.DialTLS
}

func isTimeout(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}

// An upstreamWay is the way of dialed connections.
type upstreamWay struct {
	dialer *dialer
	line   *dialLine
	dial   *loop.Dial // nil once the loop has it back
	shard  *shard
}

func (w *upstreamWay) entered(s *socket) loop.Conn {
	d := w.dial
	w.dial = nil
	w.shard.counts.upstreams.Add(1)
	return s.shard.core.Opened(s, d)
}

func (w *upstreamWay) left() {
	w.shard.counts.upstreams.Add(-1)
	w.dialer.closed(w.line)
}

// origins keeps the TLS settings of endpoints and, with them, the sessions
// that make the next handshake short.
type origins struct {
	mu      sync.Mutex
	configs map[uint64]*tls.Config
}

// config is the setting for h. Past endpointsMax any other endpoint loses its
// sessions.
func (o *origins) config(h *catalog.Host, roots *x509.CertPool) *tls.Config {
	o.mu.Lock()
	defer o.mu.Unlock()
	if c := o.configs[h.Endpoint]; c != nil {
		return c
	}
	if o.configs == nil {
		o.configs = map[uint64]*tls.Config{}
	}
	if len(o.configs) >= endpointsMax {
		for other := range o.configs {
			delete(o.configs, other)
			break
		}
	}
	c := &tls.Config{
		RootCAs:            roots,
		ServerName:         h.Hostname,
		NextProtos:         []string{"http/1.1"},
		MinVersion:         tls.VersionTLS12,
		ClientSessionCache: tls.NewLRUClientSessionCache(sessionsPerEndpoint),
	}
	o.configs[h.Endpoint] = c
	return c
}
