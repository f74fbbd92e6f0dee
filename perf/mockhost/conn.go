package mockhost

import (
	"bytes"
	"errors"
	"net"
	"os"
	"strings"
	"time"
)

// A conn is one connection. Owner: its goroutine, except for abort.
type conn struct {
	server *Server
	tcp    *net.TCPConn

	in         []byte // in[start:end] is read and not yet used
	start, end int
	req        request
	reply      reply
	out        []byte // what the next write takes
	scratch    []byte // bodies and frames before they are framed
	readTimer  bool   // a read deadline is set
	writeUntil time.Time
	idle       trouble // of the last answer: what happens to the idle connection

	words    string // the scenario text of scenario, to look it up only when it changes
	scenario *scenario
}

// abort resets the connection. Any goroutine may call it.
func (c *conn) abort() {
	c.tcp.SetLinger(0)
	c.tcp.Close()
}

func (c *conn) serve() {
	defer c.server.forget(c)
	defer c.tcp.Close()
	if c.in == nil { // else it comes from a loop, with bytes
		c.in = make([]byte, readBytes)
	}
	c.idle = noTrouble
	for c.readHead() && c.answer() {
		c.start += len(c.req.head) + len(c.req.body)
		c.req = request{}
		c.reply = reply{}
		if cap(c.out) > bufferBytesKept {
			c.out = nil
		}
		if cap(c.scratch) > bufferBytesKept {
			c.scratch = nil
		}
	}
}

// readHead reads up to the blank line and parses it into c.req.
func (c *conn) readHead() bool {
	c.compact()
	quiet, idleDue := c.idleTrouble()
	for searched := 0; ; {
		unused := c.in[c.start:c.end]
		if i := bytes.Index(unused[searched:], []byte("\r\n\r\n")); i >= 0 {
			c.idle = noTrouble
			if c.req.parse(unused[:searched+i+4]) {
				return true
			}
			return c.refuseMalformed()
		}
		searched = max(len(unused)-3, 0)
		if len(unused) >= headBytesMax {
			return c.refuseMalformed()
		}
		if quiet && len(unused) == 0 {
			if !c.waitUntil(idleDue) {
				return false
			}
			if c.end == c.start {
				c.troubleIdle()
				return false
			}
			continue
		}
		if !c.more() {
			return false
		}
	}
}

func (c *conn) refuseMalformed() bool {
	c.server.tally.malformed.Add(1)
	c.req.close = true
	c.refuse(openaiShape, 400, "invalid_request_error", "", "the mock could not parse the request head")
	return false
}

// compact moves unused bytes to the front between two requests, when no slice
// of an earlier request is alive.
func (c *conn) compact() {
	if c.start == c.end && len(c.in) > bufferBytesKept {
		c.in = make([]byte, readBytes)
	} else {
		copy(c.in, c.in[c.start:c.end])
	}
	c.start, c.end = 0, c.end-c.start
}

// room makes sure that the buffer holds n bytes from start. Slices of the old
// buffer stay valid.
func (c *conn) room(n int) {
	if len(c.in)-c.start >= n {
		return
	}
	grown := make([]byte, max(n, 2*(c.end-c.start)))
	copy(grown, c.in[c.start:c.end])
	c.in, c.start, c.end = grown, 0, c.end-c.start
}

// more reads once, without a time limit.
func (c *conn) more() bool {
	c.clearTimer()
	c.room(c.end - c.start + 1)
	n, err := c.tcp.Read(c.in[c.end:])
	c.end += n
	return err == nil
}

func (c *conn) clearTimer() {
	if c.readTimer {
		c.tcp.SetReadDeadline(time.Time{})
		c.readTimer = false
	}
}

