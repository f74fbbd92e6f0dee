package reactor

import (
	"crypto/tls"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"
)

// TestLobby: who was silent for longest makes room, but not before silenceMin,
// and not with bytes that this process has not read.
func TestLobby(t *testing.T) {
	l := newLobby(3)
	var guests []*guest
	var peers []*net.TCPConn
	for range 3 {
		server, client := tcpPair(t)
		g := l.enter(server)
		if g == nil {
			t.Fatal("no room for the first")
		}
		guests, peers = append(guests, g), append(peers, client)
	}
	newcomer, _ := tcpPair(t)
	if l.enter(newcomer) != nil {
		t.Fatal("a guest that just came in was turned out")
	}
	for _, g := range guests {
		g.heardAt = g.heardAt.Add(-silenceMin)
	}
	guests[0].heard()
	if _, err := peers[1].Write([]byte{22}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the byte is there", func() bool { return unreadBytes(guests[1].conn) == 1 })
	if l.enter(newcomer) == nil {
		t.Fatal("no room, though one is silent")
	}
	if l.enter(newcomer) != nil {
		t.Fatal("one that spoke was turned out")
	}
	if n, err := peers[2].Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the silent one read %d bytes, %v", n, err)
	}
	guests[2].heard() // too late
	for i, g := range guests {
		if g.leave() != (i != 2) {
			t.Errorf("guest %d: its place is gone, or is not", i)
		}
	}
	if n, evicted := l.count(); n != 1 || evicted != 1 {
		t.Errorf("%d guests, %d turned out", n, evicted)
	}
}

// helloOf is a whole ClientHello.
func helloOf(t *testing.T, config *tls.Config) []byte {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	go func() { _ = tls.Client(ours, config).Handshake() }()
	p := make([]byte, 16<<10)
	n, err := theirs.Read(p)
	if err != nil {
		t.Fatal(err)
	}
	return p[:n]
}

// TestSilentCrowd: however many connections stand in their handshake, from
// whatever address, a client that speaks is served.
func TestSilentCrowd(t *testing.T) {
	const crowd = 2000
	id := newIdentity(t, t.TempDir(), 1)
	hello := helloOf(t, id.client())
	for _, tt := range []struct {
		name    string
		says    []byte
		returns bool // comes back when it is turned out
		evicted int  // at least
		within  time.Duration
	}{
		{"silent", nil, false, crowd - handshakesMax, 2 * time.Second},
		{"half a hello", hello[:len(hello)/2], false, crowd - handshakesMax, 2 * time.Second},
		{"hello and no more", hello, false, crowd - handshakesMax, 2 * time.Second},
		{"silent again and again", nil, true, crowd, 4 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			st := playSilent(t, Options{}, func(c *core) { c.accept = echo })
			st.addr = st.listen(ListenOptions{TLS: &tls.Config{Certificates: []tls.Certificate{id.pair}}})
			var over atomic.Bool
			t.Cleanup(func() { over.Store(true) })
			stand := func() *net.TCPConn {
				c := st.dialClient()
				_, _ = c.Write(tt.says)
				return c
			}
			for range crowd {
				c := stand()
				if tt.returns {
					go again(st.addr, c, &over)
				}
			}
			start := time.Now()
			for range 3 {
				roundTrip(t, tls.Client(st.dialClient(), id.client()), "hello")
			}
			if took := time.Since(start) / 3; took > tt.within {
				t.Errorf("a client waited for %v", took)
			}
			if s := st.r.Stats(); s.Handshakes > handshakesMax || s.HandshakesDone != 3 {
				t.Errorf("%d handshakes run, %d are done", s.Handshakes, s.HandshakesDone)
			}
			eventually(t, "the crowd has made room", func() bool { return st.r.Stats().HandshakesEvicted >= uint64(tt.evicted) })
		})
	}
}

// again holds a silent connection, and another when it is closed, until over.
func again(addr string, c *net.TCPConn, over *atomic.Bool) {
	for {
		_, _ = io.Copy(io.Discard, c)
		_ = c.Close()
		next, err := net.Dial("tcp", addr)
		if err != nil {
			return
		}
		c = next.(*net.TCPConn)
		if over.Load() {
			_ = c.Close()
			return
		}
	}
}
