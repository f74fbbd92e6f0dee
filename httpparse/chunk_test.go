package httpparse

import (
	"fmt"
	"strings"
	"testing"
)

// decode reads a chunked body in pieces of the lengths in cuts, over and over;
// no cuts means all at once. n is how much of in was used up.
func decode(in, cuts []byte) (data []byte, n int, done bool, err Error) {
	var c Chunks
	for i := 0; n < len(in) && !done && err == OK; i++ {
		piece := in[n:]
		if len(cuts) > 0 {
			piece = append([]byte(nil), piece[:min(len(piece), 1+int(cuts[i%len(cuts)]))]...)
		}
		for used := 0; used < len(piece) && !done && err == OK; {
			var d []byte
			var k int
			d, k, done, err = c.Next(piece[used:])
			data = append(data, d...)
			used += k
			n += k
		}
	}
	return data, n, done, err
}

func TestChunks(t *testing.T) {
	const end = "0\r\n\r\n"
	for _, tt := range []struct {
		name, in, data string
		err            Error
	}{
		{"empty", end, "", OK},
		{"one", "5\r\nhello\r\n" + end, "hello", OK},
		{"two", "5\r\nhello\r\n6\r\n world\r\n" + end, "hello world", OK},
		{"hex of both cases", "a\r\n0123456789\r\nB\r\n0123456789a\r\n" + end, "01234567890123456789a", OK},
		{"line ends in the data", "4\r\n\r\n\r\n\r\n" + end, "\r\n\r\n", OK},
		{"leading zeros", "0000000000000005\r\nhello\r\n" + end, "hello", OK},
		{"17 digits", "00000000000000005\r\nhello\r\n" + end, "", BadChunk},
		{"16 zeros end it", "0000000000000000\r\n\r\n", "", OK},
		{"no digit", "\r\nhello\r\n" + end, "", BadChunk},
		{"sign", "+5\r\nhello\r\n" + end, "", BadChunk},
		{"minus", "-5\r\nhello\r\n" + end, "", BadChunk},
		{"0x", "0x5\r\nhello\r\n" + end, "", BadChunk},
		{"no hex", "g\r\n" + end, "", BadChunk},
		{"underscore", "1_0\r\n" + end, "", BadChunk},
		{"blank in front", " 5\r\nhello\r\n" + end, "", BadChunk},
		{"blank behind", "5 \r\nhello\r\n" + end, "", BadChunk},
		{"HTAB behind", "5\t\r\nhello\r\n" + end, "", BadChunk},
		{"bare LF behind the size", "5\nhello\r\n" + end, "", BadChunk},
		{"bare CR behind the size", "5\rhello\r\n" + end, "", BadChunk},
		{"CR CR LF behind the size", "5\r\r\nhello\r\n" + end, "", BadChunk},
		{"LF CR", "5\n\rhello\r\n" + end, "", BadChunk},
		{"bare LF behind the data", "5\r\nhello\n" + end, "hello", BadChunk},
		{"bare CR behind the data", "5\r\nhello\r" + end, "hello", BadChunk},
		{"nothing behind the data", "5\r\nhello" + end, "hello", BadChunk},
		{"data too long", "5\r\nhello!\r\n" + end, "hello", BadChunk},
		{"two line ends behind the data", "5\r\nhello\r\n\r\n" + end, "hello", BadChunk},
		{"NUL in the size", "5\x00\r\nhello\r\n" + end, "", BadChunk},
		{"obs-text in the size", "5\xb0\r\nhello\r\n" + end, "", BadChunk},
		{"comma", "5,5\r\nhello\r\n" + end, "", BadChunk},
		{"largest", "10000000000\r\n", "", OK},
		{"one over", "10000000001\r\n", "", ChunkTooLarge},
		{"overflow to 5", "10000000000000005\r\nhello\r\n" + end, "", ChunkTooLarge},
		{"64 bits", "ffffffffffffffff\r\n", "", ChunkTooLarge},
		{"size is cut", "5", "", OK},
		{"data is cut", "5\r\nhel", "hel", OK},
		{"last line is cut", "5\r\nhello\r\n0\r\n\r", "hello", OK},
	} {
		checkChunks(t, tt.name, tt.in, tt.data, tt.err)
	}
}

