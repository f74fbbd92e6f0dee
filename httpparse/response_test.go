package httpparse

import (
	"fmt"
	"testing"
)

// describe is as of Request.
func (r *Response) describe() string {
	return fmt.Sprintf("%d %q minor=%d fields=%q body=%d length=%d keep=%t",
		r.Status, r.Reason, r.Minor, r.Fields, r.Body, r.ContentLength, r.KeepAlive)
}

func TestStatusLine(t *testing.T) {
	for _, tt := range []struct {
		line   string
		status int
		reason string
		err    Error
	}{
		{"HTTP/1.1 200 OK", 200, "OK", OK},
		{"HTTP/1.0 200 OK", 200, "OK", OK},
		{"HTTP/1.1 200 ", 200, "", OK},
		{"HTTP/1.1 200", 200, "", OK},
		{"HTTP/1.1 200  two  blanks ", 200, " two  blanks ", OK},
		{"HTTP/1.1 404 Nicht gefunden \xfc\t.", 404, "Nicht gefunden \xfc\t.", OK},
		{"HTTP/1.1 100 Continue", 100, "Continue", OK},
		{"HTTP/1.1 101 Switching Protocols", 101, "Switching Protocols", OK},
		{"HTTP/1.1 599 x", 599, "x", OK},
		{"HTTP/1.1 529 Overloaded", 529, "Overloaded", OK},
		{"HTTP/1.1 099 x", 0, "", Malformed},
		{"HTTP/1.1 600 x", 0, "", Malformed},
		{"HTTP/1.1 999 x", 0, "", Malformed},
		{"HTTP/1.1 20 OK", 0, "", Malformed},
		{"HTTP/1.1 2000 OK", 0, "", Malformed},
		{"HTTP/1.1 200OK", 0, "", Malformed},
		{"HTTP/1.1 200\tOK", 0, "", Malformed},
		{"HTTP/1.1 -20 OK", 0, "", Malformed},
		{"HTTP/1.1 2x0 OK", 0, "", Malformed},
		{"HTTP/1.1  200 OK", 0, "", Malformed},
		{"HTTP/1.1\t200 OK", 0, "", Malformed},
		{" HTTP/1.1 200 OK", 0, "", Malformed},
		{"HTTP/1.1", 0, "", Malformed},
		{"HTTP/1.1 ", 0, "", Malformed},
		{"HTTP/1.1 OK", 0, "", Malformed},
		{"http/1.1 200 OK", 0, "", Malformed},
		{"HTTP/1.10 200 OK", 0, "", Malformed},
		{"HTTP/1 200 OK", 0, "", Malformed},
		{"HTTP/1.1 200 O\x00K", 0, "", Malformed},
		{"HTTP/1.1 200 O\rK", 0, "", Malformed},
		{"HTTP/1.1 200 O\x7fK", 0, "", Malformed},
		{"HTTP/1.2 200 OK", 0, "", BadVersion},
		{"HTTP/2.0 200 OK", 0, "", BadVersion},
		{"HTTP/0.9 200 OK", 0, "", BadVersion},
		{"ICY 200 OK", 0, "", Malformed},
		{"<html>hello", 0, "", Malformed},
		{"", 0, "", Malformed},
	} {
		var r Response
		in := tt.line + "\r\nContent-Length: 0\r\n\r\n"
		n, err := r.Parse([]byte(in), new(Progress), false)
		if err != tt.err {
			t.Errorf("%q: %v, want %v", tt.line, err, tt.err)
			continue
		}
		if err == OK && (n != len(in) || r.Status != tt.status || string(r.Reason) != tt.reason) {
			t.Errorf("%q: n = %d, status %d, reason %q", tt.line, n, r.Status, r.Reason)
		}
	}
}

