package wire

// Limits of what this package reads and writes, in bytes unless said.
const (
	HeldBytesMax      = 64 << 10 // one streamed event; a longer one is passed on in pieces
	ModelNameBytesMax = 256      // a model name, unescaped
	MessageBytesMax   = 1 << 10  // the sentence in an error, before it is escaped
	ParamBytesMax     = 128      // the field name in an error, before it is escaped
	RequestIDBytesMax = 128      // the request id in an error, before it is escaped

	TokensMax      = 1 << 32 // tokens of one kind in one request; larger numbers count as this
	choicesUnclear = 128     // taken for an "n" that is no plain integer: the most that OpenAI's API takes
	ChoicesMax     = 1 << 20 // "n" or "best_of"; larger numbers count as this

	ModelPageMax     = 1000 // models in one page of an Anthropic list
	ModelPageDefault = 20   // the same when the caller names no limit
)

const (
	depthMax         = 200       // nested containers in JSON
	depthWatchMax    = 8         // depth to which a reader follows names
	memoBytesMax     = 320       // start of an event that a Stream remembers
	textBytesMax     = 32        // start of a name or string that a lexer keeps
	heldKeepBytes    = 4 << 10   // a Stream's buffer that is larger is let go once it is empty
	boundaryBytesMax = 70        // RFC 2046 §5.1.1
	bodyBytesMax     = 1<<31 - 1 // a body, so that offsets fit in 32 bits
	partHeadBytesMax = 4 << 10   // head of one part of a form
	partsMax         = 256       // parts of a form
)
