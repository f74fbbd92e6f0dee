package usage

import "relay/store/catalog"

// An Event is one request as it ended. Its owner fills it in on the loop and
// hands it to the spool, which encodes it at once: strings are borrowed.
type Event struct {
	RequestID              [16]byte // UUIDv7, ours
	CallerID               string   // X-Request-ID as the caller sent it, or ""
	Generation             uint64   // of the catalog
	StartUnixNs, EndUnixNs int64

	Key, Account, Policy string
	ModelAsked           string // as the caller wrote it
	Model                string // catalog name
	UpstreamModel        string
	Host, HostKey        string
	UpstreamRequestID    string

	Route             string // "chat.completions", ...
	ShapeIn, ShapeOut string
	Status            int // sent to the caller; 0 = none, the caller had gone
	UpstreamStatus    int
	Outcome           Outcome
	Error             string // label of the error, "" if none; never text of a provider or caller
	Stream            bool
	Attempts          int

	Tokens Tokens
	Source Source
	Price  catalog.Price // unit prices, stamped
	Cost   Cost
	// ProviderCost is the cost of all attempts together in nano-USD; 0 means
	// that no attempt but the answered one cost anything.
	ProviderCost int64

	GrantUnixNs       int64 // when its limits were granted, by the clock of their store; 0 = not, or there are none
	OverheadNs        int64 // own time: total minus the upstream's share
	FirstTokenNs      int64 // from start to the first output byte at the client; 0 = none
	UpstreamNs        int64
	BytesIn, BytesOut int64
	HungUp            bool // the caller left before the end
}

// An Outcome says how an exchange ended.
type Outcome uint8

// The outcomes.
const (
	Completed   Outcome = iota // answered in full
	Refused                    // answered by Relay itself, no attempt made
	Failed                     // the upstream failed
	Cancelled                  // the caller left
	Cut                        // a stream that began was broken off
	Interrupted                // the process died: written by recovery only
)

// A Source says where the token counts come from.
type Source uint8

// The sources.
const (
	NoTokens  Source = iota // nothing was used, or nothing is counted on this route
	Reported                // by the upstream
	Estimated               // the upstream said nothing
	Partial                 // the upstream's report was cut off; the rest is estimated
)

// Tokens are counts by kind, without overlap: Input holds neither cached nor
// written tokens. Reasoning is part of Output; the audio counts are parts of
// Input and Output.
type Tokens struct {
	Input, CachedInput, CacheWrite5m, CacheWrite1h int64
	Output, Reasoning, AudioInput, AudioOutput     int64
	WebSearches                                    int64
}

// A Cost is in nano-USD by part. Each part is rounded half-even once; Total is
// the sum of the parts.
type Cost struct {
	Input, CachedInput, CacheWrite5m, CacheWrite1h, Output, Audio, WebSearch, Request int64
	Total                                                                             int64
}

// EstimateTokens guesses a count from bytes of text, for upstreams that report
// nothing: bytes / 4, rounded up.
func EstimateTokens(bytes int64) int64 { return (bytes + 3) / 4 }
