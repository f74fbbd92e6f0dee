package loop

import (
	"unsafe"

	"relay/upstream/wire"
)

// viewString is p as a string without a copy. p must not change while the
// string lives: it is for strings of an exchange's event, which die with the
// exchange.
func viewString(p []byte) string { return unsafe.String(unsafe.SliceData(p), len(p)) }

// spanIn tells where part, a view into whole, lies. Len 0 stands for a part
// that is empty or lies elsewhere.
func spanIn(whole, part []byte) wire.Span {
	if len(part) == 0 || len(whole) == 0 {
		return wire.Span{}
	}
	off := uintptr(unsafe.Pointer(&part[0])) - uintptr(unsafe.Pointer(&whole[0]))
	if off+uintptr(len(part)) > uintptr(len(whole)) {
		return wire.Span{}
	}
	return wire.Span{Off: int32(off), Len: int32(len(part))}
}

func cut(p []byte, s wire.Span) []byte { return p[s.Off : s.Off+s.Len] }
