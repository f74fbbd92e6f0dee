package wire

// A token is what a lexer found.
type token uint8

const (
	tokMore   token = iota // the bytes are used up
	tokBroken              // this is not JSON, or nested too deep: final
	tokKey
	tokObject // '{'; depth counts it already
	tokArray  // '['; depth counts it already
	tokClose  // '}' or ']'; depth counts it no longer
	tokString
	tokNumber
	tokTrue
	tokFalse
	tokNull
)

// lexState is what may come next in the text. The states from inKey on are
// inside a token, or final.
type lexState uint8

const (
	wantValue    lexState = iota // zero: the top value
	wantElement                  // a value or ']'
	wantFirstKey                 // a key or '}'
	wantKey                      // a key
	wantColon                    // ':'
	wantComma                    // ',' or the end of the container
	inKey
	inString
	inNumber
	inLiteral
	whole   // the top value has ended: only blanks may follow
	broken  // not JSON
	tooDeep // more than depthMax containers
)

// numberForm says how the number read last was written.
type numberForm uint8

const (
	numberNegative numberForm = 1 << iota
	numberFraction
	numberExponent
)

// A lexer splits JSON text (RFC 8259) into tokens and checks its grammar. The
// text may come in pieces cut at any byte; a token that spans a cut is told
// when its last byte has come. It copies nothing but the first textBytesMax
// bytes of names, and of strings that its owner asks to keep.
//
// Owner: one Scan or reader. The zero value is ready for a text.
type lexer struct {
	objects [(depthMax + 63) / 64]uint64 // bit d-1: the container at depth d is an object
	text    [textBytesMax]byte           // the kept string, unescaped
	num     int64                        // integer part of the number read last, at most TokensMax
	length  int64                        // bytes of the string read last, unescaped, as UTF-8
	origin  int64                        // offset in the text of p[0]; set by the owner
	start   int64                        // offset of the token read last
	comma   int64                        // offset of the ',' read last; -1 when a '{' came after it
	hex     uint16                       // digits of a \u escape so far
	state   lexState
	depth   uint8 // open containers
	watch   uint8 // tokens inside containers deeper than this are not told
	sub     uint8 // inKey, inString: escape; inNumber: numberState; inLiteral: bytes matched
	textLen uint8 // bytes in text; textBytesMax+1: longer, or holds what no name has
	form    numberForm
	literal token // which one is being read
	keep    bool  // the string being read goes to text. Set after a tokKey for its value
}

// name is the kept string. It is nil when it did not fit.
func (l *lexer) name() []byte {
	if l.textLen > textBytesMax {
		return nil
	}
	return l.text[:l.textLen]
}

// ended reports whether the text so far is one whole value; a top number ends
// only with the text.
func (l *lexer) ended() bool {
	return l.state == whole || l.state == inNumber && l.depth == 0 && numberEnds(l.sub)
}

// next reads p from i to the next token that is told, and returns the offset
// behind it. At tokMore all of p is read; the next call gets what follows.
func (l *lexer) next(p []byte, i int) (token, int) {
	for {
		var tok token
		if l.state >= inKey {
			tok, i = l.resume(p, i)
		} else {
			for i < len(p) && isBlank(p[i]) {
				i++
			}
			if i == len(p) {
				return tokMore, i
			}
			switch l.state {
			case wantColon:
				if p[i] != ':' {
					return l.fail(broken), i
				}
				l.state = wantValue
				i++
				continue
			case wantComma:
				if p[i] == ',' {
					l.comma = l.origin + int64(i)
					l.state = wantValue
					if l.inObject() {
						l.state = wantKey
					}
					i++
					continue
				}
				tok, i = l.close(p, i)
			case wantValue, wantElement:
				tok, i = l.value(p, i)
			default:
				tok, i = l.key(p, i)
			}
		}
		if tok <= tokBroken {
			return tok, i
		}
		told := l.depth
		if tok == tokObject || tok == tokArray {
			told--
		}
		if told <= l.watch {
			return tok, i
		}
	}
}

// resume goes on inside a token that was cut, or behind the top value.
func (l *lexer) resume(p []byte, i int) (token, int) {
	switch l.state {
	case inKey, inString:
		return l.readString(p, i)
	case inNumber:
		return l.readNumber(p, i)
	case inLiteral:
		return l.readLiteral(p, i)
	case whole:
		for i < len(p) && isBlank(p[i]) {
			i++
		}
		if i == len(p) {
			return tokMore, i
		}
		return l.fail(broken), i
	}
	return tokBroken, i
}

func (l *lexer) fail(s lexState) token {
	l.state = s
	return tokBroken
}

func (l *lexer) inObject() bool {
	d := l.depth - 1
	return l.depth > 0 && l.objects[d>>6]>>(d&63)&1 != 0
}

// key begins a name at p[i], or closes an empty object there.
func (l *lexer) key(p []byte, i int) (token, int) {
	if p[i] == '}' && l.state == wantFirstKey {
		return l.close(p, i)
	}
	if p[i] != '"' {
		return l.fail(broken), i
	}
	l.start = l.origin + int64(i)
	l.state, l.sub, l.length, l.textLen = inKey, 0, 0, 0
	l.keep = l.depth <= l.watch
	return l.readString(p, i+1)
}

// value begins the value at p[i].
func (l *lexer) value(p []byte, i int) (token, int) {
	first := l.state == wantElement
	c := p[i]
	if c == ']' && first {
		return l.close(p, i)
	}
	l.start = l.origin + int64(i)
	switch c {
	case '"':
		l.state, l.sub, l.length, l.textLen = inString, 0, 0, 0
		return l.readString(p, i+1)
	case '{', '[':
		return l.open(c), i + 1
	case 't':
		l.literal = tokTrue
	case 'f':
		l.literal = tokFalse
	case 'n':
		l.literal = tokNull
	default:
		l.state, l.sub, l.num, l.form = inNumber, numberStart, 0, 0
		return l.readNumber(p, i)
	}
	l.state, l.sub = inLiteral, 0
	return l.readLiteral(p, i)
}

func (l *lexer) open(c byte) token {
	if l.depth == depthMax {
		return l.fail(tooDeep)
	}
	bit := uint64(1) << (l.depth & 63)
	word := &l.objects[l.depth>>6]
	l.depth++
	l.keep = false
	if c == '{' {
		*word |= bit
		l.state, l.comma = wantFirstKey, -1
		return tokObject
	}
	*word &^= bit
	l.state = wantElement
	return tokArray
}

func (l *lexer) close(p []byte, i int) (token, int) {
	want := byte(']')
	if l.inObject() {
		want = '}'
	}
	if p[i] != want {
		return l.fail(broken), i
	}
	l.depth--
	l.valueEnds()
	return tokClose, i + 1
}

func (l *lexer) valueEnds() {
	l.keep = false
	l.state = wantComma
	if l.depth == 0 {
		l.state = whole
	}
}
