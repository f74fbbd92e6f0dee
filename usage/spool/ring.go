package spool

import "sync/atomic"

// A ring keeps the newest bytes of a stream, so that those not yet synced can
// be written again. The loop pushes; the syncing goroutine reads bytes between
// the synced position and to. The two never meet: push does not overwrite a
// byte above the synced position.
type ring struct {
	bytes []byte       // position p is at p % ringBytes
	from  atomic.Int64 //loop:allow read by the syncing goroutine
	to    atomic.Int64 //loop:allow read by the syncing goroutine
}

// start empties the ring at a position.
func (r *ring) start(position int64) {
	r.from.Store(position) // first: a reader sees an empty range, never a wrong one
	r.to.Store(position)
}

// push adds the bytes at a position. When they do not fit before the next
// sync the ring stays behind, until everything before position is safe.
func (r *ring) push(position int64, b []byte, synced int64) {
	if r.to.Load() != position {
		if synced < position {
			return
		}
		r.start(position)
	}
	end := position + int64(len(b))
	if end-synced > ringBytes {
		return
	}
	n := copy(r.bytes[position%ringBytes:], b)
	copy(r.bytes, b[n:])
	r.to.Store(end)
}

// holds reports whether the ring has the bytes between two positions.
func (r *ring) holds(from, to int64) bool {
	held := r.to.Load() // before from, see start
	return r.from.Load() <= from && held >= to
}

// spans returns the bytes between two positions that the ring holds, in two
// parts where they wrap around. They are borrowed until the next push.
func (r *ring) spans(from, to int64) (first, second []byte) {
	if from == to {
		return nil, nil
	}
	start, end := from%ringBytes, (to-1)%ringBytes+1
	if start < end {
		return r.bytes[start:end], nil
	}
	return r.bytes[start:], r.bytes[:end]
}
