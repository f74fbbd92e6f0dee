//go:build integration

package conformance

import "testing"

// with is a sound request with more field lines.
func with(lines string) string { return start + bodyLine + lines + "\r\n" + body }

func TestFieldRefused(t *testing.T) {
	t.Parallel()
	list := []refusal{
		{"blank before the colon", with("X-A : b\r\n"), "400"},
		{"tab before the colon", with("X-A\t: b\r\n"), "400"},
		{"blank before the colon of the length", start + "Content-Length : 5\r\n\r\n" + body, "400"},
		{"blank before the colon of the coding", start + "Transfer-Encoding : chunked\r\n\r\n" + chunk(body) + "0\r\n\r\n", "400"},
		{"blank before the colon of the host", line + "Host : relay.test\r\n" + keyLine + bodyLine + "\r\n" + body, "400"},
		{"blank in the name", with("X A: b\r\n"), "400"},
		{"no colon", with("X-A\r\n"), "400"},
		{"empty name", with(": b\r\n"), "400"},
		{"fold with a blank", with("X-A: b\r\n c\r\n"), "400"},
		{"fold with a tab", with("X-A: b\r\n\tc\r\n"), "400"},
		{"fold of the length", start + "Content-Length:\r\n 5\r\n\r\n" + body, "400"},
		{"fold of the coding", start + "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", "400"},
		{"fold behind the request line", line + " Host: relay.test\r\n" + keyLine + bodyLine + "\r\n" + body, "400"},
		{"fold line of blanks alone", with("X-A: b\r\n  \r\n"), "400"},
		{"bare LF behind a field", with("X-A: b\n"), "400"},
		{"bare LF in a value", with("X-A: b\nX-B: c\r\n"), "400"},
		{"bare LF for the empty line", start + "Content-Length: 0\r\n\n", "400"},
		{"LF CR for the empty line", start + "Content-Length: 0\r\n\n\r", "400"},
		{"all lines end in LF", "POST /v1/chat/completions HTTP/1.1\nHost: relay.test\nContent-Length: 0\n\n", "400"},
		{"bare CR in a value", with("X-A: b\rX-B: c\r\n"), "400"},
		{"bare CR at the end of a value", with("X-A: b\r\r\n"), "400"},
		{"bare CR for the line end", with("X-A: b\r"), "400"},
		{"CR before the name", with("\rX-A: b\r\n"), "400"},
		{"CR before the colon", with("X-A\r: b\r\n"), "400"},
		{"two CR and LF for the empty line", start + "Content-Length: 0\r\n\r\r\n", "400"},
		{"smuggled field behind CR", with("X-A: b\rTransfer-Encoding: chunked\r\n"), "400"},
		{"comment line", with("# X-A: b\r\n"), "400"},
		{"second request line", with("GET /v1/models HTTP/1.1\r\n"), "400"},
	}
	for _, o := range []struct{ name, octet string }{
		{"NUL", "\x00"}, {"SOH", "\x01"}, {"BEL", "\x07"}, {"BS", "\b"}, {"VT", "\v"}, {"FF", "\f"},
		{"ESC", "\x1b"}, {"US", "\x1f"}, {"DEL", "\x7f"},
	} {
		list = append(list,
			refusal{o.name + " in a value", with("X-A: b" + o.octet + "c\r\n"), "400"},
			refusal{o.name + " in a name", with("X" + o.octet + "A: b\r\n"), "400"},
			refusal{o.name + " at the end of a value", with("X-A: b" + o.octet + "\r\n"), "400"},
			refusal{o.name + " behind the name", with("X-A" + o.octet + ": b\r\n"), "400"},
		)
	}
	for _, sign := range []string{"(", ")", ",", "/", ";", "<", "=", ">", "?", "@", "[", "\\", "]", "{", "}", "\"", "\xe9"} {
		list = append(list, refusal{"name with " + sign, with("X" + sign + "A: b\r\n"), "400"})
	}
	refuseAll(t, list)
}

func TestFieldPassed(t *testing.T) {
	t.Parallel()
	passAll(t, []passage{
		{name: "no blank behind the colon", in: with("X-A:b\r\n"), has: []string{"X-A: b"}},
		{name: "blanks around a value", in: with("X-A: \t b \t \r\n"), has: []string{"X-A: b"}},
		{name: "empty value", in: with("X-A:\r\n"), has: []string{"X-A: "}},
		{name: "blanks in a value", in: with("X-A: b  c\td\r\n"), has: []string{"X-A: b  c\td"}},
		{name: "bytes above ASCII in a value", in: with("X-A: b\xe4\xff\r\n"), has: []string{"X-A: b\xe4\xff"}},
		{name: "colons in a value", in: with("X-A: b:c: d\r\n"), has: []string{"X-A: b:c: d"}},
		{name: "all signs of a token in a name", in: with("X!#$%&'*+-.^_`|~9: b\r\n"), has: []string{"X!#$%&'*+-.^_`|~9: b"}},
		{name: "name of one letter", in: with("x: b\r\n"), has: []string{"x: b"}},
		{name: "same name twice", in: with("X-A: b\r\nX-A: c\r\n"), has: []string{"X-A: b\r\nX-A: c"}},
		{name: "letter case of names is free", in: line + "hOsT: relay.test\r\nAUTHORIZATION: bearer " + relayKey +
			"\r\nCONTENT-TYPE: application/json\r\nX-Case: CASE\r\ncONTENT-lENGTH: " + bodyLine[len("Content-Length: "):] + "\r\n" + body},
		{name: "key in x-api-key", in: line + hostLine + "x-api-key: " + relayKey + "\r\nX-Case: CASE\r\n" + bodyLine + "\r\n" + body},
		{name: "key in another field too", in: with("X-Copy: " + relayKey + "\r\n"), hasNot: []string{"x-copy"}},
	})
}
