package upstream

import (
	"strconv"
	"time"

	"relay/upstream/wire"
)

// A Counted is what a told limit counts.
type Counted uint8

// What limits count, as the fields of both vendors name it.
const (
	CountedRequests Counted = iota
	CountedTokens
	CountedInputTokens  // "tokens" for OpenAI callers, whose fields know one kind
	CountedOutputTokens // as CountedInputTokens
)

// A RateLimit is how a limit stands, for the fields that tell callers of it.
// Zero is none.
type RateLimit struct {
	Counts       Counted
	Limit, Left  int64 // units
	RestNs       int64 // until the limit is full again
	RestAtUnixNs int64 // when that is
}

// RateLimits are the limits that an answer tells of: on requests, and on
// tokens.
type RateLimits [2]RateLimit

// countedNames are the names of both vendors, by Counted.
var countedNames = [...]struct{ openAI, anthropic string }{
	CountedRequests:     {"requests", "requests"},
	CountedTokens:       {"tokens", "tokens"},
	CountedInputTokens:  {"tokens", "input-tokens"},
	CountedOutputTokens: {"tokens", "output-tokens"},
}

// clockSlack is by how many nanoseconds a time may be late of its second without
// being the next one: loops and stores do not read their clocks at once.
const clockSlack = 50e6

// append appends the fields as the shape's vendor has them: OpenAI API
// reference, rate limits in headers; Anthropic API reference, response headers.
func (t *RateLimits) append(dst []byte, s wire.Shape) []byte {
	for i := range t {
		if r := &t[i]; r.Limit > 0 {
			if s == wire.Anthropic {
				dst = r.appendAnthropic(dst)
			} else {
				dst = r.appendOpenAI(dst)
			}
		}
	}
	return dst
}

func (r *RateLimit) appendOpenAI(dst []byte) []byte {
	name := countedNames[r.Counts].openAI
	dst = appendCount(dst, "x-ratelimit-limit-", name, "", r.Limit)
	dst = appendCount(dst, "x-ratelimit-remaining-", name, "", r.Left)
	dst = append(append(append(dst, "x-ratelimit-reset-"...), name...), ": "...)
	return append(appendWait(dst, r.RestNs), "\r\n"...)
}

func (r *RateLimit) appendAnthropic(dst []byte) []byte {
	name := countedNames[r.Counts].anthropic
	dst = appendCount(dst, "anthropic-ratelimit-", name, "-limit", r.Limit)
	dst = appendCount(dst, "anthropic-ratelimit-", name, "-remaining", r.Left)
	dst = append(append(append(dst, "anthropic-ratelimit-"...), name...), "-reset: "...)
	at := time.Unix(0, r.RestAtUnixNs).UTC()
	if at.Nanosecond() > clockSlack { // whoever waits so long is not early
		at = at.Truncate(time.Second).Add(time.Second)
	}
	return append(at.AppendFormat(dst, time.RFC3339), "\r\n"...)
}

// appendCount appends one field of a number.
func appendCount(dst []byte, prefix, name, suffix string, n int64) []byte {
	dst = append(append(append(dst, prefix...), name...), suffix...)
	dst = strconv.AppendInt(append(dst, ": "...), n, 10)
	return append(dst, "\r\n"...)
}

// appendWait appends a wait as OpenAI tells it: 12ms, 1s, 6m0s, rounded up.
func appendWait(dst []byte, ns int64) []byte {
	if ns <= 0 {
		return append(dst, "0s"...)
	}
	if ms := (ns-1)/int64(time.Millisecond) + 1; ms < 1000 {
		return append(strconv.AppendInt(dst, ms, 10), "ms"...)
	}
	seconds := (ns-1)/int64(time.Second) + 1
	if seconds >= 3600 {
		dst = append(strconv.AppendInt(dst, seconds/3600, 10), 'h')
	}
	if seconds >= 60 {
		dst = append(strconv.AppendInt(dst, seconds/60%60, 10), 'm')
	}
	return append(strconv.AppendInt(dst, seconds%60, 10), 's')
}
