package httpparse

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

func TestAppend(t *testing.T) {
	pre := func() []byte { return []byte("~") }
	for _, tt := range []struct {
		what string
		got  []byte
		want string
	}{
		{"request line", AppendRequestLine(pre(), []byte("POST"), []byte("/v1/a"), nil), "~POST /v1/a HTTP/1.1\r\n"},
		{"request line with query", AppendRequestLine(pre(), []byte("GET"), []byte("/"), []byte("a=b")), "~GET /?a=b HTTP/1.1\r\n"},
		{"request line with empty query", AppendRequestLine(pre(), []byte("GET"), []byte("/"), []byte{}), "~GET /? HTTP/1.1\r\n"},
		{"field", AppendField(pre(), "content-type", []byte("text/plain")), "~content-type: text/plain\r\n"},
		{"number field", AppendFieldUint(pre(), "content-length", 18446744073709551615), "~content-length: 18446744073709551615\r\n"},
		{"parsed field", Field{[]byte("X-A"), []byte("b")}.Append(pre()), "~X-A: b\r\n"},
		{"status line", AppendStatusLine(pre(), 200), "~HTTP/1.1 200 OK\r\n"},
		{"overloaded", AppendStatusLine(pre(), 529), "~HTTP/1.1 529 Overloaded\r\n"},
		{"unknown status", AppendStatusLine(pre(), 522), "~HTTP/1.1 522 Server Error\r\n"},
		{"chunk", AppendChunk(pre(), bytes.Repeat([]byte("x"), 26)), "~1a\r\n" + strings.Repeat("x", 26) + "\r\n"},
		{"no chunk", AppendChunk(pre(), nil), "~"},
	} {
		if string(tt.got) != tt.want {
			t.Errorf("%s: %q, want %q", tt.what, tt.got, tt.want)
		}
	}
}

// TestReasons parses each status line back and compares the registered reasons
// with net/http, but for those that RFC 9110 renamed.
func TestReasons(t *testing.T) {
	renamed := map[int]string{413: "Content Too Large", 414: "URI Too Long", 416: "Range Not Satisfiable", 422: "Unprocessable Content"}
	for status := 100; status < 600; status++ {
		var r Response
		line := AppendStatusLine(nil, status)
		if _, err := r.Parse(append(line, "\r\n"...), new(Progress), false); err != OK || r.Status != status || len(r.Reason) == 0 {
			t.Errorf("%q: %v, status %d", line, err, r.Status)
		}
		want := http.StatusText(status)
		if renamed[status] != "" {
			want = renamed[status]
		}
		if want != "" && string(r.Reason) != want {
			t.Errorf("%d: %q, want %q", status, r.Reason, want)
		}
	}
	for _, status := range []int{-1, 0, 99, 600} {
		func() {
			defer func() {
				if !strings.HasPrefix(fmt.Sprint(recover()), "BUG: ") {
					t.Errorf("status %d was written", status)
				}
			}()
			AppendStatusLine(nil, status)
		}()
	}
}

// TestErrors checks the table of refusals against the limits it speaks of.
func TestErrors(t *testing.T) {
	seen := map[string]bool{}
	for e := OK; e < errorsEnd; e++ {
		if e.String() == "" || seen[e.String()] {
			t.Errorf("error %d has no text of its own: %q", e, e)
		}
		seen[e.String()] = true
		if s := e.Status(); e != OK && (s < 400 || reasons[s] == "") {
			t.Errorf("%v has status %d", e, s)
		}
	}
	for e, limit := range map[Error]string{
		LineTooLong:     fmt.Sprintf(" %d KiB", RequestLineBytesMax>>10),
		FieldTooLarge:   fmt.Sprintf(" %d KiB", FieldBytesMax>>10),
		TooManyFields:   fmt.Sprintf(" %d field", FieldsMax),
		HeadTooLarge:    fmt.Sprintf(" %d KiB", HeadBytesMax>>10),
		ChunkTooLarge:   fmt.Sprintf(" %d TiB", ChunkBytesMax>>40),
		TrailerTooLarge: fmt.Sprintf(" %d KiB", TrailerBytesMax>>10),
	} {
		if !strings.Contains(e.String(), limit) {
			t.Errorf("%q does not name the limit%s", e, limit)
		}
	}
	for e, status := range map[Error]int{Malformed: 400, BadVersion: 505, UnknownCoding: 501, BadExpectation: 417,
		LineTooLong: 414, FieldTooLarge: 431, TooManyFields: 431, HeadTooLarge: 431, ChunkTooLarge: 413} {
		if e.Status() != status {
			t.Errorf("%v: %d, want %d", e, e.Status(), status)
		}
	}
}
