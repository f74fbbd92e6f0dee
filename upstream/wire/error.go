package wire

// An Error is one of the errors that Relay itself tells a caller: a member of
// a closed set with one table for status, type, code and message in both
// shapes.
type Error uint8

// The errors. The builder of this package adds what the tables need.
const (
	NoError            Error = iota
	BadRequest               // 400
	MissingKey               // 401 no relay key
	InvalidKey               // 401 unknown, disabled or expired relay key
	ModelNotAllowed          // 403
	UnknownPath              // 404
	UnknownModel             // 404
	MethodNotAllowed         // 405
	RequestTimeout           // 408 head or body came too slowly
	BodyTooLarge             // 413
	TargetTooLong            // 414
	ExpectationFailed        // 417
	HeadTooLarge             // 431
	RateLimited              // 429
	InternalError            // 500
	NotImplemented           // 501 transfer coding
	BadGateway               // 502 the upstream could not be reached or answered nonsense
	UpstreamCredential       // 502 the upstream refused Relay's own credential
	Overloaded               // 503, 529 on Anthropic routes
	NoHost                   // 503/529 no host can take it now
	UpstreamTimeout          // 504
	BadVersion               // 505
	UpstreamCut              // in a stream: the upstream broke off
	StreamIdle               // in a stream: no byte for too long
	ShuttingDown             // in a stream: the deadline of a shutdown passed
)

// Status is the HTTP status in the shape.
func (e Error) Status(s Shape) int { panic("BUG: not built") }

// AppendError appends the JSON body of e in the shape. message replaces the
// usual sentence when it is not empty; param is the field it is about, or "".
// Both are escaped. requestID is put where the shape has a place for it.
func AppendError(dst []byte, s Shape, e Error, message, param string, requestID []byte) []byte {
	panic("BUG: not built")
}
