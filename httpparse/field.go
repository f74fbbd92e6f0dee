package httpparse

import (
	"bytes"
	"slices"
)

// A Field is one header or trailer field line (RFC 9110 §5). Both parts are
// views into the input; Name keeps the letter case of the sender, Value has no
// blank at either end.
type Field struct {
	Name, Value []byte
}

// parseField reads one field line that has lost its line end. A fold line (RFC 9112
// §5.2), a blank before the colon and an empty name are all refused as names
// that are no token.
func parseField(line []byte) (f Field, err Error) {
	colon := 0
	for colon < len(line) && octetIs(line[colon], tokenOctet) {
		colon++
	}
	if colon == 0 || colon == len(line) || line[colon] != ':' {
		return Field{}, Malformed
	}
	value := line[colon+1:]
	if !isText(value) {
		return Field{}, Malformed
	}
	return Field{Name: slices.Clip(line[:colon]), Value: slices.Clip(trim(value))}, OK
}

// trim cuts blanks (OWS, RFC 9110 §5.6.3) off both ends.
func trim(b []byte) []byte {
	for len(b) > 0 && isBlank(b[0]) {
		b = b[1:]
	}
	for len(b) > 0 && isBlank(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	return b
}

func isBlank(o byte) bool { return o == ' ' || o == '\t' }

// cutElement takes the first element off a comma list (RFC 9110 §5.6.1). more
// is false with the last one. An element may be empty; the caller judges that.
func cutElement(list []byte) (element, rest []byte, more bool) {
	element, rest, more = bytes.Cut(list, comma)
	return trim(element), rest, more
}

var comma = []byte{','}

// hasElement reports whether a comma list has the element, in any case.
func hasElement(list, element []byte) bool {
	for more := true; more; {
		var e []byte
		if e, list, more = cutElement(list); equalFold(e, element) {
			return true
		}
	}
	return false
}

func find(fields []Field, name string) []byte {
	for i := range fields {
		if EqualFold(fields[i].Name, name) {
			return fields[i].Value
		}
	}
	return nil
}

// A trait is what a field name means to framing and forwarding.
type trait uint8

const (
	isHost trait = 1 << iota
	isLength
	isCoding
	isConnection
	isExpect
	hop  // of one connection only, or made anew by the writer
	kept // a credential or command for Relay itself: Connection cannot name it away
)

// known lists all field names with a trait.
var known = [...]struct {
	name string
	trait
}{
	{"host", isHost | hop},
	{"content-length", isLength | hop},
	{"transfer-encoding", isCoding | hop},
	{"connection", isConnection | hop},
	{"expect", isExpect},
	{"keep-alive", hop},
	{"proxy-connection", hop},
	{"te", hop},
	{"trailer", hop},
	{"upgrade", hop},
	{"http2-settings", hop},
	{"content_length", hop}, // CGI and its heirs cannot tell these two
	{"transfer_encoding", hop},
	{"authorization", kept},
	{"x-api-key", kept},
	{"x-wr-api-key", kept},
	{"x-wr-upstream-host", kept},
}

const knownNameBytesMax = 18

// knownByLength holds the indices of known by the length of the name, so that
// most fields of a head are passed by without a comparison.
var knownByLength = func() (t [knownNameBytesMax + 1][]uint8) {
	for i := range known {
		n := len(known[i].name)
		t[n] = append(t[n], uint8(i))
	}
	return t
}()

func traitOf(name []byte) trait {
	if len(name) > knownNameBytesMax {
		return 0
	}
	for _, i := range knownByLength[len(name)] {
		if EqualFold(name, known[i].name) {
			return known[i].trait
		}
	}
	return 0
}

// HopByHop reports whether a field belongs to one connection only and is not
// passed on (RFC 9110 §7.6.1): Connection, the fields that Connection names,
// Keep-Alive, Proxy-Connection, TE, Trailer, Transfer-Encoding, Upgrade,
// HTTP2-Settings. It is also true for Content-Length and Host, which the
// writer makes anew, and for the framing fields with an underscore for the dash. Connection cannot name away Authorization, X-API-Key and
// the fields that command Relay. fields is the whole head, read for its
// Connection fields.
func HopByHop(fields []Field, name []byte) bool {
	switch t := traitOf(name); {
	case t&hop != 0:
		return true
	case t&kept != 0:
		return false
	}
	for i := range fields {
		if EqualFold(fields[i].Name, "connection") && hasElement(fields[i].Value, name) {
			return true
		}
	}
	return false
}
