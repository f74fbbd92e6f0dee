package httpparse

import (
	"bytes"
	"testing"
)

// BenchmarkRequest parses the head of a chat request; its budget of 0
// allocations is enforced by TestAllocs.
func BenchmarkRequest(b *testing.B) {
	in := []byte(chatPost)
	var r Request
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		if n, err := r.Parse(in, new(Progress)); n != len(in) || err != OK {
			b.Fatal(n, err)
		}
	}
}

// BenchmarkRequestBytewise is the worst cut: one call per byte.
func BenchmarkRequestBytewise(b *testing.B) {
	in := []byte(chatPost)
	var r Request
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		var g Progress
		for have := range len(in) + 1 {
			if _, err := r.Parse(in[:have], &g); err != OK {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkResponse(b *testing.B) {
	in := []byte("HTTP/1.1 200 OK\r\nDate: Mon, 01 Jan 2026 00:00:00 GMT\r\nContent-Type: text/event-stream; charset=utf-8\r\n" +
		"Transfer-Encoding: chunked\r\nConnection: keep-alive\r\nx-request-id: req_0123456789abcdef0123456789abcdef\r\n" +
		"x-ratelimit-remaining-tokens: 149999984\r\nopenai-processing-ms: 312\r\nServer: cloudflare\r\n\r\n")
	var r Response
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		if n, err := r.Parse(in, new(Progress), false); n != len(in) || err != OK {
			b.Fatal(n, err)
		}
	}
}

// BenchmarkChunks decodes one event of a stream, a chunk of 250 bytes.
func BenchmarkChunks(b *testing.B) {
	in := AppendChunk(nil, bytes.Repeat([]byte("x"), 250))
	var c Chunks
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		for p := in; len(p) > 0; {
			_, n, _, err := c.Next(p)
			if err != OK {
				b.Fatal(err)
			}
			p = p[n:]
		}
	}
}

// BenchmarkForward writes the head of a chat request as it is sent upstream.
func BenchmarkForward(b *testing.B) {
	var r Request
	r.Parse([]byte(chatPost), new(Progress))
	out := make([]byte, 0, 4<<10)
	b.ReportAllocs()
	for b.Loop() {
		out = AppendRequestLine(out[:0], r.Method, r.Path, r.Query)
		for _, f := range r.Fields {
			if !HopByHop(r.Fields, f.Name) {
				out = f.Append(out)
			}
		}
		out = AppendFieldUint(out, "content-length", uint64(r.ContentLength))
	}
}
