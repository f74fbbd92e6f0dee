package httpparse

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// noise is what other connections of the same loop parse in between.
var noise = []byte("PUT /noise?n HTTP/1.0\r\nHost: noise\r\nExpect: 100-continue\r\nContent-Length: 77\r\nNoise: noise\r\n\r\n")

// feed gives in to parse in pieces of the lengths in cuts, over and over. The
// input moves to a new place in memory each time, or beyond 2 KiB now and then,
// and the old place is overwritten.
func feed(in, cuts []byte, parse func(p []byte) (int, Error)) (n int, err Error) {
	var last []byte
	for have, i := 0, 0; ; i++ {
		if have > cap(last) || have < 2<<10 || i%251 == 0 {
			p := append(make([]byte, 0, have+251), in[:have]...)
			for j := range last {
				last[j] = 0xaa
			}
			last = p
		}
		p := append(last, in[len(last):have]...)
		if n, err = parse(p); n > 0 || err != OK || have == len(in) {
			return n, err
		}
		last = p
		step := 1
		if len(cuts) > 0 {
			step = max(1, int(cuts[i%len(cuts)]))
		}
		have = min(len(in), have+step)
	}
}

func feedRequest(in, cuts []byte) (n int, err Error, r *Request) {
	r = new(Request)
	var g Progress
	n, err = feed(in, cuts, func(p []byte) (int, Error) {
		if _, err := r.Parse(noise, new(Progress)); err != OK {
			panic("BUG: noise is refused")
		}
		return r.Parse(p, &g)
	})
	return n, err, r
}

func feedResponse(in, cuts []byte, head bool) (n int, err Error, r *Response) {
	r = new(Response)
	var g Progress
	n, err = feed(in, cuts, func(p []byte) (int, Error) {
		if _, err := r.Parse([]byte("HTTP/1.0 204 x\r\nNoise: noise\r\n\r\n"), new(Progress), !head); err != OK {
			panic("BUG: noise is refused")
		}
		return r.Parse(p, &g, head)
	})
	return n, err, r
}

var requestSeeds = []string{
	chatPost,
	"\r\n\r\nGET http://a:1/b?c HTTP/1.0\r\nConnection: keep-alive\r\n\r\ntail",
	"POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n5;a=\"b\"\r\nhello\r\n0\r\nX: y\r\n\r\nGET",
	"OPTIONS * HTTP/1.1\r\nHost: [::1]:80\r\nConnection: close, x\r\n\r\n",
	"CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n z\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\rX: y\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nX: \x00\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 5\r\nContent-Length: 5\r\n\r\nhello",
	"GET foo HTTP/2.0\r\nHost: a\r\n\r\n",
	"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
}

var responseSeeds = []string{
	"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
	"HTTP/1.1 200\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\nhello",
	"HTTP/1.0 404 \r\n\r\nbody",
	"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n",
	"HTTP/1.1 304 x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
	"HTTP/1.1 200 \x00\r\n\r\n",
	"HTTP/2.0 200 OK\r\n\r\n",
	"ICY 200 OK\r\n\r\n",
}

var cutSeeds = [][]byte{{}, {1}, {2, 1}, {16, 1, 1, 1}, {7}, {100, 1}}

func FuzzRequestSplit(f *testing.F) {
	for _, in := range requestSeeds {
		for _, cuts := range cutSeeds {
			f.Add([]byte(in), cuts)
		}
	}
	f.Fuzz(func(t *testing.T, in, cuts []byte) {
		var whole Request
		n, err := whole.Parse(in, new(Progress))
		splitN, splitErr, split := feedRequest(in, cuts)
		if n != splitN || err != splitErr {
			t.Fatalf("whole: %d, %v; split: %d, %v", n, err, splitN, splitErr)
		}
		if n == 0 {
			return
		}
		want := whole.describe()
		if got := split.describe(); got != want {
			t.Fatalf("whole: %s\nsplit: %s", want, got)
		}
		if n, err := whole.Parse(in[:n-1], new(Progress)); n != 0 || err != OK {
			t.Fatalf("without the last byte: %d, %v", n, err)
		}
		if whole.Chunked && whole.ContentLength >= 0 {
			t.Fatalf("two lengths: %s", want)
		}
	})
}

func FuzzResponseSplit(f *testing.F) {
	for i, in := range responseSeeds {
		for _, cuts := range cutSeeds {
			f.Add([]byte(in), cuts, i%2 == 0)
		}
	}
	f.Fuzz(func(t *testing.T, in, cuts []byte, head bool) {
		var whole Response
		n, err := whole.Parse(in, new(Progress), head)
		splitN, splitErr, split := feedResponse(in, cuts, head)
		if n != splitN || err != splitErr {
			t.Fatalf("whole: %d, %v; split: %d, %v", n, err, splitN, splitErr)
		}
		if n == 0 {
			return
		}
		if got, want := split.describe(), whole.describe(); got != want {
			t.Fatalf("whole: %s\nsplit: %s", want, got)
		}
		if n, err := whole.Parse(in[:n-1], new(Progress), head); n != 0 || err != OK {
			t.Fatalf("without the last byte: %d, %v", n, err)
		}
	})
}

