package loop

import (
	"bytes"
	"encoding/binary"
	"net/netip"
)

// A ProxyState is what ParseProxyHeader found.
type ProxyState uint8

// The states of a PROXY protocol header.
const (
	ProxyIncomplete ProxyState = iota // more bytes are needed
	ProxyOK                           // addr is the client
	ProxyLocal                        // valid, but names no TCP client: the socket's address counts
	ProxyMalformed                    // not a header, or one past the limits
)

// ProxyHeaderBytesMax is the size of the largest header that is taken. The
// longest of version 1 has 107 bytes; version 2 carries up to 64 KiB of
// extensions, of which senders use a few hundred bytes.
const ProxyHeaderBytesMax = 4096

// proxyLineBytesMax is the longest line of version 1, with its CRLF.
const proxyLineBytesMax = 107

// proxySignature starts a header of version 2.
const proxySignature = "\r\n\r\n\x00\r\nQUIT\n"

// ParseProxyHeader reads a PROXY protocol header (version 1 or 2) at the start
// of p. n is its length; addr is the address of the client that it names. Both
// are zero unless the state is ProxyOK, or ProxyLocal for n. It keeps no view
// of p.
func ParseProxyHeader(p []byte) (addr netip.AddrPort, n int, st ProxyState) {
	if len(p) == 0 {
		return addr, 0, ProxyIncomplete
	}
	if p[0] == 'P' {
		return parseProxyLine(p)
	}
	return parseProxyBinary(p)
}

// parseProxyLine reads version 1:
// PROXY TCP4 192.0.2.1 192.0.2.2 56324 443 CRLF.
func parseProxyLine(p []byte) (addr netip.AddrPort, n int, st ProxyState) {
	const start = "PROXY "
	if len(p) < len(start) {
		if start[:len(p)] == string(p) {
			return addr, 0, ProxyIncomplete
		}
		return addr, 0, ProxyMalformed
	}
	if string(p[:len(start)]) != start {
		return addr, 0, ProxyMalformed
	}
	end := bytes.IndexByte(p[:min(len(p), proxyLineBytesMax)], '\n')
	switch {
	case end < 0 && len(p) >= proxyLineBytesMax:
		return addr, 0, ProxyMalformed
	case end < 0:
		return addr, 0, ProxyIncomplete
	case p[end-1] != '\r':
		return addr, 0, ProxyMalformed
	}
	return parseProxyFields(p[len(start):end-1], end+1)
}

// parseProxyFields reads what stands between "PROXY " and CRLF of a header of
// n bytes.
func parseProxyFields(line []byte, n int) (netip.AddrPort, int, ProxyState) {
	var none netip.AddrPort
	var fields [5][]byte // family, source, destination, source port, destination port
	count := 0
	for rest := line; ; count++ {
		field, after, more := bytes.Cut(rest, []byte{' '})
		if count < len(fields) {
			fields[count] = field
		}
		if rest = after; !more {
			count++
			break
		}
	}
	if string(fields[0]) == "UNKNOWN" {
		return none, n, ProxyLocal // the rest of the line is not to be read
	}
	if count != len(fields) {
		return none, 0, ProxyMalformed
	}
	source, sourceOK := parseProxyAddr(fields[0], fields[1])
	_, targetOK := parseProxyAddr(fields[0], fields[2])
	port, portOK := parseProxyPort(fields[3])
	_, targetPortOK := parseProxyPort(fields[4])
	if !sourceOK || !targetOK || !portOK || !targetPortOK {
		return none, 0, ProxyMalformed
	}
	return netip.AddrPortFrom(source, port), n, ProxyOK
}

func parseProxyAddr(family, text []byte) (netip.Addr, bool) {
	a, err := netip.ParseAddr(string(text))
	if err != nil || a.Zone() != "" {
		return netip.Addr{}, false
	}
	switch string(family) {
	case "TCP4":
		return a, a.Is4()
	case "TCP6":
		return a.Unmap(), a.Is6()
	}
	return netip.Addr{}, false
}

func parseProxyPort(text []byte) (uint16, bool) {
	if len(text) == 0 || len(text) > 5 || (len(text) > 1 && text[0] == '0') {
		return 0, false
	}
	n := 0
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return uint16(n), n <= 65535
}

// The parts of a version 2 header that are looked at.
const (
	proxyFixedBytes  = 16 // signature, version and command, family, length
	proxyCommandOwn  = 0x20
	proxyCommandUser = 0x21
	proxyTCP4        = 0x11
	proxyTCP6        = 0x21
	proxyTCP4Bytes   = 12 // two addresses, two ports
	proxyTCP6Bytes   = 36
)

// parseProxyBinary reads version 2. What follows the addresses is skipped, and
// so are families that are not TCP.
func parseProxyBinary(p []byte) (addr netip.AddrPort, n int, st ProxyState) {
	k := min(len(p), len(proxySignature))
	if string(p[:k]) != proxySignature[:k] {
		return addr, 0, ProxyMalformed
	}
	if len(p) > k && p[k] != proxyCommandOwn && p[k] != proxyCommandUser {
		return addr, 0, ProxyMalformed
	}
	if len(p) < proxyFixedBytes {
		return addr, 0, ProxyIncomplete
	}
	length := int(binary.BigEndian.Uint16(p[14:]))
	n = proxyFixedBytes + length
	own := p[12] == proxyCommandOwn
	family := p[13]
	switch {
	case n > ProxyHeaderBytesMax, family>>4 > 3, family&0xf > 2:
		return addr, 0, ProxyMalformed
	case !own && family == proxyTCP4 && length < proxyTCP4Bytes,
		!own && family == proxyTCP6 && length < proxyTCP6Bytes:
		return addr, 0, ProxyMalformed
	case len(p) < n:
		return addr, 0, ProxyIncomplete
	case own:
		return addr, n, ProxyLocal
	}
	body := p[proxyFixedBytes:n]
	switch family {
	case proxyTCP4:
		a := netip.AddrFrom4([4]byte(body[:4]))
		return netip.AddrPortFrom(a, binary.BigEndian.Uint16(body[8:])), n, ProxyOK
	case proxyTCP6:
		a := netip.AddrFrom16([16]byte(body[:16])).Unmap()
		return netip.AddrPortFrom(a, binary.BigEndian.Uint16(body[32:])), n, ProxyOK
	}
	return addr, n, ProxyLocal
}
