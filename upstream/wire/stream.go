package wire

// A Stream watches one streamed answer (SSE) on its way to a caller of the
// same shape: it passes whole events on byte for byte, reads usage in passing,
// and, when told, leaves out the usage that the caller did not ask for.
//
// An event is held until its blank line has come, up to HeldBytesMax; longer
// ones are passed on in pieces, and never changed. So AtBoundary is nearly always true, and a
// comment or an error frame never lands inside an event. A BOM is dropped: a
// keep-alive may have gone out before it.
//
// What goes out does not depend on how the answer was cut into reads. Owner:
// one attempt. Ready after Reset, which may be repeated. What was passed on is
// in Events and OutputBytes once its event has ended.
type Stream struct {
	Usage       Usage
	Events      int64 // events passed on; comments are none
	OutputBytes int64 // bytes of generated text seen, for an estimate
	Done        bool  // the terminal event came: [DONE], message_stop, response.completed...
	Finished    bool  // a finish_reason or stop_reason came: EOF now is complete
	Failed      bool  // the upstream sent an error event, which was passed on

	lines   lines
	tally   tally
	held    []byte // the event so far, unless it is passing
	route   RouteID
	mark    uint8 // bytes of a BOM seen, see skipMark
	strip   bool
	passing bool // the caller has the first part of the event
	dropped bool // the last event was left out: so is an LF behind its CR
	opened  bool // message_start was passed on
}

// Reset makes s ready. strip says that Relay injected include_usage.
func (s *Stream) Reset(id RouteID, strip bool) {
	*s = Stream{held: s.held[:0], route: id, strip: strip && (id == ChatCompletions || id == Completions)}
	s.lines.read.setRoute(id, true)
}

// Feed takes the next bytes of the body and appends to dst what is to be
// passed on. p is borrowed.
func (s *Stream) Feed(dst, p []byte) []byte {
	if s.mark != markPast {
		skip, undone := skipMark(&s.mark, p)
		if undone > 0 {
			dst = s.feed(dst, []byte(byteOrderMark[:undone]))
		}
		p = p[skip:]
	}
	return s.feed(dst, p)
}

// feed looks at p once. p[from:begin] are whole events that are to be copied,
// p[begin:i] is the event being read, whose earlier bytes are in held.
func (s *Stream) feed(dst, p []byte) []byte {
	from, begin := 0, 0
	if s.lines.size == 0 && s.lines.cr && len(p) > 0 {
		s.lines.cr = false
		if p[0] == '\n' { // the rest of a CRLF that ended the last event
			begin = 1
			if s.dropped {
				from = 1
			}
		}
	}
	found := ends{-1, -1}
	for begin < len(p) {
		i, ended := s.lines.next(p, begin, &found)
		if !ended {
			break
		}
		verdict := s.closeEvent()
		end := i
		if s.lines.cr && i < len(p) { // see what follows before the next event does
			s.lines.cr = false
			if p[i] == '\n' {
				end++
			}
		}
		if verdict == eventPass {
			dst = s.release(dst)
		} else {
			dst = append(dst, p[from:begin]...)
			if verdict == eventCut {
				dst = s.appendCut(dst, p[begin:end])
			}
			s.letGo()
			from = end
		}
		s.dropped = verdict == eventDrop
		s.passing = false
		s.lines.begin()
		begin = end
	}
	dst = append(dst, p[from:begin]...)
	return s.hold(dst, p[begin:])
}

// hold keeps the start of an event, or passes it on once it is too long.
func (s *Stream) hold(dst, p []byte) []byte {
	if !s.passing && len(s.held)+len(p) > HeldBytesMax {
		s.passing = true
		dst = s.release(dst)
	}
	if s.passing {
		return append(dst, p...)
	}
	s.held = append(s.held, p...)
	return dst
}

// release appends what is held.
func (s *Stream) release(dst []byte) []byte {
	dst = append(dst, s.held...)
	s.letGo()
	return dst
}

func (s *Stream) letGo() {
	if cap(s.held) > heldKeepBytes {
		s.held = nil
	}
	s.held = s.held[:0]
}

// eventVerdict is what becomes of an event.
type eventVerdict uint8

const (
	eventPass eventVerdict = iota
	eventDrop
	eventCut // pass it on without its usage member
)

