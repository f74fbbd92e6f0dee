package openloop

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// An answer is the part of a response that a measurement needs.
type answer struct {
	status int
	mockUs int64 // what the mock says that it took; -1 = unknown
	closes bool  // the connection is of no further use
	events bool  // the body was a stream of events
}

var errAnswer = errors.New("openloop: malformed answer")

// readAnswer reads one whole response. A stream of events goes through watch.
func readAnswer(r *bufio.Reader, watch *stream) (answer, error) {
	a := answer{mockUs: -1}
	line, err := readLine(r)
	if err != nil {
		return a, err
	}
	if len(line) < 12 || !bytes.HasPrefix(line, []byte("HTTP/1.")) {
		return a, fmt.Errorf("%w: status line %.40q", errAnswer, line)
	}
	if a.status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return a, fmt.Errorf("%w: status line %.40q", errAnswer, line)
	}
	a.closes = line[7] == '0'
	length, chunked := int64(-1), false
	for {
		if line, err = readLine(r); err != nil {
			return a, noEOF(err)
		}
		if len(line) == 0 {
			break
		}
		name, value, ok := bytes.Cut(line, []byte{':'})
		if !ok {
			return a, fmt.Errorf("%w: field %.40q", errAnswer, line)
		}
		value = bytes.TrimSpace(value)
		switch len(name) {
		case len("content-length"):
			if bytes.EqualFold(name, []byte("content-length")) {
				if length, err = strconv.ParseInt(string(value), 10, 63); err != nil {
					return a, fmt.Errorf("%w: length %q", errAnswer, value)
				}
			}
		case len("transfer-encoding"):
			chunked = chunked || bytes.EqualFold(name, []byte("transfer-encoding"))
		case len("x-mock-duration-us"):
			if bytes.EqualFold(name, []byte("x-mock-duration-us")) {
				a.mockUs, _ = strconv.ParseInt(string(value), 10, 63)
			}
		case len("content-type"):
			a.events = a.events || bytes.EqualFold(name, []byte("content-type")) && bytes.HasPrefix(value, []byte("text/event-stream"))
		case len("connection"):
			a.closes = a.closes || bytes.EqualFold(name, []byte("connection")) && bytes.EqualFold(value, []byte("close"))
		}
	}
	if a.status < 200 {
		return readAnswer(r, watch)
	}
	switch {
	case a.events && a.status == 200:
		watch.begin()
		a.closes = a.closes || !chunked && length < 0
		return a, watch.follow(r, chunked, length)
	case chunked:
		return a, discardChunks(r)
	case length >= 0:
		return a, discard(r, length)
	case a.status == 204 || a.status == 304:
		return a, nil
	}
	a.closes = true
	_, err = io.Copy(io.Discard, r)
	return a, err
}

func discardChunks(r *bufio.Reader) error {
	for {
		line, err := readLine(r)
		if err != nil {
			return noEOF(err)
		}
		digits, _, _ := bytes.Cut(line, []byte{';'})
		n, err := strconv.ParseInt(string(bytes.TrimSpace(digits)), 16, 63)
		if err != nil {
			return fmt.Errorf("%w: chunk size %.20q", errAnswer, line)
		}
		if n == 0 {
			break
		}
		if err := discard(r, n+2); err != nil {
			return err
		}
	}
	for { // trailers
		line, err := readLine(r)
		if err != nil {
			return noEOF(err)
		}
		if len(line) == 0 {
			return nil
		}
	}
}

func discard(r *bufio.Reader, n int64) error {
	for n > 0 {
		k, err := r.Discard(int(min(n, 1<<20)))
		if n -= int64(k); err != nil {
			return noEOF(err)
		}
	}
	return nil
}

// readLine returns a line without its end; it is valid until the next read.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		if len(line) > 0 && err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return bytes.TrimRight(line, "\r\n"), nil
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
