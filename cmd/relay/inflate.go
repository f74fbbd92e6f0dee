package main

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"sync"
	"time"

	"relay/loop"
)

// Limits of decoding answers that a host encoded without being asked.
const (
	inflatersMax    = 256       // at the same time; an answer past that is a bad answer
	inflatePiece    = 32 << 10  // decoded bytes handed over at once
	inflateReadSize = 4 << 10   // encoded bytes looked at once
	inflateInMax    = 256 << 20 // encoded bytes waiting; the loop pauses its upstream long before
)

// errStopped ends the decoding of an answer that nobody wants any more.
var errStopped = errors.New("stopped")

// inflaters decode answers, each on a goroutine of its own.
type inflaters struct {
	slots chan struct{}
	post  func(index int, m loop.Message) bool
}

func newInflaters(post func(int, loop.Message) bool) *inflaters {
	return &inflaters{slots: make(chan struct{}, inflatersMax), post: post}
}

// start is loop.Ports.Inflate.
func (p *inflaters) start(encoding string, index int, owner any) loop.Inflater {
	select {
	case p.slots <- struct{}{}:
	default:
		return nil // not a nil *inflater: the loop compares with nil
	}
	f := &inflater{owner: owner, wanted: true, post: func(m loop.Message) bool { return p.post(index, m) }}
	f.moved.L = &f.mu
	go func() {
		defer func() { <-p.slots }()
		f.run(encoding)
	}()
	return f
}

// An inflater decodes one answer. The loop writes and asks; the goroutine of
// run decodes and posts. They meet under mu.
type inflater struct {
	owner any
	post  func(loop.Message) bool

	mu      sync.Mutex
	moved   sync.Cond // in, ended, stopped or wanted has changed
	in      []byte    // encoded, not read yet
	took    int       // read since the last piece
	ended   bool
	stopped bool
	wanted  bool // the loop takes a piece
}

// Write implements loop.Inflater.
func (f *inflater) Write(p []byte) {
	f.change(func() {
		if len(f.in)+len(p) > inflateInMax {
			panic("BUG: the loop does not pause for its inflater")
		}
		f.in = append(f.in, p...)
	})
}

// End implements loop.Inflater.
func (f *inflater) End() { f.change(func() { f.ended = true }) }

// Next implements loop.Inflater.
func (f *inflater) Next() { f.change(func() { f.wanted = true }) }

// Stop implements loop.Inflater.
func (f *inflater) Stop() { f.change(func() { f.stopped = true }) }

func (f *inflater) change(do func()) {
	f.mu.Lock()
	do()
	f.mu.Unlock()
	f.moved.Signal()
}

// Read is what the decoder reads: it waits for bytes.
func (f *inflater) Read(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.in) == 0 && !f.ended && !f.stopped {
		f.moved.Wait()
	}
	switch {
	case f.stopped:
		return 0, errStopped
	case len(f.in) == 0:
		return 0, io.EOF
	}
	n := copy(p, f.in)
	f.in = f.in[:copy(f.in, f.in[n:])]
	f.took += n
	return n, nil
}

// run decodes until the end, a broken encoding, or Stop.
func (f *inflater) run(encoding string) {
	plain, err := decoder(encoding, bufio.NewReaderSize(f, inflateReadSize))
	if errors.Is(err, io.EOF) { // nothing at all is not an encoding of nothing
		err = io.ErrUnexpectedEOF
	}
	buffer := make([]byte, inflatePiece)
	for err == nil {
		var n int
		n, err = plain.Read(buffer)
		if n > 0 && !f.hand(&loop.Inflated{Data: append([]byte(nil), buffer[:n]...)}) {
			return
		}
	}
	f.hand(&loop.Inflated{Done: errors.Is(err, io.EOF), Bad: !errors.Is(err, io.EOF)})
}

// decoder makes the decoder of an encoding. By RFC 9110 §8.4.1.2 deflate is
// the zlib format, but some servers send it bare: the first two bytes tell.
func decoder(encoding string, in *bufio.Reader) (io.Reader, error) {
	if encoding != "deflate" {
		return gzip.NewReader(in)
	}
	head, err := in.Peek(2)
	if err != nil {
		return nil, io.ErrUnexpectedEOF
	}
	if head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0 {
		return zlib.NewReader(in)
	}
	return flate.NewReader(in), nil
}

// hand posts a piece once the loop wants one. It reports false when the answer
// is not wanted any more.
func (f *inflater) hand(m *loop.Inflated) bool {
	f.mu.Lock()
	for !f.wanted && !f.stopped {
		f.moved.Wait()
	}
	stopped := f.stopped
	f.wanted = false
	m.Owner, m.By, m.Took = f.owner, f, f.took
	f.took = 0
	f.mu.Unlock()
	for !stopped && !f.post(m) {
		time.Sleep(tellPause)
		f.mu.Lock()
		stopped = f.stopped
		f.mu.Unlock()
	}
	return !stopped
}
