package upstream

import "relay/upstream/wire"

// Evidence is what is known about an attempt when it fails. Owner: the
// exchange.
type Evidence struct {
	Reused   bool  // the connection had carried an exchange before
	Sent     bool  // bytes of the request were handed to the connection
	Answered bool  // bytes of an answer have come
	Reached  bool  // the host's kernel took bytes of the request: its program may have read them
	Begun    bool  // the caller has the head of an answer
	WaitedNs int64 // from the last byte sent to the failure
}

// stale reports whether the connection was dead already when the request was
// put on it, as far as one can tell.
func (e *Evidence) stale() bool {
	return e.Reused && !e.Answered && !e.Reached && !e.Begun && e.WaitedNs <= StaleReuseNsMax
}

// Lost is the fault of a connection that ended (EOF, reset or a failed write)
// before the answer was whole.
func Lost(e Evidence) Fault {
	switch {
	case e.Answered || e.Begun:
		return Truncated
	case e.stale():
		return StaleReuse
	case !e.Sent:
		return Refused
	}
	return ResetAfterSend
}

// A Verdict is what follows from a failed attempt.
type Verdict struct {
	Again Again
	Error wire.Error // for the caller when no further attempt is made; NoError = nobody is there
	Cut   bool       // Error is told inside the answer that has begun
	// Pass says that a caller of the same shape gets the host's own answer
	// instead of Error, if its body is one of the shape.
	Pass bool
}

// Next decides what follows from a failed attempt, f ≠ NoFault. attempts is how
// many were made with it, not counting those that ended with CredentialRefused:
// the pool is walked for a credential that is good, and Pick bounds the walk.
//
// Once the caller has a part of an answer there is no other attempt. When Again
// is Elsewhere and Pick finds nothing, the rest of the verdict stands.
func Next(f Fault, e Evidence, attempts int) Verdict {
	if f == StaleReuse && !e.stale() {
		f = ResetAfterSend // the host may have worked, whoever says otherwise
	}
	row := &faults[f]
	if e.Begun {
		return Verdict{Error: row.cut, Cut: true}
	}
	v := Verdict{Again: row.again, Error: row.open, Pass: row.pass}
	if attempts >= AttemptsMax && f != CredentialRefused {
		v.Again = Never
	}
	return v
}
