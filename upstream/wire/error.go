package wire

import "unicode/utf8"

// An Error is one of the errors that Relay itself tells a caller: a member of
// a closed set with one table for status, type, code and message in both
// shapes.
type Error uint8

// The errors.
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
	BudgetSpent              // 429 the account's or key's money is used up; a retry is of no use
	UnsupportedMedia         // 415 content type or content coding
	StoreUnavailable         // 503/529 limits cannot be checked
	SpoolFull                // 503/529 usage cannot be recorded

	errorsEnd
)

// ErrorCount is how many errors there are, NoError among them: the length of a
// table of labels.
const ErrorCount = int(errorsEnd)

// errorTable is the one table of what a caller is told. An empty code is null.
var errorTable = [ErrorCount]struct {
	label           string
	status          int // OpenAI
	anthropicStatus int // 0: the same
	kind, code      string
	anthropicKind   string
	message         string
}{
	NoError: {label: "none"},
	BadRequest: {"bad_request", 400, 0, "invalid_request_error", "", "invalid_request_error",
		"The request is not valid."},
	MissingKey: {"missing_key", 401, 0, "invalid_request_error", "invalid_api_key", "authentication_error",
		"No API key was given. Send one as 'Authorization: Bearer' or 'x-api-key'."},
	InvalidKey: {"invalid_key", 401, 0, "invalid_request_error", "invalid_api_key", "authentication_error",
		"The API key is not valid."},
	ModelNotAllowed: {"model_not_allowed", 403, 0, "invalid_request_error", "model_not_allowed", "permission_error",
		"The API key may not use this model."},
	UnknownPath: {"unknown_path", 404, 0, "invalid_request_error", "unknown_url", "not_found_error",
		"This path does not exist."},
	UnknownModel: {"unknown_model", 404, 0, "invalid_request_error", "model_not_found", "not_found_error",
		"This model does not exist."},
	MethodNotAllowed: {"method_not_allowed", 405, 0, "invalid_request_error", "method_not_allowed", "invalid_request_error",
		"This path does not take this method."},
	RequestTimeout: {"request_timeout", 408, 0, "invalid_request_error", "request_timeout", "invalid_request_error",
		"The request did not arrive in time."},
	BodyTooLarge: {"body_too_large", 413, 0, "invalid_request_error", "request_too_large", "request_too_large",
		"The request body is too large."},
	TargetTooLong: {"target_too_long", 414, 0, "invalid_request_error", "", "invalid_request_error",
		"The request target is too long."},
	ExpectationFailed: {"expectation_failed", 417, 0, "invalid_request_error", "", "invalid_request_error",
		"The expectation in the Expect field cannot be met."},
	HeadTooLarge: {"head_too_large", 431, 0, "invalid_request_error", "", "invalid_request_error",
		"The header fields of the request are too large."},
	RateLimited: {"rate_limited", 429, 0, "rate_limit_error", "rate_limit_exceeded", "rate_limit_error",
		"A rate limit is reached. Try again later."},
	InternalError: {"internal_error", 500, 0, "server_error", "internal_error", "api_error",
		"The gateway had an internal error."},
	NotImplemented: {"not_implemented", 501, 0, "invalid_request_error", "", "invalid_request_error",
		"The transfer coding of the request is not supported."},
	BadGateway: {"bad_gateway", 502, 0, "server_error", "bad_gateway", "api_error",
		"The upstream could not be reached or gave no valid answer."},
	UpstreamCredential: {"upstream_credential", 502, 0, "server_error", "bad_gateway", "api_error",
		"The upstream did not accept the request of the gateway."},
	Overloaded: {"overloaded", 503, 529, "service_unavailable_error", "server_is_overloaded", "overloaded_error",
		"The gateway is overloaded. Try again later."},
	NoHost: {"no_host", 503, 529, "service_unavailable_error", "server_is_overloaded", "overloaded_error",
		"No upstream can take the request now. Try again later."},
	UpstreamTimeout: {"upstream_timeout", 504, 0, "server_error", "timeout", "timeout_error",
		"The upstream did not answer in time."},
	BadVersion: {"bad_version", 505, 0, "invalid_request_error", "", "invalid_request_error",
		"Only HTTP/1.1 and HTTP/1.0 are supported."},
	UpstreamCut: {"upstream_cut", 502, 0, "server_error", "upstream_disconnected", "api_error",
		"The upstream broke off in the middle of its answer."},
	StreamIdle: {"stream_idle", 504, 0, "server_error", "timeout", "timeout_error",
		"The upstream sent nothing for too long."},
	ShuttingDown: {"shutting_down", 503, 0, "server_error", "shutting_down", "api_error",
		"The gateway shut down before the answer was complete."},
	BudgetSpent: {"budget_spent", 429, 0, "insufficient_quota", "budget_exceeded", "rate_limit_error",
		"The budget is spent."},
	UnsupportedMedia: {"unsupported_media", 415, 0, "invalid_request_error", "", "invalid_request_error",
		"The content type or content coding of the request is not supported."},
	StoreUnavailable: {"store_unavailable", 503, 529, "service_unavailable_error", "server_is_overloaded", "overloaded_error",
		"Limits cannot be checked now. Try again later."},
	SpoolFull: {"spool_full", 503, 529, "service_unavailable_error", "server_is_overloaded", "overloaded_error",
		"Usage cannot be recorded now. Try again later."},
}

