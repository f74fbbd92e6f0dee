//go:build integration

package conformance

import (
	"fmt"
	"strings"
	"testing"
)

// coded is a chunked request whose codings are given, one line each.
func coded(values ...string) string {
	text := start
	for _, v := range values {
		text += "Transfer-Encoding: " + v + "\r\n"
	}
	return text + "\r\n" + chunk(body) + "0\r\n\r\n"
}

func TestCodingRefused(t *testing.T) {
	t.Parallel()
	list := []refusal{}
	for _, v := range []string{
		"", "identity", "gzip", "deflate", "compress", "x-chunked", "chunkedd", "xchunked", "chunke", "cow", "chunked;",
		"chunked;q=1", "chunked; a=b", "chunked,", ",chunked", "chunked, chunked", "chunked,chunked", "chunked, gzip",
		"chunked, identity", "identity, chunked", "gzip, chunked", "gzip,chunked", "gzip chunked", "chunked gzip",
		"\"chunked\"", "'chunked'", "chunked\x0b", "\x0bchunked", "chunked\x0c", "chunked\x00", "chun ked", "chunked, ",
		"chunked\xa0", "\xefchunked", "chun\u212aed", "trailers, chunked", "null", "[chunked]", "chunked\tchunked",
	} {
		list = append(list, refusal{fmt.Sprintf("%q", v), coded(v), "400 501"})
	}
	refuseAll(t, append(list,
		refusal{"twice", coded("chunked", "chunked"), "400"},
		refusal{"twice, identity first", coded("identity", "chunked"), "400"},
		refusal{"twice, identity last", coded("chunked", "identity"), "400"},
		refusal{"twice, one empty", coded("", "chunked"), "400"},
		refusal{"twice, one not known", coded("chunked", "cow"), "400"},
		refusal{"twice in different letter case", start + "Transfer-Encoding: chunked\r\ntransfer-encoding: x\r\n\r\n" + chunk(body) + "0\r\n\r\n", "400"},
		refusal{"HTTP/1.0", strings.Replace(coded("chunked"), "HTTP/1.1", "HTTP/1.0", 1), "400"},
		refusal{"HTTP/1.0 that would stay", strings.Replace(coded("chunked"), "HTTP/1.1\r\n", "HTTP/1.0\r\nConnection: keep-alive\r\n", 1), "400"},
		refusal{"HTTP/1.0, gzip", strings.Replace(coded("gzip"), "HTTP/1.1", "HTTP/1.0", 1), "400"},
		refusal{"in a GET", "GET /v1/models HTTP/1.1\r\n" + hostLine + keyLine + "Transfer-Encoding: gzip\r\n\r\n", "400"},
	))
}

func TestCodingPassed(t *testing.T) {
	t.Parallel()
	forwarded := []string{fmt.Sprintf("Content-Length: %d", len(body))}
	list := []passage{}
	for _, v := range []string{"chunked", "Chunked", "CHUNKED", "cHUNKeD", " \tchunked\t "} {
		list = append(list, passage{name: fmt.Sprintf("%q", v), in: coded(v), has: forwarded})
	}
	passAll(t, append(list,
		passage{name: "letter case of the name", in: start + "tRANSFER-eNCODING: chunked\r\n\r\n" + chunk(body) + "0\r\n\r\n", has: forwarded},
		passage{name: "named by Connection", in: start + "Connection: Transfer-Encoding\r\n" + chunked + "\r\n" + chunk(body) + "0\r\n\r\n", has: forwarded},
		passage{name: "with TE", in: start + "TE: trailers, gzip\r\nConnection: TE\r\n" + chunked + "\r\n" + chunk(body) + "0\r\n\r\n", has: forwarded},
	))
}

// Whatever looks like a framing field to a careless reader is not one here,
// and does not go on as one.
func TestCodingLookalikes(t *testing.T) {
	t.Parallel()
	passAll(t, []passage{
		{name: "X-Transfer-Encoding", in: with("X-Transfer-Encoding: chunked\r\n")},
		{name: "Content-Transfer-Encoding", in: with("Content-Transfer-Encoding: chunked\r\n")},
		{name: "Content-Lengthy", in: with("Content-Lengthy: 0\r\n")},
		{name: "underscore for the dash in the coding", in: with("Transfer_Encoding: chunked\r\n"), hasNot: []string{"transfer_encoding"}},
		{name: "underscore for the dash in the length", in: with("Content_Length: 0\r\n"), hasNot: []string{"content_length"}},
	})
}
