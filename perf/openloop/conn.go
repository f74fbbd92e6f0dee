package openloop

import (
	"container/heap"
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// connState is where a connection rests between two events.
type connState uint8

const (
	dialing connState = iota
	free              // on the free list
	busy              // has a job
	gone              // closed
)

// A conn is one connection to the target. Owner: the generator.
type conn struct {
	fd         int
	generation int32 // tells its events from those of an earlier socket of this number
	state      connState
	job        job
	sent       int // bytes of the request
	firstByte  int64
	reading    reading
	caller     *caller // of mischief; nil = an ordinary connection
	wakeAt     int64   // on the generator's clock
	place      int     // among the timers; -1 = not there
}

// dial begins a connection.
func (g *generator) dial(by *caller) (*conn, error) {
	window := 0
	if by != nil && by.manner == slow {
		window = slowWindowBytes // else the kernel would be the fast reader
	}
	fd, err := g.to.connect(window)
	if err != nil {
		return nil, err
	}
	g.generation++
	c := &conn{fd: fd, generation: g.generation, caller: by, place: -1}
	if err := g.poll.add(fd, c.generation); err != nil {
		unix.Close(fd)
		return nil, err
	}
	for len(g.conns) <= fd {
		g.conns = append(g.conns, nil)
	}
	g.conns[fd] = c
	if by != nil {
		g.callers++
	} else {
		g.open++
		g.dialing++
		g.tally.dials++
	}
	g.wake(c, g.now()+int64(dialTimeout))
	return c, nil
}

// grow adds a connection for the jobs that wait, if there may be more.
func (g *generator) grow() {
	if g.waiting.len() <= g.dialing || g.open >= g.options.ConnectionsMax || g.over {
		return
	}
	if _, err := g.dial(nil); err != nil {
		g.notDialed(err)
	}
}

// notDialed fails the job that asked for a connection.
func (g *generator) notDialed(err error) {
	if !g.begun {
		g.failed = errors.Join(g.failed, err)
		return
	}
	if j, ok := g.waiting.pop(); ok {
		g.tally.fail(&j, err, false)
	}
}

// ready handles what has become of a socket.
func (g *generator) ready(c *conn, events uint32) {
	const ends = unix.EPOLLRDHUP | unix.EPOLLHUP | unix.EPOLLERR
	if c.state == dialing {
		if events&(unix.EPOLLOUT|ends) == 0 {
			return
		}
		if err := connected(c.fd); err != nil {
			g.dialEnded(c, err)
			return
		}
		g.dialEnded(c, nil)
	}
	if c.state == busy && events&unix.EPOLLOUT != 0 {
		g.send(c)
	}
	if c.state != gone && events&(unix.EPOLLIN|ends) != 0 && !c.trickles() {
		g.read(c, events&ends != 0)
	}
}

// dialEnded puts a new connection to use.
func (g *generator) dialEnded(c *conn, err error) {
	g.sleep(c)
	if c.caller != nil {
		if err != nil {
			g.misbehaved(c, err)
			return
		}
		g.start(c, c.job)
		g.called(c)
		return
	}
	g.dialing--
	if err != nil {
		g.drop(c)
		g.notDialed(err)
		return
	}
	g.next(c)
}

// next gives a connection the job that has waited longest, or frees it.
func (g *generator) next(c *conn) {
	if j, ok := g.waiting.pop(); ok {
		g.start(c, j)
		return
	}
	c.state = free
	g.free = append(g.free, c)
}

// start begins a job on a connection.
func (g *generator) start(c *conn, j job) {
	c.state, c.job, c.sent, c.firstByte = busy, j, 0, 0
	c.reading.begin()
	if c.caller == nil {
		g.busy++
	}
	g.send(c)
}

// send writes what is left of the request, as far as the socket takes it. An
// error is left to the reading side, behind an answer that may have come.
func (g *generator) send(c *conn) {
	for total := c.job.bytes(); c.sent < total; {
		n, errno := g.poll.write(c.fd, c.job.request, c.sent)
		if errno == syscall.EINTR {
			continue
		}
		if errno != 0 {
			return
		}
		if c.sent == 0 {
			g.tally.wrote(&c.job, g.now())
		}
		c.sent += n
	}
}

// read takes what has come. Events are told once, so it reads until there is
// no more; ending says that the peer may have closed.
func (g *generator) read(c *conn, ending bool) {
	for c.state == busy || c.state == free {
		most := c.most()
		b, arrived, errno := g.poll.read(c.fd, most)
		switch {
		case errno == syscall.EAGAIN:
			return
		case errno == syscall.EINTR:
			continue
		case errno != 0:
			g.broken(c, fmt.Errorf("read: %w", errno))
			return
		case len(b) == 0:
			g.broken(c, nil)
			return
		}
		at, late := g.arrival(arrived)
		if c.take(g, b, at) && arrived > 0 {
			g.tally.readLag.record(late / 1000)
		}
		if len(b) < most && !ending || c.trickles() {
			return
		}
	}
}

// arrival is when bytes arrived, on the generator's clock, and how long ago. If
// the kernel does not say, it is now.
func (g *generator) arrival(unixNs int64) (at, ago int64) {
	now := time.Now()
	if unixNs > 0 {
		ago = max(now.UnixNano()-unixNs, 0)
	}
	return now.Sub(g.base).Nanoseconds() - ago, ago
}

// take takes bytes that arrived at a time. It reports whether a held answer has ended.
func (c *conn) take(g *generator, b []byte, now int64) bool {
	if c.state == free {
		g.tally.unasked++
		g.drop(c)
		return false
	}
	if c.firstByte == 0 {
		c.firstByte = now
	}
	rest, err := c.reading.feed(b, now)
	if c.caller != nil {
		g.callerRead(c, len(b), err)
		return false
	}
	switch {
	case err != nil:
		g.finish(c, err, now)
		return false
	case c.reading.phase != atEnd:
		return false
	}
	held := c.job.held
	if len(rest) > 0 {
		g.tally.unasked++
		c.reading.closes = true
	}
	g.finish(c, nil, now)
	return held
}

// broken is called when the connection has ended; nil = by the peer, cleanly.
func (g *generator) broken(c *conn, err error) {
	if c.state == free {
		g.drop(c)
		return
	}
	if err == nil {
		if err = c.reading.close(); err == io.EOF && c.sent < c.job.bytes() {
			err = errors.New("closed while the request was sent")
		}
		c.reading.closes = true
	}
	if c.caller != nil {
		g.callerRead(c, 0, err)
		return
	}
	g.finish(c, err, g.now())
}

// finish counts the end of a job and frees its connection, or closes it.
func (g *generator) finish(c *conn, err error, now int64) {
	g.busy--
	if err != nil {
		g.tally.fail(&c.job, err, c.sent > 0)
		g.drop(c)
		return
	}
	g.tally.take(&c.job, &c.reading, c.firstByte, now)
	g.usual += (now - c.job.due - g.usual) / 16
	if c.reading.closes || c.sent < c.job.bytes() {
		g.drop(c)
		return
	}
	g.next(c)
}

// drop closes a connection.
func (g *generator) drop(c *conn) {
	g.sleep(c)
	c.state = gone // and is taken off the free list when it is met there
	g.conns[c.fd] = nil
	unix.Close(c.fd)
	if c.caller != nil {
		g.callers--
		return
	}
	g.open--
	g.grow()
}

// wake makes the generator look at a connection at a time.
func (g *generator) wake(c *conn, at int64) {
	c.wakeAt = at
	if c.place < 0 {
		heap.Push(&g.timers, c)
	} else {
		heap.Fix(&g.timers, c.place)
	}
}

// sleep takes that back.
func (g *generator) sleep(c *conn) {
	if c.place >= 0 {
		heap.Remove(&g.timers, c.place)
	}
}

// fire looks at the connections whose time has come.
func (g *generator) fire(now int64) {
	for len(g.timers) > 0 && g.timers[0].wakeAt <= now {
		c := g.timers[0]
		g.sleep(c)
		if c.state == dialing {
			g.dialEnded(c, fmt.Errorf("connect: no answer within %v", dialTimeout))
			continue
		}
		g.callerWakes(c)
	}
}

// timers are the connections to be looked at, the next one first.
type timers []*conn

func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, j int) bool { return t[i].wakeAt < t[j].wakeAt }
func (t timers) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].place, t[j].place = i, j
}

// Push is for package heap.
func (t *timers) Push(x any) {
	c := x.(*conn)
	c.place = len(*t)
	*t = append(*t, c)
}

// Pop is for package heap.
func (t *timers) Pop() any {
	old := *t
	c := old[len(old)-1]
	old[len(old)-1] = nil
	*t = old[:len(old)-1]
	c.place = -1
	return c
}

// A queue holds jobs in order.
type queue struct {
	jobs []job
	head int
}

func (q *queue) len() int { return len(q.jobs) - q.head }

func (q *queue) push(j job) {
	if q.head > 0 && len(q.jobs) == cap(q.jobs) {
		q.jobs = q.jobs[:copy(q.jobs, q.jobs[q.head:])]
		q.head = 0
	}
	q.jobs = append(q.jobs, j)
}

func (q *queue) pop() (job, bool) {
	if q.len() == 0 {
		return job{}, false
	}
	j := q.jobs[q.head]
	q.head++
	if q.len() == 0 {
		q.jobs, q.head = q.jobs[:0], 0
	}
	return j, true
}
