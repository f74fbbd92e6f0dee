package httpparse

import (
	"fmt"
	"testing"
)

type framingCase struct {
	name, lines string
	length      int64
	chunked     bool
	err         Error
}

func checkFraming(t *testing.T, cases []framingCase) {
	t.Helper()
	for _, tt := range cases {
		r, _, err := parseRequest("POST / HTTP/1.1\r\nHost: a\r\n" + tt.lines + "\r\n")
		if err != tt.err || err == OK && (r.ContentLength != tt.length || r.Chunked != tt.chunked) {
			t.Errorf("%s: %v, length %d, chunked %t; want %v, %d, %t", tt.name, err, r.ContentLength, r.Chunked, tt.err, tt.length, tt.chunked)
		}
	}
}

func TestRequestLength(t *testing.T) {
	checkFraming(t, []framingCase{
		{"none", "", -1, false, OK},
		{"length", "Content-Length: 5\r\n", 5, false, OK},
		{"zero", "content-length:0\r\n", 0, false, OK},
		{"leading zeros", "Content-Length: 0005\r\n", 5, false, OK},
		{"largest", "Content-Length: 9223372036854775807\r\n", 9223372036854775807, false, OK},
		{"overflow", "Content-Length: 9223372036854775808\r\n", 0, false, BadLength},
		{"overflow of 64 bits", "Content-Length: 18446744073709551621\r\n", 0, false, BadLength},
		{"too many digits", "Content-Length: 00000000000000000005\r\n", 0, false, BadLength},
		{"plus", "Content-Length: +5\r\n", 0, false, BadLength},
		{"minus", "Content-Length: -5\r\n", 0, false, BadLength},
		{"hex", "Content-Length: 0x5\r\n", 0, false, BadLength},
		{"point", "Content-Length: 5.0\r\n", 0, false, BadLength},
		{"blank inside", "Content-Length: 5 5\r\n", 0, false, BadLength},
		{"empty", "Content-Length:\r\n", 0, false, BadLength},
		{"letters", "Content-Length: five\r\n", 0, false, BadLength},
		{"underscore", "Content-Length: 1_0\r\n", 0, false, BadLength},
		{"quoted", "Content-Length: \"5\"\r\n", 0, false, BadLength},
		{"obs-text digit", "Content-Length: \xb5\r\n", 0, false, BadLength},
		{"repeated equal", "Content-Length: 5\r\nContent-Length: 5\r\n", 5, false, OK},
		{"repeated different", "Content-Length: 5\r\nContent-Length: 6\r\n", 0, false, BadLength},
		{"repeated, second bad", "Content-Length: 5\r\nContent-Length: x\r\n", 0, false, BadLength},
		{"list equal", "Content-Length: 5, 5,5\r\n", 5, false, OK},
		{"list different", "Content-Length: 5, 6\r\n", 0, false, BadLength},
		{"list with gap", "Content-Length: 5,\r\n", 0, false, BadLength},
		{"list with front gap", "Content-Length: ,5\r\n", 0, false, BadLength},
		{"list and field differ", "Content-Length: 5, 5\r\nContent-Length: 6\r\n", 0, false, BadLength},
		{"look-alike name", "Content_Length: 5\r\n", -1, false, OK},
	})
}

