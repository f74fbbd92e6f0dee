//go:build integration

package conformance

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// An origin is an upstream of one case: a listener whose every byte is
// scripted. The catalog has a host and a model for each.
type origin struct {
	model    string
	listener net.Listener
	links    chan *link
	requests atomic.Int64 // heads read
}

// A kind of origin, by what the catalog says of its host.
type kind struct {
	name, shape, base, timeouts string
	count                       int
}

var kinds = []*kind{
	{"open", "openai", "/v1", "{connect: 5s, first_byte: 20s, first_token: 20s, idle: 20s}", 800},
	{"anth", "anthropic", "", "{connect: 5s, first_byte: 20s, first_token: 20s, idle: 20s}", 80},
	{"hasty", "openai", "/v1", "{connect: 2s, first_byte: 2s, first_token: 2s, idle: 2s}", 30},
	{"narrow", "openai", "/v1", "{connect: 5s, first_byte: 20s, first_token: 20s, idle: 20s}", 30},
}

var (
	originsMu sync.Mutex
	origins   = map[string][]*origin{} // by kind, not taken yet
)

// openOrigins opens all listeners, so that the catalog can name them.
func openOrigins() {
	for _, k := range kinds {
		for i := range k.count {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				panic(err)
			}
			if k.name == "narrow" {
				narrow(l)
			}
			origins[k.name] = append(origins[k.name], &origin{
				model: fmt.Sprintf("%s-%d", k.name, i), listener: l, links: make(chan *link, 64),
			})
		}
	}
}

// narrow makes the connections of a listener take little that is not read.
func narrow(l net.Listener) {
	raw, err := l.(*net.TCPListener).SyscallConn()
	if err != nil {
		panic(err)
	}
	_ = raw.Control(func(fd uintptr) {
		if err := syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 64<<10); err != nil {
			panic(err)
		}
	})
}

// catalogText is the catalog of all relays.
func catalogText() []byte {
	var b, models bytes.Buffer
	b.WriteString("hosts:\n")
	models.WriteString("models:\n")
	host := func(name, shape, url, timeouts string) {
		fmt.Fprintf(&b, "  - {name: %s, shape: %s, base_url: \"%s\", timeouts: %s, keys: [{name: main, value: \"plain:%s\"}]}\n",
			name, shape, url, timeouts, hostKey)
		fmt.Fprintf(&models, "  - {name: %s, bindings: [{host: %s}]}\n", name, name)
	}
	for _, k := range kinds {
		for _, o := range origins[k.name] {
			host(o.model, k.shape, "http://"+o.listener.Addr().String()+k.base, k.timeouts)
		}
	}
	host("echo", "openai", "http://"+echo.listener.Addr().String()+"/v1", kinds[0].timeouts)
	host("echo-anth", "anthropic", "http://"+echo.listener.Addr().String(), kinds[0].timeouts)
	b.Write(models.Bytes())
	fmt.Fprintf(&b, "policies:\n  - {name: all, models: [\"*\"]}\naccounts:\n  - {name: all}\nrelay_keys:\n"+
		"  - {name: all, sha256: \"%x\", account: all, policy: all}\n", sha256.Sum256([]byte(relayKey)))
	return b.Bytes()
}

// take gives an origin of a kind to a test, which alone uses it.
func take(t *testing.T, kind string) *origin {
	t.Helper()
	originsMu.Lock()
	defer originsMu.Unlock()
	free := origins[kind]
	if len(free) == 0 {
		t.Fatalf("no origin of kind %s is left: raise its count", kind)
	}
	o := free[0]
	origins[kind] = free[1:]
	var mu sync.Mutex
	var all []*link
	go func() {
		for {
			c, err := o.listener.Accept()
			if err != nil {
				return
			}
			l := &link{Conn: c, r: bufio.NewReader(c), origin: o}
			mu.Lock()
			all = append(all, l)
			mu.Unlock()
			o.links <- l
		}
	}()
	t.Cleanup(func() {
		_ = o.listener.Close()
		mu.Lock()
		defer mu.Unlock()
		for _, l := range all {
			_ = l.Close()
		}
	})
	return o
}

// accept waits for the next connection.
func (o *origin) accept(t *testing.T) *link {
	t.Helper()
	select {
	case l := <-o.links:
		return l
	case <-time.After(soon):
		t.Fatal("no connection to the upstream")
		return nil
	}
}

// lonely fails the test if another connection comes.
func (o *origin) lonely(t *testing.T) {
	t.Helper()
	select {
	case <-o.links:
		t.Error("another connection to the upstream")
	case <-time.After(quiet):
	}
}

// A link is one connection to an origin.
type link struct {
	net.Conn
	r      *bufio.Reader
	origin *origin
}

// A sent is one request as an upstream got it.
type sent struct {
	head string // with the empty line
	body string
}

// fields are the values of a field, whose name is in lower case.
func (s *sent) fields(name string) (values []string) {
	for _, line := range strings.Split(s.head, "\r\n")[1:] {
		n, v, _ := strings.Cut(line, ":")
		if strings.ToLower(n) == name {
			values = append(values, strings.TrimSpace(v))
		}
	}
	return values
}

func readSent(r *bufio.Reader) (*sent, error) {
	s := &sent{}
	for !strings.HasSuffix(s.head, "\r\n\r\n") {
		line, err := r.ReadString('\n')
		s.head += line
		if err != nil {
			return s, err
		}
	}
	n := 0
	if values := s.fields("content-length"); len(values) > 0 {
		n, _ = strconv.Atoi(values[0])
	}
	body := make([]byte, n)
	got, err := io.ReadFull(r, body)
	s.body = string(body[:got])
	return s, err
}

// request reads a request.
func (l *link) request(t *testing.T) *sent {
	t.Helper()
	_ = l.SetReadDeadline(time.Now().Add(soon))
	s, err := readSent(l.r)
	if err != nil {
		t.Fatalf("no whole request at the upstream: %v, got %q", err, s.head+s.body)
	}
	l.origin.requests.Add(1)
	return s
}

// send writes bytes; a relay that has closed meanwhile is no failure here.
func (l *link) send(text string) {
	_ = l.SetWriteDeadline(time.Now().Add(soon))
	_, _ = io.WriteString(l, text)
}

// ends waits until the relay closes the connection, and tells how long it took
// and what came before.
func (l *link) ends(t *testing.T, within time.Duration) string {
	t.Helper()
	_ = l.SetReadDeadline(time.Now().Add(within))
	rest, err := io.ReadAll(l.r)
	if err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the upstream connection is open after %v: %v", within, err)
	}
	return string(rest)
}

// stays fails the test if the relay closes the connection or sends something.
func (l *link) stays(t *testing.T) {
	t.Helper()
	_ = l.SetReadDeadline(time.Now().Add(quiet))
	if b, err := l.r.Peek(1); len(b) > 0 || !isTimeout(err) {
		t.Errorf("the idle upstream connection got %q, %v", b, err)
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// rest is what comes within a time, without a verdict on the end.
func (l *link) rest(within time.Duration) string {
	_ = l.SetReadDeadline(time.Now().Add(within))
	rest, _ := io.ReadAll(l.r)
	return string(rest)
}
