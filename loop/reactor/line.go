package reactor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/panjf2000/gnet/v2"
	"golang.org/x/sys/unix"
)

// DialLine connects a goroutine to a peer by way of a loop, which reads from
// the socket for it. When all of Go's processors are with loops that wait for
// events, nobody looks at the sockets of goroutines, for up to 10 ms; a loop
// does at once. It is for lanes, whose answers requests wait for. The timeout
// is d's.
func (r *Reactor) DialLine(ctx context.Context, index int, d *net.Dialer, addr string) (net.Conn, error) {
	nc, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	tcp := nc.(*net.TCPConn)
	w := &line{
		shard: r.shards[index%len(r.shards)], local: tcp.LocalAddr(), remote: tcp.RemoteAddr(),
		ready: make(chan struct{}, 1),
	}
	if w.fd, err = duplicate(tcp); err != nil {
		_ = tcp.Close()
		return nil, fmt.Errorf("reactor: connect to %s: %w", addr, err)
	}
	if err := w.enroll(ctx, tcp); err != nil {
		_ = w.Close()
		return nil, fmt.Errorf("reactor: connect to %s: %w", addr, err)
	}
	return w, nil
}

// duplicate is a descriptor of the same socket that Go does not watch.
func duplicate(tcp *net.TCPConn) (fd int, err error) {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return -1, err
	}
	if controlErr := raw.Control(func(of uintptr) {
		fd, err = unix.FcntlInt(of, unix.F_DUPFD_CLOEXEC, 0)
	}); controlErr != nil {
		return -1, controlErr
	}
	return fd, err
}

// A line is a connection whose bytes a loop reads and another goroutine takes.
// gnet has a descriptor of its own, and so has the writing side: a write of
// ours never goes to a socket that is another's by now.
type line struct {
	shard         *shard
	local, remote net.Addr
	opened        bool          // set on the loop, before the enrolling goroutine reads it
	ready         chan struct{} // holds one: in, err or readBy has changed

	mu              sync.Mutex // held for a copy, never across a call that waits
	in              []byte     // read and not taken, from at on
	at              int
	err             error // nothing more comes behind in
	readBy, writeBy time.Time

	out sync.Mutex // held while a write runs
	fd  int        // for writing; -1 = closed
}

// lineHeldMax is how many bytes may wait to be taken; more are answers to
// nothing that was asked.
const lineHeldMax = 64 << 20

var errLineFull = errors.New("the peer sends what nobody takes")

// enroll hands the connection to the loop; tcp is gnet's from here.
func (w *line) enroll(ctx context.Context, tcp *net.TCPConn) error {
	scrub(tcp)
	result, err := w.shard.el.Enroll(gnet.NewContext(context.Background(), w), tcp)
	if err != nil {
		_ = tcp.Close()
		return err
	}
	select {
	case res := <-result:
		if res.Err == nil && !w.opened {
			return errNotOpened
		}
		return res.Err
	case <-ctx.Done(): // the loop may still take it, and see that it is shut
		return ctx.Err()
	}
}

// arrived takes what the loop has read. Owner: the loop.
func (w *line) arrived(c gnet.Conn) {
	p, err := c.Next(-1)
	w.mu.Lock()
	if w.at == len(w.in) {
		w.in, w.at = w.in[:0], 0
	}
	switch {
	case w.err != nil: // nothing more is taken: the reader must not miss a part
	case err != nil:
		w.err = err
	case len(w.in)-w.at+len(p) > lineHeldMax:
		w.err = errLineFull
	default:
		w.in = append(w.in, p...)
	}
	w.mu.Unlock()
	w.signal()
	w.shard.awaitMail()
}

// gone notes that nothing more comes. Any goroutine.
func (w *line) gone(err error) {
	if err == nil || errors.Is(err, io.EOF) { // gnet wraps it
		err = io.EOF
	}
	w.mu.Lock()
	if w.err == nil {
		w.err = err
	}
	w.mu.Unlock()
	w.signal()
}

func (w *line) signal() {
	select {
	case w.ready <- struct{}{}:
	default:
	}
}

// Read takes what has come, and waits for it until the deadline. One goroutine
// reads at a time.
func (w *line) Read(p []byte) (int, error) {
	for {
		w.mu.Lock()
		n, err, by := copy(p, w.in[w.at:]), w.err, w.readBy
		w.at += n
		w.mu.Unlock()
		if n > 0 || len(p) == 0 {
			return n, nil
		}
		if err != nil {
			return 0, err
		}
		if by.IsZero() {
			<-w.ready
			continue
		}
		left := time.Until(by)
		if left <= 0 {
			return 0, os.ErrDeadlineExceeded
		}
		timer := time.NewTimer(left)
		select {
		case <-w.ready:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// Write writes at once, and waits for room in the kernel until the deadline.
func (w *line) Write(p []byte) (n int, err error) {
	w.out.Lock()
	defer w.out.Unlock()
	if err := w.mayWrite(); err != nil {
		return 0, err
	}
	for n < len(p) {
		if w.fd < 0 {
			return n, net.ErrClosed
		}
		wrote, err := unix.SendmsgN(w.fd, p[n:], nil, nil, unix.MSG_NOSIGNAL)
		switch {
		case err == nil:
			n += wrote
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			if err := w.room(); err != nil {
				return n, err
			}
		default:
			return n, os.NewSyscallError("sendmsg", err)
		}
	}
	return n, nil
}

// room waits until the kernel takes more. It looks often enough to see a Close.
func (w *line) room() error {
	wait := []unix.PollFd{{Fd: int32(w.fd), Events: unix.POLLOUT}}
	if _, err := unix.Poll(wait, int(lineLook/time.Millisecond)); err != nil && !errors.Is(err, unix.EINTR) {
		return os.NewSyscallError("poll", err)
	}
	return w.mayWrite()
}

// mayWrite says why a write must not go on.
func (w *line) mayWrite() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil && !w.writeBy.IsZero() && time.Until(w.writeBy) <= 0 {
		return os.ErrDeadlineExceeded
	}
	return w.err
}

// lineLook is how long a write waits for room before it looks at its deadline.
const lineLook = 50 * time.Millisecond

// Close shuts the socket, which the loop sees and closes its side by.
func (w *line) Close() error {
	w.gone(net.ErrClosed)
	w.out.Lock()
	defer w.out.Unlock()
	if w.fd < 0 {
		return net.ErrClosed
	}
	fd := w.fd
	w.fd = -1
	_ = unix.Shutdown(fd, unix.SHUT_RDWR) // it may be shut already
	return os.NewSyscallError("close", unix.Close(fd))
}

// LocalAddr is our end.
func (w *line) LocalAddr() net.Addr { return w.local }

// RemoteAddr is the peer's end.
func (w *line) RemoteAddr() net.Addr { return w.remote }

// SetDeadline is SetReadDeadline and SetWriteDeadline.
func (w *line) SetDeadline(t time.Time) error {
	return errors.Join(w.SetReadDeadline(t), w.SetWriteDeadline(t))
}

// SetReadDeadline also counts for a Read that waits.
func (w *line) SetReadDeadline(t time.Time) error {
	w.mu.Lock()
	w.readBy = t
	w.mu.Unlock()
	w.signal()
	return nil
}

// SetWriteDeadline also counts for a Write that waits, which sees it within
// lineLook.
func (w *line) SetWriteDeadline(t time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writeBy = t
	return nil
}
