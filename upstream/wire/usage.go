package wire

// A Usage is what an answer says it used, in tokens by kind, normalised so
// that no token is in two fields: Input holds neither cached nor written
// tokens in either shape. Reasoning is the part of Output that was reasoning
// and is not priced again. No count is negative or above TokensMax.
type Usage struct {
	Input        int64
	CachedInput  int64
	CacheWrite5m int64 // also the written tokens of OpenAI hosts, which have one rate
	CacheWrite1h int64
	Output       int64
	Reasoning    int64
	AudioInput   int64 // part of Input
	AudioOutput  int64 // part of Output
	WebSearches  int64 // calls
	Reported     bool  // the upstream gave a usage object with at least one count
}

// TotalInput is all that went in, in tokens, however it is priced.
func (u Usage) TotalInput() int64 { return u.Input + u.CachedInput + u.CacheWrite5m + u.CacheWrite1h }

// Total is the tokens of both directions.
func (u Usage) Total() int64 { return u.TotalInput() + u.Output }

// A count is one number of a usage object, whatever a host calls it.
type count uint8

const (
	countInput count = iota
	countOutput
	countCached  // read from a cache
	countWritten // written to a cache, in all
	countWritten5m
	countWritten1h
	countReasoning
	countAudioIn
	countAudioOut
	countSearches
	countEnd
)

// counts are the numbers of one usage object, and which of them were there:
// null is as good as absent.
type counts struct {
	n    [countEnd]int64
	seen uint16 // one bit per count
}

func (c *counts) set(k count, n int64) {
	c.n[k] = n
	c.seen |= 1 << k
}

// merge overwrites what newer has. Counts of Anthropic events are cumulative
// and are never added.
func (c *counts) merge(newer *counts) {
	for k := range countEnd {
		if newer.seen>>k&1 != 0 {
			c.set(k, newer.n[k])
		}
	}
}

// usage normalises the counts of the shape. OpenAI's input includes cached and
// written tokens, Anthropic's excludes both.
func (c *counts) usage(s Shape) Usage {
	u := Usage{
		Input:        c.n[countInput],
		CachedInput:  c.n[countCached],
		CacheWrite5m: c.n[countWritten],
		Output:       c.n[countOutput],
		WebSearches:  c.n[countSearches],
		Reported:     c.seen != 0,
	}
	if s == Anthropic {
		// The split by lifetime comes once; the total may grow after it.
		u.CacheWrite1h = c.n[countWritten1h]
		u.CacheWrite5m = max(c.n[countWritten5m], c.n[countWritten]-u.CacheWrite1h)
	} else {
		u.Input = max(0, u.Input-u.CachedInput-u.CacheWrite5m)
	}
	u.Reasoning = min(c.n[countReasoning], u.Output)
	u.AudioInput = min(c.n[countAudioIn], u.Input)
	u.AudioOutput = min(c.n[countAudioOut], u.Output)
	return u
}

// add adds the counts of another turn that was billed with this one.
func (u *Usage) add(v Usage) {
	for _, f := range [...]struct {
		sum *int64
		n   int64
	}{
		{&u.Input, v.Input},
		{&u.CachedInput, v.CachedInput},
		{&u.CacheWrite5m, v.CacheWrite5m},
		{&u.CacheWrite1h, v.CacheWrite1h},
		{&u.Output, v.Output},
		{&u.Reasoning, v.Reasoning},
		{&u.AudioInput, v.AudioInput},
		{&u.AudioOutput, v.AudioOutput},
		{&u.WebSearches, v.WebSearches},
	} {
		*f.sum = min(*f.sum+f.n, TokensMax)
	}
	u.Reported = u.Reported || v.Reported
}
