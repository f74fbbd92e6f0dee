package mockhost

import (
	"bytes"
	"compress/gzip"
	"runtime"
	"strconv"
	"time"
)

// A feed frames the events of one stream: what the scenario does to their
// text, then gzip, then chunks.
type feed struct {
	conn    *conn
	sc      *scenario
	plain   bool // nothing to do but to chunk
	chunked bool
	begun   bool
	sent    int // body bytes so far
	zip     *gzip.Writer
	zipped  bytes.Buffer
}

func (c *conn) newFeed() *feed {
	sc := c.reply.sc
	f := &feed{conn: c, sc: sc, chunked: !sc.closeDelimited && !c.req.http10}
	f.plain = f.chunked && !(sc.gzip || sc.crlf || sc.cr || sc.noSpace || sc.comments || sc.bom || sc.drip || sc.chunkExtension || sc.split >= 0)
	if sc.gzip {
		f.zip = gzip.NewWriter(&f.zipped)
	}
	return f
}

// send takes frames to the connection's out buffer, or to the socket when the
// scenario is about single writes.
func (f *feed) send(frames []byte) bool {
	if f.plain {
		f.conn.out = appendChunkOf(f.conn.out, frames, "")
		return true
	}
	frames = f.rewrite(frames)
	if f.zip != nil {
		f.zip.Write(frames)
		f.zip.Flush()
		frames = append([]byte(nil), f.zipped.Bytes()...)
		f.zipped.Reset()
	}
	return f.deliver(frames)
}

// rewrite changes the framing of events. No content byte is a line end, so
// replacing line ends is safe.
func (f *feed) rewrite(frames []byte) []byte {
	frames = bytes.Clone(frames)
	if f.sc.noSpace {
		for _, name := range []string{"data:", "event:"} {
			frames = bytes.ReplaceAll(frames, []byte("\n"+name+" "), []byte("\n"+name))
			if bytes.HasPrefix(frames, []byte(name+" ")) {
				frames = append([]byte(name), frames[len(name)+1:]...)
			}
		}
	}
	if f.sc.comments {
		mark := ":\n\n"
		if !f.begun {
			mark = ": MOCK PROCESSING\n\n"
		}
		frames = append([]byte(mark), frames...)
	}
	switch {
	case f.sc.crlf:
		frames = bytes.ReplaceAll(frames, []byte("\n"), crlf)
	case f.sc.cr:
		frames = bytes.ReplaceAll(frames, []byte("\n"), []byte("\r"))
	}
	if f.sc.bom && !f.begun {
		frames = append([]byte("\xEF\xBB\xBF"), frames...)
	}
	f.begun = true
	return frames
}

// deliver chunks and writes body bytes.
func (f *feed) deliver(b []byte) bool {
	c := f.conn
	defer func() { f.sent += len(b) }()
	if at := f.sc.split - f.sent; f.sc.split >= 0 && at > 0 && at < len(b) {
		c.out = f.frame(c.out, b[:at])
		if !c.flush() || !f.rest() {
			return false
		}
		c.out = f.frame(c.out, b[at:])
		return c.flush()
	}
	if !f.sc.drip {
		c.out = f.frame(c.out, b)
		return true
	}
	if !c.flush() {
		return false
	}
	for i := range b {
		c.out = f.frame(c.out, b[i:i+1])
		for k := range c.out {
			if !c.write(c.out[k:k+1]) || !f.rest() {
				return false
			}
		}
		c.out = c.out[:0]
	}
	return true
}

// rest is the pause between two writes that the peer should see apart.
func (f *feed) rest() bool {
	if f.sc.pause == 0 {
		runtime.Gosched()
		return true
	}
	return f.conn.waitUntil(time.Now().Add(f.sc.pause))
}

func (f *feed) frame(dst, b []byte) []byte {
	if len(b) == 0 {
		return dst
	}
	if !f.chunked {
		return append(dst, b...)
	}
	extension := ""
	if f.sc.chunkExtension {
		extension = `;mock="a b"`
	}
	return appendChunkOf(dst, b, extension)
}

func appendChunkOf(dst, payload []byte, extension string) []byte {
	dst = strconv.AppendUint(dst, uint64(len(payload)), 16)
	dst = append(append(append(dst, extension...), crlf...), payload...)
	return append(dst, crlf...)
}

// end finishes the body.
func (f *feed) end() bool {
	if f.zip != nil {
		f.zip.Close()
		if !f.deliver(append([]byte(nil), f.zipped.Bytes()...)) {
			return false
		}
	}
	if f.chunked {
		f.conn.out = append(f.conn.out, "0\r\n"...)
		if f.sc.trailers {
			f.conn.out = append(f.conn.out, "x-mock-trailer: a\r\nauthorization: Bearer trailer\r\n"...)
		}
		f.conn.out = append(f.conn.out, crlf...)
	}
	return f.conn.flush()
}

