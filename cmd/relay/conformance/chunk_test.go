//go:build integration

package conformance

import (
	"fmt"
	"strings"
	"testing"
)

// inChunks is a request whose chunked body is given raw.
func inChunks(raw string) string { return start + chunked + "\r\n" + raw }

func TestChunkRefused(t *testing.T) {
	t.Parallel()
	n := fmt.Sprintf("%x", len(body))
	after := "\r\n" + body + "\r\n0\r\n\r\n"
	list := []refusal{}
	for _, v := range []string{
		"", "g", "x", "-1", "+" + n, "0x" + n, n + "h", " " + n, "\t" + n, n + " ", n + "\t", n + " ;a", "\"" + n + "\"",
		n + ";", n + ";;a", n + ";a;", n + ";=b", n + ";a=", n + ";a b", n + ";a=b c", n + ";a=\"b", n + ";a=\"b\"c", n + ";a=\"b\rc\"",
		n + ";a=\"b\nc\"", n + ";a=\"b\r\nc\"", n + ";a=\"b\\\r\nc\"", n + ";a=\x00", n + ";a\x01=b", n + ";a=\"\x7f\"", n + ";\x0ba", n + "\x00", n + "\v", n + ",",
		n + ";a=\xff", n + ".0", n + "_0", "0" + n + "l", strings.Repeat("0", 16) + n, "fffffffffffffffff", "ffffffffffffffff", "7fffffffffffffff", "8000000000000000", "10000000000",
		n + "\r", n + "\rx", "\xd9\xa1",
	} {
		list = append(list, refusal{fmt.Sprintf("size line %q", v), inChunks(v + after), "400 413"})
	}
	refuseAll(t, append(list,
		refusal{"LF behind the size", inChunks(n + "\n" + body + "\r\n0\r\n\r\n"), "400"},
		refusal{"CR behind the size", inChunks(n + "\r" + body + "\r\n0\r\n\r\n"), "400"},
		refusal{"LF behind an extension", inChunks(n + ";a=b\n" + body + "\r\n0\r\n\r\n"), "400"},
		refusal{"LF behind the data", inChunks(n + "\r\n" + body + "\n0\r\n\r\n"), "400"},
		refusal{"CR behind the data", inChunks(n + "\r\n" + body + "\r0\r\n\r\n"), "400"},
		refusal{"nothing behind the data", inChunks(n + "\r\n" + body + "0\r\n\r\n"), "400"},
		refusal{"blank behind the data", inChunks(n + "\r\n" + body + " \r\n0\r\n\r\n"), "400"},
		refusal{"two line ends behind the data", inChunks(n + "\r\n" + body + "\r\n\r\n0\r\n\r\n"), "400"},
		refusal{"data longer than the size", inChunks(n + "\r\n" + body + "x\r\n0\r\n\r\n"), "400"},
		refusal{"data shorter than the size", inChunks(n + "\r\n" + body[1:] + "\r\n0\r\n\r\n"), "400"},
		refusal{"LF behind the last size", inChunks(chunk(body) + "0\n\r\n"), "400"},
		refusal{"LF for the end", inChunks(chunk(body) + "0\r\n\n"), "400"},
		refusal{"CR and another for the end", inChunks(chunk(body) + "0\r\n\rX"), "400"},
		refusal{"two CR for the end", inChunks(chunk(body) + "0\r\n\r\r\n"), "400"},
		refusal{"extension of the last without a name", inChunks(chunk(body) + "0;\r\n\r\n"), "400"},
		refusal{"17 zeros for the end", inChunks(chunk(body) + strings.Repeat("0", 17) + "\r\n\r\n"), "400"},
		refusal{"line of an extension too long", inChunks(n + ";a=" + strings.Repeat("b", 300) + after), "400 431"},
		refusal{"line of an extension that does not end", inChunks(n + ";a=" + strings.Repeat("b", 70000)), "400 431"},
		refusal{"chunks of one byte with long extensions", inChunks(strings.Repeat("1;a="+strings.Repeat("b", 200)+"\r\n \r\n", 300)), "400 413 431"},
		refusal{"body over the limit", inChunks(strings.Repeat(chunk(strings.Repeat(" ", 64<<10)), bodyMax>>16) + chunk(" ") + chunk(body) + "0\r\n\r\n"), "413"},
		refusal{"chunk over the limit", inChunks("100001\r\n" + strings.Repeat(" ", bodyMax+1)), "413"},
		refusal{"chunk over the limit, announced", inChunks("fffffff\r\n " + strings.Repeat(" ", 64)), "413"},
		refusal{"trailer without colon", inChunks(chunk(body) + "0\r\nX-A\r\n\r\n"), "400"},
		refusal{"trailer without name", inChunks(chunk(body) + "0\r\n: b\r\n\r\n"), "400"},
		refusal{"trailer with a blank before the colon", inChunks(chunk(body) + "0\r\nX-A : b\r\n\r\n"), "400"},
		refusal{"trailer with a fold", inChunks(chunk(body) + "0\r\nX-A: b\r\n c\r\n\r\n"), "400"},
		refusal{"trailer with LF", inChunks(chunk(body) + "0\r\nX-A: b\n\r\n"), "400"},
		refusal{"trailer with CR", inChunks(chunk(body) + "0\r\nX-A: b\rX-B: c\r\n\r\n"), "400"},
		refusal{"trailer with NUL", inChunks(chunk(body) + "0\r\nX-A: b\x00\r\n\r\n"), "400"},
		refusal{"trailer with a sign in its name", inChunks(chunk(body) + "0\r\nX(A): b\r\n\r\n"), "400"},
		refusal{"trailer too long", inChunks(chunk(body) + "0\r\nX-A: " + strings.Repeat("b", 9000) + "\r\n\r\n"), "400 431"},
		refusal{"trailers too long", inChunks(chunk(body) + "0\r\n" + strings.Repeat("X-A: b\r\n", 2000) + "\r\n"), "400 431"},
		refusal{"trailer that does not end", inChunks(chunk(body) + "0\r\nX-A: " + strings.Repeat("b", 100000)), "400 431"},
		refusal{"request for a trailer", inChunks(chunk(body) + "0\r\nGET /v1/models HTTP/1.1\r\n\r\n"), "400"},
	))
}

