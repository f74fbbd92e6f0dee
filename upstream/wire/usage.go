package wire

// A Usage is what an answer says it used, in tokens by kind, normalised so
// that no token is in two fields: Input holds neither cached nor written
// tokens in either shape. Reasoning is the part of Output that was reasoning
// and is not priced again.
type Usage struct {
	Input        int64
	CachedInput  int64
	CacheWrite5m int64
	CacheWrite1h int64
	Output       int64
	Reasoning    int64
	AudioInput   int64 // part of Input
	AudioOutput  int64 // part of Output
	WebSearches  int64 // calls
	Reported     bool  // the upstream gave a usage object
}
