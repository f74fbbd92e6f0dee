package openloop

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"
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

	// Mischief: shares of the requests, at most 1 together. Each has a connection
	// of its own, and they are counted apart. A slow reader takes its answer in a
	// trickle, a leaver goes away at random while it waits or reads, and to a
	// request of FaultShare the mock does what the next of FaultWords says.
	SlowShare, LeaveShare, FaultShare float64
	FaultWords                        []string // of a scenario, e.g. "status=429,retry-after=1"; the usual ones when empty
	SlowWords                         string   // of what slow readers ask for, e.g. "tokens=20000"; "" = the usual answer
	// FaultIn is where the words of mischief are put: InModel, behind the name of
	// the model, or InQuery, which also reaches the mock through a gateway that
	// renames models. InQuery when empty.
	FaultIn string
}

// The places of the words of mischief.
const (
	InModel = "model"
	InQuery = "query"
)

var faultWordsUsual = []string{"status=500", "status=400", "reset", "cut=3"}

func (m *Mix) check() error {
	if len(m.FaultWords) == 0 {
		m.FaultWords = faultWordsUsual
	}
	if m.FaultIn == "" {
		m.FaultIn = InQuery
	}
	switch {
	case !(m.StreamShare >= 0 && m.StreamShare <= 1):
		return fmt.Errorf("openloop: a share of streams of %v: want 0 to 1", m.StreamShare)
	case !(m.SlowShare >= 0 && m.LeaveShare >= 0 && m.FaultShare >= 0 && m.SlowShare+m.LeaveShare+m.FaultShare <= 1):
		return fmt.Errorf("openloop: shares of slow, leaving and failed callers of %v, %v and %v: want 0 to 1 together", m.SlowShare, m.LeaveShare, m.FaultShare)
	case m.FaultIn != InModel && m.FaultIn != InQuery:
		return fmt.Errorf("openloop: words of mischief in the %q: want %s or %s", m.FaultIn, InModel, InQuery)
	case m.BodyBytesExact < 0 || m.BodyBytesExact > bodyBytesExactMax:
		return fmt.Errorf("openloop: bodies of %d bytes: want at most %d", m.BodyBytesExact, bodyBytesExactMax)
	}
	return nil
}

// streams is the share of streams.
func (m *Mix) streams() float64 {
	if m.Stream {
		return 1
	}
	return m.StreamShare
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

// key is the credential of request i.
func (m *Mix) key(i int) string {
	if len(m.Keys) == 0 {
		return ""
	}
	return m.Keys[i%len(m.Keys)]
}

func (m *Mix) path(kind Kind) string {
	switch {
	case kind == Chat && m.ChatPath != "":
		return m.ChatPath
	case kind == Chat:
		return "/openai/v1/chat/completions"
	case m.MessagesPath != "":
		return m.MessagesPath
	}
	return "/anthropic/v1/messages"
}

// asking is the mix that asks the mock for a scenario.
func (m Mix) asking(words string) Mix {
	switch {
	case words == "":
	case m.FaultIn == InModel:
		m.ChatModel, m.MessagesModel = behindModel(m.ChatModel, words), behindModel(m.MessagesModel, words)
	default:
		m.ChatPath, m.MessagesPath = inQuery(m.path(Chat), words), inQuery(m.path(Messages), words)
	}
	return m
}

// behindModel puts words behind a model's name and the words that it has.
func behindModel(model, words string) string {
	if strings.Contains(model, ":") {
		return model + "," + words
	}
	return model + ":" + words
}

// inQuery puts words into a path's query, behind those that it has.
func inQuery(path, words string) string {
	front, query, _ := strings.Cut(path, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		values = make(url.Values)
	}
	if had := values.Get("mock"); had != "" {
		words = had + "," + words
	}
	values.Set("mock", words)
	return front + "?" + values.Encode()
}

// Request makes one whole request with a body of a given length, or of the
// least length that holds its members.
func (m *Mix) Request(kind Kind, key string, bodyBytes int) []byte {
	r := m.request(kind, key, bodyBytes)
	return append(append(r.front, prose(r.prose)...), r.back...)
}

func (m *Mix) request(kind Kind, key string, bodyBytes int) request {
	model, credential, members := m.ChatModel, "Authorization: Bearer "+key+"\r\n", `,"temperature":1`
	if kind == Messages {
		model, credential, members = m.MessagesModel, "x-api-key: "+key+"\r\n", `,"max_tokens":4096`
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
	opening := `{"model":` + strconv.Quote(model) + members + `,"messages":[{"role":"user","content":"`
	const closing = `"}]}`
	text := max(bodyBytes-len(opening)-len(closing), 0)
	whole := text - text%len(proseLine)
	head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\n%sContent-Type: application/json\r\nUser-Agent: relay-perf\r\nAccept: */*\r\nContent-Length: %d\r\n\r\n",
		m.path(kind), m.Host, credential, len(opening)+text+len(closing))
	return request{
		front: []byte(head + opening), prose: whole,
		back: []byte(strings.Repeat(".", text-whole) + closing),
	}
}
