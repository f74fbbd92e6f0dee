package redistest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// A conn speaks RESP2, so that tests see the store with other eyes than the
// driver's.
type conn struct {
	net.Conn
	in *bufio.Reader
}

func dial(addr string) (*conn, error) {
	c, err := net.DialTimeout("tcp", addr, replyMax)
	if err != nil {
		return nil, err
	}
	return &conn{c, bufio.NewReader(c)}, nil
}

func (c *conn) close() { c.Conn.Close() }

func (c *conn) do(args ...string) (any, error) {
	if err := c.SetDeadline(time.Now().Add(replyMax)); err != nil {
		return nil, err
	}
	out := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, a := range args {
		out = fmt.Appendf(out, "$%d\r\n%s\r\n", len(a), a)
	}
	if _, err := c.Write(out); err != nil {
		return nil, err
	}
	return c.reply()
}

func (c *conn) reply() (any, error) {
	line, err := c.in.ReadString('\n')
	if err != nil || len(line) < 3 {
		return nil, errors.Join(err, errors.New("no reply"))
	}
	kind, rest := line[0], line[1:len(line)-2]
	switch kind {
	case '+':
		return rest, nil
	case '-':
		return nil, errors.New(rest)
	}
	n, err := strconv.ParseInt(rest, 10, 64)
	if err != nil {
		return nil, err
	}
	switch {
	case kind == ':':
		return n, nil
	case n < 0:
		return nil, nil
	case kind == '$':
		text := make([]byte, n+2)
		_, err := io.ReadFull(c.in, text)
		return string(text[:n]), err
	case kind == '*':
		list := make([]any, n)
		for i := range list {
			if list[i], err = c.reply(); err != nil {
				return nil, err
			}
		}
		return list, nil
	}
	return nil, fmt.Errorf("reply %q", line)
}
