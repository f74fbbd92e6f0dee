package reactor

import (
	"fmt"
	"log/slog"

	"github.com/panjf2000/gnet/v2"
)

// events is gnet's way in. Which connection it is about is told by the type of
// the connection's context: a *socket, a *bell or a *line.
type events struct{ gnet.BuiltinEventEngine }

// OnOpen runs when a connection has been registered with its loop.
func (*events) OnOpen(c gnet.Conn) ([]byte, gnet.Action) {
	switch x := c.Context().(type) {
	case *socket:
		x.gc, x.fd, x.state, x.opened = c, c.Fd(), live, true
		x.shard.handle(workOpen, x)
	case *line:
		x.opened = true
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
	case *line:
		x.arrived(c)
	}
	return gnet.None
}

// OnClose runs when a connection ends, also inside our own writes to it.
func (*events) OnClose(c gnet.Conn, err error) gnet.Action {
	switch x := c.Context().(type) {
	case *socket:
		l := x.shard
		x.gone(err)
		if !l.busy {
			l.busy = true
			l.settle()
			l.busy = false
		}
	case *line:
		x.gone(err)
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
