package loop

import (
	"encoding/binary"
	"net/netip"
	"strings"
	"testing"
)

// proxyV2 builds a version 2 header; length is that of the body if negative.
func proxyV2(command, family byte, length int, body string) string {
	if length < 0 {
		length = len(body)
	}
	p := append([]byte(proxySignature), command, family)
	p = binary.BigEndian.AppendUint16(p, uint16(length))
	return string(p) + body
}

const (
	proxyBody4 = "\xc0\x00\x02\x01" + "\xc6\x33\x64\x02" + "\xdc\x04" + "\x01\xbb"
	proxyBody6 = "\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01" +
		"\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02" + "\xdc\x04" + "\x01\xbb"
	proxyMapped = "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\xc0\x00\x02\x01" +
		"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\xc0\x00\x02\x02" + "\xdc\x04" + "\x01\xbb"
	proxyTLV = "\x03\x00\x04\x12\x34\x56\x78" // CRC32C
)

var proxyHeaders = []struct {
	name, in string
	want     string // address; "" = none
	short    int    // bytes of in behind the header
	st       ProxyState
}{
	{"empty", "", "", 0, ProxyIncomplete},
	{"v1 tcp4", "PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\nGET", "192.0.2.1:56324", 3, ProxyOK},
	{"v1 tcp6", "PROXY TCP6 2001:db8::1 2001:db8::2 1 65535\r\n", "[2001:db8::1]:1", 0, ProxyOK},
	{"v1 tcp6 longest", "PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n", "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535", 0, ProxyOK},
	{"v1 tcp6 mapped", "PROXY TCP6 ::ffff:192.0.2.1 ::1 5 6\r\n", "192.0.2.1:5", 0, ProxyOK},
	{"v1 port 0", "PROXY TCP4 192.0.2.1 198.51.100.2 0 443\r\n", "192.0.2.1:0", 0, ProxyOK},
	{"v1 unknown", "PROXY UNKNOWN\r\nGET", "", 3, ProxyLocal},
	{"v1 unknown with more", "PROXY UNKNOWN ffff:: ::1 1 what ever else\r\n", "", 0, ProxyLocal},
	{"v1 unknown longest", "PROXY UNKNOWN " + strings.Repeat("x", 107-16) + "\r\n", "", 0, ProxyLocal},
	{"v1 too long", "PROXY UNKNOWN " + strings.Repeat("x", 107-15) + "\r\n", "", 0, ProxyMalformed},
	{"v1 without an end", "PROXY TCP4 " + strings.Repeat("1", 200), "", 0, ProxyMalformed},
	{"v1 half", "PROXY TCP4 192.0.2.1 198.51", "", 0, ProxyIncomplete},
	{"v1 without LF", "PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r", "", 0, ProxyIncomplete},
	{"v1 bare LF", "PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\n", "", 0, ProxyMalformed},
	{"v1 start", "PROX", "", 0, ProxyIncomplete},
	{"v1 word", "PROXYTCP4", "", 0, ProxyMalformed},
	{"v1 empty line", "PROXY \r\n", "", 0, ProxyMalformed},
	{"v1 lower case", "PROXY tcp4 192.0.2.1 198.51.100.2 56324 443\r\n", "", 0, ProxyMalformed},
	{"v1 family of the other", "PROXY TCP4 ::1 ::2 56324 443\r\n", "", 0, ProxyMalformed},
	{"v1 family of the other 6", "PROXY TCP6 192.0.2.1 192.0.2.2 56324 443\r\n", "", 0, ProxyMalformed},
	{"v1 zone", "PROXY TCP6 fe80::1%eth0 ::2 56324 443\r\n", "", 0, ProxyMalformed},
	{"v1 two spaces", "PROXY TCP4  192.0.2.1 198.51.100.2 56324 443\r\n", "", 0, ProxyMalformed},
	{"v1 trailing space", "PROXY TCP4 192.0.2.1 198.51.100.2 56324 443 \r\n", "", 0, ProxyMalformed},
	{"v1 too few", "PROXY TCP4 192.0.2.1 198.51.100.2 56324\r\n", "", 0, ProxyMalformed},
	{"v1 port too high", "PROXY TCP4 192.0.2.1 198.51.100.2 65536 443\r\n", "", 0, ProxyMalformed},
	{"v1 port with zero", "PROXY TCP4 192.0.2.1 198.51.100.2 01 443\r\n", "", 0, ProxyMalformed},
	{"v1 port signed", "PROXY TCP4 192.0.2.1 198.51.100.2 +1 443\r\n", "", 0, ProxyMalformed},
	{"v1 second port", "PROXY TCP4 192.0.2.1 198.51.100.2 1 x\r\n", "", 0, ProxyMalformed},
	{"v1 target", "PROXY TCP4 192.0.2.1 198.51.100 1 2\r\n", "", 0, ProxyMalformed},
	{"request", "GET / HTTP/1.1\r\n\r\n", "", 0, ProxyMalformed},
	{"post", "POST / HTTP/1.1\r\n\r\n", "", 0, ProxyMalformed},
	{"client hello", "\x16\x03\x01\x02\x00", "", 0, ProxyMalformed},

	{"v2 tcp4", proxyV2(0x21, 0x11, -1, proxyBody4) + "GET", "192.0.2.1:56324", 3, ProxyOK},
	{"v2 tcp6", proxyV2(0x21, 0x21, -1, proxyBody6), "[2001:db8::1]:56324", 0, ProxyOK},
	{"v2 tcp6 mapped", proxyV2(0x21, 0x21, -1, proxyMapped), "192.0.2.1:56324", 0, ProxyOK},
	{"v2 extensions", proxyV2(0x21, 0x11, -1, proxyBody4+proxyTLV) + "x", "192.0.2.1:56324", 1, ProxyOK},
	{"v2 local", proxyV2(0x20, 0x00, -1, "") + "x", "", 1, ProxyLocal},
	{"v2 local with addresses", proxyV2(0x20, 0x11, -1, proxyBody4), "", 0, ProxyLocal},
	{"v2 local, short body", proxyV2(0x20, 0x11, -1, "xx"), "", 0, ProxyLocal},
	{"v2 unspecified", proxyV2(0x21, 0x00, -1, "anything"), "", 0, ProxyLocal},
	{"v2 unix", proxyV2(0x21, 0x31, -1, strings.Repeat("\x00", 216)), "", 0, ProxyLocal},
	{"v2 udp4", proxyV2(0x21, 0x12, -1, proxyBody4), "", 0, ProxyLocal},
	{"v2 signature only", proxySignature, "", 0, ProxyIncomplete},
	{"v2 half a signature", proxySignature[:5], "", 0, ProxyIncomplete},
	{"v2 wrong signature", "\r\n\r\n\x00\r\nQUIX\n", "", 0, ProxyMalformed},
	{"v2 half a body", proxyV2(0x21, 0x11, 12, proxyBody4[:7]), "", 0, ProxyIncomplete},
	{"v2 no length yet", proxyV2(0x21, 0x11, 12, "")[:15], "", 0, ProxyIncomplete},
	{"v2 version", proxySignature + "\x11", "", 0, ProxyMalformed},
	{"v2 command", proxySignature + "\x22", "", 0, ProxyMalformed},
	{"v2 family", proxyV2(0x21, 0x41, -1, proxyBody4), "", 0, ProxyMalformed},
	{"v2 transport", proxyV2(0x21, 0x13, -1, proxyBody4), "", 0, ProxyMalformed},
	{"v2 body too short for tcp4", proxyV2(0x21, 0x11, -1, proxyBody4[:11]), "", 0, ProxyMalformed},
	{"v2 body too short for tcp6", proxyV2(0x21, 0x21, -1, proxyBody6[:35]), "", 0, ProxyMalformed},
	{"v2 longest", proxyV2(0x21, 0x11, -1, proxyBody4+strings.Repeat("\x00", ProxyHeaderBytesMax-16-12)), "192.0.2.1:56324", 0, ProxyOK},
	{"v2 too long", proxyV2(0x21, 0x11, ProxyHeaderBytesMax-15, ""), "", 0, ProxyMalformed},
}

