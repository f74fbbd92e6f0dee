package wire

import "bytes"

// lineState is where in a line of an event stream the next byte lies.
type lineState uint8

const (
	lineStart lineState = iota // no byte of the line has come
	lineName                   // inside what may be the name "data" or "event"
	linePayload
	lineEvent
	lineOther // a comment, an unknown field, or junk: passed on unread
)

// The names of the fields that are read, with their colon.
const (
	payloadName = "data:"
	eventField  = "event:"
)

// doneMark is the data of the last event of OpenAI streams, at its start.
const doneMark = "[DONE]"

const (
	doneNever   = 255 // the data of the event is something else
	eventKept   = 32  // bytes of an event name that are kept
	eventTooBig = eventKept + 1
)

// lines follows the lines of an event stream (HTML §9.2.6), cut at any byte,
// and hands the data of the event to a reader. Lines end in LF, CRLF or CR.
//
// Owner: one Stream.
type lines struct {
	read     reader
	memo     memo
	size     int64 // bytes of the event so far; without an LF behind its last CR
	payloads int32 // data lines of the event
	state    lineState
	match    uint8 // lineName: bytes of the name that agree
	field    lineState
	done     uint8 // bytes of doneMark that the data agrees with, or doneNever
	name     [eventKept]byte
	nameN    uint8
	begun    bool // bytes of data have come
	cr       bool // the last byte was a CR: an LF now belongs to it
}

// ends finds line ends in one slice, which may have any of the three kinds
// and none for long: each kind is looked for from where it was last found.
type ends struct{ lf, cr int }

func (e *ends) next(p []byte, i int) int {
	if e.lf < i {
		e.lf = indexFrom(p, i, '\n')
	}
	if e.cr < i {
		e.cr = indexFrom(p, i, '\r')
	}
	return min(e.lf, e.cr)
}

func indexFrom(p []byte, i int, c byte) int {
	if n := bytes.IndexByte(p[i:], c); n >= 0 {
		return i + n
	}
	return len(p)
}

// begin makes l ready for the next event.
func (l *lines) begin() {
	l.read.reset()
	l.size, l.payloads, l.state, l.done, l.nameN, l.begun = 0, 0, lineStart, 0, 0, false
}

// next reads p from i to the end of the event, and returns the offset behind
// its blank line. ended is false when p ended first.
func (l *lines) next(p []byte, i int, e *ends) (end int, ended bool) {
	origin := l.size - int64(i) // offset in the event of p[0]
	for i < len(p) {
		if l.cr {
			l.cr = false
			if p[i] == '\n' {
				i++
				continue
			}
		}
		stop := e.next(p, i)
		if i < stop {
			l.line(p[:stop], i, origin)
		}
		if i = stop; i == len(p) {
			break
		}
		blank := l.state == lineStart
		l.cr = p[i] == '\r'
		i++
		if blank {
			l.size = origin + int64(i)
			return i, true
		}
		l.endLine()
	}
	l.size = origin + int64(i)
	return i, false
}

// line takes more of one line: p[i:], which is not empty and has no line end.
func (l *lines) line(p []byte, i int, origin int64) {
	if l.state == lineStart {
		switch {
		case len(p)-i >= len(payloadName) && string(p[i:i+len(payloadName)]) == payloadName:
			l.beginPayload()
			i += len(payloadName)
		case p[i] == 'd' || p[i] == 'e':
			l.state, l.match = lineName, 0
			l.field = linePayload
			if p[i] == 'e' {
				l.field = lineEvent
			}
		default:
			l.state = lineOther
		}
	}
	for ; l.state == lineName && i < len(p); i++ {
		l.matchName(p[i])
	}
	switch l.state {
	case linePayload:
		if i < len(p) {
			l.takePayload(p, i, origin)
		}
	case lineEvent:
		l.takeName(p[i:])
	}
}

func (l *lines) matchName(c byte) {
	want := payloadName
	if l.field == lineEvent {
		want = eventField
	}
	if c != want[l.match] {
		l.state = lineOther
		return
	}
	if l.match++; int(l.match) < len(want) {
		return
	}
	if l.field == linePayload {
		l.beginPayload()
		return
	}
	l.state, l.nameN = lineEvent, 0
}

// newline joins the data lines of one event.
var newline = []byte{'\n'}

func (l *lines) beginPayload() {
	if l.payloads > 0 {
		l.read.read(newline, 0, l.size, nil)
		l.done = doneNever
	}
	l.payloads++
	l.state = linePayload
}

func (l *lines) takePayload(p []byte, i int, origin int64) {
	if l.done != doneNever {
		for k := i; k < len(p) && l.done < uint8(len(doneMark)) && l.done != doneNever; k++ {
			switch {
			case p[k] == doneMark[l.done]:
				l.done++
			case p[k] != ' ' || l.done > 0:
				l.done = doneNever
			}
		}
	}
	if l.payloads == 1 && !l.begun {
		i = l.memo.recall(&l.read, p, i, origin+int64(i))
	}
	l.begun = true
	l.read.read(p, i, origin, &l.memo)
}

// takeName keeps the start of the event's name, without blanks.
func (l *lines) takeName(p []byte) {
	for _, c := range p {
		if l.nameN == 0 && c == ' ' {
			continue
		}
		if l.nameN == eventKept {
			l.nameN = eventTooBig
		}
		if l.nameN == eventTooBig {
			return
		}
		l.name[l.nameN] = c
		l.nameN++
	}
}

// endLine takes the end of a line that is not blank. A name without a colon is
// a field with an empty value.
func (l *lines) endLine() {
	if l.state == lineName {
		switch {
		case l.field == linePayload && int(l.match) == len(payloadName)-1:
			l.beginPayload()
		case l.field == lineEvent && int(l.match) == len(eventField)-1:
			l.nameN = 0
		}
	}
	l.state = lineStart
}

// isDone reports whether the event is OpenAI's last one.
func (l *lines) isDone() bool { return int(l.done) == len(doneMark) }

// eventName is the value of the last event line, nil when it is too long.
func (l *lines) eventName() []byte {
	if l.nameN > eventKept {
		return nil
	}
	return l.name[:l.nameN]
}
