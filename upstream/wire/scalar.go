package wire

import (
	"encoding/binary"
	"math/bits"
)

// literals are the words of JSON by token.
var literals = [...]string{tokTrue: "true", tokFalse: "false", tokNull: "null"}

func (l *lexer) readLiteral(p []byte, i int) (token, int) {
	rest := literals[l.literal][l.sub:]
	n := min(len(rest), len(p)-i)
	if string(p[i:i+n]) != rest[:n] {
		return l.fail(broken), i
	}
	if n < len(rest) {
		l.sub += uint8(n)
		return tokMore, i + n
	}
	l.valueEnds()
	return l.literal, i + n
}

// The places inside a number, as lexer.sub.
const (
	numberStart = iota
	numberMinus
	numberZero
	numberInt
	numberDot
	numberFrac
	numberE
	numberSign
	numberExp
	numberBad
)

// numberNext is the place behind a digit 0, a digit 1–9, '-', '+', '.' and 'e'.
var numberNext = [...][6]uint8{
	numberStart: {numberZero, numberInt, numberMinus, numberBad, numberBad, numberBad},
	numberMinus: {numberZero, numberInt, numberBad, numberBad, numberBad, numberBad},
	numberZero:  {numberBad, numberBad, numberBad, numberBad, numberDot, numberE},
	numberInt:   {numberInt, numberInt, numberBad, numberBad, numberDot, numberE},
	numberDot:   {numberFrac, numberFrac, numberBad, numberBad, numberBad, numberBad},
	numberFrac:  {numberFrac, numberFrac, numberBad, numberBad, numberBad, numberE},
	numberE:     {numberExp, numberExp, numberSign, numberSign, numberBad, numberBad},
	numberSign:  {numberExp, numberExp, numberBad, numberBad, numberBad, numberBad},
	numberExp:   {numberExp, numberExp, numberBad, numberBad, numberBad, numberBad},
}

// numberClass is the column of numberNext for a byte, counted from 1.
var numberClass = [256]uint8{
	'0': 1, '1': 2, '2': 2, '3': 2, '4': 2, '5': 2, '6': 2, '7': 2, '8': 2, '9': 2,
	'-': 3, '+': 4, '.': 5, 'e': 6, 'E': 6,
}

func numberEnds(place uint8) bool {
	return place == numberZero || place == numberInt || place == numberFrac || place == numberExp
}

// readNumber reads up to the first byte that is no part of a number.
func (l *lexer) readNumber(p []byte, i int) (token, int) {
	place := l.sub
	for ; i < len(p); i++ {
		class := numberClass[p[i]]
		if class == 0 {
			if !numberEnds(place) {
				return l.fail(broken), i
			}
			l.valueEnds()
			return tokNumber, i
		}
		switch place = numberNext[place][class-1]; place {
		case numberInt:
			l.num = min(l.num*10+int64(p[i]-'0'), TokensMax)
		case numberMinus:
			l.form |= numberNegative
		case numberDot:
			l.form |= numberFraction
		case numberE:
			l.form |= numberExponent
		case numberBad:
			return l.fail(broken), i
		}
	}
	l.sub = place
	return tokMore, i
}

// The places inside an escape, as lexer.sub.
const (
	escapeNone  = iota
	escapeBegun // a backslash came
	escapeHex1  // one hex digit is missing
	escapeHex2
	escapeHex3
	escapeHex4
)

// readString reads up to and with the closing quote.
func (l *lexer) readString(p []byte, i int) (token, int) {
	for {
		if l.sub != escapeNone {
			var ok bool
			if i, ok = l.readEscape(p, i); !ok {
				return l.fail(broken), i
			}
		}
		j := plainEnd(p, i)
		l.length += int64(j - i)
		if l.keep {
			l.take(p[i:j])
		}
		if j == len(p) {
			return tokMore, j
		}
		i = j + 1
		switch p[j] {
		case '"':
			if l.state == inKey {
				l.keep = false
				l.state = wantColon
				if i < len(p) && p[i] == ':' { // nearly always
					l.state = wantValue
					i++
				}
				return tokKey, i
			}
			l.valueEnds()
			return tokString, i
		case '\\':
			l.sub = escapeBegun
		default:
			return l.fail(broken), j
		}
	}
}

// escaped is what a byte behind a backslash stands for; 0 is no escape.
var escaped = [256]byte{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'u': 'u',
}

// readEscape reads on behind a backslash until the escape or p ends.
func (l *lexer) readEscape(p []byte, i int) (int, bool) {
	for ; i < len(p) && l.sub != escapeNone; i++ {
		c := p[i]
		if l.sub == escapeBegun {
			switch {
			case escaped[c] == 0:
				return i, false
			case c == 'u':
				l.sub, l.hex = escapeHex4, 0
			default:
				l.sub = escapeNone
				l.takeRune(uint16(escaped[c]))
			}
			continue
		}
		digit := hexDigit(c)
		if digit > 15 {
			return i, false
		}
		l.hex = l.hex<<4 | uint16(digit)
		if l.sub--; l.sub == escapeBegun {
			l.sub = escapeNone
			l.takeRune(l.hex)
		}
	}
	return i, true
}

// take keeps plain bytes of a string.
func (l *lexer) take(p []byte) {
	if len(p)+int(l.textLen) > textBytesMax {
		l.textLen = textBytesMax + 1
		return
	}
	l.textLen += uint8(copy(l.text[l.textLen:], p))
}

// takeRune counts and keeps what an escape stood for. No name that is looked
// for has anything but ASCII, so other text only makes the kept string differ.
// Half of a surrogate pair counts two bytes.
func (l *lexer) takeRune(r uint16) {
	switch {
	case r < 0x80:
		l.length++
	case r < 0x800 || r&0xf800 == 0xd800:
		l.length += 2
	default:
		l.length += 3
	}
	if !l.keep {
		return
	}
	if r >= 0x80 || l.textLen >= textBytesMax {
		l.textLen = textBytesMax + 1
		return
	}
	l.text[l.textLen] = byte(r)
	l.textLen++
}

// hexDigit is the value of a hex digit, or more than 15.
func hexDigit(c byte) byte {
	switch {
	case c-'0' <= 9:
		return c - '0'
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10
	}
	return 255
}

func isBlank(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

const (
	eachByte = 0x0101010101010101
	eachTop  = 0x8080808080808080
)

// plainEnd returns the offset at or behind i of the first byte that is not
// plain text of a string: a quote, a backslash or a control byte. It looks at
// eight bytes at a time, since bodies are mostly long strings; a borrow can
// only mark bytes above a true hit, so the lowest mark is right.
func plainEnd(p []byte, i int) int {
	for ; i+8 <= len(p); i += 8 {
		w := binary.LittleEndian.Uint64(p[i:])
		quote := w ^ '"'*eachByte
		slash := w ^ '\\'*eachByte
		marks := (w-0x20*eachByte)&^w | (quote-eachByte)&^quote | (slash-eachByte)&^slash
		if marks &= eachTop; marks != 0 {
			return i + bits.TrailingZeros64(marks)>>3
		}
	}
	for i < len(p) && p[i] >= 0x20 && p[i] != '"' && p[i] != '\\' {
		i++
	}
	return i
}
