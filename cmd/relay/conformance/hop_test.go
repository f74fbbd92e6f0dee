//go:build integration

package conformance

import (
	"strings"
	"testing"
)

func TestHopPassed(t *testing.T) {
	t.Parallel()
	passAll(t, []passage{
		{name: "Connection: close", in: with("Connection: close\r\n"), closes: true},
		{name: "Connection: CLOSE", in: with("Connection: CLOSE\r\n"), closes: true},
		{name: "close in a list", in: with("Connection: x-a, close ,x-b\r\n"), closes: true},
		{name: "close in a second field", in: with("Connection: keep-alive\r\nConnection: close\r\n"), closes: true},
		{name: "close and keep-alive", in: with("Connection: keep-alive, close\r\n"), closes: true},
		{name: "keep-alive", in: with("Connection: keep-alive\r\n")},
		{name: "word that only begins like close", in: with("Connection: closed\r\n")},
		{name: "empty Connection", in: with("Connection:\r\n")},
		{name: "commas in Connection", in: with("Connection: ,, ,\r\n")},
		{name: "blanks in Connection", in: with("Connection: \t x-a \t,\tx-b\r\nX-A: 1\r\nX-B: 2\r\n"), hasNot: []string{"x-a:", "x-b:"}},
		{name: "Keep-Alive", in: with("Keep-Alive: timeout=5\r\n")},
		{name: "Proxy-Connection", in: with("Proxy-Connection: keep-alive\r\n")},
		{name: "Proxy-Connection: close", in: with("Proxy-Connection: close\r\n")},
		{name: "TE", in: with("TE: trailers\r\nConnection: TE\r\n")},
		{name: "TE, unnamed", in: with("TE: gzip, deflate;q=0.5\r\n")},
		{name: "Trailer", in: with("Trailer: X-A\r\n")},
		{name: "Upgrade to WebSocket", in: with("Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"), hasNot: []string{"sec-", "upgrade: "}},
		{name: "Upgrade to h2c", in: with("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n"), hasNot: []string{"upgrade: ", "settings: "}},
		{name: "HTTP2-Settings, unnamed", in: with("HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n")},
		{name: "Upgrade, unnamed", in: with("Upgrade: h2c\r\n"), hasNot: []string{": h2c"}},
		{name: "Proxy-Authorization", in: with("Proxy-Authorization: Basic eDp5\r\n")},
		{name: "named field", in: with("Connection: X-Secret\r\nX-Secret: 1\r\n"), hasNot: []string{"secret"}},
		{name: "named field, letter case", in: with("X-SECRET: 1\r\nConnection: x-Secret\r\n"), hasNot: []string{"secret"}},
		{name: "named field that comes twice", in: with("X-Secret: 1\r\nConnection: x-secret\r\nX-Secret: 2\r\n"), hasNot: []string{"secret"}},
		{name: "two named fields", in: with("Connection: x-one, close, x-two\r\nX-One: 1\r\nX-Two: 2\r\nX-Three: 3\r\n"), has: []string{"X-Three: 3"}, hasNot: []string{"x-one", "x-two"}, closes: true},
		{name: "named in a second field", in: with("Connection: x-one\r\nConnection: x-two\r\nX-One: 1\r\nX-Two: 2\r\n"), hasNot: []string{"x-one", "x-two"}},
		{name: "named field that is not there", in: with("Connection: x-none\r\n"), hasNot: []string{"x-none"}},
		{name: "part of a name", in: with("Connection: x-sec\r\nX-Secret: 1\r\n"), has: []string{"X-Secret: 1"}},
		{name: "Authorization", in: with("Connection: Authorization\r\n"), has: []string{"Authorization: Bearer " + hostKey}},
		{name: "X-API-Key", in: line + hostLine + "Connection: x-api-key\r\nX-API-Key: " + relayKey + "\r\nX-Case: CASE\r\n" + bodyLine + "\r\n" + body},
		{name: "X-WR-API-Key", in: line + hostLine + "Connection: x-wr-api-key\r\nX-WR-API-Key: " + relayKey + "\r\nX-Case: CASE\r\n" + bodyLine + "\r\n" + body},
		{name: "Content-Length", in: with("Connection: content-length\r\n")},
		{name: "Host", in: with("Connection: host\r\n")},
		{name: "Transfer-Encoding", in: start + "Connection: close, transfer-encoding\r\n" + chunked + "\r\n" + chunk(body) + "0\r\n\r\n", closes: true},
		{name: "Expect", in: with("Connection: expect\r\nExpect: 100-continue\r\n")},
		{name: "everything at once", in: with("Connection: host, content-length, authorization, transfer-encoding, x-case2, connection, keep-alive, te\r\nX-Case2: 1\r\n"), hasNot: []string{"x-case2"}},
	})
}

// What the upstream says about its own connection is not told to the client.
func TestHopAnswer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, lines, gone string }{
		{"Connection: keep-alive", "Connection: keep-alive\r\nKeep-Alive: timeout=9\r\n", "keep-alive"},
		{"Connection: close", "Connection: close\r\n", "connection"},
		{"named field", "Connection: x-hop\r\nX-Hop: 1\r\n", "x-hop"},
		{"named field in a list", "Connection: keep-alive, X-HOP\r\nx-hop: 1\r\n", "x-hop"},
		{"Proxy-Connection", "Proxy-Connection: close\r\n", "proxy-connection"},
		{"Upgrade", "Upgrade: h2c\r\nConnection: upgrade\r\n", "upgrade"},
		{"Trailer", "Trailer: X-A\r\n", "trailer"},
		{"Proxy-Authenticate", "Proxy-Authenticate: Basic\r\n", "proxy-authenticate"},
		{"Set-Cookie", "Set-Cookie: a=b\r\n", "set-cookie"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := take(t, "open")
			c := dial(t)
			c.send(whole(t.Name(), o.model))
			l := o.accept(t)
			l.request(t)
			l.send(sized("200 OK", tt.lines, completion))
			a := c.answer(t)
			if a.status != 200 || a.body != completion || a.closes() {
				t.Errorf("the answer is %q", a.head+a.body)
			}
			if strings.Contains(strings.ToLower(a.head), "\n"+tt.gone) {
				t.Errorf("%s is passed on in %q", tt.gone, a.head)
			}
			c.lives(t, t.Name())
		})
	}
}
