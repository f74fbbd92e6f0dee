//go:build integration

package shared

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Paths of requests.
const (
	chatPath    = "/v1/chat/completions"
	messagePath = "/v1/messages"
	embedPath   = "/v1/embeddings"
)

// A question is one request to make.
type question struct {
	name   string // of the relay key, and what the provider counts by
	path   string // chatPath when empty
	model  string // the usual one of the path when empty
	words  string // for the provider, such as "hold=50ms"
	most   int    // max_tokens; 0 = not named
	stream bool
}

// target is path and query.
func (q *question) target() string {
	path := q.path
	if path == "" {
		path = chatPath
	}
	target := path + "?name=" + q.name
	if q.words != "" {
		target += "&" + q.words
	}
	return target
}

// body is the JSON of the request.
func (q *question) body() string {
	model, most, content := q.model, "", `"messages":[{"role":"user","content":"Hi"}]`
	switch q.path {
	case messagePath:
		model = orElse(model, messageModel)
	case embedPath:
		model, content = orElse(model, embedModel), `"input":"Hi"`
	default:
		model = orElse(model, chatModel)
	}
	if q.most > 0 {
		most = `"max_tokens":` + strconv.Itoa(q.most) + `,`
	}
	if q.stream {
		most += `"stream":true,`
	}
	return fmt.Sprintf(`{"model":%q,%s%s}`, model, most, content)
}

func orElse(text, usual string) string {
	if text == "" {
		return usual
	}
	return text
}

// An answer is one whole response, or why there is none.
type answer struct {
	status int // 0 = none
	header http.Header
	body   string
	err    error
	took   time.Duration
}

// retryAfter is the field of that name in seconds; -1 if it is none.
func (a *answer) retryAfter() int {
	n, err := strconv.Atoi(a.header.Get("Retry-After"))
	if err != nil {
		return -1
	}
	return n
}

// callers are a fleet's clients, with their connections. Zero is ready.
type callers struct {
	once sync.Once
	http http.Client
}

// answerMax is how long any answer may take.
const answerMax = 60 * time.Second

func (c *callers) ready() {
	c.once.Do(func() {
		c.http.Transport = &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true}
		c.http.Timeout = answerMax
	})
}

func (c *callers) close() {
	c.ready()
	c.http.CloseIdleConnections()
}

// do makes a request and reads the answer. The context is the caller's
// patience.
func (c *callers) do(ctx context.Context, address string, q question) (a answer) {
	began := time.Now()
	defer func() { a.took = time.Since(began) }()
	got, err := c.send(ctx, address, q)
	if err != nil {
		return answer{err: err}
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	return answer{status: got.StatusCode, header: got.Header, body: string(text), err: err}
}

func (c *callers) send(ctx context.Context, address string, q question) (*http.Response, error) {
	c.ready()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+q.target(), strings.NewReader(q.body()))
	if err != nil {
		panic(err)
	}
	r.Header.Set("Authorization", "Bearer "+keyOf(q.name))
	r.Header.Set("Content-Type", "application/json")
	return c.http.Do(r)
}

// ask makes a request to the relay of a number.
func (f *fleet) ask(relay int, q question) answer {
	return f.callers.do(context.Background(), f.relays[relay].inference, q)
}

// together makes requests at the same moment, spread over the relays that run,
// and counts the answers by status.
func (f *fleet) together(n int, q question) map[int]int {
	addresses := f.addresses()
	var wait sync.WaitGroup
	answers := make([]answer, n)
	for i := range n {
		wait.Go(func() { answers[i] = f.callers.do(context.Background(), addresses[i%len(addresses)], q) })
	}
	wait.Wait()
	counts := make(map[int]int)
	for _, a := range answers {
		counts[a.status]++
	}
	return counts
}

// fills wants that n requests of a limit of n at once run together, at the
// latest after a time, and returns when that was so.
func (f *fleet) fills(what string, most time.Duration, n int, q question) time.Duration {
	f.t.Helper()
	q.words = "hold=400ms"
	var counts map[int]int
	took, ok := eventually(most, func() bool {
		counts = f.together(n, q)
		return counts[http.StatusOK] == n
	})
	if !ok {
		f.t.Errorf("%s: of %d requests of %s at once, all that the limit allows, pass: %v", what, n, q.name, counts)
	}
	return took
}

// A stream is a streamed answer that is read as it comes.
type stream struct {
	status int
	leave  func()
	done   chan struct{} // closed at the end
	whole  bool          // then: it ended as it should
	events int           // then
}

// open begins a streamed request and reads on. It returns when the head is
// there.
func (f *fleet) open(relay int, q question) *stream {
	f.t.Helper()
	q.stream = true
	ctx, cancel := context.WithCancel(context.Background())
	s := &stream{leave: cancel, done: make(chan struct{})}
	got, err := f.callers.send(ctx, f.relays[relay].inference, q)
	if err != nil {
		f.t.Errorf("a stream of %s: %v", q.name, err)
		close(s.done)
		return s
	}
	s.status = got.StatusCode
	go func() {
		defer close(s.done)
		defer cancel()
		defer got.Body.Close()
		for lines := bufio.NewScanner(got.Body); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), "data:") {
				s.events++
			}
			s.whole = s.whole || lines.Text() == "data: [DONE]"
		}
	}()
	return s
}

// shaped wants an error in the shape of the path, with a status and, for those
// that say when to come again, the field for it.
func shaped(t *testing.T, q question, a answer, status int) {
	t.Helper()
	var e struct {
		Type  string // of the whole: "error" in Anthropic shape
		Error struct{ Message, Type string }
	}
	switch {
	case a.err != nil || a.status != status:
		t.Errorf("%s on %s: status %d, want %d: %v %.200s", q.name, q.target(), a.status, status, a.err, a.body)
		return
	case json.Unmarshal([]byte(a.body), &e) != nil || e.Error.Message == "" || e.Error.Type == "":
		t.Errorf("%s on %s: the error is not one: %.300s", q.name, q.target(), a.body)
	case (q.path == messagePath) != (e.Type == "error"):
		t.Errorf("%s on %s: the error has the other shape: %.300s", q.name, q.target(), a.body)
	}
	if (status == 429 || status == 503 || status == 529) && a.retryAfter() < 1 {
		t.Errorf("%s on %s: Retry-After is %q", q.name, q.target(), a.header.Get("Retry-After"))
	}
}
