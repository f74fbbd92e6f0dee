//go:build integration

package shared

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A provider answers for all hosts, and counts what reaches it: the truth about
// how many requests were let through and how many ran at once. A request says
// in its query how it is to be answered, and by which name it counts.
type provider struct {
	server *httptest.Server

	mu    sync.Mutex
	tally map[string]*tally
}

// A tally is what reached the provider by one name.
type tally struct {
	arrived, running int
	most             int // that ran at once
}

func startProvider(t *testing.T) *provider {
	p := &provider{tally: make(map[string]*tally)}
	p.server = httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(func() {
		p.server.CloseClientConnections()
		p.server.Close()
	})
	return p
}

// of is the tally of a name as it stands.
func (p *provider) of(name string) tally {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := p.tally[name]; n != nil {
		return *n
	}
	return tally{}
}

// anew forgets how many ran at once by a name until now.
func (p *provider) anew(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := p.tally[name]; n != nil {
		n.most = n.running
	}
}

// enter counts a request as running until leave is called, which may be more
// than once.
func (p *provider) enter(name string) (leave func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.tally[name]
	if n == nil {
		n = new(tally)
		p.tally[name] = n
	}
	n.arrived++
	n.running++
	n.most = max(n.most, n.running)
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		n.running--
	})
}

// serve answers one request. The words of its query:
//
//	name  by which it counts
//	hold  how long it runs
//	in    input tokens that it has used
//	out   output tokens that it has used
//	hang  it is not answered at all
//	sure  how long at least the caller stays, of a request that is given up: it
//	      counts as running for so long, since its end may be seen late here
func (p *provider) serve(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	leave := p.enter(q.Get("name"))
	defer leave()
	if d, err := time.ParseDuration(q.Get("sure")); err == nil {
		time.AfterFunc(d, leave)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if q.Has("hang") {
		<-r.Context().Done()
		return
	}
	hold, _ := time.ParseDuration(q.Get("hold"))
	a := replyTo(r.URL.Path, q)
	if strings.Contains(string(body), `"stream":true`) {
		w.Header().Set("Content-Type", "text/event-stream")
		a.stream(r.Context(), w, hold, leave)
		return
	}
	if !rest(r.Context(), hold) {
		return
	}
	text := a.whole()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	leave() // before the relay can know of the end
	_, _ = io.WriteString(w, text)
}

// rest waits, and reports whether the caller is still there.
func rest(gone context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	select {
	case <-gone.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// A reply is an answer in the shape of its path.
type reply struct {
	path    string
	in, out int64
}

func replyTo(path string, q url.Values) reply {
	a := reply{path: path, in: 10, out: 10}
	if n, err := strconv.ParseInt(q.Get("in"), 10, 64); err == nil {
		a.in = n
	}
	if n, err := strconv.ParseInt(q.Get("out"), 10, 64); err == nil {
		a.out = n
	}
	return a
}

func (a *reply) whole() string {
	switch {
	case strings.HasSuffix(a.path, "/messages"):
		return fmt.Sprintf(`{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Hello"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":%d,"output_tokens":%d}}`, a.in, a.out)
	case strings.HasSuffix(a.path, "/embeddings"):
		return fmt.Sprintf(`{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.5]}],"model":"m","usage":{"prompt_tokens":%d,"total_tokens":%d}}`, a.in, a.in)
	case strings.HasSuffix(a.path, "/moderations"):
		return `{"id":"modr-1","model":"m","results":[{"flagged":false,"categories":{},"category_scores":{}}]}`
	case strings.Contains(a.path, "/images/"):
		return `{"created":1,"data":[{"b64_json":"AA=="}]}`
	}
	return fmt.Sprintf(`{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}}`, a.in, a.out, a.in+a.out)
}

// streamPause is the time between two events of a stream.
const streamPause = 50 * time.Millisecond

// stream sends a chat answer in events for as long as it is to run. It goes on
// until its caller leaves or the time is over.
func (a *reply) stream(gone context.Context, w http.ResponseWriter, hold time.Duration, leave func()) {
	const chunk = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}` + "\n\n"
	out := http.NewResponseController(w)
	for end := time.Now().Add(hold); ; {
		_, err := fmt.Fprintf(w, chunk, `{"content":"Hello "}`, "null")
		if err != nil || out.Flush() != nil {
			return
		}
		if left := time.Until(end); left <= 0 {
			break
		} else if !rest(gone, min(left, streamPause)) {
			return
		}
	}
	leave()
	_, _ = fmt.Fprintf(w, chunk, `{}`, `"stop"`)
	_, _ = fmt.Fprintf(w, `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}}`+"\n\n", a.in, a.out, a.in+a.out)
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
}
