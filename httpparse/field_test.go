package httpparse

import (
	"net/netip"
	"strings"
	"testing"
)

func TestHopByHop(t *testing.T) {
	fields := func(connection ...string) (all []Field) {
		for _, v := range connection {
			all = append(all, Field{[]byte("X-Other"), []byte("x-second")}, Field{[]byte("Connection"), []byte(v)})
		}
		return all
	}
	for _, tt := range []struct {
		name   string
		fields []Field
		want   bool
	}{
		{"Connection", nil, true},
		{"KEEP-ALIVE", nil, true},
		{"Proxy-Connection", nil, true},
		{"TE", nil, true},
		{"Trailer", nil, true},
		{"Transfer-Encoding", nil, true},
		{"Upgrade", nil, true},
		{"HTTP2-Settings", nil, true},
		{"Content-Length", nil, true},
		{"Content_Length", nil, true},
		{"TRANSFER_ENCODING", nil, true},
		{"host", nil, true},
		{"X-First", nil, false},
		{"Content-Type", nil, false},
		{"X-First", fields("x-first"), true},
		{"x-first", fields("close, X-FIRST ,x"), true},
		{"X-First", fields("close", "x-first"), true},
		{"X-First", fields("x-firsts, x-firs"), false},
		{"X-Second", fields("close"), false},
		{"Authorization", fields("authorization"), false},
		{"X-API-Key", fields("x-api-key"), false},
		{"X-WR-API-Key", fields("x-wr-api-key"), false},
		{"X-WR-Upstream-Host", fields("X-WR-Upstream-Host"), false},
		{"Host", fields("host"), true},
		{strings.Repeat("x", 300), fields(strings.Repeat("X", 300)), true},
	} {
		if got := HopByHop(tt.fields, []byte(tt.name)); got != tt.want {
			t.Errorf("%s in %q: %t, want %t", tt.name, tt.fields, got, tt.want)
		}
	}
}

// TestConnectionNamesFraming: a field named in Connection still frames, since
// it is read before anything is stripped.
func TestConnectionNamesFraming(t *testing.T) {
	r, n, err := parseRequest("POST / HTTP/1.1\r\nHost: a\r\nConnection: content-length, host, transfer-encoding\r\nContent-Length: 5\r\n\r\n")
	if n == 0 || err != OK || r.ContentLength != 5 || string(r.Host) != "a" {
		t.Errorf("%v, %s", err, r.describe())
	}
}

func TestEqualFold(t *testing.T) {
	for _, tt := range []struct {
		name, lower string
		want        bool
	}{
		{"", "", true}, {"Host", "host", true}, {"HOST", "host", true}, {"hosts", "host", false}, {"hos", "host", false},
		{"a[", "a{", false}, {"a{", "a[", false}, {"A@", "a`", false}, {"\x0d", "-", false}, {"x-a_", "x-a\x7f", false}, {"\xc4", "\xe4", false},
	} {
		if got := EqualFold([]byte(tt.name), tt.lower); got != tt.want {
			t.Errorf("EqualFold(%q, %q) = %t", tt.name, tt.lower, got)
		}
		if got := equalFold([]byte(tt.lower), []byte(tt.name)); got != tt.want {
			t.Errorf("equalFold(%q, %q) = %t", tt.lower, tt.name, got)
		}
	}
}

// TestKnownNames keeps the table and the bound of its index together.
func TestKnownNames(t *testing.T) {
	longest := 0
	for _, k := range known {
		longest = max(longest, len(k.name))
		if k.name != strings.ToLower(k.name) {
			t.Errorf("%s is not in lower case", k.name)
		}
		if got := traitOf([]byte(strings.ToUpper(k.name))); got != k.trait {
			t.Errorf("%s has trait %b, want %b", k.name, got, k.trait)
		}
	}
	if longest != knownNameBytesMax {
		t.Errorf("longest name has %d bytes, knownNameBytesMax is %d", longest, knownNameBytesMax)
	}
}

// FuzzIPv6 compares with the address parser of the standard library.
func FuzzIPv6(f *testing.F) {
	for _, s := range []string{
		"::", "::1", "1::", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9",
		"1::2::3", ":::", ":1", "1:", "12345::", "::1.2.3.4", "1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:7:1.2.3.4", "::1.2.3", "::01.2.3.4",
		"::256.1.1.1", "::1.2.3.4.5", "::1.2.3.4:5", "1.2.3.4", "::g", "fe80::1%eth0", "", "::ffff:0:0", "1:2:3:4:5:6:7:8::", "::1.2.3.4x",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := netip.ParseAddr(s)
		want := err == nil && a.Is6() && a.Zone() == ""
		if got := validIPv6([]byte(s)); got != want {
			t.Errorf("%q: %t, want %t", s, got, want)
		}
	})
}
