package httpparse

import (
	"bytes"
	"slices"
)

// parseTarget splits r.Target by the form that the method allows (RFC 9112
// §3.2). Its octets are checked already.
func (r *Request) parseTarget() Error {
	t := r.Target
	r.Path, r.Query, r.Host = nil, nil, nil
	switch {
	case string(r.Method) == "CONNECT": // authority form
		if !validAuthority(t) || !octetIs(t[len(t)-1], digitOctet) || bytes.LastIndexByte(t, ':') <= bytes.LastIndexByte(t, ']') {
			return BadTarget
		}
		r.Host = t
	case t[0] == '/': // origin form
		r.splitQuery(t)
	case string(t) == "*": // asterisk form
		if string(r.Method) != "OPTIONS" {
			return BadTarget
		}
		r.Path = t
	default:
		return r.parseAbsolute(t)
	}
	return OK
}

// parseAbsolute reads the absolute form, http or https. Its authority takes the
// place of the Host field (RFC 9112 §3.2.2).
func (r *Request) parseAbsolute(t []byte) Error {
	slash := bytes.IndexByte(t, '/')
	if slash < 0 || !EqualFold(t[:slash], "http:") && !EqualFold(t[:slash], "https:") ||
		slash+1 == len(t) || t[slash+1] != '/' {
		return BadTarget
	}
	rest := t[slash+2:]
	end := bytes.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	if !validAuthority(rest[:end]) {
		return BadTarget
	}
	r.Host = slices.Clip(rest[:end])
	r.splitQuery(slices.Clip(rest[end:]))
	if len(r.Path) == 0 {
		r.Path = slices.Clip(t[slash : slash+1]) // "/", as a view like all the rest
	}
	return OK
}

// splitQuery cuts path and query at the first '?'.
func (r *Request) splitQuery(t []byte) {
	r.Path = t
	if i := bytes.IndexByte(t, '?'); i >= 0 {
		r.Path, r.Query = slices.Clip(t[:i]), t[i+1:]
	}
}

// validAuthority checks host and optional port, as in a Host field. The host is
// an IPv6 literal or consists of the octets of host names and IPv4 addresses;
// it is not empty, and userinfo is refused (RFC 9110 §4.2.4). The port may be
// empty (RFC 3986 §3.2.3).
func validAuthority(b []byte) bool {
	var rest []byte
	if len(b) > 0 && b[0] == '[' {
		end := bytes.IndexByte(b, ']')
		if end < 0 || !validIPv6(b[1:end]) {
			return false
		}
		if rest = b[end+1:]; len(rest) == 0 {
			return true
		}
		if rest[0] != ':' {
			return false
		}
		return validPort(rest[1:])
	}
	host, port, found := bytes.Cut(b, colon)
	return every(host, hostOctet) && (!found || validPort(port))
}

var colon = []byte{':'}

// validPort accepts up to five digits, at most 65535.
func validPort(b []byte) bool {
	n := 0
	for _, o := range b {
		if !octetIs(o, digitOctet) {
			return false
		}
		n = n*10 + int(o-'0')
		if n > 65535 {
			return false
		}
	}
	return len(b) <= 5
}

// validIPv6 checks the text form of an address (RFC 4291 §2.2) without zone.
func validIPv6(b []byte) bool {
	groups, gap := 0, false
	if len(b) >= 2 && b[0] == ':' && b[1] == ':' {
		gap, b = true, b[2:]
	}
	for len(b) > 0 {
		i := 0
		for i < len(b) && i < 4 && octetIs(b[i], hexOctet) {
			i++
		}
		if i == 0 {
			return false
		}
		if i < len(b) && b[i] == '.' {
			if !validIPv4(b) {
				return false
			}
			groups += 2
			break
		}
		groups++
		if b = b[i:]; len(b) == 0 {
			break
		}
		if b[0] != ':' || len(b) == 1 {
			return false
		}
		if b = b[1:]; b[0] == ':' {
			if gap {
				return false
			}
			gap, b = true, b[1:]
		}
	}
	if gap {
		return groups < 8
	}
	return groups == 8
}

// validIPv4 checks four decimal numbers up to 255 without leading zeros.
func validIPv4(b []byte) bool {
	for part := range 4 {
		n, digits := 0, 0
		for digits < len(b) && digits < 3 && octetIs(b[digits], digitOctet) {
			n = n*10 + int(b[digits]-'0')
			digits++
		}
		if digits == 0 || n > 255 || digits > 1 && b[0] == '0' {
			return false
		}
		if b = b[digits:]; part == 3 {
			break
		}
		if len(b) == 0 || b[0] != '.' {
			return false
		}
		b = b[1:]
	}
	return len(b) == 0
}
