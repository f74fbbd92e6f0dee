//go:build integration

package conformance

import (
	"strings"
	"testing"
)

// first is a request with another request line.
func first(requestLine string) string {
	return requestLine + "\r\n" + hostLine + keyLine + bodyLine + "\r\n" + body
}

func TestRequestLineRefused(t *testing.T) {
	t.Parallel()
	path := "/v1/chat/completions"
	refuseAll(t, []refusal{
		{"no version", first("POST " + path), "400"},
		{"HTTP/0.9", "GET /v1/models\r\n", "400"},
		{"method alone", first("POST"), "400"},
		{"empty method", first(" " + path + " HTTP/1.1"), "400"},
		{"blank first", first("  POST " + path + " HTTP/1.1"), "400"},
		{"tab first", first("\tPOST " + path + " HTTP/1.1"), "400"},
		{"two blanks behind the method", first("POST  " + path + " HTTP/1.1"), "400"},
		{"two blanks before the version", first("POST " + path + "  HTTP/1.1"), "400"},
		{"tab behind the method", first("POST\t" + path + " HTTP/1.1"), "400"},
		{"tab before the version", first("POST " + path + "\tHTTP/1.1"), "400"},
		{"blank at the end", first("POST " + path + " HTTP/1.1 "), "400"},
		{"tab at the end", first("POST " + path + " HTTP/1.1\t"), "400"},
		{"word at the end", first("POST " + path + " HTTP/1.1 more"), "400"},
		{"blank in the target", first("POST " + path + " x HTTP/1.1"), "400"},
		{"vertical tab for a blank", first("POST\v" + path + " HTTP/1.1"), "400"},
		{"form feed for a blank", first("POST " + path + "\fHTTP/1.1"), "400"},
		{"CR for a blank", first("POST\r" + path + " HTTP/1.1"), "400"},
		{"CR in the target", first("POST /v1\r/chat/completions HTTP/1.1"), "400"},
		{"CR before CRLF", first("POST " + path + " HTTP/1.1\r"), "400"},
		{"bare LF at the end", "POST " + path + " HTTP/1.1\n" + hostLine + keyLine + bodyLine + "\r\n" + body, "400"},
		{"bare CR at the end", "POST " + path + " HTTP/1.1\r" + hostLine + keyLine + bodyLine + "\r\n" + body, "400"},
		{"LF and CR", "POST " + path + " HTTP/1.1\n\r" + hostLine + keyLine + bodyLine + "\r\n" + body, "400"},
		{"NUL in the method", first("PO\x00ST " + path + " HTTP/1.1"), "400"},
		{"NUL in the target", first("POST /v1/\x00chat/completions HTTP/1.1"), "400"},
		{"DEL in the target", first("POST /v1/\x7fchat HTTP/1.1"), "400"},
		{"byte above ASCII in the target", first("POST /v1/ch\xe4t/completions HTTP/1.1"), "400"},
		{"UTF-8 in the target", first("POST /v1/chat/ü HTTP/1.1"), "400"},
		{"fragment", first("POST " + path + "#x HTTP/1.1"), "400"},
		{"colon in the method", first("POST: " + path + " HTTP/1.1"), "400"},
		{"slash in the method", first("PO/ST " + path + " HTTP/1.1"), "400"},
		{"brace in the method", first("{POST} " + path + " HTTP/1.1"), "400"},
		{"quote in the method", first("\"POST\" " + path + " HTTP/1.1"), "400"},
		{"byte above ASCII in the method", first("P\xd6ST " + path + " HTTP/1.1"), "400"},
		{"small letters in the version", first("POST " + path + " http/1.1"), "400"},
		{"one small letter in the version", first("POST " + path + " HTTp/1.1"), "400"},
		{"another protocol", first("POST " + path + " HTTPS/1.1"), "400"},
		{"no slash in the version", first("POST " + path + " HTTP1.1"), "400"},
		{"no minor version", first("POST " + path + " HTTP/1"), "400"},
		{"dot without minor version", first("POST " + path + " HTTP/1."), "400"},
		{"no digits in the version", first("POST " + path + " HTTP/x.y"), "400"},
		{"two digits of minor version", first("POST " + path + " HTTP/1.10"), "400"},
		{"leading zero in the version", first("POST " + path + " HTTP/01.1"), "400"},
		{"plus in the version", first("POST " + path + " HTTP/+1.1"), "400"},
		{"comma in the version", first("POST " + path + " HTTP/1,1"), "400"},
		{"blank in the version", first("POST " + path + " HTTP/ 1.1"), "400"},
		{"three numbers in the version", first("POST " + path + " HTTP/1.1.1"), "400"},
		{"version 1.2", first("POST " + path + " HTTP/1.2"), "505"},
		{"version 1.9", first("POST " + path + " HTTP/1.9"), "505"},
		{"version 2.0", first("POST " + path + " HTTP/2.0"), "505"},
		{"version 3.0", first("POST " + path + " HTTP/3.0"), "505"},
		{"version 0.9", first("POST " + path + " HTTP/0.9"), "505"},
		{"version 9.9", first("POST " + path + " HTTP/9.9"), "505"},
		{"HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00", "505"},
		{"no leading slash", first("POST v1/chat/completions HTTP/1.1"), "400"},
		{"query alone", first("POST ?x HTTP/1.1"), "400"},
		{"asterisk with POST", first("POST * HTTP/1.1"), "400"},
		{"asterisk and more", first("OPTIONS *x HTTP/1.1"), "400"},
		{"authority form with POST", first("POST relay.test:80 HTTP/1.1"), "400"},
		{"CONNECT with a path", first("CONNECT " + path + " HTTP/1.1"), "400"},
		{"CONNECT without a port", first("CONNECT relay.test HTTP/1.1"), "400"},
		{"CONNECT with an empty port", first("CONNECT relay.test: HTTP/1.1"), "400"},
		{"CONNECT to an absolute form", first("CONNECT http://relay.test:80/ HTTP/1.1"), "400"},
		{"CONNECT", first("CONNECT relay.test:80 HTTP/1.1"), "404 405 501"},
		{"absolute form of another scheme", first("POST ftp://relay.test" + path + " HTTP/1.1"), "400"},
		{"absolute form with one slash", first("POST http:/relay.test" + path + " HTTP/1.1"), "400"},
		{"absolute form without host", first("POST http://" + path + " HTTP/1.1"), "400"},
		{"absolute form without host, port only", first("POST http://:80" + path + " HTTP/1.1"), "400"},
		{"absolute form with userinfo", first("POST http://u:p@relay.test" + path + " HTTP/1.1"), "400"},
		{"absolute form with a bad port", first("POST http://relay.test:x" + path + " HTTP/1.1"), "400"},
		{"absolute form with a port too large", first("POST http://relay.test:65536" + path + " HTTP/1.1"), "400"},
		{"absolute form with a broken address", first("POST http://[::1" + path + " HTTP/1.1"), "400"},
		{"five empty lines first", strings.Repeat("\r\n", 5) + first("POST "+path+" HTTP/1.1"), "400"},
		{"bare LF first", "\n" + first("POST "+path+" HTTP/1.1"), "400"},
		{"bare CR first", "\r" + first("POST "+path+" HTTP/1.1"), "400"},
		{"blank line with a blank first", " \r\n" + first("POST "+path+" HTTP/1.1"), "400"},
		{"TLS hello", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "400"},
		{"PROXY header unasked", "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n", "400"},
		{"garbage", "\xde\xad\xbe\xef\r\n\r\n", "400"},
		{"answer for a request", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "400 505"},
	})
}

