package httpparse

import "slices"

// A BodyKind says how the body of a response ends (RFC 9112 §6.3).
type BodyKind uint8

// The ways in which a response body ends.
const (
	NoBody     BodyKind = iota // HEAD, 1xx, 204, 304, or length 0
	ByLength                   // after ContentLength bytes
	ByChunks                   // after the last chunk and its trailers
	UntilClose                 // when the peer closes
)

// A Response is a parsed response head. It is reused like a Request.
type Response struct {
	Status int    // 100..599
	Reason []byte // as sent, maybe empty
	Minor  uint8  // HTTP/1.Minor: 0 or 1
	Fields []Field

	Body          BodyKind
	ContentLength int64 // bytes; -1 = not announced. Known also where HEAD or 304 has no body
	KeepAlive     bool  // the connection may be used again after the body
}

// Parse reads one response head from the start of p, as Request.Parse does,
// but with no empty line before it. head says that the request was HEAD, whose
// answer has no body. A 101 is parsed like any other; whoever did not ask for
// it refuses it.
func (r *Response) Parse(p []byte, g *Progress, head bool) (n int, err Error) {
	fresh := *g == Progress{}
	if n, err = r.read(p, g); err != OK || n == 0 {
		return 0, err
	}
	if !fresh { // as in Request.Parse
		*g = Progress{}
		r.read(p[:n], g)
	}
	*g = Progress{}
	if err = r.judge(head); err != OK {
		return 0, err
	}
	return n, OK
}

// Field is as of Request.
func (r *Response) Field(name string) []byte { return find(r.Fields, name) }

// read goes on from g and checks each line that is complete.
func (r *Response) read(p []byte, g *Progress) (n int, err Error) {
	r.Fields = r.Fields[:0]
	if g.lines == 0 {
		line, whole, err := g.nextLine(p, RequestLineBytesMax, LineTooLong)
		if !whole {
			// A peer that does not speak HTTP/1 is not waited for.
			k := min(len(p), len(protocol))
			if string(p[:k]) != protocol[:k] {
				return 0, Malformed
			}
			return 0, err
		}
		if err = r.parseLine(line); err != OK {
			return 0, err
		}
		g.lines = 1
	}
	r.Fields, n, err = g.readFields(p, r.Fields)
	return n, err
}

const protocol = "HTTP/"

// parseLine reads the status line (RFC 9112 §4). The reason may be missing,
// with the space before it or without.
func (r *Response) parseLine(line []byte) Error {
	const version, status = 8, 12 // ends of these parts
	if len(line) < status || !isText(line) {
		return Malformed
	}
	minor, err := parseVersion(line[:version])
	if err != OK {
		return err
	}
	code := line[version+1 : status]
	if line[version] != ' ' || !every(code, digitOctet) || code[0] < '1' || code[0] > '5' {
		return Malformed
	}
	reason := line[status:]
	if len(reason) > 0 {
		if reason[0] != ' ' {
			return Malformed
		}
		reason = reason[1:]
	}
	r.Minor = minor
	r.Status = int(code[0]-'0')*100 + int(code[1]-'0')*10 + int(code[2]-'0')
	r.Reason = slices.Clip(reason)
	return OK
}

// judge reads from the recorded fields what they mean together.
func (r *Response) judge(head bool) Error {
	f := framing{length: -1}
	for i := range r.Fields {
		if err := f.note(traitOf(r.Fields[i].Name), r.Fields[i].Value); err != OK {
			return err
		}
	}
	chunked, err := f.chunked(r.Minor)
	if err != OK {
		return err
	}
	r.ContentLength = f.length
	r.KeepAlive = f.keepAlive(r.Minor)
	announced := chunked || f.length > 0
	switch {
	case r.Status < 200:
		// What follows is the next head, so an announced body is a trap.
		if announced {
			return BadLength
		}
		r.Body = NoBody
		r.KeepAlive = r.KeepAlive && r.Status != 101
	case r.Status == 204:
		// A body is forbidden but some servers send one: not read, and its
		// bytes are never the next answer.
		r.Body = NoBody
		r.KeepAlive = r.KeepAlive && !announced
	case head || r.Status == 304 || f.length == 0:
		r.Body = NoBody
	case chunked:
		r.Body = ByChunks
	case f.length > 0:
		r.Body = ByLength
	default:
		r.Body = UntilClose
		r.KeepAlive = false
	}
	return OK
}
