package mockhost

import (
	"strings"
	"sync"
)

// A speech is what an answer says, cut into tokens.
type speech struct {
	text string
	ends []int // byte offset behind each token
}

// sentences is the text of ordinary answers. It has no byte that JSON escapes.
const sentences = "Hello from the mock provider. I answer from memory, cost nothing, and never tire of the same question. " +
	"Your request arrived whole, was counted to the last token, and is on its way back to you now. " +
	"Ask me about the weather with a tool at hand and I will call it. " +
	"Add a scenario to the address, such as ?mock=status=503, and I will fail in the way that you choose. " +
	"Until then there is little to do but to look out of the window, where a slow river carries leaves past an old mill, " +
	"a heron stands on one leg, and the afternoon light lies warm on the stones. "

// unicodeText has characters of two, three and four bytes.
const unicodeText = "Grüße: 你好, 世界! Emoji 😀👩‍🚀🇪🇺, Ωmega, ñandú, 한국어 — end."

// corpus is the speech of ordinary answers; answers take a part from its start.
// It is made at first use: a gateway that never mocks carries this package too.
var corpus = sync.OnceValue(func() speech { return newSpeech(strings.Repeat(sentences, tokensMax/100)) })

func newSpeech(text string) speech {
	s := speech{text: text}
	for i := 1; i < len(text); i++ {
		if text[i] == ' ' {
			s.ends = append(s.ends, i)
		}
	}
	if len(text) > 0 {
		s.ends = append(s.ends, len(text))
	}
	return s
}

// first is the speech cut off behind n tokens.
func (s speech) first(n int) speech {
	if n >= len(s.ends) {
		return s
	}
	if n <= 0 {
		return speech{}
	}
	return speech{text: s.text[:s.ends[n-1]], ends: s.ends[:n]}
}

// pieces is how many events carry the speech at so many tokens per event.
func (s speech) pieces(tokensPerEvent int) int {
	return (len(s.ends) + tokensPerEvent - 1) / tokensPerEvent
}

// piece is the text of event i.
func (s speech) piece(i, tokensPerEvent int) string {
	start, last := 0, min((i+1)*tokensPerEvent, len(s.ends))
	if i > 0 {
		start = s.ends[i*tokensPerEvent-1]
	}
	return s.text[start:s.ends[last-1]]
}

// Text is what an ordinary answer of n tokens says.
func Text(n int) string { return corpus().first(n).text }

// patternAlphabet has a prime length, so that chunks of a power of two start at
// ever different letters.
const patternAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz012345678"

// PatternByte is the byte at an offset of the content of a pour or of a tick
// stream. Bytes that are lost, doubled or swapped show as a mismatch.
func PatternByte(offset int64) byte {
	return patternAlphabet[(offset+offset>>12)%int64(len(patternAlphabet))]
}

// appendPattern appends the pattern from offset on.
func appendPattern(dst []byte, offset int64, n int) []byte {
	for i := range int64(n) {
		dst = append(dst, PatternByte(offset+i))
	}
	return dst
}
