//go:build integration

package conformance

import "testing"

// hosted is a sound request but for its host lines.
func hosted(lines string) string { return line + lines + keyLine + bodyLine + "\r\n" + body }

func TestHostRefused(t *testing.T) {
	t.Parallel()
	refuseAll(t, []refusal{
		{"none", hosted(""), "400"},
		{"empty", hosted("Host:\r\n"), "400"},
		{"two equal", hosted(hostLine + hostLine), "400"},
		{"two different", hosted(hostLine + "Host: other.test\r\n"), "400"},
		{"two, the second empty", hosted(hostLine + "Host:\r\n"), "400"},
		{"two, apart", line + hostLine + keyLine + bodyLine + "host: relay.test\r\n\r\n" + body, "400"},
		{"list", hosted("Host: relay.test, other.test\r\n"), "400"},
		{"two words", hosted("Host: relay.test other.test\r\n"), "400"},
		{"blank before the port", hosted("Host: relay.test :80\r\n"), "400"},
		{"path", hosted("Host: relay.test/x\r\n"), "400"},
		{"scheme", hosted("Host: http://relay.test\r\n"), "400"},
		{"userinfo", hosted("Host: user@relay.test\r\n"), "400"},
		{"query", hosted("Host: relay.test?x\r\n"), "400"},
		{"fragment", hosted("Host: relay.test#x\r\n"), "400"},
		{"backslash", hosted("Host: relay.test\\x\r\n"), "400"},
		{"letters for a port", hosted("Host: relay.test:http\r\n"), "400"},
		{"sign before the port", hosted("Host: relay.test:+80\r\n"), "400"},
		{"port too large", hosted("Host: relay.test:65536\r\n"), "400"},
		{"port too long", hosted("Host: relay.test:000080\r\n"), "400"},
		{"two ports", hosted("Host: relay.test:80:80\r\n"), "400"},
		{"port alone", hosted("Host: :80\r\n"), "400"},
		{"open bracket", hosted("Host: [::1\r\n"), "400"},
		{"bare IPv6", hosted("Host: ::1\r\n"), "400"},
		{"text behind a bracket", hosted("Host: [::1]x\r\n"), "400"},
		{"empty brackets", hosted("Host: []\r\n"), "400"},
		{"two gaps", hosted("Host: [1::2::3]\r\n"), "400"},
		{"zone", hosted("Host: [fe80::1%25eth0]\r\n"), "400"},
		{"byte above ASCII", hosted("Host: rel\xe4y.test\r\n"), "400"},
		{"NUL", hosted("Host: relay.test\x00\r\n"), "400"},
		{"none with an absolute form", "POST http://relay.test/v1/chat/completions HTTP/1.1\r\n" + keyLine + bodyLine + "\r\n" + body, "400"},
		{"bad one with an absolute form", "POST http://relay.test/v1/chat/completions HTTP/1.1\r\nHost: a/b\r\n" + keyLine + bodyLine + "\r\n" + body, "400"},
		{"two with an absolute form", "POST http://relay.test/v1/chat/completions HTTP/1.1\r\n" + hostLine + hostLine + keyLine + bodyLine + "\r\n" + body, "400"},
		{"two in HTTP/1.0", "POST /v1/chat/completions HTTP/1.0\r\n" + hostLine + hostLine + keyLine + bodyLine + "\r\n" + body, "400"},
		{"bad one in HTTP/1.0", "POST /v1/chat/completions HTTP/1.0\r\nHost: a/b\r\n" + keyLine + bodyLine + "\r\n" + body, "400"},
	})
}

func TestHostPassed(t *testing.T) {
	t.Parallel()
	var list []passage
	for _, host := range []string{
		"relay.test:8080", "relay.test:", "RELAY.Test", "relay", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:65535",
		"[2001:db8::ff]:80", "[::ffff:192.0.2.1]", "xn--rlay-0qa.test", "under_score.test", "relay.test.",
	} {
		list = append(list, passage{name: host, in: hosted("Host: " + host + "\r\n"), hasNot: []string{"host: " + host + "\r\n"}})
	}
	passAll(t, append(list,
		passage{name: "last line", in: line + keyLine + bodyLine + hostLine + "\r\n" + body},
		passage{name: "with blanks around", in: hosted("Host: \t relay.test \t \r\n")},
		passage{name: "named by Connection", in: hosted(hostLine + "Connection: host\r\n")},
		passage{name: "forwarding fields", in: hosted(hostLine + "X-Forwarded-Host: evil.test\r\nForwarded: host=evil.test\r\n"), hasNot: []string{"evil.test"}},
	))
}
