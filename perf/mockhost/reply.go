package mockhost

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
)

// A reply is the plan of one sound answer. Owner: the goroutine of its
// connection; slices point into the request.
type reply struct {
	endpoint endpoint
	fields   fields
	sc       *scenario
	id       uint64
	created  int64 // unix seconds

	words        speech
	cutShort     bool // max_tokens was reached
	tools        []call
	promptTokens int64
	choices      int
	bytesBefore  int64 // content bytes of earlier events, of tick streams and pours
	sequence     int   // of Responses events
}

// A call is a tool call of an answer.
type call struct {
	name, arguments string // arguments is JSON
}

func (r *reply) outTokens() int64 {
	if r.sc.out >= 0 {
		return r.sc.out
	}
	n := int64(len(r.words.ends))
	if r.patterned() {
		n = r.patternBytes() / 4
	}
	for _, c := range r.tools {
		n += int64(len(c.name)+len(c.arguments))/4 + 1
	}
	return n * int64(r.choices)
}

func (r *reply) inTokens() int64 {
	if r.sc.in >= 0 {
		return r.sc.in
	}
	return r.promptTokens
}

// plan decides what is said, before any time is spent.
func (r *reply) plan() error {
	f := &r.fields
	r.promptTokens = int64(len(f.prompt)+len(f.system)+3) / 4
	r.choices = max(f.n, 1)
	if r.endpoint == messages || r.endpoint == responsesAPI {
		r.choices = 1
	}
	if r.choices > choicesMax {
		return errors.New("n is too large")
	}
	if r.patterned() {
		return r.planPattern()
	}
	spoken := corpus()
	if r.sc.unicode {
		spoken = newSpeech(unicodeText)
	}
	if len(f.tools) > 0 {
		tools, answered, err := chooseTools(r)
		if err != nil {
			return err
		}
		if r.tools = tools; len(tools) > 0 {
			return nil
		}
		if answered {
			spoken = newSpeech("The tool has answered: it is 21 degrees and sunny in Paris.")
		}
	} else if len(f.toolChoice) > 0 && string(f.toolChoice) != "null" {
		return errors.New("tool_choice is only allowed when tools are specified")
	}
	n := r.sc.pace.tokens()
	if f.maxTokens >= 0 && f.maxTokens < int64(min(n, len(spoken.ends))) {
		n, r.cutShort = int(f.maxTokens), true
	}
	r.words = spoken.first(n)
	return nil
}

// planPattern checks that the pattern can be streamed; its words count one
// token for four bytes.
func (r *reply) planPattern() error {
	sc := r.sc
	if r.choices > 1 || r.endpoint == responsesAPI || r.endpoint == completions ||
		sc.gzip || sc.crlf || sc.cr || sc.noSpace || sc.comments || sc.bom || sc.drip || sc.chunkExtension || sc.split >= 0 || sc.closeDelimited {
		return errors.New("mock: tick and pour want a plain stream of chat or messages with one choice")
	}
	return nil
}

// patternBytes is the length of the content of a tick stream or pour.
func (r *reply) patternBytes() int64 {
	if r.sc.pour > 0 {
		return (r.sc.pour + pourEventBytes - 1) / pourEventBytes * pourEventBytes
	}
	return int64(r.sc.events) * int64(r.sc.eventBytes)
}

// A turn is the part of a message that decides whether a tool is called.
type turn struct {
	Type    string          `json:"type"`
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// A tool is a definition in any of the three forms.
type tool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Parameters  json.RawMessage `json:"parameters"`
	InputSchema json.RawMessage `json:"input_schema"`
	Function    *tool           `json:"function"`
}

// chooseTools decides whether tools are called. answered says that the last
// turn is the result of one.
func chooseTools(r *reply) (calls []call, answered bool, err error) {
	var tools []tool
	if json.Unmarshal(r.fields.tools, &tools) != nil {
		return nil, false, errors.New("tools must be a list")
	}
	if len(tools) == 0 {
		return nil, false, errors.New("tools must not be empty")
	}
	for i, t := range tools {
		if t.Function != nil {
			tools[i] = *t.Function
		}
		if len(tools[i].InputSchema) > 0 {
			tools[i].Parameters = tools[i].InputSchema
		}
	}
	forced, never, name, err := toolChoice(r.fields.toolChoice)
	if err != nil || never {
		return nil, false, err
	}
	text, answered := lastTurn(r.fields.prompt)
	if answered || !forced && !strings.Contains(strings.ToLower(text), "weather") {
		return nil, answered, nil
	}
	chosen := tools[0]
	for i := len(tools) - 1; i >= 0; i-- {
		if name == "" && strings.Contains(tools[i].Name, "weather") || name == tools[i].Name {
			chosen = tools[i]
		}
	}
	if name != "" && chosen.Name != name {
		return nil, false, errors.New("tool_choice names a tool that is not in tools")
	}
	for range r.sc.calls {
		calls = append(calls, call{chosen.Name, arguments(chosen.Parameters)})
	}
	return calls, false, nil
}

