package pattern

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"strconv"

	"relay/perf/mockhost"
)

const readBytes = 2 << 10

// Longest lines of events: of tick streams with short events, and of pours.
const (
	LineBytesTick = 2 << 10
	LineBytesPour = 16 << 10
)

// A Stream is one streamed answer. It is for one goroutine.
type Stream struct {
	Status int
	Events int   // content events so far
	Bytes  int64 // of content so far
	Done   bool  // the last frame has come

	raw   *bufio.Reader
	lines *bufio.Reader // of the body without its framing
}

// ErrWrong says that content is not the pattern.
var ErrWrong = errors.New("pattern: wrong content")

// Open reads the head of an answer from r. A line longer than lineBytes is an
// error.
func Open(r io.Reader, lineBytes int) (*Stream, error) {
	s := &Stream{raw: bufio.NewReaderSize(r, readBytes)}
	answer, err := http.ReadResponse(s.raw, nil)
	if err != nil {
		return nil, fmt.Errorf("pattern: head: %w", err)
	}
	s.Status = answer.StatusCode
	if s.Status != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 300))
		return s, fmt.Errorf("pattern: status %d: %s", s.Status, text)
	}
	body := io.Reader(s.raw)
	if len(answer.TransferEncoding) > 0 {
		body = httputil.NewChunkedReader(s.raw)
	}
	s.lines = bufio.NewReaderSize(body, lineBytes)
	return s, nil
}

var (
	dataMark  = []byte("data:")
	textMarks = [][]byte{[]byte(`"delta":{"content":"`), []byte(`"text_delta","text":"`)}
	stampMark = []byte(`"mock_us":`)
	doneMarks = [][]byte{[]byte("[DONE]"), []byte(`"type":"message_stop"`)}
	failMark  = []byte(`"error":{`)
)

// Next waits for a content event and gives the time at which the mock sent it,
// in unix microseconds; 0 when the mock does not say. At the end of the answer
// it returns io.EOF, which is a good end only if Done.
func (s *Stream) Next() (stampUs int64, err error) {
	for {
		line, err := s.lines.ReadSlice('\n')
		if err != nil {
			if err == io.EOF && len(line) > 0 {
				err = io.ErrUnexpectedEOF
			}
			return 0, err
		}
		if !bytes.HasPrefix(line, dataMark) {
			continue
		}
		for _, mark := range textMarks {
			if _, rest, ok := bytes.Cut(line, mark); ok {
				return s.take(rest)
			}
		}
		for _, mark := range doneMarks {
			s.Done = s.Done || bytes.Contains(line, mark)
		}
		if bytes.Contains(line, failMark) {
			return 0, fmt.Errorf("pattern: the stream says %.200s", line)
		}
	}
}

// take checks a text that begins at rest and ends at a quote.
func (s *Stream) take(rest []byte) (int64, error) {
	n := bytes.IndexByte(rest, '"')
	if n < 0 {
		return 0, fmt.Errorf("%w: text without an end in event %d", ErrWrong, s.Events)
	}
	for i, b := range rest[:n] {
		if b != mockhost.PatternByte(s.Bytes+int64(i)) {
			return 0, fmt.Errorf("%w: byte %d, in event %d", ErrWrong, s.Bytes+int64(i), s.Events)
		}
	}
	s.Bytes += int64(n)
	s.Events++
	_, digits, ok := bytes.Cut(rest[n:], stampMark)
	if !ok {
		return 0, nil
	}
	end := 0
	for end < len(digits) && digits[end] >= '0' && digits[end] <= '9' {
		end++
	}
	stamp, _ := strconv.ParseInt(string(digits[:end]), 10, 64)
	return stamp, nil
}
