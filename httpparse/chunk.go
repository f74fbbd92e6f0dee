package httpparse

// Chunks decodes one chunked body (RFC 9112 §7.1). The zero value is ready.
// Extensions and trailers are checked and dropped. After the end, or after an
// error, it refuses every further byte. Owner: the message being read.
type Chunks struct {
	left  int64 // bytes of data left in the current chunk
	state chunkState
	count int32 // bytes of the line or trailer section so far, for the limits
	waste int32 // bytes of chunk lines beyond what the data earned
}

// chunkState is what the next byte of the framing may be.
type chunkState uint8

const (
	sizeFirst    chunkState = iota // first digit of the body; no state leads here
	sizeNext                       // first digit of a later chunk
	sizeDigits                     // behind a digit
	extStart                       // behind ';'
	extName                        // in the name of an extension
	extEquals                      // blanks behind a name: only '=' may follow
	extValue                       // behind '='
	extToken                       // in a token value
	extQuoted                      // in a quoted value
	extEscaped                     // behind a backslash in it
	extEnd                         // behind the closing quote
	sizeLF                         // behind the CR of a chunk line
	chunkData                      // in the data; not in the table
	dataCR                         // behind the data
	dataLF                         // behind the CR that ends the data
	trailerStart                   // at the start of a trailer line
	trailerName                    // in a field name
	trailerValue                   // in a field value
	trailerLF                      // behind the CR of a trailer line
	lastLF                         // behind the CR of the empty line
	chunksEnd                      // the body has ended
	chunkStates
)

// chunkClass sorts octets by what the framing can tell apart.
type chunkClass uint8

const (
	control   chunkClass = iota // refused everywhere
	cr                          // CR
	lf                          // LF
	blank                       // SP, HTAB
	hexDigit                    // also of a token
	tokenChar                   // of a token but no hex digit
	semicolon
	equals
	quote
	backslash
	colonChar
	textChar // other visible ASCII and obs-text
	chunkClasses
)

var chunkClassOf = func() (t [256]chunkClass) {
	for o := range t {
		switch bits := octets[o]; {
		case bits&hexOctet != 0:
			t[o] = hexDigit
		case bits&tokenOctet != 0:
			t[o] = tokenChar
		case bits&textOctet != 0:
			t[o] = textChar
		}
	}
	t['\r'], t['\n'], t[' '], t['\t'] = cr, lf, blank, blank
	t[';'], t['='], t['"'], t['\\'], t[':'] = semicolon, equals, quote, backslash, colonChar
	return t
}()

// chunkNext holds the successor of each state by the class of the octet; zero
// is a refusal. Blanks are taken where RFC 9112 §7.1.1 has them inside an
// extension, but not in front of ';' or at the end of a line.
var chunkNext = [chunkStates][chunkClasses]chunkState{
	sizeFirst:  {hexDigit: sizeDigits},
	sizeNext:   {hexDigit: sizeDigits},
	sizeDigits: {hexDigit: sizeDigits, semicolon: extStart, cr: sizeLF},
	extStart:   {blank: extStart, hexDigit: extName, tokenChar: extName},
	extName: {hexDigit: extName, tokenChar: extName, blank: extEquals, equals: extValue,
		semicolon: extStart, cr: sizeLF},
	extEquals: {blank: extEquals, equals: extValue},
	extValue:  {blank: extValue, hexDigit: extToken, tokenChar: extToken, quote: extQuoted},
	extToken:  {hexDigit: extToken, tokenChar: extToken, semicolon: extStart, cr: sizeLF},
	extQuoted: {blank: extQuoted, hexDigit: extQuoted, tokenChar: extQuoted, semicolon: extQuoted,
		equals: extQuoted, colonChar: extQuoted, textChar: extQuoted, backslash: extEscaped, quote: extEnd},
	extEscaped: {blank: extQuoted, hexDigit: extQuoted, tokenChar: extQuoted, semicolon: extQuoted,
		equals: extQuoted, colonChar: extQuoted, textChar: extQuoted, backslash: extQuoted, quote: extQuoted},
	extEnd: {semicolon: extStart, cr: sizeLF},
	sizeLF: {lf: chunkData},

	dataCR: {cr: dataLF},
	dataLF: {lf: sizeNext},

	trailerStart: {hexDigit: trailerName, tokenChar: trailerName, cr: lastLF},
	trailerName:  {hexDigit: trailerName, tokenChar: trailerName, colonChar: trailerValue},
	trailerValue: {blank: trailerValue, hexDigit: trailerValue, tokenChar: trailerValue, semicolon: trailerValue,
		equals: trailerValue, colonChar: trailerValue, textChar: trailerValue, backslash: trailerValue,
		quote: trailerValue, cr: trailerLF},
	trailerLF: {lf: trailerStart},
	lastLF:    {lf: chunksEnd},
}

// Next reads the next piece of the body from p. It returns the data in it (a
// view into p, maybe empty), how many bytes of p are used up, and whether the
// body ended with them. It is called until n == len(p) or done. Input may be
// cut at any byte. An error never comes together with data: what was returned
// before was sound. How large the body may be as a whole is up to the caller.
func (c *Chunks) Next(p []byte) (data []byte, n int, done bool, err Error) {
	for n < len(p) {
		if c.state == chunkData {
			data = p[n:]
			if int64(len(data)) >= c.left {
				data = data[:c.left:c.left]
				c.state = dataCR
			}
			c.left -= int64(len(data))
			return data, n + len(data), false, OK
		}
		if err = c.step(p[n]); err != OK {
			c.state = chunksEnd
			return nil, n, false, err
		}
		n++
		if c.state == chunksEnd {
			return nil, n, true, OK
		}
	}
	return nil, n, false, OK
}

// Left is how many bytes of data are announced and still to come in the current
// chunk, as far as its size has been read.
func (c *Chunks) Left() int64 { return c.left }

// step takes one octet of the framing.
func (c *Chunks) step(o byte) Error {
	was := c.state
	c.state = chunkNext[was][chunkClassOf[o]]
	c.count++
	switch {
	case was >= trailerStart && was < chunksEnd:
		if c.state == 0 {
			return BadTrailer
		}
		if c.count > TrailerBytesMax {
			return TrailerTooLarge
		}
	case c.state == 0:
		return BadChunk
	case c.state == sizeDigits:
		return c.digit(o)
	case c.state == chunkData:
		return c.lineEnd()
	case c.state == sizeNext:
		c.count = 0
	case c.count > ChunkLineBytesMax:
		return ChunkLineTooLong
	}
	return OK
}

// digit takes one digit of a chunk size. The line starts with them, so count
// is their number.
func (c *Chunks) digit(o byte) Error {
	if c.count > ChunkDigitsMax {
		return BadChunk
	}
	digit := o - '0'
	if digit > 9 {
		digit = o | 0x20 - 'a' + 10
	}
	if c.left = c.left<<4 | int64(digit); c.left > ChunkBytesMax {
		return ChunkTooLarge
	}
	return OK
}

// lineEnd ends a chunk line: data follows, or the trailer section.
func (c *Chunks) lineEnd() Error {
	if c.count > ChunkLineBytesMax {
		return ChunkLineTooLong
	}
	earned := chunkLineFree + chunkLineEarned*c.left
	c.waste = int32(max(0, int64(c.waste)+int64(c.count)-earned))
	if c.waste > ChunkWasteBytesMax {
		return ChunkLineTooLong
	}
	c.count = 0
	if c.left == 0 {
		c.state = trailerStart
	}
	return OK
}
