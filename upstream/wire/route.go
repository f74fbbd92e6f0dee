package wire

import (
	"bytes"

	"relay/store/catalog"
)

// A Shape is the catalog's word for a family of JSON.
type Shape = catalog.Shape

// The two shapes.
const (
	OpenAI    = catalog.OpenAI
	Anthropic = catalog.Anthropic
)

// A RouteID names what a path asks for.
type RouteID uint8

// The routes. NoRoute is an unknown path.
const (
	NoRoute RouteID = iota
	ChatCompletions
	Completions
	Embeddings
	Responses
	Moderations
	Images // generations, edits, variations: the suffix tells
	Audio  // speech, transcriptions, translations
	Messages
	CountTokens
	Models    // GET list
	ModelByID // GET one
)

// routes is the one table of what a route is.
var routes = [...]struct {
	name          string
	shape         Shape // of requests with a body; models exist in both
	metered       bool
	modelOptional bool // a body without "model" is passed on
	get           bool // else POST
}{
	NoRoute:         {name: "unknown"},
	ChatCompletions: {name: "chat_completions", metered: true},
	Completions:     {name: "completions", metered: true},
	Embeddings:      {name: "embeddings", metered: true},
	Responses:       {name: "responses", metered: true},
	Moderations:     {name: "moderations", modelOptional: true},
	Images:          {name: "images", metered: true, modelOptional: true},
	Audio:           {name: "audio", metered: true, modelOptional: true},
	Messages:        {name: "messages", shape: Anthropic, metered: true},
	CountTokens:     {name: "count_tokens", shape: Anthropic},
	Models:          {name: "models", get: true},
	ModelByID:       {name: "model", get: true},
}

// String is a short name for metrics and usage rows.
func (id RouteID) String() string { return routes[id].name }

// Allows reports whether the route takes that method: GET for models, POST
// else.
func (id RouteID) Allows(method []byte) bool { return string(method) == id.Allow() }

// Allow is the method that the route takes: "GET" or "POST". It is the value
// of the Allow field of a 405.
func (id RouteID) Allow() string {
	if routes[id].get {
		return "GET"
	}
	return "POST"
}

// Metered reports whether an answer of the route costs money: false for
// moderations, count_tokens and models.
func (id RouteID) Metered() bool { return routes[id].metered }

func (id RouteID) modelOptional() bool { return routes[id].modelOptional }

func (id RouteID) shape() Shape { return routes[id].shape }

// A Route is a path understood.
type Route struct {
	ID    RouteID
	Shape Shape // also set for NoRoute: the shape in which the error is told
	// Suffix is a view into the path behind "/v1", such as
	// "/chat/completions"; it is what a host's base path is followed by.
	// For ModelByID it is the model id as sent, still percent-encoded.
	Suffix []byte
}

// FindRoute understands a request path (without query). anthropicVersion says
// that the request has an anthropic-version field, which decides the shape of
// the bare shared names. A path is compared byte by byte: nothing is decoded,
// folded or resolved, so that no two readers can understand it differently.
func FindRoute(path []byte, anthropicVersion bool) Route {
	shape, bare := OpenAI, true
	if anthropicVersion {
		shape = Anthropic
	}
	if rest, ok := cutSegment(path, "/openai"); ok {
		path, shape, bare = rest, OpenAI, false
	} else if rest, ok := cutSegment(path, "/anthropic"); ok {
		path, shape, bare = rest, Anthropic, false
	}
	suffix, ok := cutSegment(path, "/v1")
	if !ok {
		return Route{Shape: shape}
	}
	if bare {
		shape = bareShape(suffix, shape)
	}
	r := Route{ID: suffixRoute(suffix), Shape: shape, Suffix: suffix}
	switch r.ID {
	case NoRoute:
		return Route{Shape: shape}
	case ModelByID:
		r.Suffix = suffix[len("/models/"):]
	case Models:
	default:
		if r.ID.shape() != shape {
			return Route{Shape: shape}
		}
	}
	return r
}

// cutSegment cuts a leading segment off the path; what is left is empty or
// begins with a slash.
func cutSegment(path []byte, segment string) (rest []byte, ok bool) {
	if len(path) < len(segment) || string(path[:len(segment)]) != segment {
		return path, false
	}
	rest = path[len(segment):]
	if len(rest) > 0 && rest[0] != '/' {
		return path, false
	}
	return rest, true
}

// bareShape is the shape of a path without a prefix, by its first segment;
// shared and unknown names have the shape that the request's fields tell.
func bareShape(suffix []byte, shared Shape) Shape {
	if len(suffix) == 0 {
		return shared
	}
	first, _, _ := bytes.Cut(suffix[1:], []byte("/"))
	switch string(first) {
	case "messages", "complete":
		return Anthropic
	case "chat", "responses", "embeddings", "completions", "moderations", "images", "audio", "batches":
		return OpenAI
	}
	return shared
}

func suffixRoute(suffix []byte) RouteID {
	switch string(suffix) {
	case "/chat/completions":
		return ChatCompletions
	case "/completions":
		return Completions
	case "/embeddings":
		return Embeddings
	case "/responses":
		return Responses
	case "/moderations":
		return Moderations
	case "/images/generations", "/images/edits", "/images/variations":
		return Images
	case "/audio/speech", "/audio/transcriptions", "/audio/translations":
		return Audio
	case "/messages":
		return Messages
	case "/messages/count_tokens":
		return CountTokens
	case "/models":
		return Models
	}
	if id, ok := bytes.CutPrefix(suffix, []byte("/models/")); ok && plainSegments(id) {
		return ModelByID
	}
	return NoRoute
}

// plainSegments reports whether a model id has no empty and no dot segment,
// however it is encoded.
func plainSegments(id []byte) bool {
	for more := true; more; {
		var segment []byte
		segment, id, more = bytes.Cut(id, []byte("/"))
		dots := 0
		for len(segment) > 0 {
			n := 1
			if len(segment) >= 3 && segment[0] == '%' && segment[1] == '2' && segment[2]|0x20 == 'e' {
				n = 3
			} else if segment[0] != '.' {
				break
			}
			segment = segment[n:]
			dots++
		}
		if len(segment) == 0 && dots <= 2 {
			return false
		}
	}
	return true
}

// AppendModelID appends the model id of a ModelByID route, decoded. ok is false
// when its percent-encoding is broken (RFC 3986 §2.1).
func AppendModelID(dst, suffix []byte) (out []byte, ok bool) {
	for i := 0; i < len(suffix); i++ {
		c := suffix[i]
		if c == '%' {
			if len(suffix) < i+3 || hexDigit(suffix[i+1]) > 15 || hexDigit(suffix[i+2]) > 15 {
				return dst, false
			}
			c = hexDigit(suffix[i+1])<<4 | hexDigit(suffix[i+2])
			i += 2
		}
		dst = append(dst, c)
	}
	return dst, true
}
