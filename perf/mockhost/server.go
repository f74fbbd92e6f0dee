package mockhost

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Options say how a server answers.
type Options struct {
	Addr     string // "127.0.0.1:0" when empty
	Key      string // the only credential accepted; "" accepts any, and none
	Scenario string // words that precede those of each request; "" is fast
	Record   bool   // keep the last requests for Requests and /_mock/last
	Loop     bool   // answer ordinary requests on one event loop, which is cheap
}

// A Server is a running mock provider.
type Server struct {
	options  Options
	listener net.Listener
	wait     sync.WaitGroup
	done     chan struct{} // closed by Close
	ids      atomic.Uint64
	tally    tally

	mu        sync.Mutex // guards what follows; taken per connection and per new scenario
	conns     map[*conn]struct{}
	scenarios map[string]*scenario
	struck    map[string]int    // requests seen per scenario text with times or a menu
	dealt     map[string]uint64 // faults of the menu, by name
	wheels    map[time.Duration]*wheel
	records   []Request
	closed    bool
}

// Start listens and serves until Close.
func Start(o Options) (*Server, error) {
	if _, err := parseScenario(o.Scenario); err != nil {
		return nil, err
	}
	if o.Addr == "" {
		o.Addr = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", o.Addr)
	if err != nil {
		return nil, fmt.Errorf("mock: listen: %w", err)
	}
	s := &Server{
		options: o, listener: l, done: make(chan struct{}),
		conns: make(map[*conn]struct{}), scenarios: make(map[string]*scenario),
		struck: make(map[string]int), dealt: make(map[string]uint64), wheels: make(map[time.Duration]*wheel),
	}
	s.ids.Store(uint64(time.Now().UnixMicro()))
	if o.Loop {
		if err := s.startLoop(); err != nil {
			l.Close()
			return nil, fmt.Errorf("mock: start the loop: %w", err)
		}
		return s, nil
	}
	s.wait.Go(s.accept)
	return s, nil
}

// URL is the root of both shapes: the base URL of the Anthropic SDK, and with
// "/v1" behind it that of the OpenAI SDK.
func (s *Server) URL() string { return "http://" + s.Addr() }

// Addr is the address that the server listens on.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Close stops listening, resets all connections and waits for their goroutines.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	close(s.done)
	err := s.listener.Close()
	for c := range s.conns {
		c.abort()
	}
	s.mu.Unlock()
	s.wait.Wait()
	return err
}

func (s *Server) accept() {
	for {
		nc, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of descriptors: try again when some may be free
			select {
			case <-s.done:
				return
			case <-time.After(10 * time.Millisecond):
			}
			continue
		}
		c := &conn{server: s, tcp: nc.(*net.TCPConn)}
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			nc.Close()
			return
		}
		s.conns[c] = struct{}{}
		s.wait.Go(c.serve)
		s.mu.Unlock()
		s.tally.connections.Add(1)
		s.tally.open.Add(1)
	}
}

func (s *Server) forget(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	s.tally.open.Add(-1)
}

// scenario finds the parsed form of a text, which is the server's own words and
// those of the request.
func (s *Server) scenario(text string) (*scenario, error) {
	s.mu.Lock()
	sc := s.scenarios[text]
	s.mu.Unlock()
	if sc != nil {
		return sc, nil
	}
	parsed, err := parseScenario(text)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.scenarios) >= scenariosMax {
		clear(s.scenarios)
	}
	s.scenarios[text] = &parsed
	return &parsed, nil
}

// strikes counts a request of a scenario with times, and says whether the
// trouble still strikes.
func (s *Server) strikes(text string, times int, flap bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.struck) >= scenariosMax {
		clear(s.struck)
	}
	s.struck[text]++
	if flap {
		return (s.struck[text]-1)/times%2 == 0
	}
	return s.struck[text] <= times
}
