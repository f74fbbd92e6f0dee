package httpparse

import (
	"strings"
	"testing"
)

// TestRequestLimits gives input that is exactly as long as allowed, and one
// byte longer without any line end in sight.
func TestRequestLimits(t *testing.T) {
	const start = "GET / HTTP/1.1\r\nHost: a\r\n"
	fill := func(head, tail string, total int) string {
		return head + strings.Repeat("x", total-len(head)-len(tail)) + tail
	}
	fields := strings.Repeat("a: b\r\n", FieldsMax-1)
	long := fill("a: ", "\r\n", FieldBytesMax)
	heads := start + strings.Repeat(long, 3)
	full := start + strings.Repeat("a: b\r\n", FieldsMax-5) + strings.Repeat(long, 3)
	full += fill("a: ", "\r\n", HeadBytesMax-len(full)) // as many fields and bytes as allowed
	for _, tt := range []struct {
		name, in string
		whole    bool
		err      Error
	}{
		{"longest request line", fill("GET /", " HTTP/1.1\r\n", RequestLineBytesMax) + "Host: a\r\n\r\n", true, OK},
		{"request line one over", fill("GET /", " HTTP/1.1\r\n", RequestLineBytesMax+1) + "Host: a\r\n\r\n", false, LineTooLong},
		{"request line, one short without end", fill("GET /", "", RequestLineBytesMax-1), false, OK},
		{"request line without end", fill("GET /", "", RequestLineBytesMax), false, LineTooLong},
		{"request line with half an end", fill("GET /", "\r", RequestLineBytesMax), false, LineTooLong},
		{"method without end", fill("", "", RequestLineBytesMax), false, LineTooLong},
		{"control byte within", fill("GET /\x00", "", RequestLineBytesMax+9), false, Malformed},
		{"control byte beyond", fill("GET /", "\x00", RequestLineBytesMax+9), false, LineTooLong},

		{"longest field", start + long + "\r\n", true, OK},
		{"field one over", start + fill("a: ", "\r\n", FieldBytesMax+1) + "\r\n", false, FieldTooLarge},
		{"field, one short without end", start + fill("a: ", "", FieldBytesMax-1), false, OK},
		{"field without end", start + fill("a: ", "", FieldBytesMax), false, FieldTooLarge},
		{"name without end", start + fill("", "", FieldBytesMax), false, FieldTooLarge},

		{"most fields", start + fields + "\r\n", true, OK},
		{"most fields, end not here", start + fields, false, OK},
		{"most fields, half an end", start + fields + "\r", false, OK},
		{"one field more", start + fields + "a", false, TooManyFields},
		{"one field more, whole", start + fields + "a: b\r\n\r\n", false, TooManyFields},

		{"full head without end", full, false, HeadTooLarge},
		{"full head, one field more", full + "a: b\r\n\r\n", false, HeadTooLarge},
		{"longest head", heads + fill("a: ", "\r\n\r\n", HeadBytesMax-len(heads)), true, OK},
		{"head one over", heads + fill("a: ", "\r\n\r\n", HeadBytesMax-len(heads)+1), false, HeadTooLarge},
		{"head, one short without end", heads + fill("a: ", "\r\n\r", HeadBytesMax-len(heads)-1), false, OK},
		{"head without end", heads + fill("a: ", "\r\n", HeadBytesMax-len(heads)), false, HeadTooLarge},
		{"head ends in a field", heads + fill("a: ", "", HeadBytesMax-len(heads)), false, HeadTooLarge},
		{"head ends in a field, more behind", heads + fill("a: ", "", HeadBytesMax-len(heads)+9), false, HeadTooLarge},
	} {
		_, n, err := parseRequest(tt.in)
		if err != tt.err || (n == len(tt.in)) != tt.whole {
			t.Errorf("%s: n = %d of %d, %v; want %v", tt.name, n, len(tt.in), err, tt.err)
		}
		if n, err, _ := feedRequest([]byte(tt.in), []byte{199, 1, 1, 1}); err != tt.err || (n == len(tt.in)) != tt.whole {
			t.Errorf("%s, in pieces: n = %d of %d, %v; want %v", tt.name, n, len(tt.in), err, tt.err)
		}
	}
}

func TestResponseLimits(t *testing.T) {
	const start = "HTTP/1.1 200 OK\r\n"
	for _, tt := range []struct {
		name, in string
		err      Error
	}{
		{"status line without end", "HTTP/1.1 200 " + strings.Repeat("x", RequestLineBytesMax-13), LineTooLong},
		{"field without end", start + strings.Repeat("x", FieldBytesMax), FieldTooLarge},
		{"endless fields", start + strings.Repeat("a: b\r\n", FieldsMax) + "a", TooManyFields},
		{"endless head", start + strings.Repeat("a:"+strings.Repeat("x", 1<<10)+"\r\n", 64), HeadTooLarge},
	} {
		if n, err := new(Response).Parse([]byte(tt.in), new(Progress), false); n != 0 || err != tt.err {
			t.Errorf("%s: n = %d, %v; want %v", tt.name, n, err, tt.err)
		}
	}
}

// TestEarlyRefusal gives beginnings that cannot become a head any more, though
// no line of theirs has ended.
func TestEarlyRefusal(t *testing.T) {
	for _, in := range []string{
		"\x16\x03\x01", "GET /\x00", "GET / HTTP/1.1\rX", "\n", "GET /\n", "GET / HTTP/1.1\r\nHost: a\x01",
		"GET / HTTP/1.1\r\nHost: a\r\rb", "GET / HTTP/1.1\r\nHost: a\r\nX\x7f", "GET / HTTP/1.1\r\n\rX",
		"GET / HTTP/1.1\r\nHost: a\r\n\n",
	} {
		if n, err, _ := feedRequest([]byte(in), []byte{1}); n != 0 || err != Malformed {
			t.Errorf("request %q: n = %d, %v; want %v", in, n, err, Malformed)
		}
	}
	for _, in := range []string{"I", "HTTq", "\r\n", "\x00", "HTTP/1.1 200 OK\rX", "HTTP/1.1 200\x00"} {
		if n, err, _ := feedResponse([]byte(in), []byte{1}, false); n != 0 || err != Malformed {
			t.Errorf("response %q: n = %d, %v; want %v", in, n, err, Malformed)
		}
	}
}

// TestProgress checks that a byte is not looked at again once it was there, but
// for a CR at the end of what has come.
func TestProgress(t *testing.T) {
	in := []byte("GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("y", 1000) + "\r\n")
	var r Request
	var g Progress
	for have := range len(in) + 1 {
		if n, err := r.Parse(in[:have], &g); n != 0 || err != OK {
			t.Fatalf("%d bytes: n = %d, %v", have, n, err)
		}
		want := have
		if have > 0 && in[have-1] == '\r' {
			want--
		}
		if int(g.at) != want {
			t.Fatalf("%d bytes: looked at %d, want %d", have, g.at, want)
		}
	}
}