func TestRequestLinePassed(t *testing.T) {
	t.Parallel()
	path := "/v1/chat/completions"
	forwarded := "POST /v1/chat/completions"
	passAll(t, []passage{
		{name: "origin form", in: first("POST " + path + " HTTP/1.1"), has: []string{forwarded + " HTTP/1.1"}},
		{name: "with its shape", in: first("POST /openai" + path + " HTTP/1.1"), has: []string{forwarded + " HTTP/1.1"}},
		{name: "query", in: first("POST " + path + "?a=b&c=%20 HTTP/1.1"), has: []string{forwarded + "?a=b&c=%20 HTTP/1.1"}},
		{name: "query with more question marks", in: first("POST " + path + "?a?b HTTP/1.1"), has: []string{forwarded + "?a?b HTTP/1.1"}},
		{name: "absolute form", in: first("POST http://relay.test" + path + " HTTP/1.1"), has: []string{forwarded + " HTTP/1.1"}, hasNot: []string{"relay.test"}},
		{name: "absolute form, https", in: first("POST https://relay.test" + path + " HTTP/1.1"), has: []string{forwarded + " HTTP/1.1"}},
		{name: "absolute form, capitals", in: first("POST HTTP://RELAY.test:80" + path + " HTTP/1.1"), has: []string{forwarded + " HTTP/1.1"}},
		{name: "absolute form of another host", in: first("POST http://other.test" + path + "?x HTTP/1.1"), has: []string{forwarded + "?x HTTP/1.1"}, hasNot: []string{"other.test"}},
		{name: "absolute form of an address", in: first("POST http://[2001:db8::1]:8080" + path + " HTTP/1.1"), has: []string{forwarded + " HTTP/1.1"}},
		{name: "one empty line first", in: "\r\n" + first("POST "+path+" HTTP/1.1")},
		{name: "four empty lines first", in: strings.Repeat("\r\n", 4) + first("POST "+path+" HTTP/1.1")},
		{name: "HTTP/1.0", in: first("POST " + path + " HTTP/1.0"), has: []string{forwarded + " HTTP/1.1"}, closes: true},
		{name: "HTTP/1.0 without host", in: "POST " + path + " HTTP/1.0\r\n" + keyLine + bodyLine + "\r\n" + body, closes: true},
		{name: "HTTP/1.0 that stays", in: "POST " + path + " HTTP/1.0\r\nConnection: Keep-Alive\r\n" + keyLine + bodyLine + "\r\n" + body},
		{name: "HTTP/1.0 that stays and closes", in: "POST " + path + " HTTP/1.0\r\nConnection: keep-alive, close\r\n" + keyLine + bodyLine + "\r\n" + body, closes: true},
	})
}
