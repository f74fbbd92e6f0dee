package wire

import "relay/store/catalog"

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
// the bare shared names.
func FindRoute(path []byte, anthropicVersion bool) Route { panic("BUG: not built") }

// Allows reports whether the route takes that method: GET for models, POST
// else. Allow is the value of the Allow field for a 405.
func (id RouteID) Allows(method []byte) bool { panic("BUG: not built") }

// Allow is the method that the route takes: "GET" or "POST".
func (id RouteID) Allow() string { panic("BUG: not built") }

// Metered reports whether an answer of the route costs money: false for
// moderations, count_tokens and models.
func (id RouteID) Metered() bool { panic("BUG: not built") }
