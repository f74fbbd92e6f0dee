//go:build integration

package conformance

import (
	"fmt"
	"strings"
	"testing"
)

// Bounds of a request head, as an operator is told them.
const (
	lineMax   = 8 << 10
	fieldMax  = 16 << 10
	fieldsMax = 100
	headMax   = 64 << 10
)

// padded is a request line of n bytes, with its line end.
func padded(n int) string {
	const before, after = "POST /v1/chat/completions?", " HTTP/1.1\r\n"
	return before + strings.Repeat("a", n-len(before)-len(after)) + after
}

// fieldOf is a field line of n bytes, with its line end.
func fieldOf(n int) string { return "X-A: " + strings.Repeat("b", n-7) + "\r\n" }

// headOf is a sound request with a head of n bytes.
func headOf(name string, n int) string {
	text := strings.ReplaceAll(start+bodyLine, "CASE", name)
	left := n - len(text) - 2
	for left > 0 {
		size := min(left, 8000)
		if left-size < 8 && left != size { // no line can be that short
			size -= 100
		}
		text += fieldOf(size)
		left -= size
	}
	return text + "\r\n" + body
}

func TestBoundsRefused(t *testing.T) {
	t.Parallel()
	tail := hostLine + keyLine + bodyLine + "\r\n" + body
	refuseAll(t, []refusal{
		{"request line one over", padded(lineMax+1) + tail, "414"},
		{"request line far over", padded(60000) + tail, "414"},
		{"method far over", strings.Repeat("A", 20000) + " / HTTP/1.1\r\n" + tail, "414 400"},
		{"version far over", "GET / " + strings.Repeat("H", 20000) + "\r\n" + tail, "414 400"},
		{"field one over", with(fieldOf(fieldMax + 1)), "431"},
		{"field name over", with(strings.Repeat("X", 20000) + ": b\r\n"), "431"},
		{"host over", hosted("Host: " + strings.Repeat("a", 20000) + "\r\n"), "431 400"},
		{"one field too many", start + bodyLine + strings.Repeat("X-A: b\r\n", fieldsMax-4) + "\r\n" + body, "431"},
		{"many fields too many", start + bodyLine + strings.Repeat("a:b\r\n", 8000) + "\r\n" + body, "431"},
		{"head one over", headOf("CASE", headMax+1), "431"},
		{"head far over", with(strings.Repeat(fieldOf(4096), 90)), "431"},
		{"connection list over", with("Connection: " + strings.Repeat("a,", 9000) + "\r\n"), "431"},
	})
}

// The bounds hold before the end of a line or head has come.
func TestBoundsUnfinished(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, in, status string }{
		{"request line", "POST /" + strings.Repeat("a", lineMax), "414"},
		{"method", strings.Repeat("A", lineMax+1), "414 400"},
		{"field", start + "X-A: " + strings.Repeat("b", fieldMax), "431"},
		{"field name", start + strings.Repeat("X", fieldMax+1), "431"},
		{"fields", start + strings.Repeat("X-A: b\r\n", fieldsMax+1), "431"},
		{"head", start + strings.Repeat(fieldOf(4096), headMax/4096), "431"},
		{"control byte in a request line", "POST /v1\x00", "400"},
		{"control byte in a field", start + "X-A: b\x01", "400"},
		{"bare LF", "POST / HTTP/1.1\n", "400"},
		{"bad name", start + "X A: b\r\n", "400"},
		{"fold", start + "X-A: b\r\n c\r\n", "400"},
		{"chunk size", start + chunked + "\r\n" + strings.Repeat("0", 17), "400"},
		{"chunk size with a bad digit", start + chunked + "\r\n1z", "400"},
		{"chunk extension", start + chunked + "\r\n5;" + strings.Repeat("a", 300), "400"},
		{"chunk that is announced too large", start + chunked + "\r\nfffffff\r\n{", "413"},
		{"trailer", start + chunked + "\r\n" + chunk(body) + "0\r\nX-A: " + strings.Repeat("b", 9000), "400 431"},
		{"length", start + "Content-Length: 1048577\r\n\r\n", "413"},
		{"body that is no object", start + "Content-Length: 500\r\n\r\n[", "400"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := dial(t)
			c.send(strings.ReplaceAll(tt.in, "CASE", t.Name()))
			c.refused(t, tt.status)
			nothing(t, t.Name())
		})
	}
}

func TestBoundsPassed(t *testing.T) {
	t.Parallel()
	passAll(t, []passage{
		{name: "request line at the bound", in: padded(lineMax) + hostLine + keyLine + bodyLine + "\r\n" + body},
		{name: "field at the bound", in: with(fieldOf(fieldMax)), has: []string{strings.TrimSuffix(fieldOf(fieldMax), "\r\n")}},
		{name: "name of 200 bytes", in: with(strings.Repeat("n", 200) + ": b\r\n"), has: []string{strings.Repeat("n", 200) + ": b"}},
		{name: "fields at the bound", in: start + bodyLine + strings.Repeat("X-A: b\r\n", fieldsMax-5) + "\r\n" + body},
		{name: "query of 4 KiB", in: first("POST /v1/chat/completions?" + strings.Repeat("q", 4096) + " HTTP/1.1")},
	})
	t.Run("head at the bound", func(t *testing.T) {
		t.Parallel()
		c := dial(t)
		c.send(headOf(t.Name(), headMax))
		c.passed(t, &passage{})
	})
	for _, n := range []int{1 << 10, 64 << 10, 512 << 10} {
		t.Run(fmt.Sprintf("body of %d KiB", n>>10), func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(body, "hello", strings.Repeat("x", n), 1)
			c := dial(t)
			c.send(strings.ReplaceAll(start, "CASE", t.Name()) + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(text), text))
			c.passed(t, &passage{body: text})
		})
	}
}
