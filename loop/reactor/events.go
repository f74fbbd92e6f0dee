package reactor

import (
	"fmt"
	"log/slog"

	"github.com/panjf2000/gnet/v2"
)

// events is gnet's way in. Which connection it is about is told by the type of
// the connection's context: a *socket or a *bell.
type events struct{ gnet.BuiltinEventEngine }

// OnOpen runs when a connection has been registered with its loop.
func (*events) OnOpen(c gnet.Conn) ([]byte, gnet.Action) {
	if s, ok := c.Context().(*socket); ok {
		s.gc, s.fd, s.state, s.opened = c, c.Fd(), live, true
		s.shard.handle(workOpen, s)
	}
	return nil, gnet.None
}

// OnTraffic runs when gnet has read.
func (*events) OnTraffic(c gnet.Conn) gnet.Action {
	switch x := c.Context().(type) {
	case *socket:
		x.shard.handle(workRead, x)
	case *bell:
		x.rung(c)
	}
	return gnet.None
}

// OnClose runs when a connection ends, also inside our own writes to it.
func (*events) OnClose(c gnet.Conn, err error) gnet.Action {
	if s, ok := c.Context().(*socket); ok {
		l := s.shard
		s.gone(err)
		if !l.busy {
			l.busy = true
			l.settle()
			l.busy = false
		}
	}
	return gnet.None
}

// gnetLog passes gnet's errors on and drops the rest, which includes a line
// for every broken connection.
type gnetLog struct{ log *slog.Logger }

func (gnetLog) Debugf(string, ...any) {}
func (gnetLog) Infof(string, ...any)  {}
func (gnetLog) Warnf(string, ...any)  {}

func (g gnetLog) Errorf(format string, args ...any) {
	g.log.Error("gnet", "error", fmt.Sprintf(format, args...))
}

func (g gnetLog) Fatalf(format string, args ...any) { g.Errorf(format, args...) }
