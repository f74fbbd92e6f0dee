package mockhost

import (
	"math"
	"math/rand/v2"
	"time"
)

// A pace is how much an answer says and how fast.
type pace struct {
	first           time.Duration // to the first token, from the last request byte
	spread          time.Duration // uniform, added to first
	opening         time.Duration // to the head of a stream; -1 = with the first token
	tokensPerSecond int           // 0 = the rest at once
	tokensPerEvent  int
	tokensMedian    int
	tokensSigma     float64 // of the log-normal length; 0 = always the median

	tick       time.Duration // not 0: a tick stream
	events     int           // of a tick stream
	eventBytes int
	pour       int64 // not 0: content bytes of a pour
	unicode    bool
}

// paces are the latency models.
var paces = map[string]pace{
	"instant": {opening: -1, tokensPerEvent: 8, tokensMedian: 16, events: 100, eventBytes: 32},
	"fast":    {first: 20 * time.Millisecond, opening: -1, tokensPerSecond: 5000, tokensPerEvent: 8, tokensMedian: 150, tokensSigma: 0.5, events: 100, eventBytes: 32},
	"stream":  {first: 300 * time.Millisecond, opening: -1, tokensPerSecond: 80, tokensPerEvent: 8, tokensMedian: 144, tokensSigma: 0.903, events: 100, eventBytes: 32},
	"slow":    {first: 3 * time.Second, spread: 1500 * time.Millisecond, opening: -1, tokensPerEvent: 8, tokensMedian: 150, tokensSigma: 0.5, events: 100, eventBytes: 32},
}

// tokens draws the length of an answer.
func (p *pace) tokens() int {
	if p.tokensSigma == 0 {
		return p.tokensMedian
	}
	n := int(float64(p.tokensMedian) * math.Exp(p.tokensSigma*rand.NormFloat64()))
	return min(max(n, 1), tokensMax)
}

// delay draws the time to the first token.
func (p *pace) delay() time.Duration {
	if p.spread == 0 {
		return p.first
	}
	return p.first + rand.N(p.spread)
}

// rest is how long n tokens take behind the first.
func (p *pace) rest(n int) time.Duration {
	if p.tokensPerSecond == 0 {
		return 0
	}
	return time.Duration(n) * time.Second / time.Duration(p.tokensPerSecond)
}
