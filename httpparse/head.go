package httpparse

// A Field is one header or trailer field line (RFC 9110 §5). Both parts are
// views into the input; Name keeps the letter case of the sender, Value has no
// blank at either end.
type Field struct {
	Name, Value []byte
}

// A Progress is how far an incomplete head has been looked at, so that a head
// that comes in pieces is not looked at from its start again at each piece.
// The zero value is the start. Owner: whoever owns the input bytes.
type Progress struct {
	at    int32 // first byte not looked at yet
	line  int32 // start of the line that at is in
	lines int16 // complete lines so far
}

// A Request is a parsed request head. It is reused: Parse overwrites
// everything, keeping the capacity of Fields.
type Request struct {
	Method []byte // a token, letter case kept (RFC 9110 §9.1)
	Target []byte // as sent
	Path   []byte // of the target, not unescaped, never empty for origin form
	Query  []byte // behind the first '?', without it; nil when there is none
	Host   []byte // authority of an absolute target, else the Host field
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
// may have moved. Leading empty lines are skipped in a bounded number
// (RFC 9112 §2.2) and counted in n. All limits of limits.go hold before the
// line end has come.
func (r *Request) Parse(p []byte, g *Progress) (n int, err Error) {
	panic("BUG: not built")
}

// Field returns the value of the first field of that name, or nil. name is in
// lower case; the comparison ignores the case of the field.
func (r *Request) Field(name string) []byte { return find(r.Fields, name) }

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
	Status int // 100..599
	Reason []byte
	Minor  uint8
	Fields []Field

	Body          BodyKind
	ContentLength int64 // bytes; -1 = not announced
	KeepAlive     bool  // the connection may be used again after the body
}

// Parse reads one response head from the start of p, as Request.Parse does.
// head says that the request was HEAD, whose answer has no body.
func (r *Response) Parse(p []byte, g *Progress, head bool) (n int, err Error) {
	panic("BUG: not built")
}

// Field is as of Request.
func (r *Response) Field(name string) []byte { return find(r.Fields, name) }

func find(fields []Field, name string) []byte {
	panic("BUG: not built")
}
