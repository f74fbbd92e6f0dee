package openloop

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"

	"relay/perf/mockhost"
)

// A stream is what a reader sees of one streamed answer. Owner: the reading.
type stream struct {
	first, last           int64   // content, on the generator's clock
	gaps                  []int64 // nanoseconds between content events
	events                int
	bytes                 int64 // of content
	words, pattern        bool  // the content so far is the mock's words, or its pattern
	tokens                int64 // that usage says; -1 = it says nothing
	firstStamp, lastStamp int64 // when the mock sent contents, by its clock, unix microseconds; 0 = it does not say
	done                  bool  // the last frame has come
	wrong                 error // what the stream says itself
	line                  []byte
}

func (s *stream) begin() {
	*s = stream{gaps: s.gaps[:0], line: s.line[:0], tokens: -1, words: true, pattern: true}
}

var (
	dataMark  = []byte("data:")
	textMarks = [][]byte{[]byte(`"delta":{"content":"`), []byte(`"text_delta","text":"`), []byte(`"delta":{"role":"assistant","content":"`)}
	stampMark = []byte(`"mock_us":`)
	doneMarks = [][]byte{[]byte("data: [DONE]"), []byte("data:[DONE]"), []byte(`"type":"message_stop"`)}
	failMarks = [][]byte{[]byte(`"error":{`), []byte(`"type":"error"`)}
	countMark = [][]byte{[]byte(`"completion_tokens":`), []byte(`"output_tokens":`)}
	errStream = errors.New("broken stream")
)

// mockWords is the longest that an answer of the mock can say; others begin
// like it.
var mockWords = sync.OnceValue(func() string { return mockhost.Text(math.MaxInt) })

// feed takes bytes of the body, which may be parts of lines. A line ends with
// any of the ends that events may have.
func (s *stream) feed(b []byte, now int64) error {
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			i = len(b)
		}
		if k := bytes.IndexByte(b[:i], '\r'); k >= 0 {
			i = k
		}
		if i == len(b) {
			if len(s.line)+len(b) > lineBytesMax {
				return fmt.Errorf("%w: a line of more than %d bytes", errStream, lineBytesMax)
			}
			s.line = append(s.line, b...)
			return nil
		}
		line := b[:i]
		if len(s.line) > 0 {
			s.line = append(s.line, line...)
			line = s.line
		}
		s.take(line, now)
		s.line = s.line[:0]
		b = b[i+1:]
	}
	return nil
}

// take takes one line of the stream.
func (s *stream) take(line []byte, now int64) {
	if !bytes.HasPrefix(line, dataMark) {
		return
	}
	for _, mark := range textMarks {
		i := bytes.Index(line, mark)
		if i < 0 {
			continue
		}
		text := line[i+len(mark):]
		if end := bytes.IndexByte(text, '"'); end > 0 {
			s.content(text[:end], now)
			if stamp := numberBehind(text[end:], stampMark); stamp > 0 {
				s.stamp(stamp)
			}
			return
		}
		break
	}
	for _, mark := range countMark {
		if n := numberBehind(line, mark); n >= 0 {
			s.tokens = n
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

// numberBehind reads the number behind a mark; -1 = there is none.
func numberBehind(line, mark []byte) int64 {
	i := bytes.Index(line, mark)
	if i < 0 {
		return -1
	}
	digits := line[i+len(mark):]
	end := 0
	for end < len(digits) && digits[end] >= '0' && digits[end] <= '9' {
		end++
	}
	n, err := strconv.ParseInt(string(digits[:end]), 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// content takes the text of one event.
func (s *stream) content(text []byte, now int64) {
	if s.events == 0 {
		s.first = now
	} else if len(s.gaps) < gapsMax {
		s.gaps = append(s.gaps, now-s.last)
	}
	s.last = now
	s.events++
	said, end := mockWords(), s.bytes+int64(len(text))
	s.words = s.words && end <= int64(len(said)) && string(text) == said[s.bytes:end]
	for i := 0; s.pattern && i < len(text); i++ {
		s.pattern = text[i] == mockhost.PatternByte(s.bytes+int64(i))
	}
	s.bytes = end
}

func (s *stream) stamp(us int64) {
	if s.firstStamp == 0 {
		s.firstStamp = us
	}
	s.lastStamp = us
}

// judge says what is wrong with a stream that has ended cleanly. Its content
// must be what the mock says in as many tokens as usage counts, or so much of
// the mock's pattern, of which four bytes are a token.
func (s *stream) judge() error {
	switch {
	case s.wrong != nil:
		return s.wrong
	case !s.done:
		return fmt.Errorf("%w: a clean end without the last frame", errStream)
	case s.events == 0 && s.tokens > 0:
		return fmt.Errorf("%w: no content", errStream)
	case s.events > 0 && !s.words && !s.pattern:
		return fmt.Errorf("%w: the content is not the mock's", errStream)
	case s.tokens >= 0 && !s.holds(s.tokens):
		return fmt.Errorf("%w: the content is not that of %d tokens", errStream, s.tokens)
	}
	return nil
}

// holds reports whether the content is that of so many tokens.
func (s *stream) holds(tokens int64) bool {
	if s.pattern && s.events > 0 {
		return s.bytes/4 == tokens
	}
	return s.bytes == int64(len(mockhost.Text(int(tokens))))
}

// sentUs is how long the mock took from its head to the last content; -1 = it
// does not say. Ticks say nothing of the time up to the first one.
func (s *stream) sentUs() int64 {
	if s.firstStamp == 0 || s.pattern {
		return -1
	}
	return s.lastStamp - s.firstStamp
}
