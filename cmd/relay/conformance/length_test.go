//go:build integration

package conformance

import (
	"fmt"
	"strings"
	"testing"
)

// lengths is a request whose lengths are given, one line each.
func lengths(values ...string) string {
	text := start
	for _, v := range values {
		text += "Content-Length: " + v + "\r\n"
	}
	return text + "\r\n" + body
}

func TestLengthRefused(t *testing.T) {
	t.Parallel()
	n := fmt.Sprint(len(body))
	list := []refusal{}
	for _, v := range []string{
		"", " ", "+" + n, "-" + n, "-0", "+0", "0x10", "1e1", "1.0", n + ".", n + " 0", n + "a", "a", "ten", "1_0", "1'0",
		n + ";", n + ",", "," + n, n + ",,", ",", n + "," + n + "x", n + ", 0", "0, " + n, n + ", -1", "\"" + n + "\"",
		n + "\x0b", "\x0c" + n, n + "\xa0", "\xd9\xa1", "9223372036854775808", "18446744073709551616",
		"18446744073709551679", "99999999999999999999999999", strings.Repeat("0", 30) + n, "0" + strings.Repeat("9", 25),
	} {
		list = append(list, refusal{fmt.Sprintf("%q", v), lengths(v), "400"})
	}
	refuseAll(t, append(list,
		refusal{"twice different", lengths(n, "0"), "400"},
		refusal{"twice different, other order", lengths("0", n), "400"},
		refusal{"twice, one bad", lengths(n, "x"), "400"},
		refusal{"twice, one empty", lengths(n, ""), "400"},
		refusal{"three times, last different", lengths(n, n, "1"), "400"},
		refusal{"list and another", lengths(n+", "+n, "1"), "400"},
		refusal{"different in letter case", start + bodyLine + "content-length: 0\r\n\r\n" + body, "400"},
		refusal{"with chunked", start + bodyLine + chunked + "\r\n" + chunk(body) + "0\r\n\r\n", "400"},
		refusal{"behind chunked", start + chunked + bodyLine + "\r\n" + chunk(body) + "0\r\n\r\n", "400"},
		refusal{"of 0 with chunked", start + "Content-Length: 0\r\n" + chunked + "\r\n" + chunk(body) + "0\r\n\r\n", "400"},
		refusal{"with identity", start + bodyLine + "Transfer-Encoding: identity\r\n\r\n" + body, "400"},
		refusal{"with an empty coding", start + bodyLine + "Transfer-Encoding:\r\n\r\n" + body, "400"},
		refusal{"with a coding named by Connection", start + bodyLine + "Connection: transfer-encoding\r\n" + chunked + "\r\n" + body, "400"},
		refusal{"named by Connection, with chunked", start + bodyLine + "Connection: content-length\r\n" + chunked + "\r\n" + chunk(body) + "0\r\n\r\n", "400"},
		refusal{"over the limit", lengths(fmt.Sprint(bodyMax + 1)), "413"},
		refusal{"far over the limit", lengths("9223372036854775807"), "413"},
		refusal{"over the limit, expecting", start + "Expect: 100-continue\r\nContent-Length: 99999999\r\n\r\n", "413"},
		refusal{"in HTTP/1.0 twice different", strings.Replace(lengths(n, "0"), "HTTP/1.1", "HTTP/1.0", 1), "400"},
		refusal{"in HTTP/1.0 with chunked", strings.Replace(start, "HTTP/1.1", "HTTP/1.0", 1) + bodyLine + chunked + "\r\n" + body, "400"},
		refusal{"of a GET, twice different", "GET /v1/models HTTP/1.1\r\n" + hostLine + keyLine + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", "400"},
	))
}

func TestLengthPassed(t *testing.T) {
	t.Parallel()
	n := fmt.Sprint(len(body))
	forwarded := []string{"Content-Length: " + n}
	passAll(t, []passage{
		{name: "once", in: lengths(n), has: forwarded},
		{name: "leading zeros", in: lengths("000" + n), has: forwarded},
		{name: "blanks around", in: lengths(" \t" + n + " \t"), has: forwarded},
		{name: "twice equal", in: lengths(n, n), has: forwarded},
		{name: "list of equal ones", in: lengths(n + ", " + n + "," + n), has: forwarded},
		{name: "twice equal with zeros", in: lengths(n, "00"+n), has: forwarded},
		{name: "named by Connection", in: start + "Connection: Content-Length\r\n" + bodyLine + "\r\n" + body, has: forwarded},
		{name: "HTTP/1.0", in: strings.Replace(lengths(n), "HTTP/1.1", "HTTP/1.0", 1), has: forwarded, closes: true},
	})
}

// A body of exactly the limit is served.
func TestLengthAtLimit(t *testing.T) {
	t.Parallel()
	text := strings.Replace(body, "hello", strings.Repeat("x", bodyMax-len(body)+5), 1)
	c := dial(t)
	c.send(strings.ReplaceAll(start, "CASE", t.Name()+"/at") + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(text)) + text)
	if a := c.answer(t); a.status != 200 {
		t.Errorf("status %d", a.status)
	}
	list := echo.requests(t.Name() + "/at")
	if len(list) != 1 || list[0].body != text {
		t.Error("the body was not forwarded as it is")
	}
}
