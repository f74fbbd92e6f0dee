package httpparse

import "strconv"

// AppendRequestLine appends "method path?query HTTP/1.1 CRLF"; with a nil query
// there is no '?'. All parts must be valid already.
func AppendRequestLine(dst, method, path, query []byte) []byte {
	dst = append(dst, method...)
	dst = append(dst, ' ')
	dst = append(dst, path...)
	if query != nil {
		dst = append(dst, '?')
		dst = append(dst, query...)
	}
	return append(dst, " HTTP/1.1\r\n"...)
}

// AppendStatusLine appends "HTTP/1.1 status reason CRLF". status is 100..599;
// one without a registered reason gets the name of its class.
func AppendStatusLine(dst []byte, status int) []byte {
	if status < 100 || status >= len(reasons) {
		panic("BUG: status outside 100..599")
	}
	reason := reasons[status]
	if reason == "" {
		reason = classes[status/100]
	}
	dst = append(dst, "HTTP/1.1 "...)
	dst = append(dst, byte('0'+status/100), byte('0'+status/10%10), byte('0'+status%10), ' ')
	dst = append(dst, reason...)
	return append(dst, "\r\n"...)
}

// AppendField appends "name: value CRLF". Both must be valid already: nothing
// is written raw that was not parsed or made by Relay.
func AppendField(dst []byte, name string, value []byte) []byte {
	dst = append(dst, name...)
	dst = append(dst, ": "...)
	dst = append(dst, value...)
	return append(dst, "\r\n"...)
}

// AppendFieldUint appends a field whose value is a decimal number, such as
// Content-Length.
func AppendFieldUint(dst []byte, name string, value uint64) []byte {
	dst = append(dst, name...)
	dst = append(dst, ": "...)
	dst = strconv.AppendUint(dst, value, 10)
	return append(dst, "\r\n"...)
}

// Append appends a parsed field as "Name: Value CRLF".
func (f Field) Append(dst []byte) []byte {
	dst = append(dst, f.Name...)
	dst = append(dst, ": "...)
	dst = append(dst, f.Value...)
	return append(dst, "\r\n"...)
}

// AppendChunk appends data as one chunk; no data appends nothing, since an
// empty chunk would end the body.
func AppendChunk(dst, data []byte) []byte {
	if len(data) == 0 {
		return dst
	}
	dst = strconv.AppendUint(dst, uint64(len(data)), 16)
	dst = append(dst, "\r\n"...)
	dst = append(dst, data...)
	return append(dst, "\r\n"...)
}

// LastChunk ends a chunked body without trailers.
const LastChunk = "0\r\n\r\n"
