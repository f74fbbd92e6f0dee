//go:build integration

package conformance

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"sync"
)

// An echoHost is the well-behaved upstream of all cases that are about
// clients. It keeps what it gets by the name of the case in X-Case.
type echoHost struct {
	listener net.Listener
	mu       sync.Mutex
	kept     map[string][]*sent
}

func startEcho() *echoHost {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	e := &echoHost{listener: l, kept: map[string][]*sent{}}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go e.serve(c)
		}
	}()
	return e
}

// completion is an answer that any route takes.
const completion = `{"id":"x","object":"chat.completion","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`

func (e *echoHost) serve(c net.Conn) {
	defer c.Close()
	r := bufio.NewReader(c)
	for {
		s, err := readSent(r)
		if s.head != "" {
			e.keep(s, err)
		}
		if err != nil {
			return
		}
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(completion), completion)
	}
}

func (e *echoHost) keep(s *sent, err error) {
	name := strings.Join(s.fields("x-case"), " ")
	if name == "canary" || strings.HasPrefix(name, "siege") {
		return
	}
	if err != nil {
		s.head += "(broken off)"
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.kept[name] = append(e.kept[name], s)
}

// requests are those of a case.
func (e *echoHost) requests(name string) []*sent {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.kept[name]
}

// forget drops what an earlier run of a case has left.
func (e *echoHost) forget(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for kept := range e.kept {
		if kept == name || strings.HasPrefix(kept, name+"/") || strings.HasPrefix(kept, name+"-") {
			delete(e.kept, kept)
		}
	}
}

// strays are the requests of no case.
func (e *echoHost) strays() (texts []string) {
	for name, list := range e.kept {
		if !strings.Contains(name, "/") {
			texts = append(texts, fmt.Sprintf("%q: %q", name, list[0].head))
		}
	}
	return texts
}

// onceOnly are the fields that a forwarded request has exactly once.
var onceOnly = []string{"host", "content-length", "authorization"}

// never are the fields that are not forwarded.
var never = []string{
	"connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
	"http2-settings", "expect", "x-api-key", "x-wr-api-key", "proxy-authorization", "cookie",
}

// faults are what is wrong with a request whatever its case: more than one way
// to frame it, fields of one connection, a caller's key.
func (s *sent) faults() (list []string) {
	for _, name := range onceOnly {
		if n := len(s.fields(name)); n != 1 {
			list = append(list, fmt.Sprintf("%d fields %s", n, name))
		}
	}
	for _, name := range never {
		if values := s.fields(name); len(values) > 0 {
			list = append(list, fmt.Sprintf("%s: %s", name, values))
		}
	}
	if strings.Contains(s.head, relayKey) {
		list = append(list, "the relay key")
	}
	if host := s.fields("host"); len(host) == 1 && !strings.HasPrefix(host[0], "127.0.0.1:") {
		list = append(list, "host "+host[0])
	}
	if !strings.HasPrefix(s.head, "POST /v1/") || strings.Count(s.head, " HTTP/1.1\r\n") != 1 {
		list = append(list, "request line")
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(s.head, "\r\n\r\n"), "\r\n") {
		if strings.ContainsAny(line, "\r\n\x00\x7f") {
			list = append(list, fmt.Sprintf("line %q", line))
		}
	}
	return list
}