// waitUntil waits for a time while watching the peer, which takes a system call
// more; a short wait does without, and a peer that leaves meanwhile is noticed
// by the write behind it. It returns false when the peer has left. Bytes that
// come in meanwhile are kept.
func (c *conn) waitUntil(due time.Time) bool {
	left := time.Until(due)
	if left <= 0 {
		return true
	}
	if left <= unwatchedMax && len(c.req.head) > 0 {
		// Waits end together on the same clock ticks, so that one wake-up of the process serves several.
		time.Sleep(left + sleepGrain - 1 - (time.Duration(due.UnixNano())+sleepGrain-1)%sleepGrain)
		return true
	}
	c.tcp.SetReadDeadline(due)
	c.readTimer = true
	for {
		if c.end-c.start > len(c.req.head)+len(c.req.body)+bufferBytesKept {
			return false // it talks without listening
		}
		c.room(c.end - c.start + 1)
		n, err := c.tcp.Read(c.in[c.end:])
		c.end += n
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return true
		}
		if err != nil {
			c.server.tally.peersGone.Add(1)
			return false
		}
		if len(c.req.head) == 0 { // between requests: the next one has come
			return true
		}
	}
}

// readBody reads the announced body into c.req.body. early says that the
// answer must not wait for it.
func (c *conn) readBody() (ok, early bool) {
	need := len(c.req.head) + int(c.req.contentLength)
	if need > len(c.in)-c.start {
		c.room(need + 64)
	}
	for sniffed := false; c.end-c.start < need; {
		part := c.in[c.start+len(c.req.head) : c.end]
		if !sniffed && len(part) > 0 {
			sniffed = true
			if bytes.Contains(part, []byte(":early\"")) {
				return true, true
			}
		}
		if !c.more() {
			c.server.tally.peersGone.Add(1)
			return false, false
		}
	}
	c.req.body = c.in[c.start+len(c.req.head) : c.start+need]
	return true, false
}

// write sends bytes and reports whether the peer took them.
func (c *conn) write(b []byte) bool {
	if now := time.Now(); c.writeUntil.Sub(now) < writeTimeMax/2 {
		c.writeUntil = now.Add(writeTimeMax)
		c.tcp.SetWriteDeadline(c.writeUntil)
	}
	n, err := c.tcp.Write(b)
	c.server.tally.bytesOut.Add(uint64(n))
	if err != nil {
		c.server.tally.peersGone.Add(1)
	}
	return err == nil
}

// flush writes c.out.
func (c *conn) flush() bool {
	if len(c.out) == 0 {
		return true
	}
	ok := c.write(c.out)
	c.out = c.out[:0]
	return ok
}

// hold keeps the connection silent until the peer leaves, then ends it.
func (c *conn) hold() bool {
	if c.waitUntil(time.Now().Add(holdMax)) {
		c.abort()
	}
	return false
}

func (c *conn) idleTrouble() (bool, time.Time) {
	for _, d := range []time.Duration{c.idle.idleClose, c.idle.idleReset, c.idle.idleTimeoutNote, c.idle.idleJunk} {
		if d >= 0 {
			return true, time.Now().Add(d)
		}
	}
	return false, time.Time{}
}

// troubleIdle does to the idle connection what the last scenario said.
func (c *conn) troubleIdle() {
	switch t := c.idle; {
	case t.idleReset >= 0:
		c.abort()
	case t.idleTimeoutNote >= 0:
		c.write([]byte("HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"))
	case t.idleJunk >= 0:
		c.write([]byte("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nstray"))
		c.hold()
	}
}

// scenarioFor finds the scenario of the request: the server's words, then those
// of query and credential, then those of the model name.
func (c *conn) scenarioFor(s shape, model string) (text string, err error) {
	_, words, _ := strings.Cut(model, ":")
	text = joinScenario(joinScenario(c.server.options.Scenario, c.req.scenarioText(s)), words)
	if c.scenario != nil && text == c.words {
		return text, nil
	}
	sc, err := c.server.scenario(text)
	if err == nil {
		c.words, c.scenario = text, sc
	}
	return text, err
}