// closeEvent takes in what the event said, and decides what becomes of it.
func (s *Stream) closeEvent() eventVerdict {
	l, r := &s.lines, &s.lines.read
	if l.payloads == 0 {
		return eventPass
	}
	s.Events++
	if l.isDone() {
		s.Done = true
		return eventPass
	}
	if l.nameN > 0 && string(l.eventName()) == "error" {
		s.Failed = true
	}
	if !r.ended() {
		return eventPass
	}
	s.OutputBytes += r.text
	s.Finished = s.Finished || r.finished
	s.Failed = s.Failed || r.failed
	switch r.kind {
	case kindStart:
		s.opened = true
	case kindLast:
		s.Done, s.Finished = true, true
	case kindPartial:
		s.Finished = true
	case kindFailure:
		s.Failed = true
	case kindFailed:
		s.Done, s.Finished, s.Failed = true, true, true
	}
	if r.counts.seen != 0 || r.rows.Reported {
		s.Usage = s.tally.take(r)
	}
	if !s.strip || !r.usage || s.passing || l.size > HeldBytesMax {
		return eventPass
	}
	if !r.choices && !r.keeper {
		s.Events--
		return eventDrop
	}
	return eventCut
}

// appendCut appends the event, whose last bytes are p, without its usage.
func (s *Stream) appendCut(dst, p []byte) []byte {
	if len(s.held) > 0 {
		s.held = append(s.held, p...)
		p = s.held
	}
	dst = append(dst, p[:s.lines.read.cutOff]...)
	return append(dst, p[s.lines.read.cutEnd:]...)
}

// End tells that the upstream body ended cleanly. It appends what is still
// held if the stream is complete, and reports whether it is; a held rest of an
// incomplete stream is dropped. A last event without its blank line counts,
// and gets one. A message_stop that is missing behind a stop_reason is added. A
// stream that told of a failure may be complete all the same: Failed says so.
func (s *Stream) End(dst []byte) (out []byte, complete bool) {
	text, events := s.OutputBytes, s.Events
	verdict, half := eventDrop, false
	if s.lines.size > 0 {
		s.lines.endLine()
		if s.lines.payloads > 0 && (s.lines.isDone() || s.lines.read.ended()) {
			verdict = s.closeEvent()
		} else {
			half = s.passing
		}
	}
	complete = !half && (s.Done || s.Finished || s.media() && s.Events > 0)
	if !complete {
		s.OutputBytes, s.Events = text, events
		s.letGo()
		return dst, false
	}
	switch verdict {
	case eventPass:
		dst = append(s.release(dst), "\n\n"...)
	case eventCut:
		dst = append(s.appendCut(dst, nil), "\n\n"...)
	}
	s.letGo()
	s.passing = false
	s.lines.begin()
	if s.route == Messages && !s.Done && !s.Failed {
		dst = append(dst, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"...)
		s.Done = true
	}
	return dst, true
}

// media reports whether the answer is one without a terminal event that all
// hosts send.
func (s *Stream) media() bool { return s.route == Images || s.route == Audio }

// AtBoundary reports whether the caller has got whole events only.
func (s *Stream) AtBoundary() bool { return !s.passing }

// Held is how many bytes s keeps, for the byte budget.
func (s *Stream) Held() int { return cap(s.held) }

// AppendKeepAlive appends what keeps a silent stream alive in the shape:
// a comment line for OpenAI, a ping event for Anthropic once message_start has
// passed (a comment before). Call it only at a boundary.
func (s *Stream) AppendKeepAlive(dst []byte) []byte {
	if s.passing {
		panic("BUG: keep-alive inside an event")
	}
	if s.opened {
		return append(dst, "event: ping\ndata: {\"type\":\"ping\"}\n\n"...)
	}
	return append(dst, ": keep-alive\n\n"...)
}

// AppendFailure appends the error frame that ends a broken stream (no [DONE],
// no message_stop). If the caller has half an event, that is closed first. When
// the upstream's own error was passed on, the caller knows, and gets no second
// one.
func (s *Stream) AppendFailure(dst []byte, e Error, requestID []byte) []byte {
	if s.passing {
		dst = append(dst, "\n\n"...) // right behind a CR, too
		s.passing = false
	}
	s.letGo()
	if s.Failed {
		return dst
	}
	if s.route.shape() == Anthropic {
		dst = append(dst, "event: error\n"...)
	}
	dst = append(dst, "data: "...)
	dst = AppendError(dst, s.route.shape(), e, "", "", requestID)
	return append(dst, "\n\n"...)
}
