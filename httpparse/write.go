package httpparse

// AppendField appends "name: value CRLF". Both must be valid already: nothing
// is written raw that was not parsed or made by Relay.
func AppendField(dst []byte, name string, value []byte) []byte { panic("BUG: not built") }

// AppendStatusLine appends "HTTP/1.1 status reason CRLF".
func AppendStatusLine(dst []byte, status int) []byte { panic("BUG: not built") }

// AppendChunk appends data as one chunk; no data appends nothing, since an
// empty chunk would end the body.
func AppendChunk(dst, data []byte) []byte { panic("BUG: not built") }

// LastChunk ends a chunked body without trailers.
const LastChunk = "0\r\n\r\n"

// HopByHop reports whether a field belongs to one connection only and is not
// passed on: Connection, the fields that Connection names, Keep-Alive,
// Proxy-Connection, TE, Trailer, Transfer-Encoding, Upgrade, HTTP2-Settings.
// It is also true for Content-Length and Host, which the writer makes anew.
// fields is the whole head, read for its Connection fields.
func HopByHop(fields []Field, name []byte) bool { panic("BUG: not built") }

// EqualFold compares an ASCII name with lower, which is in lower case.
func EqualFold(name []byte, lower string) bool { panic("BUG: not built") }
