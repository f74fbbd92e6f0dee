package mockhost

import (
	"bytes"
	"net/url"
	"strconv"
	"strings"
)

// A request is one parsed request. Its byte fields point into the
// connection's read buffer and die with the next request.
type request struct {
	method, path, query string
	head                []byte // request line and fields, with the blank line
	body                []byte
	contentLength       int64 // 0 when absent
	chunked             bool
	close               bool
	expects             bool
	authorization       []byte
	apiKey              []byte
	version             []byte // anthropic-version
	contentType         []byte
	http10              bool
}

// parse reads a whole head. It is strict where a gateway has no business to be
// lenient.
func (r *request) parse(head []byte) bool {
	*r = request{head: head}
	line, rest, _ := bytes.Cut(head, crlf)
	method, line, ok1 := bytes.Cut(line, []byte{' '})
	target, version, ok2 := bytes.Cut(line, []byte{' '})
	if !ok1 || !ok2 || len(method) == 0 || len(target) == 0 || target[0] != '/' {
		return false
	}
	switch string(version) {
	case "HTTP/1.1":
	case "HTTP/1.0":
		r.http10, r.close = true, true
	default:
		return false
	}
	r.method = internMethod(method)
	path, query, _ := strings.Cut(string(target), "?")
	r.path, r.query = path, query
	hosts, lengths := 0, 0
	for {
		var field []byte
		field, rest, _ = bytes.Cut(rest, crlf)
		if len(field) == 0 {
			return hosts == 1 || r.http10
		}
		colon := bytes.IndexByte(field, ':')
		if colon <= 0 || field[colon-1] == ' ' || bytes.IndexByte(field, 0) >= 0 || bytes.IndexByte(field, '\n') >= 0 {
			return false
		}
		name, value := field[:colon], bytes.Trim(field[colon+1:], " \t")
		switch {
		case is(name, "host"):
			hosts++
		case is(name, "content-length"):
			n, err := strconv.ParseUint(string(value), 10, 62)
			if lengths++; err != nil || lengths > 1 {
				return false
			}
			r.contentLength = int64(n)
		case is(name, "transfer-encoding"):
			r.chunked = true
		case is(name, "connection"):
			r.close = r.close || is(value, "close")
		case is(name, "expect"):
			r.expects = is(value, "100-continue")
		case is(name, "authorization"):
			r.authorization = value
		case is(name, "x-api-key"):
			r.apiKey = value
		case is(name, "anthropic-version"):
			r.version = value
		case is(name, "content-type"):
			r.contentType = value
		}
	}
}

var crlf = []byte("\r\n")

func is(name []byte, lower string) bool {
	return len(name) == len(lower) && name[0]|0x20 == lower[0] && strings.EqualFold(string(name), lower)
}

func internMethod(m []byte) string {
	switch string(m) {
	case "POST":
		return "POST"
	case "GET":
		return "GET"
	}
	return string(m)
}

// bearer is the token of an Authorization field, or "".
func (r *request) bearer() string {
	if len(r.authorization) > 7 && is(r.authorization[:7], "bearer ") {
		return string(bytes.TrimLeft(r.authorization[7:], " "))
	}
	return ""
}

// credential is the provider key that came, from the field of the shape.
func (r *request) credential(s shape) string {
	if s == anthropicShape && len(r.apiKey) > 0 {
		return string(r.apiKey)
	}
	return r.bearer()
}

// scenarioText is the scenario asked for outside the body, or "".
func (r *request) scenarioText(s shape) string {
	text := ""
	if r.query != "" {
		if q, err := url.ParseQuery(r.query); err == nil {
			text = q.Get("mock")
		}
	}
	if key := r.credential(s); strings.HasPrefix(key, credentialMark) {
		text = joinScenario(key[len(credentialMark):], text)
	}
	return text
}

// credentialMark begins a credential that carries a scenario.
const credentialMark = "sk-mock:"

func joinScenario(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "," + b
}

type shape uint8

const (
	openaiShape shape = iota
	anthropicShape
)

// An endpoint is what a path asks for.
type endpoint uint8

const (
	unknown endpoint = iota
	chat
	completions
	embeddings
	responsesAPI
	moderations
	images
	speechAudio
	transcripts
	messages
	countTokens
	models
	mockStats
	mockLast
)

var endpoints = map[string]endpoint{
	"/chat/completions":      chat,
	"/completions":           completions,
	"/embeddings":            embeddings,
	"/responses":             responsesAPI,
	"/moderations":           moderations,
	"/images/generations":    images,
	"/images/edits":          images,
	"/images/variations":     images,
	"/audio/speech":          speechAudio,
	"/audio/transcriptions":  transcripts,
	"/audio/translations":    transcripts,
	"/messages":              messages,
	"/messages/count_tokens": countTokens,
	"/models":                models,
}

// route tells the endpoint and the shape of a path; what stands before its
// last "/v1" is ignored, so that any base path works.
func (r *request) route() (endpoint, shape) {
	switch r.path {
	case "/_mock/stats":
		return mockStats, openaiShape
	case "/_mock/last":
		return mockLast, openaiShape
	}
	suffix := r.path
	if i := strings.LastIndex(suffix, "/v1/"); i >= 0 {
		suffix = suffix[i+3:]
	}
	e := endpoints[suffix]
	if e == messages || e == countTokens || len(r.version) > 0 && (e == models || e == unknown) {
		return e, anthropicShape
	}
	return e, openaiShape
}
