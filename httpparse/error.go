package httpparse

// An Error is why a message was refused. It is a value of a closed set, so
// refusing allocates nothing; OK is zero.
type Error uint8

// The refusals, each with the status that a client gets.
const (
	OK Error = iota

	Malformed      // grammar of the start line or of a field: 400
	BadVersion     // well-formed, but neither HTTP/1.0 nor HTTP/1.1: 505
	BadTarget      // a form of target that the method does not allow: 400
	BadHost        // Host missing, repeated or invalid: 400
	BadLength      // Content-Length invalid or contradictory: 400
	BadCoding      // Transfer-Encoding without a clear end of the body: 400
	LengthTwice    // both Content-Length and Transfer-Encoding: 400
	UnknownCoding  // a coding under chunked that is not undone here: 501
	BadExpectation // an expectation other than 100-continue: 417

	LineTooLong   // over RequestLineBytesMax: 414
	FieldTooLarge // over FieldBytesMax: 431
	TooManyFields // over FieldsMax: 431
	HeadTooLarge  // over HeadBytesMax: 431

	BadChunk         // grammar of chunk framing: 400
	ChunkLineTooLong // over ChunkLineBytesMax or ChunkWasteBytesMax: 400
	ChunkTooLarge    // over ChunkBytesMax: 413
	BadTrailer       // grammar of a trailer field: 400
	TrailerTooLarge  // over TrailerBytesMax: 431

	errorsEnd
)

// refusals is the only place that decides the status and the words of an Error.
var refusals = [errorsEnd]struct {
	status int
	text   string
}{
	OK:             {200, "no error"},
	Malformed:      {400, "malformed message head"},
	BadVersion:     {505, "protocol version is neither HTTP/1.0 nor HTTP/1.1"},
	BadTarget:      {400, "request target has a form that the method does not allow"},
	BadHost:        {400, "exactly one valid Host field is needed"},
	BadLength:      {400, "invalid or contradictory Content-Length"},
	BadCoding:      {400, "invalid Transfer-Encoding"},
	LengthTwice:    {400, "both Content-Length and Transfer-Encoding"},
	UnknownCoding:  {501, "transfer coding other than chunked"},
	BadExpectation: {417, "expectation other than 100-continue"},

	LineTooLong:   {414, "start line longer than 8 KiB"},
	FieldTooLarge: {431, "field line longer than 16 KiB"},
	TooManyFields: {431, "more than 100 field lines"},
	HeadTooLarge:  {431, "message head longer than 64 KiB"},

	BadChunk:         {400, "malformed chunk"},
	ChunkLineTooLong: {400, "chunk extensions too long"},
	ChunkTooLarge:    {413, "chunk larger than 1 TiB"},
	BadTrailer:       {400, "malformed trailer field"},
	TrailerTooLarge:  {431, "trailer section longer than 8 KiB"},
}

// Status is the status for a client whose request was refused so: 400, 413,
// 414, 417, 431, 501 or 505; 200 for OK. A refused response is always a 502.
func (e Error) Status() int { return refusals[e].status }

// String says what was wrong, in words for an error message; never bytes of
// the input.
func (e Error) String() string { return refusals[e].text }
