package wire

// A Span is a part of a body by offset, in bytes. Len 0 means absent.
type Span struct {
	Off, Len int32
}

// A Scan finds the top-level values of a request body that decide routing,
// limits and edits (depth 1 only, last duplicate wins, escapes understood). It
// is resumable: Advance is called as the body grows and looks at each byte
// once. The zero value is ready after Reset. It keeps offsets only.
type Scan struct {
	Model         Span // the JSON string of "model" with its quotes
	StreamOptions Span // the whole value of "stream_options": object or null
	MaxTokens     int64
	N             int64 // "n" or "best_of"; 1 when absent
	Stream        bool
	IncludeUsage  bool // stream_options.include_usage is true
	// more fields and the resumable state: builder of this package
}

// A ScanFault is why a body was refused; ScanOK is zero. Each has a message, the
// field it names ("" if none), and is answered by 400.
type ScanFault uint8

// ScanOK is a body without fault so far.
const ScanOK ScanFault = 0

// Message is the sentence for the caller.
func (f ScanFault) Message() string { panic("BUG: not built") }

// Param is the field that the fault is about, or "".
func (f ScanFault) Param() string { panic("BUG: not built") }

// Reset makes s ready for a body of the route.
func (s *Scan) Reset(id RouteID) { panic("BUG: not built") }

// Advance looks at the bytes of body that came since the last call; body holds
// all from the start and may have moved. end says that no more will come. A
// fault is final.
func (s *Scan) Advance(body []byte, end bool) ScanFault { panic("BUG: not built") }

// AppendModel appends the unescaped model name to dst.
func (s *Scan) AppendModel(dst, body []byte) []byte { panic("BUG: not built") }

// ScanMultipart finds the form field "model" of a multipart/form-data body.
// contentType is the whole Content-Type value. The span is the raw text of the
// field.
func ScanMultipart(body, contentType []byte) (Span, ScanFault) { panic("BUG: not built") }

// An Edit replaces body[Off:End] by Text.
type Edit struct {
	Off, End int
	Text     []byte
}

// AppendEdits appends the edits that a same-shape request needs, in order of
// offset, to edits: the model value when upstreamModel differs from what was
// sent, and stream_options.include_usage when inject is true, the request
// streams and the caller did not ask. scratch is used for the texts and
// returned grown. A BOM is cut off by an edit too.
func (s *Scan) AppendEdits(edits []Edit, scratch, body []byte, upstreamModel string, inject bool) ([]Edit, []byte) {
	panic("BUG: not built")
}

// EditedLen is the length of the body after the edits, in bytes.
func EditedLen(body []byte, edits []Edit) int { panic("BUG: not built") }
