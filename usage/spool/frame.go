package spool

import (
	"encoding/binary"
	"hash/crc32"
)

// A Kind is the type of a frame.
type Kind uint8

// The kinds. Readers pass over those that they do not know.
const (
	AdmittedFrame Kind = 1 // a billable attempt starts
	RowFrame      Kind = 2 // an exchange has ended
	SealedFrame   Kind = 3 // the stream has ended
)

// kinds names the kinds.
var kinds = [...]string{AdmittedFrame: "admitted", RowFrame: "row", SealedFrame: "sealed"}

// String is the kind's label.
func (k Kind) String() string {
	if int(k) < len(kinds) && kinds[k] != "" {
		return kinds[k]
	}
	return "unknown"
}

const (
	frameHeadBytes = 8                  // length and checksum
	frameBytesMin  = frameHeadBytes + 1 // a frame without payload
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A Frame is one record of the stream of a (run, loop).
type Frame struct {
	Kind     Kind
	Position int64  // where it starts
	End      int64  // where the next one starts: the watermark once this one is taken
	Payload  []byte // borrowed: valid until the reader's next call
}

// checksum is crc32c.
func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// beginFrame leaves room for the frame's head and writes its kind.
func beginFrame(b []byte, k Kind) []byte {
	return append(b, 0, 0, 0, 0, 0, 0, 0, 0, byte(k))
}

// endFrame fills in the head of the frame that starts at offset and ends with b.
func endFrame(b []byte, offset int) {
	content := b[offset+frameHeadBytes:]
	if len(content) > FrameBytesMax {
		panic("BUG: frame above its limit")
	}
	binary.LittleEndian.PutUint32(b[offset:], uint32(len(content)))
	binary.LittleEndian.PutUint32(b[offset+4:], checksum(content))
}

// frameLength reads the length of the frame that starts with b, its head
// included, and reports false if no frame starts so.
func frameLength(b []byte) (int, bool) {
	if len(b) < frameBytesMin {
		return 0, false
	}
	n := binary.LittleEndian.Uint32(b)
	if n < 1 || n > FrameBytesMax || b[frameHeadBytes] == 0 {
		return 0, false
	}
	return frameHeadBytes + int(n), true
}

// parseFrame reads the whole frame b, and reports false if it is damaged.
func parseFrame(b []byte) (Frame, bool) {
	n, ok := frameLength(b)
	if !ok || len(b) < n {
		return Frame{}, false
	}
	content := b[frameHeadBytes:n]
	if binary.LittleEndian.Uint32(b[4:]) != checksum(content) {
		return Frame{}, false
	}
	return Frame{Kind: Kind(content[0]), Payload: content[1:]}, true
}
