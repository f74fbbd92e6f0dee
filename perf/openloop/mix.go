package openloop

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
)

// A Kind is one type of request.
type Kind uint8

// The kinds of a mix; half of the requests each.
const (
	Chat     Kind = iota // OpenAI chat
	Messages             // Anthropic messages
	kinds    = 2
)

// String is the name in reports.
func (k Kind) String() string { return [...]string{"chat", "messages"}[k] }

// A Mix is what requests look like.
type Mix struct {
	Host           string   // value of the Host field
	Keys           []string // bearer tokens, used in turn; none: no credential is sent
	ChatModel      string
	MessagesModel  string
	ChatPath       string  // "/openai/v1/chat/completions" when empty
	MessagesPath   string  // "/anthropic/v1/messages" when empty
	BodyBytesP50   int     // 2048 when 0
	BodyBytesP99   int     // 20480 when 0
	Stream         bool    // every request asks for a stream
	StreamShare    float64 // share of the requests that ask for one, 0 to 1; Stream is 1
	Seed           uint64
	BodyBytesExact int // not 0: every body has this length
}

// BodyBytes draws a body length: log-normal with the median and the 99th
// percentile of the mix.
func (m *Mix) BodyBytes(r *rand.Rand) int {
	if m.BodyBytesExact > 0 {
		return m.BodyBytesExact
	}
	p50, p99 := m.BodyBytesP50, m.BodyBytesP99
	if p50 == 0 {
		p50 = 2048
	}
	if p99 == 0 {
		p99 = 20480
	}
	const z99 = 2.326347874
	sigma := math.Log(float64(p99)/float64(p50)) / z99
	n := int(float64(p50) * math.Exp(sigma*r.NormFloat64()))
	return min(max(n, bodyBytesMin), bodyBytesMax)
}

// requests makes the variants of one kind, each a whole request.
func (m Mix) requests(kind Kind, stream bool) [][]byte {
	m.Stream = stream
	r := rand.New(rand.NewPCG(m.Seed, uint64(kind)+1))
	out := make([][]byte, variantsMade)
	for i := range out {
		key := ""
		if len(m.Keys) > 0 {
			key = m.Keys[i%len(m.Keys)]
		}
		out[i] = m.Request(kind, key, m.BodyBytes(r))
	}
	return out
}

// Request makes one whole request with a body of a given length, or of the
// least length that holds its members.
func (m *Mix) Request(kind Kind, key string, bodyBytes int) []byte {
	path, model, credential := m.ChatPath, m.ChatModel, "Authorization: Bearer "+key+"\r\n"
	if path == "" {
		path = "/openai/v1/chat/completions"
	}
	members := `,"temperature":1`
	if kind == Messages {
		path, model, credential = m.MessagesPath, m.MessagesModel, "x-api-key: "+key+"\r\n"
		if path == "" {
			path = "/anthropic/v1/messages"
		}
		members = `,"max_tokens":4096`
	}
	if key == "" {
		credential = ""
	}
	if kind == Messages {
		credential += "anthropic-version: 2023-06-01\r\n"
	}
	if m.Stream {
		members += `,"stream":true`
		if kind == Chat { // the count of tokens, by which the content is checked
			members += `,"stream_options":{"include_usage":true}`
		}
	}
	front := `{"model":` + strconv.Quote(model) + members + `,"messages":[{"role":"user","content":"`
	const back = `"}]}`
	body := append([]byte(front), prose(bodyBytes-len(front)-len(back))...)
	body = append(body, back...)
	head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\n%sContent-Type: application/json\r\nUser-Agent: relay-perf\r\nAccept: */*\r\nContent-Length: %d\r\n\r\n",
		path, m.Host, credential, len(body))
	return append([]byte(head), body...)
}

// prose is text of n bytes, with escapes now and then as prompts have them.
func prose(n int) []byte {
	const line = `The quick brown fox jumps over the lazy dog, and \"runs\" home.\n`
	var out []byte
	for len(out)+len(line) <= n {
		out = append(out, line...)
	}
	for len(out) < n {
		out = append(out, '.')
	}
	return out
}
