package spool

import (
	"encoding/binary"
	"errors"
	"strings"
	"unicode/utf8"
)

// The wire types of protobuf.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireFixed32 = 5
)

// fieldNumberMax is the highest field number that protobuf allows.
const fieldNumberMax = 1<<29 - 1

// putInt appends a number, unless it is 0.
func putInt(b []byte, number int, n int64) []byte {
	if n == 0 {
		return b
	}
	b = binary.AppendUvarint(b, uint64(number)<<3|wireVarint)
	return binary.AppendUvarint(b, uint64(n))
}

func putBool(b []byte, number int, v bool) []byte {
	if !v {
		return b
	}
	return putInt(b, number, 1)
}

func putFixed(b []byte, number int, n int64) []byte {
	b = binary.AppendUvarint(b, uint64(number)<<3|wireFixed64)
	return binary.LittleEndian.AppendUint64(b, uint64(n))
}

// putID appends the 16 bytes of a UUID.
func putID(b []byte, number int, id [16]byte) []byte {
	b = binary.AppendUvarint(b, uint64(number)<<3|wireBytes)
	b = append(b, byte(len(id)))
	return append(b, id[:]...)
}

// putString appends a string of at most most bytes, unless it is empty. A cut
// falls between characters; bytes that are not UTF-8, and U+0000, which SQL
// text cannot hold, become U+FFFD.
func putString(b []byte, number int, s string, most int) []byte {
	if s == "" {
		return b
	}
	b = binary.AppendUvarint(b, uint64(number)<<3|wireBytes)
	if len(s) <= most && utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		b = binary.AppendUvarint(b, uint64(len(s)))
		return append(b, s...)
	}
	b = binary.AppendUvarint(b, uint64(cleanLength(s, most)))
	end := len(b) + cleanLength(s, most)
	for _, r := range s { // an invalid byte is read as U+FFFD
		r = cleanRune(r)
		if len(b)+utf8.RuneLen(r) > end {
			break
		}
		b = utf8.AppendRune(b, r)
	}
	return b
}

// cleanLength is how many bytes of the clean form of s fit into most.
func cleanLength(s string, most int) int {
	n := 0
	for _, r := range s {
		size := utf8.RuneLen(cleanRune(r))
		if n+size > most {
			break
		}
		n += size
	}
	return n
}

func cleanRune(r rune) rune {
	if r == 0 {
		return utf8.RuneError
	}
	return r
}

// errPayload is what decoding says of bytes that are no message.
var errPayload = errors.New("malformed payload")

// A field is one field of a message.
type field struct {
	number int
	wire   int
	n      uint64 // of a varint or a fixed-size number
	bytes  []byte // of a length-delimited field; borrowed
}

// nextField reads the first field of b and returns what follows it.
func nextField(b []byte) (field, []byte, error) {
	tag, n := binary.Uvarint(b)
	if n <= 0 || tag>>3 == 0 || tag>>3 > fieldNumberMax {
		return field{}, nil, errPayload
	}
	f := field{number: int(tag >> 3), wire: int(tag & 7)}
	b = b[n:]
	switch f.wire {
	case wireVarint:
		if f.n, n = binary.Uvarint(b); n <= 0 {
			return field{}, nil, errPayload
		}
		return f, b[n:], nil
	case wireFixed64:
		if len(b) < 8 {
			return field{}, nil, errPayload
		}
		f.n = binary.LittleEndian.Uint64(b)
		return f, b[8:], nil
	case wireFixed32:
		if len(b) < 4 {
			return field{}, nil, errPayload
		}
		f.n = uint64(binary.LittleEndian.Uint32(b))
		return f, b[4:], nil
	case wireBytes:
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return field{}, nil, errPayload
		}
		end := n + int(size)
		f.bytes = b[n:end]
		return f, b[end:], nil
	}
	return field{}, nil, errPayload
}
