package httpparse

import "math"

// framing collects what the fields of one head say about the end of its body
// (RFC 9112 §6) and of its connection (RFC 9112 §9.3).
type framing struct {
	length  int64  // Content-Length; -1 = none
	coding  []byte // the first Transfer-Encoding
	codings int    // Transfer-Encoding fields
	close   bool   // Connection: close
	keep    bool   // Connection: keep-alive
}

// note takes in one field of trait t.
func (f *framing) note(t trait, value []byte) Error {
	switch {
	case t&isLength != 0:
		n, ok := parseLength(value)
		if !ok || f.length >= 0 && f.length != n {
			return BadLength
		}
		f.length = n
	case t&isCoding != 0:
		if f.codings++; f.codings == 1 {
			f.coding = value
		}
	case t&isConnection != 0:
		f.close = f.close || hasElement(value, closeElement)
		f.keep = f.keep || hasElement(value, keepAliveElement)
	}
	return OK
}

var (
	closeElement     = []byte("close")
	keepAliveElement = []byte("keep-alive")
)

// chunked judges Transfer-Encoding: nothing but one single chunked is
// understood, and in HTTP/1.0 the field does not exist (RFC 9112 §6.1).
func (f *framing) chunked(minor uint8) (bool, Error) {
	switch {
	case f.codings == 0:
		return false, OK
	case f.length >= 0:
		return false, LengthTwice
	case f.codings > 1 || minor == 0:
		return false, BadCoding
	case EqualFold(f.coding, "chunked"):
		return true, OK
	case chunkedLast(f.coding):
		return false, UnknownCoding
	}
	return false, BadCoding
}

// chunkedLast reports whether chunked is there once, at the end, behind other
// codings. Such a message has a clear end but a body that is not undone here.
func chunkedLast(list []byte) bool {
	for {
		element, rest, more := cutElement(list)
		switch {
		case EqualFold(element, "chunked"):
			return !more
		case !more || !every(element, tokenOctet):
			return false
		}
		list = rest
	}
}

// keepAlive tells whether the connection persists: close wins, HTTP/1.0 must
// ask for it.
func (f *framing) keepAlive(minor uint8) bool {
	return !f.close && (minor == 1 || f.keep)
}

// parseLength reads a Content-Length. A list of equal numbers is one number
// (RFC 9110 §8.6).
func parseLength(list []byte) (n int64, ok bool) {
	n = -1
	for more := true; more; {
		var element []byte
		element, list, more = cutElement(list)
		if len(element) > LengthDigitsMax || !every(element, digitOctet) {
			return 0, false
		}
		length := int64(0)
		for _, o := range element {
			digit := int64(o - '0')
			if length > (math.MaxInt64-digit)/10 {
				return 0, false
			}
			length = length*10 + digit
		}
		if n >= 0 && n != length {
			return 0, false
		}
		n = length
	}
	return n, true
}
