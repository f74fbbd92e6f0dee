package openloop

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// An answer is the part of a response that a measurement needs.
type answer struct {
	status int
	mockUs int64 // what the mock says that it took, up to its head; -1 = unknown
	closes bool  // the connection is of no further use
	events bool  // the body was a stream of events
}

var errAnswer = errors.New("malformed answer")

// A phase is where a reading is in a response.
type phase uint8

const (
	inStatus    phase = iota
	inFields          // of the head
	inLength          // a body of left bytes
	inChunkSize       // the line of it
	inChunk           // left bytes of a chunk
	inChunkEnd        // the line end behind a chunk
	inTrailers
	inRest // a body that ends with the connection
	atEnd
)

// A reading takes one response in whatever pieces it comes. Owner: the
// connection. Its zero value awaits a status line.
type reading struct {
	answer
	phase   phase
	begun   bool // a byte has come
	chunked bool
	left    int64
	line    []byte // of a line that has not come whole
	watch   *stream
	first   byte // of the body
	last    byte
	json    bool
	coded   bool // by a content encoding
}

// begin forgets the last response.
func (r *reading) begin() {
	*r = reading{line: r.line[:0], watch: r.watch, answer: answer{mockUs: -1}, left: -1}
}

// feed takes what has come at a time. It returns what is behind the response,
// once that has ended.
func (r *reading) feed(b []byte, now int64) (rest []byte, err error) {
	r.begun = r.begun || len(b) > 0
	for len(b) > 0 && r.phase != atEnd && err == nil {
		switch r.phase {
		case inLength, inChunk:
			n := min(int64(len(b)), r.left)
			err = r.body(b[:n], now)
			b = b[n:]
			if r.left -= n; r.left == 0 && err == nil {
				err = r.partEnded()
			}
		case inRest:
			err = r.body(b, now)
			b = nil
		default:
			var line []byte
			var whole bool
			if line, b, whole = r.takeLine(b); !whole {
				if len(r.line) > lineBytesMax {
					err = fmt.Errorf("%w: a line of more than %d bytes", errAnswer, lineBytesMax)
				}
				return nil, err
			}
			err = r.control(bytes.TrimRight(line, "\r\n"))
			r.line = r.line[:0]
		}
	}
	return b, err
}

// takeLine cuts a line off b, together with what has come of it before.
func (r *reading) takeLine(b []byte) (line, rest []byte, whole bool) {
	i := bytes.IndexByte(b, '\n')
	if i < 0 {
		r.line = append(r.line, b...)
		return nil, nil, false
	}
	if len(r.line) == 0 {
		return b[:i+1], b[i+1:], true
	}
	r.line = append(r.line, b[:i+1]...)
	return r.line, b[i+1:], true
}

// control takes a line that is not of a body.
func (r *reading) control(line []byte) error {
	switch r.phase {
	case inStatus:
		return r.statusLine(line)
	case inFields:
		if len(line) == 0 {
			return r.headEnded()
		}
		return r.field(line)
	case inChunkSize:
		digits, _, _ := bytes.Cut(line, []byte{';'})
		n, err := strconv.ParseInt(string(bytes.TrimSpace(digits)), 16, 63)
		if err != nil || n < 0 {
			return fmt.Errorf("%w: chunk size %.20q", errAnswer, line)
		}
		r.phase, r.left = inChunk, n
		if n == 0 {
			r.phase = inTrailers
		}
	case inChunkEnd:
		if len(line) > 0 {
			return fmt.Errorf("%w: %.20q behind a chunk", errAnswer, line)
		}
		r.phase = inChunkSize
	case inTrailers:
		if len(line) == 0 {
			return r.ended()
		}
	}
	return nil
}

func (r *reading) statusLine(line []byte) error {
	if len(line) < 12 || !bytes.HasPrefix(line, []byte("HTTP/1.")) {
		return fmt.Errorf("%w: status line %.40q", errAnswer, line)
	}
	status, err := strconv.Atoi(string(line[9:12]))
	if err != nil || status < 100 {
		return fmt.Errorf("%w: status line %.40q", errAnswer, line)
	}
	r.status, r.closes, r.phase = status, line[7] == '0', inFields
	return nil
}

func (r *reading) field(line []byte) error {
	name, value, ok := bytes.Cut(line, []byte{':'})
	if !ok {
		return fmt.Errorf("%w: field %.40q", errAnswer, line)
	}
	value = bytes.TrimSpace(value)
	switch len(name) { // no two of these names are of one length
	case len("content-length"):
		if bytes.EqualFold(name, []byte("content-length")) {
			n, err := strconv.ParseInt(string(value), 10, 63)
			if err != nil || n < 0 {
				return fmt.Errorf("%w: length %.40q", errAnswer, value)
			}
			r.left = n
		}
	case len("transfer-encoding"):
		r.chunked = r.chunked || bytes.EqualFold(name, []byte("transfer-encoding"))
	case len("x-mock-duration-us"):
		if bytes.EqualFold(name, []byte("x-mock-duration-us")) {
			if us, err := strconv.ParseInt(string(value), 10, 63); err == nil {
				r.mockUs = us
			}
		}
	case len("content-type"):
		if bytes.EqualFold(name, []byte("content-type")) {
			r.events = bytes.HasPrefix(value, []byte("text/event-stream"))
			r.json = bytes.HasPrefix(value, []byte("application/json"))
		}
	case len("content-encoding"):
		r.coded = r.coded || bytes.EqualFold(name, []byte("content-encoding"))
	case len("connection"):
		r.closes = r.closes || bytes.EqualFold(name, []byte("connection")) && bytes.EqualFold(value, []byte("close"))
	}
	return nil
}

// headEnded decides how the body is framed.
func (r *reading) headEnded() error {
	if r.status < 200 { // another head follows
		r.begin()
		return nil
	}
	if r.events = r.events && r.status == 200; r.events {
		if r.watch == nil {
			r.watch = new(stream)
		}
		r.watch.begin()
	}
	switch {
	case r.status == 204 || r.status == 304:
		return r.ended()
	case r.chunked:
		r.phase = inChunkSize
	case r.left == 0:
		return r.ended()
	case r.left > 0:
		r.phase = inLength
	default:
		r.phase, r.closes = inRest, true
	}
	return nil
}

func (r *reading) body(b []byte, now int64) error {
	if r.events {
		return r.watch.feed(b, now)
	}
	if r.first == 0 {
		r.first = b[0]
	}
	r.last = b[len(b)-1]
	return nil
}

// partEnded is called when the bytes that were announced have come.
func (r *reading) partEnded() error {
	if r.phase == inChunk {
		r.phase = inChunkEnd
		return nil
	}
	return r.ended()
}

// ended judges a response that is whole by its framing.
func (r *reading) ended() error {
	r.phase = atEnd
	switch {
	case r.events:
		return r.watch.judge()
	case r.json && !r.coded && r.status == 200 && (r.first != '{' || r.last != '}' && r.last != '\n'):
		return errJSON
	}
	return nil
}

var errJSON = errors.New("broken body: no whole JSON object")

// close is called when the connection has ended. An error says that the
// response has not.
func (r *reading) close() error {
	switch {
	case r.phase == inRest:
		return r.ended()
	case !r.begun:
		return io.EOF
	}
	return io.ErrUnexpectedEOF
}
