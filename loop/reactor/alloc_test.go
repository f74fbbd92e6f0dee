package reactor

import (
	"testing"

	"github.com/panjf2000/gnet/v2"

	"relay/loop"
)

// A still is a gnet.Conn that always has the same bytes and takes all writes.
type still struct {
	gnet.Conn
	in []byte
}

func (c *still) Peek(int) ([]byte, error)    { return c.in, nil }
func (c *still) Discard(int) (int, error)    { return len(c.in), nil }
func (c *still) Write(p []byte) (int, error) { return len(p), nil }
func (c *still) OutboundBuffered() int       { return 0 }

// TestEventAllocs: an event with its answer, and an idle tick, allocate
// nothing here.
func TestEventAllocs(t *testing.T) {
	r := &Reactor{}
	l := newShard(r, 0)
	c := &core{t: t}
	l.core = c
	s := newSocket(l, nil)
	s.gc, s.state = &still{in: make([]byte, 1000)}, live
	x := &silent{s: s}
	s.conn = x
	for _, w := range []work{workRead, workTick, workMail} {
		if n := testing.AllocsPerRun(100, func() { l.handle(w, s) }); n != 0 {
			t.Errorf("work %d allocates %v times", w, n)
		}
	}
	if x.bytes == 0 {
		t.Error("nothing was read")
	}
}

// silent answers what it gets.
type silent struct {
	s     loop.Socket
	bytes int
}

func (x *silent) OnBytes(p []byte) {
	x.bytes += len(p)
	x.s.Write(p)
}
func (*silent) OnDrained()          {}
func (*silent) OnClosed(loop.Cause) {}
