package httpparse

import (
	"bytes"
	"fmt"
	"testing"
)

// rewrite serialises r as a proxy does: its own framing, no field of the
// connection it came on.
func rewrite(r *Request) []byte {
	path := r.Path
	if path == nil {
		path = r.Target
	}
	out := AppendRequestLine(nil, r.Method, path, r.Query)
	out = AppendField(out, "Host", r.Host)
	for _, f := range r.Fields {
		if !HopByHop(r.Fields, f.Name) {
			out = f.Append(out)
		}
	}
	if r.ContentLength >= 0 {
		out = AppendFieldUint(out, "Content-Length", uint64(r.ContentLength))
	}
	if r.Chunked {
		out = AppendField(out, "Transfer-Encoding", []byte("chunked"))
	}
	return append(out, "\r\n"...)
}

// passed lists the fields that are passed on.
func passed(fields []Field) string {
	var all []Field
	for _, f := range fields {
		if !HopByHop(fields, f.Name) {
			all = append(all, f)
		}
	}
	return fmt.Sprintf("%q", all)
}

func FuzzRoundTrip(f *testing.F) {
	for _, in := range requestSeeds {
		f.Add([]byte(in), []byte("some data"))
	}
	f.Fuzz(func(t *testing.T, in, pieces []byte) {
		roundTripChunks(t, in, pieces)
		var r, back Request
		if n, err := r.Parse(in, new(Progress)); n == 0 || err != OK || r.Host == nil {
			return
		}
		out := rewrite(&r)
		n, err := back.Parse(out, new(Progress))
		if (err == TooManyFields || err == HeadTooLarge) && len(r.Fields) > FieldsMax-3 || len(out) > HeadBytesMax {
			return // a Host or a length was added to a head that was full
		}
		if n != len(out) || err != OK {
			t.Fatalf("%q is not parsed back: %d, %v", out, n, err)
		}
		text := func(r *Request) string {
			return fmt.Sprintf("%s %s %q %q %d %t %t %s", r.Method, r.Path, r.Query, r.Host, r.ContentLength, r.Chunked,
				r.ExpectContinue && r.Minor == 1, passed(r.Fields))
		}
		r.ExpectContinue = back.ExpectContinue // of HTTP/1.0 it is ignored, and what is written is HTTP/1.1
		if got, want := text(&back), text(&r); got != want {
			t.Fatalf("parsed: %s\nback: %s", want, got)
		}
		for _, f := range back.Fields {
			if EqualFold(f.Name, "connection") || EqualFold(f.Name, "te") {
				t.Fatalf("%s was passed on", f.Name)
			}
		}
	})
}

// roundTripChunks writes in as chunks of the lengths in pieces and decodes it.
func roundTripChunks(t *testing.T, in, pieces []byte) {
	t.Helper()
	var out []byte
	rest := in
	for _, k := range pieces {
		k := min(int(k), len(rest))
		out = AppendChunk(out, rest[:k])
		rest = rest[k:]
	}
	out = append(AppendChunk(out, rest), LastChunk...)
	data, n, done, err := decode(append(out, "next"...), pieces)
	if !bytes.Equal(data, in) || n != len(out) || !done || err != OK {
		t.Fatalf("%q written as %q, read as %q, %d, %t, %v", in, out, data, n, done, err)
	}
}

// TestAllocs holds the budget of the hot path: nothing once Fields has grown.
func TestAllocs(t *testing.T) {
	post := []byte(chatPost)
	odd := []byte("\r\nPOST http://[2001:db8::1]:80/a?b HTTP/1.1\r\nHost: a\r\nConnection: x, close\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n")
	refused := []byte("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 6\r\n\r\n")
	answer := []byte(responseSeeds[0])
	body := []byte("5;a=b\r\nhello\r\n0\r\nX: y\r\n\r\n")
	var r Request
	var a Response
	out := make([]byte, 0, 1<<10)
	for _, tt := range []struct {
		name string
		act  func()
	}{
		{"request", func() { r.Parse(post, new(Progress)) }},
		{"odd request", func() { r.Parse(odd, new(Progress)) }},
		{"refused request", func() { r.Parse(refused, new(Progress)) }},
		{"request in two pieces", func() {
			var g Progress
			r.Parse(post[:100], &g)
			r.Parse(post, &g)
		}},
		{"response", func() { a.Parse(answer, new(Progress), false) }},
		{"chunks", func() {
			var c Chunks
			for p, done := body, false; !done; {
				var n int
				if _, n, done, _ = c.Next(p); n == 0 {
					panic("BUG: no progress")
				}
				p = p[n:]
			}
		}},
		{"rewrite", func() {
			out = AppendRequestLine(out[:0], r.Method, r.Path, r.Query)
			for _, f := range r.Fields {
				if !HopByHop(r.Fields, f.Name) {
					out = f.Append(out)
				}
			}
			out = AppendFieldUint(out, "content-length", 1<<20)
		}},
		{"answer", func() {
			out = AppendStatusLine(out[:0], 529)
			out = AppendField(out, "retry-after", answer[:3])
			out = AppendChunk(out, answer[:20])
		}},
	} {
		if n := testing.AllocsPerRun(100, tt.act); n != 0 {
			t.Errorf("%s: %v allocations, want 0", tt.name, n)
		}
	}
}
