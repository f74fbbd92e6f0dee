//go:build integration

package conformance

import (
	"strings"
	"testing"
	"time"
)

// v2 is a PROXY header of version 2 (command and family, addresses and more).
func v2(command, family byte, rest string) string {
	return "\r\n\r\n\x00\r\nQUIT\n" + string([]byte{0x20 | command, family, byte(len(rest) >> 8), byte(len(rest))}) + rest
}

// addresses are those of a version 2 header over IPv4.
const addresses = "\xc0\x00\x02\x01\xc0\x00\x02\x02\x04\xd2\x01\xbb"

// A listener that expects a PROXY header takes a sound one and then serves.
func TestProxyPassed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, header string }{
		{"v1 TCP4", "PROXY TCP4 192.0.2.1 192.0.2.2 1234 443\r\n"},
		{"v1 TCP6", "PROXY TCP6 2001:db8::1 2001:db8::2 1234 443\r\n"},
		{"v1 UNKNOWN", "PROXY UNKNOWN\r\n"},
		{"v1 UNKNOWN with more", "PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n"},
		{"v2 IPv4", v2(1, 0x11, addresses)},
		{"v2 IPv6", v2(1, 0x21, strings.Repeat("\x20\x01\x0d\xb8", 8)+"\x04\xd2\x01\xbb")},
		{"v2 LOCAL", v2(0, 0, "")},
		{"v2 LOCAL with addresses", v2(0, 0x11, addresses)},
		{"v2 with TLV", v2(1, 0x11, addresses+"\x04\x00\x03abc")},
		{"v2 of no family", v2(1, 0, "")},
	} {
		for _, n := range []int{1, 1 << 20} {
			t.Run(tt.name+"/"+itoa(n), func(t *testing.T) {
				t.Parallel()
				c := dialTo(t, proxied)
				c.sendSlowly(tt.header+whole(t.Name(), "echo"), n, time.Millisecond)
				c.passed(t, &passage{hasNot: []string{"192.0.2.1", "2001:db8"}})
			})
		}
	}
}

// Anything else ends the connection without serving.
func TestProxyRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, header string }{
		{"none", ""},
		{"v1 of small letters", "proxy TCP4 192.0.2.1 192.0.2.2 1 2\r\n"},
		{"v1 without addresses", "PROXY TCP4\r\n"},
		{"v1 with a bad address", "PROXY TCP4 192.0.2.256 192.0.2.2 1 2\r\n"},
		{"v1 with the other family", "PROXY TCP4 ::1 ::1 1 2\r\n"},
		{"v1 with a bad port", "PROXY TCP4 192.0.2.1 192.0.2.2 1 65536\r\n"},
		{"v1 with LF", "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\n"},
		{"v1 too long", "PROXY TCP4 " + strings.Repeat("1", 200) + "\r\n"},
		{"v1 that does not end", "PROXY UNKNOWN " + strings.Repeat("1", 200)},
		{"v2 of another version", "\r\n\r\n\x00\r\nQUIT\n\x11\x11\x00\x0c" + addresses},
		{"v2 with an unknown command", v2(2, 0x11, addresses)},
		{"v2 with too few addresses", v2(1, 0x11, addresses[:8])},
		{"v2 too long", v2(1, 0x11, addresses+strings.Repeat("x", 60000))},
		{"v2 with half a signature", "\r\n\r\n\x00\r\nQUITx"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := dialTo(t, proxied)
			c.send(tt.header + whole(t.Name(), "echo"))
			if rest, err := c.end(soon); err != nil || strings.Contains(rest, " 200 ") {
				t.Errorf("%v, %q", err, rest)
			}
			nothing(t, t.Name())
		})
	}
}
