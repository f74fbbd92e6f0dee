package mockhost

import (
	"net/http"
	"time"
)

// refuse answers with an error body in the shape.
func (c *conn) refuse(s shape, status int, kind, code, message string) bool {
	return c.respond(s, status, "application/json", appendError(nil, s, kind, code, message), time.Now())
}

func appendError(dst []byte, s shape, kind, code, message string) []byte {
	if s == anthropicShape {
		dst = appendString(append(dst, `{"type":"error","error":{"type":`...), kind)
		dst = appendString(append(dst, `,"message":`...), message)
		return append(dst, `},"request_id":"req_mock"}`...)
	}
	dst = appendString(append(dst, `{"error":{"message":`...), message)
	dst = appendString(append(dst, `,"type":`...), kind)
	dst = append(dst, `,"param":null,"code":`...)
	if code == "" {
		return append(dst, "null}}"...)
	}
	return append(appendString(dst, code), "}}"...)
}

// kinds are the error types of statuses, and the code of the OpenAI shape.
var kinds = map[int]struct{ anthropic, openai, code string }{
	400: {"invalid_request_error", "invalid_request_error", ""},
	401: {"authentication_error", "invalid_request_error", "invalid_api_key"},
	402: {"billing_error", "insufficient_quota", "insufficient_quota"},
	403: {"permission_error", "invalid_request_error", "permission_denied"},
	404: {"not_found_error", "invalid_request_error", "model_not_found"},
	409: {"conflict_error", "invalid_request_error", ""},
	413: {"request_too_large", "invalid_request_error", ""},
	429: {"rate_limit_error", "rate_limit_error", "rate_limit_exceeded"},
	500: {"api_error", "server_error", ""},
	503: {"api_error", "service_unavailable_error", "server_is_overloaded"},
	504: {"timeout_error", "server_error", ""},
	529: {"overloaded_error", "service_unavailable_error", "server_is_overloaded"},
}

func errorKind(s shape, status int) (kind, code string) {
	k, ok := kinds[status]
	switch {
	case !ok && status < 500:
		k = kinds[400]
	case !ok:
		k = kinds[500]
	}
	if s == anthropicShape {
		return k.anthropic, ""
	}
	return k.openai, k.code
}

const errorPage = "<!DOCTYPE html><html><head><title>Error</title></head><body><center><h1>Error</h1></center><hr><center>mock</center></body></html>\n"

// refuseByScenario answers with the refusal that was asked for, after the time
// to the first token that was asked for.
func (c *conn) refuseByScenario(s shape, sc *scenario, started time.Time) bool {
	status := sc.status
	if status == 0 {
		status = 502
	}
	if sc.tokensSigma == 0 && !c.waitUntil(started.Add(sc.first)) {
		return false
	}
	if sc.html {
		return c.respond(s, status, "text/html", []byte(errorPage), started)
	}
	kind, code := errorKind(s, status)
	message := http.StatusText(status)
	if message == "" {
		message = "Overloaded"
	}
	switch sc.code {
	case contextLength:
		code, message = "context_length_exceeded", "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens. Please reduce the length of the messages."
		if s == anthropicShape {
			message = "prompt is too long: 209000 tokens > 200000 maximum"
		}
	case contentFilter:
		code, message = "content_filter", "The response was filtered due to the prompt triggering the content management policy."
	}
	return c.respond(s, status, "application/json", appendError(nil, s, kind, code, message), started)
}

// answerEarly refuses before the body is read, and gives the peer a moment to
// read the answer before the rest of its body meets a closed socket.
func (c *conn) answerEarly(s shape) bool {
	c.req.close = true
	c.refuse(s, 413, "request_too_large", "", "the request is too large")
	c.tcp.CloseWrite()
	c.waitUntil(time.Now().Add(drainRequestTime))
	return false
}