func toolChoice(raw []byte) (forced, never bool, name string, err error) {
	if len(raw) == 0 || string(raw) == "null" {
		return false, false, "", nil
	}
	var choice struct {
		Type, Name string
		Function   struct{ Name string }
	}
	if raw[0] == '"' {
		choice.Type = unquote(raw)
	} else if json.Unmarshal(raw, &choice) != nil {
		return false, false, "", errors.New("tool_choice must be a string or an object")
	}
	switch choice.Type {
	case "auto", "allowed_tools":
		return false, false, "", nil
	case "none":
		return false, true, "", nil
	case "required", "any":
		return true, false, "", nil
	case "function", "tool":
		if choice.Name == "" {
			choice.Name = choice.Function.Name
		}
		return true, false, choice.Name, nil
	}
	return false, false, "", errors.New("tool_choice is of no known kind")
}

// lastTurn is the text of the last turn; answered says that it brings the
// result of a tool.
func lastTurn(prompt []byte) (text string, answered bool) {
	var turns []turn
	if len(prompt) > 0 && prompt[0] == '"' {
		return unquote(prompt), false
	}
	if json.Unmarshal(prompt, &turns) != nil || len(turns) == 0 {
		return "", false
	}
	last := turns[len(turns)-1]
	if last.Role == "tool" || last.Type == "function_call_output" {
		return "", true
	}
	if len(last.Content) > 0 && last.Content[0] == '"' {
		return unquote(last.Content), false
	}
	var parts []struct{ Type, Text string }
	if json.Unmarshal(last.Content, &parts) != nil {
		return "", false
	}
	for _, p := range parts {
		if p.Type == "tool_result" {
			answered = true
		}
		text += p.Text
	}
	return text, answered
}

// arguments makes up values for the required members of a schema; "" when the
// schema has none, as a model does that has nothing to say.
func arguments(schema []byte) string {
	var s struct {
		Properties map[string]struct {
			Type any
			Enum []json.RawMessage
		}
		Required []string
	}
	if json.Unmarshal(schema, &s) != nil || len(s.Properties) == 0 {
		return ""
	}
	out := []byte{'{'}
	for i, name := range s.Required {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(appendString(out, name), ':')
		p := s.Properties[name]
		if len(p.Enum) > 0 {
			out = append(out, p.Enum[0]...)
			continue
		}
		switch p.Type {
		case "number", "integer":
			out = append(out, '1')
		case "boolean":
			out = append(out, "true"...)
		case "array":
			out = append(out, "[]"...)
		case "object":
			out = append(out, "{}"...)
		default:
			out = append(out, `"Paris"`...)
		}
	}
	return string(append(out, '}'))
}

// argumentPieces cuts the arguments of a call as a streaming host does.
func (c call) argumentPieces() []string {
	if len(c.arguments) < 4 {
		return []string{c.arguments}
	}
	third := len(c.arguments) / 3
	return []string{c.arguments[:third], c.arguments[third : 2*third], c.arguments[2*third:]}
}

// wholeArguments is JSON even when the model said nothing.
func (c call) wholeArguments() string {
	if c.arguments == "" {
		return "{}"
	}
	return c.arguments
}

// appendID appends an id of 24 characters behind a prefix.
func appendID(dst []byte, prefix string, id uint64, part int) []byte {
	dst = append(dst, prefix...)
	const width = 20
	var digits [width]byte
	for i := range digits {
		digits[width-1-i] = byte('0' + id%10)
		id /= 10
	}
	dst = append(dst, "mock"...)
	dst = append(dst, digits[:]...)
	if part > 0 {
		dst = append(dst, '_')
		dst = strconv.AppendInt(dst, int64(part), 10)
	}
	return dst
}

func appendInt(dst []byte, name string, n int64) []byte {
	return strconv.AppendInt(append(dst, name...), n, 10)
}
