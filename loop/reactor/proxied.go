package reactor

import (
	"errors"
	"io"
	"net/netip"

	"relay/loop"
)

var errProxyHeader = errors.New("malformed PROXY header")

// readProxyHeader reads the header in front of a TLS handshake. early is what
// came behind it; peer is the zero value when the header names nobody.
func readProxyHeader(c io.Reader) (peer netip.AddrPort, early []byte, err error) {
	p := make([]byte, 0, loop.ProxyHeaderBytesMax)
	for {
		n, err := c.Read(p[len(p):cap(p)])
		p = p[:len(p)+n]
		addr, used, state := loop.ParseProxyHeader(p)
		switch {
		case state == loop.ProxyOK:
			return addr, p[used:], nil
		case state == loop.ProxyLocal:
			return netip.AddrPort{}, p[used:], nil
		case state == loop.ProxyMalformed || len(p) == cap(p):
			return netip.AddrPort{}, nil, errProxyHeader
		case err != nil:
			return netip.AddrPort{}, nil, err
		}
	}
}
