package spool

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/google/uuid"
)

const (
	headerBytes   = 64
	headerMagic   = "RLYSPOOL"
	formatVersion = 1
)

// headerKind tells the two files that start with a header apart.
type headerKind uint16

const (
	segmentHeader headerKind = 0
	carryHeader   headerKind = 1
)

// A header is the first 64 bytes of a segment or of a carry file.
type header struct {
	kind   headerKind
	loop   uint32
	run    uuid.UUID
	number uint64 // of the segment; carry: of the last one deleted
	start  int64  // position of the first frame; carry: where the deleted ones end
	rows   uint64 // carry: row_seq of the last row before start
}

// put writes the header over b, which holds headerBytes.
func (h *header) put(b []byte) {
	clear(b[:headerBytes])
	copy(b, headerMagic)
	le := binary.LittleEndian
	le.PutUint16(b[8:], formatVersion)
	le.PutUint16(b[10:], uint16(h.kind))
	le.PutUint32(b[12:], h.loop)
	copy(b[16:], h.run[:])
	le.PutUint64(b[32:], h.number)
	le.PutUint64(b[40:], uint64(h.start))
	le.PutUint64(b[48:], h.rows)
	le.PutUint32(b[60:], checksum(b[:60]))
}

// errHeader is what parseHeader says of bytes that are no header.
var errHeader = errors.New("damaged header")

// parseHeader reads a header.
func parseHeader(b []byte) (header, error) {
	le := binary.LittleEndian
	if len(b) < headerBytes || string(b[:8]) != headerMagic ||
		le.Uint32(b[60:]) != checksum(b[:60]) {
		return header{}, errHeader
	}
	if v := le.Uint16(b[8:]); v != formatVersion {
		return header{}, fmt.Errorf("format version %d, this program knows %d", v, formatVersion)
	}
	h := header{
		kind:   headerKind(le.Uint16(b[10:])),
		loop:   le.Uint32(b[12:]),
		run:    uuid.UUID(b[16:32]),
		number: le.Uint64(b[32:]),
		start:  int64(le.Uint64(b[40:])),
		rows:   le.Uint64(b[48:]),
	}
	if h.start < 0 || h.start > positionMax {
		return header{}, errHeader
	}
	return h, nil
}