// stream answers with events.
func (c *conn) stream(s shape, started time.Time) bool {
	t := &c.server.tally
	t.streams.Add(1)
	t.openStreams.Add(1)
	defer t.openStreams.Add(-1)
	r, sc, v := &c.reply, c.reply.sc, &voices[c.reply.endpoint]
	f := c.newFeed()
	first := started.Add(sc.delay())
	opening := first
	if sc.opening >= 0 && sc.opening < sc.first {
		opening = started.Add(sc.opening)
	}
	if !c.waitUntil(opening) {
		return false
	}
	c.out = c.appendHead(c.out[:0], s, 200, "text/event-stream; charset=utf-8", chunkedLength, started)
	if sc.emptyBody {
		return f.end() && !c.req.close
	}
	if sc.errorFrame == 0 {
		return f.send(errorEvent(r.endpoint)) && f.end() && !c.req.close
	}
	if c.scratch = v.open(c.scratch[:0], r); len(c.scratch) > 0 && !f.send(c.scratch) {
		return false
	}
	if r.patterned() {
		return c.streamPattern(f)
	}
	if !c.streamPieces(f, first) {
		return false
	}
	c.scratch = v.end(c.scratch[:0], r)
	if !sc.noDone {
		c.scratch = v.done(c.scratch, r)
	}
	if !f.send(c.scratch) || !f.end() {
		return false
	}
	t.streamsWhole.Add(1)
	return !c.req.close
}

// streamPieces sends the content events, each at its time, and strikes where
// the scenario says. It returns false when the stream has ended badly.
func (c *conn) streamPieces(f *feed, first time.Time) bool {
	r, sc, v := &c.reply, c.reply.sc, &voices[c.reply.endpoint]
	pieces := r.words.pieces(sc.tokensPerEvent)
	if len(r.tools) > 0 {
		pieces = 1
	}
	for i := range pieces {
		due := first.Add(sc.rest(i * sc.tokensPerEvent))
		if time.Until(due) > 0 || len(c.out) > bufferBytesKept {
			if !c.flush() || !c.waitUntil(due) {
				return false
			}
		}
		if ended := c.strike(f, i); ended {
			return false
		}
		switch {
		case i == sc.malformed:
			c.scratch = append(c.scratch[:0], "data: {\"id\":\"mock\",\"choices\":[{\"delta\"\n\n"...)
		case len(r.tools) > 0:
			c.scratch = v.toolCalls(c.scratch[:0], r)
		default:
			stamp := int64(0)
			if sc.stamp {
				stamp = time.Now().UnixMicro()
			}
			c.scratch = v.piece(c.scratch[:0], r, r.words.piece(i, sc.tokensPerEvent), stamp)
		}
		if !f.send(c.scratch) {
			return false
		}
		c.server.tally.events.Add(1)
	}
	return !c.strike(f, pieces) && c.strikeLate(f, pieces)
}

// strike does what is due before content event i, and says whether the stream
// has ended with it.
func (c *conn) strike(f *feed, i int) bool {
	switch sc := f.sc; i {
	case sc.cut:
		c.flush()
		c.tcp.CloseWrite()
		return true
	case sc.cutReset:
		c.flush()
		time.Sleep(5 * time.Millisecond) // let the peer read before the reset throws it away
		c.abort()
		return true
	case sc.stall:
		if c.flush() {
			c.hold()
		}
		return true
	case sc.errorFrame:
		if f.send(errorEvent(c.reply.endpoint)) {
			f.end()
		}
		return true
	}
	return false
}

// strikeLate strikes a stream that was shorter than the scenario thought.
func (c *conn) strikeLate(f *feed, pieces int) bool {
	for _, at := range []int{f.sc.cut, f.sc.cutReset, f.sc.stall, f.sc.errorFrame} {
		if at > pieces {
			return !c.strike(f, at)
		}
	}
	return true
}

// errorEvent is the frame by which a host gives up inside a 200.
func errorEvent(e endpoint) []byte {
	switch e {
	case messages:
		return append(appendError([]byte("event: error\ndata: "), anthropicShape, "overloaded_error", "", "Overloaded"), "\n\n"...)
	case responsesAPI:
		return []byte(`event: error` + "\n" + `data: {"type":"error","sequence_number":0,"code":"server_is_overloaded","message":"Overloaded","param":null}` + "\n\n")
	}
	return append(appendError([]byte("data: "), openaiShape, "service_unavailable_error", "server_is_overloaded", "Overloaded"), "\n\n"...)
}