// checkChunks decodes in at once and byte by byte.
func checkChunks(t *testing.T, name, in, want string, wantErr Error) {
	t.Helper()
	for _, cuts := range [][]byte{nil, {0}} {
		data, n, done, err := decode([]byte(in), cuts)
		if string(data) != want || err != wantErr {
			t.Errorf("%s: %q, %v; want %q, %v", name, data, err, want, wantErr)
		}
		whole := wantErr == OK && strings.HasSuffix(in, "\r\n\r\n")
		if done != whole || err == OK && n != len(in) {
			t.Errorf("%s: done %t with %d of %d bytes", name, done, n, len(in))
		}
	}
}

func TestChunkExtensions(t *testing.T) {
	for _, tt := range []struct {
		ext string
		err Error
	}{
		{";a", OK},
		{";a=b", OK},
		{";a;b=c;d", OK},
		{";a=\"b\"", OK},
		{";a=\"b;c=d\"", OK},
		{";a=\"\"", OK},
		{";a=\"\\\"\\\\\\ \"", OK},
		{";a=\"\tb \xff\"", OK},
		{"; a", OK},
		{";\ta = b", OK},
		{";a=b;c= \"d\"", OK},
		{"", OK},
		{" ;a", BadChunk},
		{"\t;a", BadChunk},
		{";", BadChunk},
		{";;", BadChunk},
		{";a;", BadChunk},
		{";=b", BadChunk},
		{";a=", BadChunk},
		{";a= ", BadChunk},
		{";a ", BadChunk},
		{";a b", BadChunk},
		{";a ;b", BadChunk},
		{";a=b c", BadChunk},
		{";a=b ", BadChunk},
		{";a=\"b\" ", BadChunk},
		{";a=\"b\"c", BadChunk},
		{";a=\"b", BadChunk},
		{";a=\"b\r\n\"", BadChunk},
		{";a=\"b\n\"", BadChunk},
		{";a=\"b\r\"", BadChunk},
		{";a=\"b\\\r\n\"", BadChunk},
		{";a=\"b\\\n\"", BadChunk},
		{";a=\"\x00\"", BadChunk},
		{";a=\"\x7f\"", BadChunk},
		{";a\n", BadChunk},
		{";a\r", BadChunk},
		{";a\x00", BadChunk},
		{";a=b\xff", BadChunk},
		{";a:b", BadChunk},
		{";a=(b)", BadChunk},
	} {
		want := "hello"
		if tt.err != OK {
			want = ""
		}
		checkChunks(t, fmt.Sprintf("%q", tt.ext), "5"+tt.ext+"\r\nhello\r\n0\r\n\r\n", want, tt.err)
		if _, _, done, err := decode([]byte("0"+tt.ext+"\r\n\r\n"), nil); err != tt.err || done != (err == OK) {
			t.Errorf("%q on the last chunk: %v, want %v", tt.ext, err, tt.err)
		}
	}
}

func TestTrailers(t *testing.T) {
	for _, tt := range []struct {
		lines string
		err   Error
	}{
		{"X: y\r\n", OK},
		{"X: y\r\nAB:\r\nC:\t\"\\;=:\xff\r\n", OK},
		{"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", OK},
		{"X : y\r\n", BadTrailer},
		{"X\r\n", BadTrailer},
		{": y\r\n", BadTrailer},
		{" X: y\r\n", BadTrailer},
		{"X: y\r\n z\r\n", BadTrailer},
		{"X: y\n", BadTrailer},
		{"X: y\rz\r\n", BadTrailer},
		{"X: y\r\r\n", BadTrailer},
		{"X: \x00\r\n", BadTrailer},
		{"X: \x7f\r\n", BadTrailer},
		{"\n", BadTrailer},
		{"\r", BadTrailer},
		{"\rX: y\r\n", BadTrailer},
		{"\r: y\r\n", BadTrailer},
		{"GET / HTTP/1.1\r\n", BadTrailer},
	} {
		checkChunks(t, fmt.Sprintf("%q", tt.lines), "1\r\na\r\n0\r\n"+tt.lines+"\r\n", "a", tt.err)
	}
}

