package openloop

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http/httputil"
	"strconv"
	"time"

	"relay/perf/mockhost"
)

// A stream is what a reader sees of one streamed answer. Owner: the reader.
type stream struct {
	first  time.Time // of content
	last   time.Time
	gaps   []int64 // microseconds between content events
	events int
	tokens int64 // that usage says; -1 = it says nothing
	done   bool  // the last frame has come
	wrong  error // the content is not what the mock says
	text   []byte
	lines  *bufio.Reader
}

func (s *stream) begin() {
	*s = stream{gaps: s.gaps[:0], text: s.text[:0], lines: s.lines, tokens: -1}
}

var (
	dataMark  = []byte("data:")
	textMarks = [][]byte{[]byte(`"delta":{"content":"`), []byte(`"delta":{"role":"assistant","content":"`), []byte(`"text_delta","text":"`)}
	doneMarks = [][]byte{[]byte("data: [DONE]"), []byte(`"type":"message_stop"`)}
	failMarks = [][]byte{[]byte(`"error":{`), []byte(`"type":"error"`)}
	countMark = [][]byte{[]byte(`"completion_tokens":`), []byte(`"output_tokens":`)}
	errStream = errors.New("openloop: broken stream")
)

// follow reads the body to its end and judges it.
func (s *stream) follow(r *bufio.Reader, chunked bool, length int64) error {
	body := io.Reader(r)
	switch {
	case chunked:
		body = httputil.NewChunkedReader(r)
	case length >= 0:
		body = io.LimitReader(r, length)
	}
	if s.lines == nil {
		s.lines = bufio.NewReaderSize(body, lineBytesMax/16)
	} else {
		s.lines.Reset(body)
	}
	for {
		line, err := s.lines.ReadSlice('\n')
		if err == io.EOF && len(line) == 0 {
			break
		}
		if err != nil {
			return noEOF(err)
		}
		s.line(line)
	}
	if chunked { // trailers, or the blank line in their place
		for {
			line, err := readLine(r)
			if err != nil {
				return noEOF(err)
			}
			if len(line) == 0 {
				break
			}
		}
	}
	return s.judge()
}

// line takes one line of the stream.
func (s *stream) line(line []byte) {
	if !bytes.HasPrefix(line, dataMark) {
		return
	}
	for _, mark := range textMarks {
		if _, rest, ok := bytes.Cut(line, mark); ok {
			if end := bytes.IndexByte(rest, '"'); end > 0 {
				s.content(rest[:end])
			}
			break
		}
	}
	for _, mark := range countMark {
		if _, rest, ok := bytes.Cut(line, mark); ok {
			end := 0
			for end < len(rest) && rest[end] >= '0' && rest[end] <= '9' {
				end++
			}
			if n, err := strconv.ParseInt(string(rest[:end]), 10, 64); err == nil {
				s.tokens = n
			}
		}
	}
	for _, mark := range doneMarks {
		s.done = s.done || bytes.Contains(line, mark)
	}
	for _, mark := range failMarks {
		if s.wrong == nil && bytes.Contains(line, mark) {
			s.wrong = fmt.Errorf("%w: it says %.120q", errStream, line)
		}
	}
}

// content takes the text of one event.
func (s *stream) content(text []byte) {
	now := time.Now()
	if s.events == 0 {
		s.first = now
	} else if len(s.gaps) < gapsMax {
		s.gaps = append(s.gaps, now.Sub(s.last).Microseconds())
	}
	s.last = now
	s.events++
	s.text = append(s.text, text...)
}

// judge says what is wrong with a stream that has ended cleanly. Its content
// must be what the mock says in as many tokens as usage counts, or the mock's
// pattern.
func (s *stream) judge() error {
	switch {
	case s.wrong != nil:
		return s.wrong
	case !s.done:
		return fmt.Errorf("%w: a clean end without the last frame", errStream)
	case s.events == 0 && s.tokens > 0:
		return fmt.Errorf("%w: no content", errStream)
	case s.isPattern():
		return nil
	case s.tokens >= 0 && string(s.text) != mockhost.Text(int(s.tokens)):
		return fmt.Errorf("%w: the content is not that of %d tokens", errStream, s.tokens)
	}
	return nil
}

// isPattern reports whether the content is a pattern from its beginning.
func (s *stream) isPattern() bool {
	for i, b := range s.text {
		if b != mockhost.PatternByte(int64(i)) {
			return false
		}
	}
	return true
}