func TestParseProxyHeader(t *testing.T) {
	for _, tt := range proxyHeaders {
		t.Run(tt.name, func(t *testing.T) {
			addr, n, st := ParseProxyHeader([]byte(tt.in))
			var want netip.AddrPort
			if tt.want != "" {
				want = netip.MustParseAddrPort(tt.want)
			}
			wantN := 0
			if tt.st == ProxyOK || tt.st == ProxyLocal {
				wantN = len(tt.in) - tt.short
			}
			if addr != want || n != wantN || st != tt.st {
				t.Errorf("got %v, %d, %d; want %v, %d, %d", addr, n, st, want, wantN, tt.st)
			}
		})
	}
}

// FuzzParseProxyHeader: a header that comes in pieces reads as the whole one,
// once decided it stays so, and what lies behind it does not matter.
func FuzzParseProxyHeader(f *testing.F) {
	for _, tt := range proxyHeaders {
		f.Add([]byte(tt.in))
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		addr, n, st := ParseProxyHeader(p)
		if n < 0 || n > len(p) || n > ProxyHeaderBytesMax || (n > 0) != (st == ProxyOK || st == ProxyLocal) || addr.IsValid() != (st == ProxyOK) {
			t.Fatalf("got %v, %d, %d of %d bytes", addr, n, st, len(p))
		}
		if st == ProxyIncomplete && len(p) >= ProxyHeaderBytesMax {
			t.Fatal("incomplete past the limit")
		}
		for k := range p {
			a, m, s := ParseProxyHeader(p[:k])
			switch {
			case s == ProxyIncomplete && (n == 0 || k < n):
			case s == st && a == addr && m == n && (n == 0 || k >= n):
			default:
				t.Fatalf("%d of %d bytes: got %v, %d, %d; all: %v, %d, %d", k, len(p), a, m, s, addr, n, st)
			}
		}
	})
}
