package mockhost

import (
	"bytes"
	"container/heap"
	"net"
	"os"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A loop answers ordinary requests on one thread: whole JSON answers of chat
// and messages after some time, which is what most load asks for. It costs a
// read, a write and a share of a wake-up for each. Every other request is given
// to a goroutine together with its connection, which stays there.
type loop struct {
	server   *Server
	epoll    int
	listener *os.File // a duplicate of the server's
	listen   int      // its descriptor, not blocking
	wake     int      // eventfd, readable at the end
	conns    map[int32]*quick
	waiting  waiting
}

// A quick is a connection of a loop. Its conn has no socket of Go's.
type quick struct {
	conn
	fd      int
	started time.Time // when the request was whole
	due     time.Time
	place   int  // in waiting; -1 = not there
	unread  bool // something has come while an answer was due
	shape   shape
}

const (
	quickBodyMax  = 256 << 10        // of a request that a loop answers
	quickDelayMax = time.Minute      // until its answer
	quickGrain    = time.Millisecond // answers that are due together go out together
	quickWaitMax  = 60               // milliseconds, without the runtime
	eventsAtOnce  = 512
	quickBuffer   = 16 << 10
)

// startLoop makes the server answer on a loop.
func (s *Server) startLoop() error {
	file, err := s.listener.(*net.TCPListener).File()
	if err != nil {
		return err
	}
	l := &loop{server: s, listener: file, listen: int(file.Fd()), conns: make(map[int32]*quick)}
	if l.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		file.Close()
		return os.NewSyscallError("epoll_create1", err)
	}
	if l.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		l.close()
		return os.NewSyscallError("eventfd", err)
	}
	for _, fd := range []int{l.listen, l.wake} {
		if err := unix.SetNonblock(fd, true); err != nil {
			l.close()
			return os.NewSyscallError("fcntl", err)
		}
		if err := unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}); err != nil {
			l.close()
			return os.NewSyscallError("epoll_ctl", err)
		}
	}
	s.wait.Go(l.run)
	s.wait.Go(func() {
		<-s.done
		unix.Write(l.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	})
	return nil
}

func (l *loop) close() {
	for _, q := range l.conns {
		l.drop(q)
	}
	l.listener.Close()
	for _, fd := range []int{l.epoll, l.wake} {
		if fd > 0 {
			unix.Close(fd)
		}
	}
}

// run serves until the server is closed.
func (l *loop) run() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer l.close()
	events := make([]unix.EpollEvent, eventsAtOnce)
	buffer := make([]byte, quickBuffer)
	for {
		n, err := l.await(events)
		if err != nil && err != unix.EINTR {
			return
		}
		for _, e := range events[:max(n, 0)] {
			switch {
			case int(e.Fd) == l.wake:
				return
			case int(e.Fd) == l.listen:
				l.accept()
			default:
				if q := l.conns[e.Fd]; q != nil {
					l.ready(q, buffer)
				}
			}
		}
		l.answerDue(buffer)
	}
}

// await waits for events. A short wait keeps the runtime out of it: to be taken
// off its thread and put back costs more than the wait. A collection of garbage
// waits meanwhile, which is why long ones are left to the runtime.
func (l *loop) await(events []unix.EpollEvent) (int, error) {
	patience := l.patience()
	if patience < 0 || patience > quickWaitMax {
		return unix.EpollWait(l.epoll, events, patience)
	}
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(l.epoll), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), uintptr(patience), 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// patience is how long to wait for events, in milliseconds; -1 = for ever.
func (l *loop) patience() int {
	if len(l.waiting) == 0 {
		return -1
	}
	left := time.Until(l.waiting[0].due)
	return int(max(0, (left+quickGrain-1)/quickGrain))
}

func (l *loop) accept() {
	for {
		fd, _, err := unix.Accept4(l.listen, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		if err != nil { // none left, or out of descriptors: epoll tells again
			if err == unix.EMFILE || err == unix.ENFILE {
				time.Sleep(quickGrain)
			}
			return
		}
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
		q := &quick{conn: conn{server: l.server}, fd: fd, place: -1}
		event := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET&0xffffffff, Fd: int32(fd)}
		if unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, fd, &event) != nil {
			unix.Close(fd)
			continue
		}
		l.conns[int32(fd)] = q
		l.server.tally.connections.Add(1)
		l.server.tally.open.Add(1)
	}
}

// drop closes a connection.
func (l *loop) drop(q *quick) {
	if q.place >= 0 {
		heap.Remove(&l.waiting, q.place)
		l.server.tally.peersGone.Add(1)
	}
	delete(l.conns, int32(q.fd))
	unix.Close(q.fd)
	l.server.tally.open.Add(-1)
}

// ready reads what has come. Events are told once, so it reads until there is
// no more.
func (l *loop) ready(q *quick, buffer []byte) {
	if q.place >= 0 {
		q.unread = true
		if l.gone(q) {
			l.drop(q)
		}
		return
	}
	for {
		n, err := unix.Read(q.fd, buffer)
		switch {
		case err == unix.EAGAIN:
			return
		case err == unix.EINTR:
			continue
		case err != nil || n == 0:
			l.drop(q)
			return
		}
		q.in = append(q.in, buffer[:n]...)
		if !l.take(q) || q.place >= 0 {
			q.unread = n == len(buffer)
			return
		}
		if n < len(buffer) {
			return
		}
	}
}

