package main

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"math/rand/v2"
	"testing"

	"relay/loop"
)

// encode makes an encoded text.
func encode(t *testing.T, encoding string, text []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	switch encoding {
	case "gzip":
		w = gzip.NewWriter(&b)
	case "zlib":
		w = zlib.NewWriter(&b)
	case "bare":
		bare, err := flate.NewWriter(&b, flate.DefaultCompression)
		if err != nil {
			t.Fatal(err)
		}
		w = bare
	}
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// collect takes pieces as a loop does until the last one.
func collect(f loop.Inflater, pieces <-chan *loop.Inflated) (plain []byte, took int, last *loop.Inflated) {
	for m := range pieces {
		took += m.Took
		if m.Done || m.Bad {
			return plain, took, m
		}
		plain = append(plain, m.Data...)
		f.Next()
	}
	return plain, took, nil
}

func TestInflate(t *testing.T) {
	text := bytes.Repeat([]byte("data: {\"x\":1}\n\n"), 20000)
	random := rand.New(rand.NewPCG(1, 2))
	for _, tt := range []struct{ name, form, encoding string }{
		{"gzip", "gzip", "gzip"}, {"x-gzip", "gzip", "x-gzip"},
		{"deflate as zlib", "zlib", "deflate"}, {"deflate bare", "bare", "deflate"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pieces := make(chan *loop.Inflated, 1) // one piece at a time: never more
			pool := newInflaters(func(_ int, m loop.Message) bool {
				select {
				case pieces <- m.(*loop.Inflated):
					return true
				default:
					t.Error("a second piece before the first was taken")
					return false
				}
			})
			owner := new(int)
			f := pool.start(tt.encoding, 0, owner)
			encoded := encode(t, tt.form, text)
			for rest := encoded; len(rest) > 0; {
				n := min(len(rest), 1+random.IntN(700))
				f.Write(rest[:n])
				rest = rest[n:]
			}
			f.End()
			plain, took, last := collect(f, pieces)
			if !last.Done || !bytes.Equal(plain, text) {
				t.Errorf("%d bytes, last %+v; want %d", len(plain), last, len(text))
			}
			if took != len(encoded) || last.Owner != owner || last.By != f {
				t.Errorf("took %d of %d, owner %v, by %v", took, len(encoded), last.Owner, last.By)
			}
		})
	}
}

func TestInflateBroken(t *testing.T) {
	whole := encode(t, "gzip", bytes.Repeat([]byte("abc"), 1000))
	wrong := bytes.Clone(whole)
	wrong[len(wrong)-6] ^= 1 // checksum
	for name, in := range map[string][]byte{
		"cut": whole[:len(whole)/2], "cut in the head": whole[:5], "empty": nil, "not gzip": []byte("hello, world"), "checksum": wrong,
	} {
		t.Run(name, func(t *testing.T) {
			pieces := make(chan *loop.Inflated, 1)
			f := newInflaters(func(_ int, m loop.Message) bool { pieces <- m.(*loop.Inflated); return true }).start("gzip", 0, t)
			f.Write(in)
			f.End()
			if _, _, last := collect(f, pieces); !last.Bad || last.Done {
				t.Errorf("last is %+v", last)
			}
		})
	}
}

func TestInflatersAreBoundedAndStop(t *testing.T) {
	pool := newInflaters(func(int, loop.Message) bool {
		t.Error("a stopped inflater posts")
		return true
	})
	var running []loop.Inflater
	for range inflatersMax {
		running = append(running, pool.start("gzip", 0, t))
	}
	if pool.start("gzip", 0, t) != nil {
		t.Error("one more than the limit starts")
	}
	for _, f := range running {
		f.Stop()
	}
	for range inflatersMax { // all slots come back
		pool.slots <- struct{}{}
	}
}
