package loop

import (
	"net/netip"
	"testing"
	"time"
)

// TestProxied: the PROXY header comes first, in any pieces, and within its time.
func TestProxied(t *testing.T) {
	const line = "PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\n"
	socket := netip.MustParseAddrPort("127.0.0.1:9")
	for _, tt := range []struct {
		name, header string
		addr         string
	}{
		{"version 1", line, "192.0.2.1:56324"},
		{"version 2", proxyV2(0x21, 0x11, -1, proxyBody4), "192.0.2.1:56324"},
		{"version 2, local", proxyV2(0x20, 0x00, -1, ""), "127.0.0.1:9"},
	} {
		for _, step := range []int{1, 10, 1 << 20} {
			t.Run(tt.name, func(t *testing.T) {
				r := newRig(t)
				defer r.end()
				c := r.acceptFrom(Peer{Addr: socket, ProxyHeader: true})
				c.sendEach(tt.header+follower+follower, step)
				if got := c.conn.(*client).peer.Addr.String(); got != tt.addr {
					t.Errorf("address %s, want %s", got, tt.addr)
				}
				if all := c.replies(); len(all) != 2 || all[1].status != 200 {
					t.Errorf("%d answers", len(all))
				}
			})
		}
	}
	for name, text := range map[string]string{"request": follower, "junk": "\x16\x03\x01", "bad line": "PROXY TCP4 x\r\n"} {
		r := newRig(t)
		c := r.acceptFrom(Peer{ProxyHeader: true})
		c.send(text)
		if !c.dropped || c.out != "" {
			t.Errorf("%s: closed: %t, %q", name, c.dropped, c.out)
		}
		r.end()
	}
	r := newRig(t)
	defer r.end()
	c := r.acceptFrom(Peer{ProxyHeader: true})
	for i := range 4 {
		c.send(line[i : i+1]) // single bytes move no deadline
		r.pass(1200 * time.Millisecond)
	}
	if c.dropped {
		t.Error("given up too early")
	}
	r.pass(300 * time.Millisecond)
	if !c.dropped || c.out != "" {
		t.Errorf("closed: %t, %q", c.dropped, c.out)
	}
}
