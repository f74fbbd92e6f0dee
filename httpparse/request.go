package httpparse

import (
	"bytes"
	"slices"
)

// A Request is a parsed request head. It is reused: Parse overwrites
// everything, keeping the capacity of Fields. It holds nothing between two
// calls of Parse, so one Request serves all connections of a loop; it is valid
// when Parse has returned n > 0. After an error Method and Target are those of
// the refused head, or nil where its request line was not read in that call.
type Request struct {
	Method []byte // a token, letter case kept (RFC 9110 §9.1)
	Target []byte // as sent
	Path   []byte // of the target, not unescaped; starts with '/', or is "*" for OPTIONS, or nil for CONNECT
	Query  []byte // behind the first '?', without it; nil when there is none
	Host   []byte // authority of an absolute or CONNECT target, else the Host field; nil for HTTP/1.0 without
	Minor  uint8  // HTTP/1.Minor: 0 or 1
	Fields []Field

	// Framing (RFC 9112 §6). At most one of Chunked and ContentLength >= 0.
	ContentLength int64 // bytes; -1 = not announced, no body unless Chunked
	Chunked       bool

	KeepAlive      bool // the client allows another request behind this one
	ExpectContinue bool // Expect: 100-continue (RFC 9110 §10.1.1), HTTP/1.1 only
}

// Parse reads one request head from the start of p. It returns the number of
// bytes of the head including the empty line, or 0 while the head is
// incomplete. On the next call p holds the same bytes and more behind them; p
// may have moved. Leading empty lines are skipped, at most LeadingLinesMax
// (RFC 9112 §2.2), and counted in n. All limits of limits.go hold before the
// line end has come.
//
// CONNECT with a host and port is parsed like any method, so that the caller
// can answer 405; KeepAlive is then false, since what follows may be meant for
// a tunnel and is never a request.
func (r *Request) Parse(p []byte, g *Progress) (n int, err Error) {
	fresh := *g == Progress{}
	if n, err = r.read(p, g); err != OK || n == 0 {
		return 0, err
	}
	if !fresh {
		// The lines of earlier calls were checked but not recorded, since r is
		// shared and the input moves. Now all of them are here.
		*g = Progress{}
		r.read(p[:n], g)
	}
	*g = Progress{}
	if err = r.judge(); err != OK {
		return 0, err
	}
	return n, OK
}

// Field returns the value of the first field of that name, or nil. name is in
// lower case; the comparison ignores the case of the field.
func (r *Request) Field(name string) []byte { return find(r.Fields, name) }

// read goes on from g and checks each line that is complete.
func (r *Request) read(p []byte, g *Progress) (n int, err Error) {
	r.Method, r.Target, r.Fields = nil, nil, r.Fields[:0] // none of an earlier request's
	for g.lines == 0 {
		line, whole, err := g.nextLine(p, RequestLineBytesMax, LineTooLong)
		if err != OK || !whole {
			return 0, err
		}
		if len(line) == 0 {
			// Only CRLFs were before, so where the next line starts counts them.
			if g.line > LeadingLinesMax*2 {
				return 0, Malformed
			}
			continue
		}
		if err = r.parseLine(line); err != OK {
			return 0, err
		}
		g.lines = 1
	}
	r.Fields, n, err = g.readFields(p, r.Fields)
	return n, err
}

// parseLine reads the request line (RFC 9112 §3). The octets of all parts are
// checked before the version and the form of the target, since a control byte
// is refused before the rest of its line has come.
func (r *Request) parseLine(line []byte) Error {
	method, rest, ok := bytes.Cut(line, space)
	if !ok {
		return Malformed
	}
	target, version, ok := bytes.Cut(rest, space)
	if !ok || !every(method, tokenOctet) || !every(target, targetOctet) {
		return Malformed
	}
	minor, err := parseVersion(version)
	if err != OK {
		return err
	}
	r.Method, r.Target, r.Minor = slices.Clip(method), slices.Clip(target), minor
	return r.parseTarget()
}

var space = []byte{' '}

// parseVersion reads an HTTP-version (RFC 9112 §2.3).
func parseVersion(v []byte) (minor uint8, err Error) {
	switch {
	case string(v) == "HTTP/1.1":
		return 1, OK
	case string(v) == "HTTP/1.0":
		return 0, OK
	case len(v) == 8 && string(v[:5]) == "HTTP/" && v[6] == '.' &&
		octets[v[5]]&octets[v[7]]&digitOctet != 0:
		return 0, BadVersion
	}
	return 0, Malformed
}

// judge reads from the recorded fields what they mean together. It runs only on
// a whole head, so its verdict cannot depend on how the head came.
func (r *Request) judge() Error {
	f := framing{length: -1}
	authority := r.Host
	hosts, unmet := 0, false
	r.ExpectContinue = false
	for i := range r.Fields {
		value := r.Fields[i].Value
		t := traitOf(r.Fields[i].Name)
		switch {
		case t&isHost != 0:
			if hosts++; hosts > 1 || !validAuthority(value) {
				return BadHost
			}
			if authority == nil {
				r.Host = value
			}
		case t&isExpect != 0:
			if EqualFold(value, "100-continue") {
				r.ExpectContinue = r.Minor == 1
			} else {
				unmet = true
			}
		default:
			if err := f.note(t, value); err != OK {
				return err
			}
		}
	}
	if hosts == 0 && r.Minor == 1 {
		return BadHost
	}
	chunked, err := f.chunked(r.Minor)
	if err != OK {
		return err
	}
	if unmet {
		return BadExpectation
	}
	r.ContentLength, r.Chunked = f.length, chunked
	r.KeepAlive = f.keepAlive(r.Minor) && string(r.Method) != "CONNECT"
	return OK
}
