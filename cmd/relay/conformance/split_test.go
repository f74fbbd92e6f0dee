//go:build integration

package conformance

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// A request is the same however it comes in pieces.
func TestSplitPassed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, in string }{
		{"length", request("echo")},
		{"chunked", inChunks(chunk(body[:20]) + chunk(body[20:]) + "0\r\n\r\n")},
		{"chunked with extension and trailer", inChunks(fmt.Sprintf("%x;a=\"b\"\r\n%s\r\n0;c\r\nX-T: u\r\n\r\n", len(body), body))},
		{"empty lines first", "\r\n\r\n" + request("echo")},
	} {
		for _, n := range []int{1, 2, 3, 7, 64} {
			t.Run(fmt.Sprintf("%s/%d", tt.name, n), func(t *testing.T) {
				t.Parallel()
				c := dial(t)
				c.sendSlowly(strings.ReplaceAll(tt.in, "CASE", t.Name()), n, 2*time.Millisecond)
				c.passed(t, &passage{})
			})
		}
	}
}

// What is refused is refused however it comes in pieces.
func TestSplitRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, in, status string }{
		{"length twice", lengths("5", "6"), "400"},
		{"length and chunked", start + bodyLine + chunked + "\r\n", "400"},
		{"bare CR", with("X-A: b\rc\r\n"), "400"},
		{"fold", with("X-A: b\r\n c\r\n"), "400"},
		{"blank before the colon", with("X-A : b\r\n"), "400"},
		{"bad chunk", inChunks(chunk(body) + "x\r\n"), "400"},
		{"chunk data too long", inChunks(fmt.Sprintf("%x\r\n%sx\r\n", len(body), body)), "400"},
		{"two blanks", first("POST  /v1/chat/completions HTTP/1.1"), "400"},
		{"version", first("POST /v1/chat/completions HTTP/1.5"), "505"},
		{"HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "505"},
	} {
		for _, n := range []int{1, 5} {
			t.Run(fmt.Sprintf("%s/%d", tt.name, n), func(t *testing.T) {
				t.Parallel()
				c := dial(t)
				c.sendSlowly(strings.ReplaceAll(tt.in, "CASE", t.Name()), n, time.Millisecond)
				c.refused(t, tt.status)
				nothing(t, t.Name())
			})
		}
	}
}

// Pipelined requests, one byte at a time.
func TestSplitPipelined(t *testing.T) {
	t.Parallel()
	c := dial(t)
	name := t.Name()
	go c.sendSlowly(whole(name+"/1", "echo")+list+"\r\n"+whole(name+"/2", "echo"), 1, time.Millisecond)
	for i := range 3 {
		if a := c.answer(t); a.status != 200 {
			t.Errorf("answer %d: %q", i, a.head)
		}
	}
	c.lives(t, name+"/")
}