// gone reports whether the peer has closed while its answer is due.
func (l *loop) gone(q *quick) bool {
	var b [1]byte
	n, _, err := unix.Recvfrom(q.fd, b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
	return err == nil && n == 0 || err != nil && err != unix.EAGAIN && err != unix.EINTR
}

// take looks at the bytes that have come. It returns false when the connection
// has left the loop.
func (l *loop) take(q *quick) bool {
	i := bytes.Index(q.in, []byte("\r\n\r\n"))
	if i < 0 {
		return len(q.in) < headBytesMax || l.give(q)
	}
	if !q.req.parse(q.in[:i+4]) || !q.req.plain() {
		return l.give(q)
	}
	whole := i + 4 + int(q.req.contentLength)
	if len(q.in) < whole {
		return true
	}
	q.req.body = q.in[i+4 : whole]
	if !l.plan(q) {
		return l.give(q)
	}
	q.in = append(q.in[:0], q.in[whole:]...)
	q.req.head, q.req.body = nil, nil
	heap.Push(&l.waiting, q)
	return true
}

// plain says that the request may be one for a loop, by its head.
func (r *request) plain() bool {
	e, _ := r.route()
	return r.method == "POST" && (e == chat || e == messages) && r.query == "" && r.contentLength <= quickBodyMax &&
		!r.chunked && !r.expects && !r.close && !r.http10
}

// plan decides on the answer. It returns false for all that is not ordinary;
// nothing has been counted then.
func (l *loop) plan(q *quick) bool {
	s := l.server
	e, sh := q.req.route()
	if s.options.Record || s.options.Key != "" && q.req.credential(sh) != s.options.Key {
		return false
	}
	f, wrong := q.readFields(e, sh)
	if wrong != "" || f.stream {
		return false
	}
	if _, err := q.scenarioFor(sh, f.model); err != nil || !q.scenario.plain() {
		return false
	}
	q.reply = reply{endpoint: e, fields: f, sc: q.scenario, id: s.ids.Add(1)}
	q.started = time.Now()
	q.reply.created = q.started.Unix()
	if q.reply.plan() != nil {
		return false
	}
	q.scratch = voices[e].whole(q.scratch[:0], &q.reply)
	delay := q.scenario.delay() + q.scenario.rest(len(q.reply.words.ends))
	if delay > quickDelayMax {
		return false
	}
	q.due, q.shape = q.started.Add(delay), sh
	q.reply.fields = fields{} // it points into the request
	s.tally.requests.Add(1)
	return true
}

// plain says that nothing goes wrong and nothing is streamed.
func (s *scenario) plain() bool {
	return s.trouble == noTrouble && s.times == 0 && s.menu == 0 && s.tick == 0 && s.pour == 0
}

// answerDue sends the answers whose time has come.
func (l *loop) answerDue(buffer []byte) {
	now := time.Now()
	for len(l.waiting) > 0 && !l.waiting[0].due.After(now) {
		q := heap.Pop(&l.waiting).(*quick)
		q.out = q.appendHead(q.out[:0], q.shape, 200, "application/json", int64(len(q.scratch)), q.started)
		q.out = append(q.out, q.scratch...)
		n, err := unix.Write(q.fd, q.out)
		l.server.tally.bytesOut.Add(uint64(max(n, 0)))
		if err != nil || n < len(q.out) { // a peer that does not take a kilobyte is of no use here
			l.server.tally.peersGone.Add(1)
			l.drop(q)
			continue
		}
		if len(q.in) > 0 && (!l.take(q) || q.place >= 0) {
			continue
		}
		if q.unread {
			q.unread = false
			l.ready(q, buffer)
		}
	}
}

// give hands a connection with all that was read to a goroutine. It returns
// false, for its callers to return.
func (l *loop) give(q *quick) bool {
	unix.EpollCtl(l.epoll, unix.EPOLL_CTL_DEL, q.fd, nil)
	delete(l.conns, int32(q.fd))
	file := os.NewFile(uintptr(q.fd), "connection")
	nc, err := net.FileConn(file)
	file.Close()
	if err != nil {
		l.server.tally.open.Add(-1)
		return false
	}
	c := &conn{server: l.server, tcp: nc.(*net.TCPConn), in: q.in, end: len(q.in)}
	s := l.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		nc.Close()
		return false
	}
	s.conns[c] = struct{}{}
	s.wait.Go(c.serve)
	return false
}

// waiting are the connections whose answer is due later, the next one first.
type waiting []*quick

func (w waiting) Len() int           { return len(w) }
func (w waiting) Less(i, j int) bool { return w[i].due.Before(w[j].due) }
func (w waiting) Swap(i, j int) {
	w[i], w[j] = w[j], w[i]
	w[i].place, w[j].place = i, j
}

// Push is for package heap.
func (w *waiting) Push(x any) {
	q := x.(*quick)
	q.place = len(*w)
	*w = append(*w, q)
}

// Pop is for package heap.
func (w *waiting) Pop() any {
	old := *w
	q := old[len(old)-1]
	old[len(old)-1] = nil
	*w = old[:len(old)-1]
	q.place = -1
	return q
}
