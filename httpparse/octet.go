package httpparse

import "encoding/binary"

// What an octet may be part of, one bit each in octets.
const (
	tokenOctet  uint8 = 1 << iota // tchar of a token (RFC 9110 §5.6.2)
	textOctet                     // HTAB, SP, VCHAR, obs-text: field value or reason
	targetOctet                   // visible ASCII but '#', which no target has (RFC 9112 §3.2)
	hostOctet                     // of a host name; sub-delims and pct-encoded are refused
	digitOctet                    // decimal digit
	hexOctet                      // hexadecimal digit
)

var octets = octetTable()

func octetTable() (t [256]uint8) {
	mark := func(set string, bits uint8) {
		for _, b := range []byte(set) {
			t[b] |= bits
		}
	}
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	mark(letters, tokenOctet|hostOctet)
	mark("0123456789", tokenOctet|hostOctet|digitOctet|hexOctet)
	mark("abcdefABCDEF", hexOctet)
	mark("!#$%&'*+-.^_`|~", tokenOctet)
	mark("-._~", hostOctet)
	mark("\t ", textOctet)
	for b := 0x21; b <= 0x7e; b++ {
		t[b] |= textOctet | targetOctet
	}
	for b := 0x80; b <= 0xff; b++ {
		t[b] |= textOctet
	}
	t['#'] &^= targetOctet
	return t
}

func octetIs(o byte, bits uint8) bool { return octets[o]&bits != 0 }

// every reports whether b is not empty and all of it has one of bits.
func every(b []byte, bits uint8) bool {
	for _, o := range b {
		if octets[o]&bits == 0 {
			return false
		}
	}
	return len(b) > 0
}

// One value in each of the eight bytes of a word.
const (
	ones  = 0x0101010101010101
	highs = 0x80 * ones
)

// isText reports whether b has no control byte but HTAB. It looks at eight
// bytes at a time, since field values are most of a head.
func isText(b []byte) bool {
	for len(b) >= 8 {
		w := binary.LittleEndian.Uint64(b)
		del := w ^ 0x7f*ones
		// A high bit is set where a byte is below SP, and where one is DEL.
		if ((w-0x20*ones)&^w|(del-ones)&^del)&highs != 0 && !every(b[:8], textOctet) {
			return false
		}
		b = b[8:]
	}
	return len(b) == 0 || every(b, textOctet)
}

// EqualFold compares an ASCII name with lower, which is in lower case.
func EqualFold(name []byte, lower string) bool {
	if len(name) != len(lower) {
		return false
	}
	for i, o := range name {
		if 'A' <= o && o <= 'Z' {
			o |= 0x20
		}
		if o != lower[i] {
			return false
		}
	}
	return true
}

// equalFold compares two names of any case.
func equalFold(a, b []byte) bool {
	if len(a) != len(b) {
		return false
	}
	for i, o := range a {
		if o != b[i] && (o|0x20 != b[i]|0x20 || o|0x20 < 'a' || o|0x20 > 'z') {
			return false
		}
	}
	return true
}