// String is a short label for metrics and usage rows.
func (e Error) String() string { return errorTable[e].label }

// Status is the HTTP status in the shape.
func (e Error) Status(s Shape) int {
	if s == Anthropic && errorTable[e].anthropicStatus != 0 {
		return errorTable[e].anthropicStatus
	}
	return errorTable[e].status
}

// AppendError appends the JSON body of e in the shape, in one line. message
// replaces the usual sentence when it is not empty; param is the field it is
// about, or "". Both are escaped and cut to MessageBytesMax and ParamBytesMax;
// neither may hold anything of a key. requestID is put where the shape has a
// place for it.
func AppendError(dst []byte, s Shape, e Error, message, param string, requestID []byte) []byte {
	if e == NoError {
		panic("BUG: no error to tell")
	}
	told := &errorTable[e]
	if message == "" {
		message = told.message
	}
	message = cutText(message, MessageBytesMax)
	if s == Anthropic {
		dst = append(dst, `{"type":"error","error":{"type":"`...)
		dst = append(dst, told.anthropicKind...)
		dst = append(dst, `","message":`...)
		dst = appendQuoted(dst, message)
		dst = append(dst, `},"request_id":`...)
		if len(requestID) > RequestIDBytesMax {
			requestID = requestID[:RequestIDBytesMax]
		}
		dst = appendQuotedOrNull(dst, string(requestID))
		return append(dst, '}')
	}
	dst = append(dst, `{"error":{"message":`...)
	dst = appendQuoted(dst, message)
	dst = append(dst, `,"type":"`...)
	dst = append(dst, told.kind...)
	dst = append(dst, `","param":`...)
	dst = appendQuotedOrNull(dst, cutText(param, ParamBytesMax))
	dst = append(dst, `,"code":`...)
	dst = appendQuotedOrNull(dst, told.code)
	return append(dst, `}}`...)
}

func appendQuotedOrNull(dst []byte, s string) []byte {
	if s == "" {
		return append(dst, "null"...)
	}
	return appendQuoted(dst, s)
}

// cutText cuts s to at most limit bytes, between characters.
func cutText(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	n := limit
	for n > limit-utf8.UTFMax && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// ErrorBodyOK reports whether the body of an upstream's error is what callers
// of the shape can read: one JSON object with an "error" in it, which is an
// object or, for OpenAI, may be a string. Anything else (HTML, an empty body)
// is to be replaced.
func ErrorBodyOK(body []byte, s Shape) bool {
	var l lexer
	l.watch = 1
	found, here := false, false
	for i := 0; ; {
		var tok token
		tok, i = l.next(body, i)
		switch {
		case tok == tokMore:
			return found && l.ended()
		case tok == tokBroken:
			return false
		case tok == tokKey:
			here = string(l.name()) == "error"
		case here && tok != tokClose: // the last one counts
			found = tok == tokObject || s == OpenAI && tok == tokString && l.length > 0
			here = false
		case tok == tokArray && l.depth == 1:
			return false
		}
	}
}
