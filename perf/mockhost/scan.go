package mockhost

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
)

// fields are the depth-1 members of a request body that the mock looks at.
// Slices point into the body.
type fields struct {
	model     string // unescaped
	modelJSON []byte // as it came, with its quotes: echoed in answers

	stream        bool
	streamOptions bool // present and not null
	includeUsage  bool
	maxTokens     int64 // -1 = absent
	n             int   // 0 = absent
	tools         []byte
	toolChoice    []byte
	prompt        []byte // messages, input or prompt: what is counted as the prompt
	system        []byte
	sampling      string // name of a sampling member that is present
	dimensions    int
	base64        bool // encoding_format
}

var errJSON = errors.New("we could not parse the JSON body of your request")

// scan reads the members of a JSON object without unescaping or copying the
// values it has no use for. It does not check all of the JSON grammar.
func scan(body []byte) (fields, error) {
	f := fields{maxTokens: -1}
	i := skipBlank(body, 0)
	if i >= len(body) || body[i] != '{' {
		return f, errJSON
	}
	i = skipBlank(body, i+1)
	if i < len(body) && body[i] == '}' {
		return f, trailing(body, i+1)
	}
	for {
		start := i
		if i = skipString(body, i); i < 0 {
			return f, errJSON
		}
		name := body[start+1 : i-1]
		if bytes.IndexByte(name, '\\') >= 0 {
			name = []byte(unquote(body[start:i]))
		}
		if i = skipBlank(body, i); i >= len(body) || body[i] != ':' {
			return f, errJSON
		}
		start = skipBlank(body, i+1)
		if i = skipValue(body, start); i < 0 {
			return f, errJSON
		}
		if err := f.take(string(name), body[start:i]); err != nil {
			return f, err
		}
		if i = skipBlank(body, i); i >= len(body) {
			return f, errJSON
		}
		switch body[i] {
		case '}':
			return f, trailing(body, i+1)
		case ',':
			i = skipBlank(body, i+1)
		default:
			return f, errJSON
		}
	}
}

// take keeps one member. The last of equal names wins.
func (f *fields) take(name string, value []byte) error {
	null := string(value) == "null"
	switch name {
	case "model":
		if value[0] != '"' {
			return errors.New("model must be a string")
		}
		f.modelJSON, f.model = value, unquote(value)
	case "stream":
		f.stream = string(value) == "true"
	case "stream_options":
		f.streamOptions = !null
		if !null {
			var o struct {
				IncludeUsage bool `json:"include_usage"`
			}
			if json.Unmarshal(value, &o) != nil {
				return errors.New("stream_options must be an object")
			}
			f.includeUsage = o.IncludeUsage
		}
	case "max_tokens", "max_completion_tokens", "max_output_tokens":
		if !null {
			n, err := strconv.ParseInt(string(value), 10, 64)
			if err != nil || n < 0 {
				return errors.New(name + " must be a whole number")
			}
			f.maxTokens = n
		}
	case "n":
		f.n, _ = strconv.Atoi(string(value))
	case "dimensions":
		f.dimensions, _ = strconv.Atoi(string(value))
	case "encoding_format":
		f.base64 = string(value) == `"base64"`
	case "tools":
		f.tools = value
	case "tool_choice":
		f.toolChoice = value
	case "messages", "input", "prompt":
		f.prompt = value
	case "system", "instructions":
		f.system = value
	case "temperature", "top_p", "top_k":
		f.sampling = name
	}
	return nil
}

func trailing(body []byte, i int) error {
	if skipBlank(body, i) != len(body) {
		return errJSON
	}
	return nil
}

func skipBlank(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// skipString returns the offset behind the string at i, or -1.
func skipString(b []byte, i int) int {
	if i >= len(b) || b[i] != '"' {
		return -1
	}
	for i++; ; {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return -1
		}
		end := i + n
		escapes := 0
		for end-1-escapes >= i && b[end-1-escapes] == '\\' {
			escapes++
		}
		i = end + 1
		if escapes%2 == 0 {
			return i
		}
	}
}

// skipValue returns the offset behind the value at i, or -1.
func skipValue(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		depth := 0
		for i < len(b) {
			switch b[i] {
			case '"':
				if i = skipString(b, i); i < 0 {
					return -1
				}
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
			i++
		}
		return -1
	}
	start := i
	for i < len(b) && b[i] != ',' && b[i] != '}' && b[i] != ']' && b[i] > ' ' {
		i++
	}
	if i == start {
		return -1
	}
	return i
}

// unquote is the text of a JSON string.
func unquote(quoted []byte) string {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1])
	}
	var s string
	if json.Unmarshal(quoted, &s) != nil {
		return string(quoted[1 : len(quoted)-1])
	}
	return s
}

// appendString appends s as a JSON string.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for _, c := range []byte(s) {
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c < ' ':
			dst = append(dst, '\\', 'u', '0', '0', '0'+c>>4, "0123456789abcdef"[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}
