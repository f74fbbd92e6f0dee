package loop

import (
	"relay/upstream"
)

// An Inflater decodes one answer that its host encoded without being asked.
// It works off the loop, since decoding takes long, and hands at most one
// piece at a time back by the mailbox. Owner: the exchange's answer.
type Inflater interface {
	// Write takes a copy of encoded bytes. It does not block.
	Write(p []byte)
	// End tells that no more bytes come.
	End()
	// Next asks for the next piece: the last one was taken.
	Next()
	// Stop gives the work up. Nothing is handed back afterwards, but for what
	// is in the mailbox already.
	Stop()
}

// An Inflated is a Message: a piece of a decoded answer, or its end.
type Inflated struct {
	Owner any      // as given to Ports.Inflate
	By    Inflater // the inflater that made it
	Took  int      // encoded bytes used up since the last piece
	Data  []byte   // decoded; the loop's from delivery
	Done  bool     // the answer ended in good order behind Data
	Bad   bool     // the encoding is broken
}

// Deliver gives the piece to the answer that waits for it, if it still does.
func (m *Inflated) Deliver(l *Loop) {
	x := m.Owner.(*exchange)
	a := &x.answer
	if a.inflater != m.By || m.By == nil {
		return
	}
	l.suspect = x
	a.encoded -= m.Took
	l.buffers.used -= int64(m.Took)
	switch {
	case m.Bad:
		x.fail(upstream.BadAnswer)
	case m.Done:
		a.inflater = nil
		if len(m.Data) > 0 {
			a.takePlain(x, m.Data, false)
		}
		if x.state < over {
			a.finishPlain(x)
		}
	default:
		a.takePlain(x, m.Data, false)
		if a.inflater != m.By {
			return
		}
		if a.nextOwed = x.stalled; !a.nextOwed {
			m.By.Next()
		}
		x.resumeUpstream()
	}
}

// inflate starts decoding. It reports false when the encoding is unknown or
// there is no inflater left; the attempt has failed then.
func (a *answer) inflate(x *exchange, encoding []byte) bool {
	known := ""
	for _, name := range [...]string{"gzip", "x-gzip", "deflate"} {
		if hasPrefixFold(encoding, name) && len(encoding) == len(name) {
			known = name
		}
	}
	if known != "" && x.loop.ports.Inflate != nil {
		a.inflater = x.loop.ports.Inflate(known, x.loop.config.Index, x)
	}
	if a.inflater == nil {
		x.fail(upstream.BadAnswer)
		return false
	}
	a.decoded = true
	a.announced = -1 // the length was that of the encoded bytes
	return true
}

// pauseForInflater stops reading from the upstream while too much waits to be
// decoded.
func (x *exchange) pauseForInflater() {
	u := x.attempt.conn
	if u == nil || u.paused || x.answer.encoded <= outHigh {
		return
	}
	u.paused = true
	u.socket.PauseRead(false)
}