func FuzzChunksSplit(f *testing.F) {
	for _, in := range []string{
		"5\r\nhello\r\n0\r\n\r\ntail", "5;a=\"b\\\"\";c\r\nhello\r\n00\r\nX: y\r\n\r\n", "5\nhello", "ffffffffff\r\nx", "1\r\naX", "0\r\n x",
	} {
		for _, cuts := range cutSeeds {
			f.Add([]byte(in), cuts)
		}
	}
	f.Fuzz(func(t *testing.T, in, cuts []byte) {
		data, n, done, err := decode(in, nil)
		splitData, splitN, splitDone, splitErr := decode(in, append([]byte{0}, cuts...))
		if !bytes.Equal(data, splitData) || n != splitN || done != splitDone || err != splitErr {
			t.Fatalf("whole: %q, %d, %t, %v\nsplit: %q, %d, %t, %v", data, n, done, err, splitData, splitN, splitDone, splitErr)
		}
		if !done && err == OK && n != len(in) {
			t.Fatalf("stopped at %d of %d", n, len(in))
		}
	})
}

// TestSplitGrammar cuts heads and bodies that are put together of sound and
// odd parts, which random bytes seldom reach. A failure prints its seed.
func TestSplitGrammar(t *testing.T) {
	starts := []string{"GET / HTTP/1.1\r\n", "POST /a?b HTTP/1.1\r\n", "POST /a HTTP/1.0\r\n", "\r\nGET http://a/ HTTP/1.1\r\n",
		"GET foo HTTP/1.1\r\n", "GET / HTTP/2.0\r\n", "GET * HTTP/1.3\r\n", "GET  / HTTP/1.1\r\n", "GET /\x00 HTTP/2.0\r\n", "OPTIONS * HTTP/1.1\r\n",
		"HTTP/1.1 200 OK\r\n", "HTTP/1.0 204\r\n", "HTTP/1.1 103 x\r\n", "HTTP/2.0 200 \x00\r\n", "HTTP/1.1 700 x\r\n"}
	lines := []string{"Host: a\r\n", "Host: a\r\n", "Host: a b\r\n", "Content-Length: 5\r\n", "Content-Length: 6\r\n", "Content-Length: x\r\n",
		"Transfer-Encoding: chunked\r\n", "Transfer-Encoding: gzip, chunked\r\n", "Expect: 100-continue\r\n", "Expect: x\r\n",
		"Connection: close\r\n", "Connection: keep-alive, x\r\n", "X: y\r\n", "X: y\tz \xff\r\n", "X:\r\n", "X : y\r\n", " fold\r\n", "X: y\n", "X: y\rz\r\n",
		"X: \x01\r\n", "X\r\n", ": y\r\n", "X: y\r\r\n"}
	chunks := []string{"5\r\nhello\r\n", "1;a=\"b\"\r\nx\r\n", "A\r\n0123456789\r\n", "0\r\n", "0\r\nX: y\r\n", "\r\n", "5 \r\n", "1;a\n", "1\r\nxy", "\r", "X: y\r\n", "fffffffffff\r\n"}
	for seed := range uint64(4000) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		pick := func(from []string) string { return from[rnd.IntN(len(from))] }
		head, body := pick(starts), ""
		for range rnd.IntN(5) {
			head += pick(lines)
		}
		head += "\r\n"
		for range rnd.IntN(6) {
			body += pick(chunks)
		}
		cuts := make([]byte, 1+rnd.IntN(4))
		for i := range cuts {
			cuts[i] = byte(1 + rnd.IntN(12))
		}
		checkSplit(t, seed, []byte(head+body), []byte(body), cuts)
	}
}

// checkSplit reads in as request and as response, and body as chunks, whole
// and cut.
func checkSplit(t *testing.T, seed uint64, in, body, cuts []byte) {
	t.Helper()
	var q Request
	n, err := q.Parse(in, new(Progress))
	splitN, splitErr, splitQ := feedRequest(in, cuts)
	if n != splitN || err != splitErr || n > 0 && q.describe() != splitQ.describe() {
		t.Errorf("seed %d, request %q: %d, %v; split: %d, %v", seed, in, n, err, splitN, splitErr)
	}
	var a Response
	n, err = a.Parse(in, new(Progress), false)
	splitN, splitErr, splitA := feedResponse(in, cuts, false)
	if n != splitN || err != splitErr || n > 0 && a.describe() != splitA.describe() {
		t.Errorf("seed %d, response %q: %d, %v; split: %d, %v", seed, in, n, err, splitN, splitErr)
	}
	data, n, done, err := decode(body, nil)
	splitData, splitN, splitDone, splitErr := decode(body, cuts)
	if !bytes.Equal(data, splitData) || n != splitN || done != splitDone || err != splitErr {
		t.Errorf("seed %d, chunks %q: %q, %d, %v; split: %q, %d, %v", seed, body, data, n, err, splitData, splitN, splitErr)
	}
}
