package openloop

import (
	"errors"
	"math/rand/v2"
	"time"

	"golang.org/x/sys/unix"
)

// A manner is how the sender of a request behaves.
type manner uint8

const (
	ordinary manner = iota
	slow            // takes its answer in a trickle
	leaving         // goes away while it waits or reads
	faulty          // is failed by the mock
	manners
)

var mannerNames = [manners]string{ordinary: "ordinary", slow: "slow", leaving: "leaving", faulty: "faulty"}

func (m *Mix) shares() [manners]float64 {
	return [...]float64{slow: m.SlowShare, leaving: m.LeaveShare, faulty: m.FaultShare}
}

// A Mischief is what became of the requests of one kind of mischief that were
// scheduled within the hold. Sent = Answered + Failures + Left.
type Mischief struct {
	Sent     int64
	Answered map[int]int64    // whole answers, by status
	Failures map[string]int64 // of requests without one, by cause
	Left     int64            // the caller left before there was one
	Unsent   int64            // there were too many callers at once
}

func (m *Mischief) init() {
	m.Answered, m.Failures = make(map[int]int64), make(map[string]int64)
}

// A caller is the sender of one request of mischief. Owner: its connection.
type caller struct {
	manner  manner
	leaveIn time.Duration // of a leaver, behind its request; 0 = it leaves while it reads
	most    int           // bytes of the answer that it reads yet
	reset   bool          // it leaves with a reset
}

var (
	errLeft     = errors.New("left")
	errNoEnd    = errors.New("no answer when the run ended")
	errTooMany  = errors.New("too many callers at once")
	slowPieceNs = slowPieceTime.Nanoseconds()
)

// call starts a request of mischief on a connection of its own.
func (g *generator) call(j job) {
	by := &caller{manner: j.manner}
	if by.manner == leaving {
		by.reset = rand.IntN(2) == 0
		if by.most = 1 + rand.IntN(leaveBytesMax); rand.IntN(2) == 0 {
			by.leaveIn = 1 + rand.N(time.Duration(g.usual))
		}
	}
	if g.callers >= callersMax {
		g.tally.misbehave(&j, 0, errTooMany, false)
		return
	}
	c, err := g.dial(by)
	if err != nil {
		g.tally.misbehave(&j, 0, err, false)
		return
	}
	c.job = j
}

// called is when the request of a caller is on its way.
func (g *generator) called(c *conn) {
	switch by := c.caller; {
	case by.manner == slow:
		g.wake(c, g.now()+slowPieceNs)
	case by.leaveIn > 0:
		g.wake(c, g.now()+by.leaveIn.Nanoseconds())
	}
}

// trickles says that a connection is read by its timer alone.
func (c *conn) trickles() bool { return c.caller != nil && c.caller.manner == slow }

// most is how much may be read at once.
func (c *conn) most() int {
	switch by := c.caller; {
	case by == nil:
	case by.manner == slow:
		return slowPieceBytes
	case by.manner == leaving && by.leaveIn == 0:
		return by.most
	}
	return readBytes
}

// callerWakes is when the time of a caller has come.
func (g *generator) callerWakes(c *conn) {
	if c.caller.manner == leaving {
		g.misbehaved(c, errLeft)
		return
	}
	if g.read(c, false); c.state == busy {
		g.wake(c, g.now()+slowPieceNs)
	}
}

// callerRead is when a caller has read n bytes, or its connection has ended.
func (g *generator) callerRead(c *conn, n int, err error) {
	by := c.caller
	by.most -= n
	switch {
	case err != nil || c.reading.phase == atEnd:
		g.misbehaved(c, err)
	case by.manner == leaving && by.leaveIn == 0 && by.most <= 0:
		g.misbehaved(c, errLeft)
	}
}

// misbehaved counts the end of a request of mischief and closes its connection.
func (g *generator) misbehaved(c *conn, err error) {
	g.tally.misbehave(&c.job, c.reading.status, err, c.sent > 0)
	if err == errLeft && c.caller.reset {
		unix.SetsockoptLinger(c.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	}
	g.drop(c)
}