func TestChunkPassed(t *testing.T) {
	t.Parallel()
	n := fmt.Sprintf("%x", len(body))
	upper := strings.Repeat("A", 0xAB-len(body)+5)
	long := strings.Replace(body, "hello", upper, 1)
	raw := func(size string) string { return inChunks(size + "\r\n" + body + "\r\n0\r\n\r\n") }
	var bytewise strings.Builder
	for i := range body {
		bytewise.WriteString(chunk(body[i : i+1]))
	}
	passAll(t, []passage{
		{name: "one chunk", in: inChunks(chunk(body) + "0\r\n\r\n")},
		{name: "three chunks", in: inChunks(chunk(body[:5]) + chunk(body[5:9]) + chunk(body[9:]) + "0\r\n\r\n")},
		{name: "one byte each", in: inChunks(bytewise.String() + "0\r\n\r\n")},
		{name: "small hex digits", in: inChunks("ab\r\n" + long + "\r\n0\r\n\r\n"), body: long},
		{name: "capital hex digits", in: inChunks("AB\r\n" + long + "\r\n0\r\n\r\n"), body: long},
		{name: "16 digits", in: raw(strings.Repeat("0", 16-len(n)) + n)},
		{name: "16 zeros for the end", in: inChunks(chunk(body) + strings.Repeat("0", 16) + "\r\n\r\n")},
		{name: "extension", in: raw(n + ";a")},
		{name: "extension with value", in: raw(n + ";a=b")},
		{name: "extension with quotes", in: raw(n + ";a=\"b c;d=\\\"e\"")},
		{name: "extensions", in: raw(n + ";a;b=c;d=\"e\"")},
		{name: "blanks in an extension", in: raw(n + "; a = b"), has: nil},
		{name: "extension of the last chunk", in: inChunks(chunk(body) + "0;a=b\r\n\r\n")},
		{name: "trailer", in: inChunks(chunk(body) + "0\r\nX-Trailer: b\r\n\r\n"), hasNot: []string{"x-trailer"}},
		{name: "announced trailer", in: start + "Trailer: X-Trailer\r\n" + chunked + "\r\n" + chunk(body) + "0\r\nX-Trailer: b\r\n\r\n", hasNot: []string{"x-trailer"}},
		{name: "trailers of framing", in: inChunks(chunk(body) + "0\r\nContent-Length: 5\r\nTransfer-Encoding: gzip\r\nHost: evil.test\r\n\r\n"), hasNot: []string{"evil.test", "gzip", "length: 5\r"}},
		{name: "trailers of credentials", in: inChunks(chunk(body) + "0\r\nAuthorization: Bearer other\r\nX-API-Key: other\r\nConnection: close\r\nX-WR-Upstream-Host: x\r\n\r\n"), hasNot: []string{"other", "x-wr"}},
		{name: "data like the end", in: inChunks(chunk(`{"model":"echo","x":"`) + chunk("0\\r\\n\\r\\n") + chunk(`"}`) + "0\r\n\r\n"), body: `{"model":"echo","x":"0\r\n\r\n"}`},
	})
}
