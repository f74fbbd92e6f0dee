//go:build integration

package conformance

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A client is a raw connection to a relay.
type client struct {
	net.Conn
	r *bufio.Reader
}

func connect(address string) (*client, error) {
	c, err := net.DialTimeout("tcp", address, soon)
	if err != nil {
		return nil, err
	}
	return &client{c, bufio.NewReader(c)}, nil
}

// dial connects to the judged relay for the time of the test.
func dial(t *testing.T) *client { return dialTo(t, judged) }

func dialTo(t *testing.T, p *process) *client {
	t.Helper()
	c, err := connect(p.inference)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		echo.forget(t.Name())
	})
	return c
}

// send writes bytes. A relay that has closed meanwhile is no failure here: what
// it answered is looked at later.
func (c *client) send(text string) {
	_ = c.SetWriteDeadline(time.Now().Add(soon))
	_, _ = io.WriteString(c, text)
}

// sendSlowly writes in pieces of n bytes that arrive apart.
func (c *client) sendSlowly(text string, n int, pause time.Duration) {
	for len(text) > 0 {
		n = min(n, len(text))
		c.send(text[:n])
		text = text[n:]
		time.Sleep(pause)
	}
}

// reset closes so that the peer gets an RST.
func reset(c net.Conn) {
	_ = c.(*net.TCPConn).SetLinger(0)
	_ = c.Close()
}

// An answer is one parsed response.
type answer struct {
	status  int
	interim []int // 1xx before it
	head    string
	fields  map[string][]string // by lower case name
	body    string
	framing string // "length", "chunked", "close", "none"
	cut     bool   // it ended before its framing says so
}

func (a *answer) field(name string) string { return strings.Join(a.fields[name], ", ") }

func (a *answer) closes() bool {
	return strings.Contains(strings.ToLower(a.field("connection")), "close")
}

// errNoAnswer is the end of a connection where an answer could begin.
var errNoAnswer = errors.New("the connection ended without an answer")

// read reads the next answer; bodiless says that the request was HEAD.
func (c *client) read(within time.Duration, bodiless bool) (*answer, error) {
	_ = c.SetReadDeadline(time.Now().Add(within))
	a := &answer{}
	for {
		if err := a.readHead(c.r); err != nil {
			return a, err
		}
		if a.status >= 200 || a.status == 101 {
			break
		}
		a.interim = append(a.interim, a.status)
	}
	return a, a.readBody(c.r, bodiless)
}

// answer reads the next answer and fails the test without one.
func (c *client) answer(t *testing.T) *answer {
	t.Helper()
	a, err := c.read(soon, false)
	if err != nil {
		t.Fatalf("no sound answer: %v, got %q", err, a.head+a.body)
	}
	return a
}

func (a *answer) readHead(r *bufio.Reader) error {
	if _, err := r.Peek(1); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
			return errNoAnswer
		}
		return err
	}
	var lines []string
	for a.head = ""; ; {
		line, err := r.ReadString('\n')
		a.head += line
		if err != nil {
			return fmt.Errorf("in the head: %w", err)
		}
		line, ok := strings.CutSuffix(line, "\r\n")
		if !ok {
			return fmt.Errorf("a bare LF in the head")
		}
		if line == "" {
			break
		}
		lines = append(lines, line)
	}
	if len(lines) == 0 || !strings.HasPrefix(lines[0], "HTTP/1.1 ") || len(lines[0]) < 13 {
		return fmt.Errorf("status line %q", a.head)
	}
	status, err := strconv.Atoi(lines[0][9:12])
	if err != nil || lines[0][12] != ' ' {
		return fmt.Errorf("status line %q", lines[0])
	}
	a.status, a.fields = status, map[string][]string{}
	for _, line := range lines[1:] {
		name, value, ok := strings.Cut(line, ":")
		if !ok || strings.ContainsAny(name, " \t") {
			return fmt.Errorf("field line %q", line)
		}
		name = strings.ToLower(name)
		a.fields[name] = append(a.fields[name], strings.TrimSpace(value))
	}
	return a.checkFraming()
}

// checkFraming wants one way in which the body ends.
func (a *answer) checkFraming() error {
	lengths, codings := a.fields["content-length"], a.fields["transfer-encoding"]
	if len(lengths)+len(codings) > 1 || len(codings) == 1 && codings[0] != "chunked" {
		return fmt.Errorf("framing of %q", a.head)
	}
	if (a.status < 200 || a.status == 204) && len(lengths)+len(codings) > 0 {
		return fmt.Errorf("status %d announces a body", a.status)
	}
	return nil
}

func (a *answer) readBody(r *bufio.Reader, bodiless bool) error {
	var err error
	switch {
	case bodiless || a.status < 200 || a.status == 204 || a.status == 304:
		a.framing = "none"
	case len(a.fields["content-length"]) == 1:
		a.framing = "length"
		n, bad := strconv.Atoi(a.fields["content-length"][0])
		if bad != nil {
			return bad
		}
		body := make([]byte, n)
		n, err = io.ReadFull(r, body)
		a.body = string(body[:n])
	case len(a.fields["transfer-encoding"]) == 1:
		a.framing = "chunked"
		err = a.readChunks(r)
	default:
		a.framing = "close"
		var body []byte
		body, err = io.ReadAll(r)
		a.body = string(body)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) {
		a.cut, err = true, nil
	}
	return err
}

func (a *answer) readChunks(r *bufio.Reader) error {
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return err
		}
		n, err := strconv.ParseUint(strings.TrimSuffix(line, "\r\n"), 16, 31)
		if err != nil || !strings.HasSuffix(line, "\r\n") {
			return fmt.Errorf("chunk line %q", line)
		}
		piece := make([]byte, n+2)
		got, err := io.ReadFull(r, piece)
		a.body += string(piece[:min(got, int(n))])
		if err != nil {
			return err
		}
		if string(piece[n:]) != "\r\n" {
			return fmt.Errorf("a chunk is not followed by CRLF but %q", piece[n:])
		}
		if n == 0 {
			return nil
		}
	}
}

// end waits for the end of the connection and tells what came before it.
func (c *client) end(within time.Duration) (rest string, err error) {
	_ = c.SetReadDeadline(time.Now().Add(within))
	b, err := io.ReadAll(c.r)
	if errors.Is(err, syscall.ECONNRESET) {
		err = nil
	}
	return string(b), err
}

// ends fails the test unless the relay closes, with nothing more before it.
func (c *client) ends(t *testing.T) {
	t.Helper()
	rest, err := c.end(soon)
	if err != nil {
		t.Errorf("the connection stays open: %v", err)
	}
	if rest != "" {
		t.Errorf("after the last answer comes %q", rest)
	}
}

// lives fails the test unless the connection takes another request.
func (c *client) lives(t *testing.T, name string) {
	t.Helper()
	c.send(whole(name+"-next", "echo"))
	if a, err := c.read(soon, false); err != nil || a.status != 200 {
		t.Errorf("the next request on the connection: %v, %q", err, a.head)
	}
	if n := len(echo.requests(name + "-next")); n != 1 {
		t.Errorf("the next request reached the upstream %d times", n)
	}
}

// askOnce makes one request on a connection of its own.
func askOnce(address, name string) error {
	c, err := connect(address)
	if err != nil {
		return err
	}
	defer c.Close()
	c.send(whole(name, "echo"))
	a, err := c.read(soon, false)
	if err == nil && a.status != 200 {
		err = fmt.Errorf("%s", a.head)
	}
	return err
}