func TestResponseFraming(t *testing.T) {
	for _, tt := range []struct {
		name, start, lines string
		head               bool
		body               BodyKind
		length             int64
		keep               bool
		err                Error
	}{
		{"length", "HTTP/1.1 200", "Content-Length: 5\r\n", false, ByLength, 5, true, OK},
		{"length 0", "HTTP/1.1 200", "Content-Length: 0\r\n", false, NoBody, 0, true, OK},
		{"equal lengths", "HTTP/1.1 200", "Content-Length: 5\r\nContent-Length: 5, 5\r\n", false, ByLength, 5, true, OK},
		{"chunked", "HTTP/1.1 200", "Transfer-Encoding: Chunked\r\n", false, ByChunks, -1, true, OK},
		{"until close", "HTTP/1.1 200", "", false, UntilClose, -1, false, OK},
		{"until close though keep-alive", "HTTP/1.1 200", "Connection: keep-alive\r\n", false, UntilClose, -1, false, OK},
		{"close", "HTTP/1.1 200", "Content-Length: 5\r\nConnection: close\r\n", false, ByLength, 5, false, OK},
		{"1.0", "HTTP/1.0 200", "Content-Length: 5\r\n", false, ByLength, 5, false, OK},
		{"1.0 keep-alive", "HTTP/1.0 200", "Content-Length: 5\r\nConnection: keep-alive\r\n", false, ByLength, 5, true, OK},
		{"1.0 until close", "HTTP/1.0 200", "", false, UntilClose, -1, false, OK},
		{"HEAD with length", "HTTP/1.1 200", "Content-Length: 5\r\n", true, NoBody, 5, true, OK},
		{"HEAD chunked", "HTTP/1.1 200", "Transfer-Encoding: chunked\r\n", true, NoBody, -1, true, OK},
		{"HEAD with nothing", "HTTP/1.1 200", "", true, NoBody, -1, true, OK},
		{"204", "HTTP/1.1 204", "", false, NoBody, -1, true, OK},
		{"204 with length 0", "HTTP/1.1 204", "Content-Length: 0\r\n", false, NoBody, 0, true, OK},
		{"204 with a body", "HTTP/1.1 204", "Content-Length: 5\r\n", false, NoBody, 5, false, OK},
		{"204 with chunks", "HTTP/1.1 204", "Transfer-Encoding: chunked\r\n", false, NoBody, -1, false, OK},
		{"304 with length", "HTTP/1.1 304", "Content-Length: 5\r\n", false, NoBody, 5, true, OK},
		{"304 chunked", "HTTP/1.1 304", "Transfer-Encoding: chunked\r\n", false, NoBody, -1, true, OK},
		{"100", "HTTP/1.1 100", "", false, NoBody, -1, true, OK},
		{"103", "HTTP/1.1 103", "Link: </a>\r\n", false, NoBody, -1, true, OK},
		{"101", "HTTP/1.1 101", "Upgrade: x\r\nConnection: upgrade\r\n", false, NoBody, -1, false, OK},
		{"100 with a body", "HTTP/1.1 100", "Content-Length: 5\r\n", false, 0, 0, false, BadLength},
		{"103 chunked", "HTTP/1.1 103", "Transfer-Encoding: chunked\r\n", false, 0, 0, false, BadLength},
		{"bad length", "HTTP/1.1 200", "Content-Length: 5x\r\n", false, 0, 0, false, BadLength},
		{"negative length", "HTTP/1.1 200", "Content-Length: -5\r\n", false, 0, 0, false, BadLength},
		{"lengths differ", "HTTP/1.1 200", "Content-Length: 5\r\nContent-Length: 6\r\n", false, 0, 0, false, BadLength},
		{"listed lengths differ", "HTTP/1.1 200", "Content-Length: 5, 6\r\n", false, 0, 0, false, BadLength},
		{"HEAD, lengths differ", "HTTP/1.1 200", "Content-Length: 5\r\nContent-Length: 6\r\n", true, 0, 0, false, BadLength},
		{"304 with bad length", "HTTP/1.1 304", "Content-Length: x\r\n", false, 0, 0, false, BadLength},
		{"both", "HTTP/1.1 200", "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", false, 0, 0, false, LengthTwice},
		{"gzip", "HTTP/1.1 200", "Transfer-Encoding: gzip\r\n", false, 0, 0, false, BadCoding},
		{"gzip, chunked", "HTTP/1.1 200", "Transfer-Encoding: gzip, chunked\r\n", false, 0, 0, false, UnknownCoding},
		{"chunked twice", "HTTP/1.1 200", "Transfer-Encoding: chunked, chunked\r\n", false, 0, 0, false, BadCoding},
		{"1.0 chunked", "HTTP/1.0 200", "Transfer-Encoding: chunked\r\n", false, 0, 0, false, BadCoding},
		{"fold", "HTTP/1.1 200", "X: a\r\n b\r\n", false, 0, 0, false, Malformed},
		{"blank before colon", "HTTP/1.1 200", "Content-Length : 5\r\n", false, 0, 0, false, Malformed},
		{"bare LF", "HTTP/1.1 200", "X: a\nY: b\r\n", false, 0, 0, false, Malformed},
		{"NUL", "HTTP/1.1 200", "X: a\x00\r\n", false, 0, 0, false, Malformed},
	} {
		var r Response
		n, err := r.Parse([]byte(tt.start+" x\r\n"+tt.lines+"\r\n"), new(Progress), tt.head)
		if err != tt.err {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.err)
			continue
		}
		if err == OK && (n == 0 || r.Body != tt.body || r.ContentLength != tt.length || r.KeepAlive != tt.keep) {
			t.Errorf("%s: body %d, length %d, keep-alive %t; want %d, %d, %t",
				tt.name, r.Body, r.ContentLength, r.KeepAlive, tt.body, tt.length, tt.keep)
		}
	}
}

// TestResponseReused checks that nothing of one answer is left in the next.
func TestResponseReused(t *testing.T) {
	var r Response
	for _, in := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX: y\r\n\r\n",
		"HTTP/1.0 500\r\n\r\n",
		"HTTP/1.1 404 x\r\nTransfer-Encoding: chunked\r\n\r\n",
	} {
		var fresh Response
		if _, err := r.Parse([]byte(in), new(Progress), false); err != OK {
			t.Fatalf("%q: %v", in, err)
		}
		if _, err := fresh.Parse([]byte(in), new(Progress), false); err != OK {
			t.Fatalf("%q: %v", in, err)
		}
		if got, want := r.describe(), fresh.describe(); got != want {
			t.Errorf("reused %s, fresh %s", got, want)
		}
	}
}