func TestChunkLimits(t *testing.T) {
	line := func(total int) string { return "1;" + strings.Repeat("x", total-4) + "\r\n" }
	trailers := func(total int) string { return "0\r\nx:" + strings.Repeat("y", total-6) + "\r\n\r\n" }
	// Each of these lines takes 256 bytes, of which 16 + 2 are earned.
	lines := ChunkWasteBytesMax / (ChunkLineBytesMax - chunkLineFree - chunkLineEarned)
	for _, tt := range []struct {
		name, in, data string
		err            Error
	}{
		{"longest line", line(ChunkLineBytesMax) + "a\r\n0\r\n\r\n", "a", OK},
		{"line one over", line(ChunkLineBytesMax+1) + "a\r\n0\r\n\r\n", "", ChunkLineTooLong},
		{"line without end", line(ChunkLineBytesMax + 9)[:ChunkLineBytesMax+1], "", ChunkLineTooLong},
		{"longest trailers", trailers(TrailerBytesMax), "", OK},
		{"trailers one over", trailers(TrailerBytesMax + 1), "", TrailerTooLarge},
		{"many trailers", "0\r\n" + strings.Repeat("x:y\r\n", TrailerBytesMax/5+1), "", TrailerTooLarge},
		{"as many long lines as allowed", strings.Repeat(line(ChunkLineBytesMax)+"a\r\n", lines) + "0\r\n\r\n", strings.Repeat("a", lines), OK},
		{"one long line more", strings.Repeat(line(ChunkLineBytesMax)+"a\r\n", lines+1) + "0\r\n\r\n", strings.Repeat("a", lines), ChunkLineTooLong},
		{"a short one with long lines between", strings.Repeat("1\r\na\r\n", 1<<14) + "0\r\n\r\n", strings.Repeat("a", 1<<14), OK},
	} {
		checkChunks(t, tt.name, tt.in, tt.data, tt.err)
	}
}

// TestChunksEnd checks that nothing behind the end, and nothing behind an
// error, is taken as part of the body.
func TestChunksEnd(t *testing.T) {
	var c Chunks
	in := []byte("0\r\n\r\n5\r\nhello\r\n")
	if _, n, done, err := c.Next(in); n != 5 || !done || err != OK {
		t.Fatalf("n = %d, done %t, %v", n, done, err)
	}
	if data, n, done, err := c.Next(in[5:]); len(data) != 0 || n != 0 || done || err != BadChunk {
		t.Errorf("behind the end: %q, n = %d, done %t, %v", data, n, done, err)
	}
	c = Chunks{}
	for _, in := range []string{"x", "5\r\nhello\r\n", "0\r\n\r\n"} {
		if data, n, done, err := c.Next([]byte(in)); len(data) != 0 || n != 0 || done || err != BadChunk {
			t.Errorf("behind an error: %q, n = %d, done %t, %v", data, n, done, err)
		}
	}
	if data, n, done, err := new(Chunks).Next(nil); data != nil || n != 0 || done || err != OK {
		t.Errorf("no input: %q, n = %d, done %t, %v", data, n, done, err)
	}
}

// TestChunksLeft checks what is announced before it has come.
func TestChunksLeft(t *testing.T) {
	for _, tt := range []struct {
		in   string
		left int64
	}{
		{"", 0}, {"1", 1}, {"10", 16}, {"fffffff\r\n", 0xfffffff}, {"5\r\nhe", 3}, {"5\r\nhello", 0}, {"5\r\nhello\r\n0\r\n", 0},
	} {
		var c Chunks
		for p := []byte(tt.in); len(p) > 0; {
			_, n, _, err := c.Next(p)
			if p = p[n:]; err != OK {
				t.Fatalf("%q: %v", tt.in, err)
			}
		}
		if c.Left() != tt.left {
			t.Errorf("%q: %d left, want %d", tt.in, c.Left(), tt.left)
		}
	}
}
