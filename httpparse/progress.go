package httpparse

import "bytes"

// A Progress is how far an incomplete head has been looked at, so that a head
// that comes in pieces is not looked at from its start again at each piece.
// The zero value is the start; Parse sets it back there when a head is
// complete. Owner: whoever owns the input bytes.
type Progress struct {
	at    int32 // first byte not looked at yet
	line  int32 // start of the line that at is in
	lines int16 // complete lines so far, without leading empty ones
}

// nextLine returns the next complete line without its line end, or whole =
// false when its end has not come. A line must end in CRLF within limit bytes,
// else it is tooLong. A control byte in an incomplete line is refused at once;
// in a complete line that is left to the caller, who looks at each byte anyway.
func (g *Progress) nextLine(p []byte, limit int, tooLong Error) (line []byte, whole bool, err Error) {
	start, at := int(g.line), int(g.at)
	end := min(len(p), start+limit, HeadBytesMax)
	if i := bytes.IndexByte(p[at:end], '\n'); i >= 0 {
		i += at
		if i == start || p[i-1] != '\r' {
			return nil, false, Malformed
		}
		g.line, g.at = int32(i+1), int32(i+1)
		return p[start : i-1], true, OK
	}
	seen := end
	if seen > at && p[seen-1] == '\r' {
		seen-- // maybe half of a line end: looked at again with the next byte
	}
	switch {
	case !isText(p[at:seen]):
		return nil, false, Malformed
	case end == start+limit:
		return nil, false, tooLong
	case end == HeadBytesMax:
		return nil, false, HeadTooLarge
	}
	g.at = int32(seen)
	return nil, false, OK
}

// readFields reads field lines up to the empty line that ends the head, and
// appends them to fields. n is the length of the head, 0 while incomplete. The
// start line is behind g already.
func (g *Progress) readFields(p []byte, fields []Field) (all []Field, n int, err Error) {
	for {
		start := int(g.line)
		if g.lines > FieldsMax && start < min(len(p), HeadBytesMax) && p[start] != '\r' {
			return fields, 0, TooManyFields
		}
		line, whole, err := g.nextLine(p, FieldBytesMax, FieldTooLarge)
		if err != OK || !whole {
			return fields, 0, err
		}
		if len(line) == 0 {
			return fields, int(g.at), OK
		}
		f, err := parseField(line)
		if err != OK {
			return fields, 0, err
		}
		fields = append(fields, f)
		g.lines++
	}
}
