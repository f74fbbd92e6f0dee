package reactor

import (
	"context"
	"fmt"
	"io"
	"net"
	"time"
)

// refusal is what a client past the limits is told, on any route: who sends
// the request is not known yet.
var refusal = func() []byte {
	const body = `{"error":{"message":"All connections of this gateway are in use. Try again shortly.","type":"service_unavailable_error","param":null,"code":"server_is_overloaded"}}`
	return fmt.Appendf(nil, "HTTP/1.1 503 Service Unavailable\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n"+
		"Retry-After: 1\r\nConnection: close\r\n\r\n%s", len(body), body)
}()

// refuse answers 503 and closes, on a goroutine of its own; when too many are
// being told already, it closes.
func (a *listener) refuse(c *net.TCPConn) {
	a.r.counts.refused.Add(1)
	if a.r.life.Err() != nil || !a.r.refusals.take() {
		_ = c.Close()
		return
	}
	a.r.spawn(func() {
		defer a.r.refusals.give()
		defer c.Close()
		ctx, cancel := context.WithTimeout(a.r.life, refusalTimeout)
		defer cancel()
		stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
		defer stop()
		a.tellRefusal(ctx, c)
	})
}

// tellRefusal writes the answer and then reads for a while: closing with
// unread bytes would reset the connection and destroy the answer.
func (a *listener) tellRefusal(ctx context.Context, c *net.TCPConn) {
	if a.tls == nil {
		if _, err := c.Write(refusal); err != nil {
			return
		}
	} else {
		g := a.r.lobby.enter(c)
		if g == nil {
			return
		}
		defer g.leave()
		_, conn, _, err := a.handshake(ctx, g)
		if err != nil {
			return
		}
		if _, err := conn.Write(refusal); err != nil {
			return
		}
		_ = conn.CloseWrite()
	}
	_ = c.CloseWrite()
	_, _ = io.CopyN(io.Discard, c, refusalDrainBytes)
}
