package baseline

import (
	"io"
	"sync"
	"sync/atomic"

	"relay/upstream/wire"
)

// A body is a request body and what changes in it on its way out. Transports
// may read it after the answer has begun, so it is counted who holds it, and
// the last one gives it back.
type body struct {
	core    *core
	bytes   []byte // as the caller sent it
	edits   []wire.Edit
	texts   []byte // of the edits
	length  int    // with the edits
	holders atomic.Int32
}

// body lends a body with one holder.
func (c *core) body() *body {
	b := c.bodies.Get().(*body)
	b.bytes, b.edits, b.texts, b.length = b.bytes[:0], b.edits[:0], b.texts[:0], 0
	b.holders.Store(1)
	return b
}

// drop is called once by each holder.
func (b *body) drop() {
	if b.holders.Add(-1) > 0 {
		return
	}
	if cap(b.bytes) > keptBytesMax {
		b.bytes = nil
	}
	b.core.bodies.Put(b)
}

// read reads a body of an announced length, or of one that is not known (-1),
// and reports whether it fits. What it announces alone reserves no more memory
// than a buffer that is kept.
func (b *body) read(r io.Reader, announced, most int64) (fits bool, err error) {
	want := int64(2 << 10)
	if announced >= 0 {
		want = min(announced+1, keptBytesMax) // one more, or the end would be met with no room to read it
	}
	if int64(cap(b.bytes)) < want {
		b.bytes = make([]byte, 0, want)
	}
	for {
		if len(b.bytes) == cap(b.bytes) {
			b.bytes = append(b.bytes, 0)[:len(b.bytes)]
		}
		n, err := r.Read(b.bytes[len(b.bytes):cap(b.bytes)])
		b.bytes = b.bytes[:len(b.bytes)+n]
		switch {
		case int64(len(b.bytes)) > most:
			return false, nil
		case err == io.EOF:
			return true, nil
		case err != nil:
			return true, err
		}
	}
}

// outgoing reads a body with its edits. It is a holder until it is closed.
// A transport that gives a request up closes its body on one goroutine while
// another one may read: hence the lock.
type outgoing struct {
	mu     sync.Mutex
	body   *body
	at     int // in body.bytes
	edit   int // next edit
	text   int // bytes of its text that were read
	closed bool
}

// reader reads b from its start.
func (b *body) reader() *outgoing {
	b.holders.Add(1)
	return &outgoing{body: b}
}

// Read reads what comes next: what is kept of the body, or an edit's text.
func (o *outgoing) Read(p []byte) (n int, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return 0, io.ErrClosedPipe
	}
	b := o.body
	for n < len(p) {
		to := len(b.bytes)
		if o.edit < len(b.edits) {
			to = b.edits[o.edit].Off
		}
		if o.at < to {
			m := copy(p[n:], b.bytes[o.at:to])
			o.at, n = o.at+m, n+m
			continue
		}
		if o.edit == len(b.edits) {
			break
		}
		e := &b.edits[o.edit]
		m := copy(p[n:], e.Text[o.text:])
		o.text, n = o.text+m, n+m
		if o.text == len(e.Text) {
			o.at, o.text, o.edit = e.End, 0, o.edit+1
		}
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// Close may be called more than once, and by any goroutine.
func (o *outgoing) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed {
		o.closed = true
		o.body.drop()
	}
	return nil
}
