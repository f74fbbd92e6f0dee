package openloop

import (
	"encoding/binary"
	"net"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A poller waits for sockets and moves bytes, with as few and as cheap system
// calls as there can be. None of its calls but a long wait lets go of the
// processor. Owner: the generator.
type poller struct {
	epoll   int
	coarse  bool          // the kernel has no waits below a millisecond
	until   unix.Timespec // how long the wait is
	events  [eventsAtOnce]unix.EpollEvent
	buffer  []byte
	control [64]byte // takes the time at which bytes arrived
	parts   [3]unix.Iovec
	message unix.Msghdr
}

func newPoller() (*poller, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	return &poller{epoll: epoll, buffer: make([]byte, readBytes)}, nil
}

func (p *poller) close() { unix.Close(p.epoll) }

// add watches a socket. Each change is told once, with the generation.
func (p *poller) add(fd int, generation int32) error {
	event := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET&0xffffffff, Fd: int32(fd), Pad: generation}
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, fd, &event))
}

// wait waits for changes, at most for a time.
func (p *poller) wait(most time.Duration) ([]unix.EpollEvent, error) {
	most = max(most, 0)
	if p.coarse {
		n, err := unix.EpollWait(p.epoll, p.events[:], int(most/time.Millisecond))
		return p.told(n, err)
	}
	p.until = unix.NsecToTimespec(most.Nanoseconds())
	var n uintptr
	var errno syscall.Errno
	if most <= waitRawMax {
		n, _, errno = unix.RawSyscall6(unix.SYS_EPOLL_PWAIT2, uintptr(p.epoll), uintptr(unsafe.Pointer(&p.events[0])), eventsAtOnce, uintptr(unsafe.Pointer(&p.until)), 0, 0)
	} else {
		n, _, errno = unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(p.epoll), uintptr(unsafe.Pointer(&p.events[0])), eventsAtOnce, uintptr(unsafe.Pointer(&p.until)), 0, 0)
	}
	if errno == unix.ENOSYS || errno == unix.EPERM { // an old kernel, or a filter that does not know the call
		p.coarse = true
		return nil, nil
	}
	if errno != 0 {
		return p.told(0, errno)
	}
	return p.told(int(n), nil)
}

// sleep waits for a short time.
func (p *poller) sleep(d time.Duration) {
	if d <= 0 {
		return
	}
	p.until = unix.NsecToTimespec(d.Nanoseconds())
	unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&p.until)), 0, 0)
}

func (p *poller) told(n int, err error) ([]unix.EpollEvent, error) {
	if err == unix.EINTR {
		return nil, nil
	}
	if err != nil {
		return nil, os.NewSyscallError("epoll_wait", err)
	}
	return p.events[:n], nil
}

// read takes up to most bytes, which are valid until the next read, and tells
// when the last of them arrived: unix nanoseconds, 0 = unknown.
func (p *poller) read(fd, most int) (b []byte, arrived int64, errno syscall.Errno) {
	p.parts[0].Base = &p.buffer[0]
	p.parts[0].SetLen(min(most, len(p.buffer)))
	p.message = unix.Msghdr{Iov: &p.parts[0], Iovlen: 1, Control: &p.control[0], Controllen: uint64(len(p.control))}
	n, _, errno := unix.RawSyscall(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(&p.message)), unix.MSG_DONTWAIT)
	if errno != 0 {
		return nil, 0, errno
	}
	return p.buffer[:n], p.arrived(), 0
}

// arrived reads the time of a packet: a header of 16 bytes, then seconds and
// nanoseconds of 8 bytes each.
func (p *poller) arrived() int64 {
	if p.message.Controllen < 32 {
		return 0
	}
	word := func(at int) int64 { return int64(binary.NativeEndian.Uint64(p.control[at:])) }
	level, kind := binary.NativeEndian.Uint32(p.control[8:]), binary.NativeEndian.Uint32(p.control[12:])
	if level != unix.SOL_SOCKET || kind != unix.SCM_TIMESTAMPNS {
		return 0
	}
	return word(16)*int64(time.Second) + word(24)
}

// write sends what is left of a request behind the bytes that are sent.
func (p *poller) write(fd int, r *request, sent int) (n int, errno syscall.Errno) {
	parts := 0
	for _, b := range [...][]byte{r.front, prose(r.prose), r.back} {
		if sent >= len(b) {
			sent -= len(b)
			continue
		}
		p.parts[parts].Base = &b[sent]
		p.parts[parts].SetLen(len(b) - sent)
		sent = 0
		parts++
	}
	p.message = unix.Msghdr{Iov: &p.parts[0], Iovlen: uint64(parts)}
	k, _, errno := unix.RawSyscall(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(&p.message)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
	if errno != 0 {
		return 0, errno
	}
	return int(k), 0
}

// An address is where sockets are connected to.
type address struct {
	family int
	to     unix.Sockaddr
}

// resolve finds the address of a host:port.
func resolve(addr string) (address, error) {
	tcp, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return address{}, err
	}
	if ip := tcp.IP.To4(); ip != nil || len(tcp.IP) == 0 {
		to := &unix.SockaddrInet4{Port: tcp.Port, Addr: [4]byte{127, 0, 0, 1}}
		copy(to.Addr[:], ip)
		return address{unix.AF_INET, to}, nil
	}
	to := &unix.SockaddrInet6{Port: tcp.Port}
	copy(to.Addr[:], tcp.IP.To16())
	if tcp.Zone != "" {
		zone, err := net.InterfaceByName(tcp.Zone)
		if err != nil {
			return address{}, err
		}
		to.ZoneId = uint32(zone.Index)
	}
	return address{unix.AF_INET6, to}, nil
}

// connect begins to connect a socket, whose receive buffer is set when window
// is not 0.
func (a *address) connect(window int) (fd int, err error) {
	fd, err = unix.Socket(a.family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, os.NewSyscallError("socket", err)
	}
	unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
	if window > 0 {
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, window)
	}
	if err := unix.Connect(fd, a.to); err != nil && err != unix.EINPROGRESS {
		unix.Close(fd)
		return 0, os.NewSyscallError("connect", err)
	}
	return fd, nil
}

// connected asks what became of a connect.
func connected(fd int) error {
	code, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && code != 0 {
		err = syscall.Errno(code)
	}
	return os.NewSyscallError("connect", err)
}