func TestRequestCoding(t *testing.T) {
	checkFraming(t, []framingCase{
		{"chunked", "Transfer-Encoding: chunked\r\n", -1, true, OK},
		{"chunked, any case", "tRANSFER-eNCODING:\tChUnKeD \r\n", -1, true, OK},
		{"chunked twice in a list", "Transfer-Encoding: chunked, chunked\r\n", 0, false, BadCoding},
		{"chunked twice", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", 0, false, BadCoding},
		{"chunked and identity", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", 0, false, BadCoding},
		{"identity", "Transfer-Encoding: identity\r\n", 0, false, BadCoding},
		{"gzip", "Transfer-Encoding: gzip\r\n", 0, false, BadCoding},
		{"gzip under chunked", "Transfer-Encoding: gzip, chunked\r\n", 0, false, UnknownCoding},
		{"identity under chunked", "Transfer-Encoding: identity,chunked\r\n", 0, false, UnknownCoding},
		{"chunked under gzip", "Transfer-Encoding: chunked, gzip\r\n", 0, false, BadCoding},
		{"chunked around gzip", "Transfer-Encoding: chunked, gzip, chunked\r\n", 0, false, BadCoding},
		{"empty coding", "Transfer-Encoding:\r\n", 0, false, BadCoding},
		{"xchunked", "Transfer-Encoding: xchunked\r\n", 0, false, BadCoding},
		{"chunkedx", "Transfer-Encoding: chunkedx\r\n", 0, false, BadCoding},
		{"chunk", "Transfer-Encoding: chunk\r\n", 0, false, BadCoding},
		{"quoted chunked", "Transfer-Encoding: \"chunked\"\r\n", 0, false, BadCoding},
		{"with parameter", "Transfer-Encoding: chunked;q=1\r\n", 0, false, BadCoding},
		{"blank inside chunked", "Transfer-Encoding: chun ked\r\n", 0, false, BadCoding},
		{"trailing comma", "Transfer-Encoding: chunked,\r\n", 0, false, BadCoding},
		{"leading comma", "Transfer-Encoding: , chunked\r\n", 0, false, BadCoding},
		{"vertical tab", "Transfer-Encoding: \vchunked\r\n", 0, false, Malformed},
		{"dotless letter", "Transfer-Encoding: ch\xc5\xb1nked\r\n", 0, false, BadCoding},
		{"blank before colon", "Transfer-Encoding : chunked\r\n", 0, false, Malformed},
		{"fold", "Transfer-Encoding:\r\n chunked\r\n", 0, false, Malformed},
		{"length and coding", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", 0, false, LengthTwice},
		{"coding and length", "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n", 0, false, LengthTwice},
		{"length and identity", "Content-Length: 5\r\nTransfer-Encoding: identity\r\n", 0, false, LengthTwice},
		{"look-alike coding", "Transfer_Encoding: chunked\r\nContent-Length: 5\r\n", 5, false, OK},
	})
	for _, coding := range []string{"chunked", "identity", "gzip, chunked"} {
		if _, _, err := parseRequest("POST / HTTP/1.0\r\nTransfer-Encoding: " + coding + "\r\n\r\n"); err != BadCoding {
			t.Errorf("HTTP/1.0 with %s: %v, want %v", coding, err, BadCoding)
		}
	}
}

func TestRequestConnection(t *testing.T) {
	for _, tt := range []struct {
		minor int
		lines string
		keep  bool
	}{
		{1, "", true},
		{1, "Connection: keep-alive\r\n", true},
		{1, "Connection: close\r\n", false},
		{1, "Connection: CLOSE\r\n", false},
		{1, "Connection: x ,close , y\r\n", false},
		{1, "Connection: keep-alive, close\r\n", false},
		{1, "Connection: keep-alive\r\nConnection: close\r\n", false},
		{1, "Connection: close\r\nConnection: keep-alive\r\n", false},
		{1, "Connection: closed, not-close\r\n", true},
		{1, "Connection:\r\n", true},
		{1, "Connection: ,,\r\n", true},
		{1, "Proxy-Connection: close\r\n", true},
		{0, "", false},
		{0, "Connection: keep-alive\r\n", true},
		{0, "Connection: Keep-Alive\r\n", true},
		{0, "Connection: keep-alive, close\r\n", false},
		{0, "Connection: upgrade\r\n", false},
		{0, "Proxy-Connection: keep-alive\r\n", false},
	} {
		r, n, err := parseRequest(fmt.Sprintf("GET / HTTP/1.%d\r\nHost: a\r\n%s\r\n", tt.minor, tt.lines))
		if n == 0 || err != OK || r.KeepAlive != tt.keep {
			t.Errorf("HTTP/1.%d %q: %v, keep-alive %t, want %t", tt.minor, tt.lines, err, r.KeepAlive, tt.keep)
		}
	}
}

func TestRequestExpect(t *testing.T) {
	for _, tt := range []struct {
		minor int
		lines string
		want  bool
		err   Error
	}{
		{1, "Expect: 100-continue\r\n", true, OK},
		{1, "expect:100-Continue\r\n", true, OK},
		{1, "Expect: 100-continue\r\nExpect: 100-continue\r\n", true, OK},
		{0, "Expect: 100-continue\r\n", false, OK},
		{1, "", false, OK},
		{1, "Expect: 200-ok\r\n", false, BadExpectation},
		{1, "Expect: 100-continue, x\r\n", false, BadExpectation},
		{1, "Expect: 100-continue\r\nExpect: x\r\n", false, BadExpectation},
		{1, "Expect: 100-continue;q\r\n", false, BadExpectation},
		{1, "Expect:\r\n", false, BadExpectation},
		{1, "Expect: x\r\nContent-Length: x\r\n", false, BadLength},
	} {
		r, _, err := parseRequest(fmt.Sprintf("POST / HTTP/1.%d\r\nHost: a\r\n%s\r\n", tt.minor, tt.lines))
		if err != tt.err || err == OK && r.ExpectContinue != tt.want {
			t.Errorf("HTTP/1.%d %q: %v, %t; want %v, %t", tt.minor, tt.lines, err, r.ExpectContinue, tt.err, tt.want)
		}
	}
}
