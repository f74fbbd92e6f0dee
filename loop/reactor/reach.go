package reactor

import "golang.org/x/sys/unix"

// reach tells how far a connection's output has come, by what the peer's
// kernel has acknowledged. Counts are of bytes on the wire, encrypted ones
// under TLS.
type reach struct {
	before  int64 // written before the loop had the connection: SYN, handshake
	written int64 // by the loop, since then
	mark    int64 // written at the last Mark
	acked   int64 // at the end of the connection; -1 = it has not ended
	// broken says that a reset was read with no FIN before it (else the kernel
	// says EPIPE). A reset acknowledges nothing, and acknowledgements are delayed:
	// the peer may have read all. A write that fails has handed nothing over.
	broken bool
}

// begin notes what had been written when the loop got the connection.
func (r *reach) begin(fd int) {
	r.acked = -1
	waiting, err := unix.IoctlGetInt(fd, unix.SIOCOUTQ)
	if err != nil {
		waiting = 0
	}
	r.before = ackedBytes(fd) + int64(waiting)
}

// end keeps the count of a connection whose descriptor is about to go.
func (r *reach) end(fd int) { r.acked = ackedBytes(fd) }

// ackedBytes is what the peer has acknowledged so far, the SYN included (Linux
// tcp_info, tcpi_bytes_acked).
func ackedBytes(fd int) int64 {
	info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return 0 // not TCP: nothing is known to have come through
	}
	return int64(info.Bytes_acked)
}

// Mark implements loop.Socket.
func (s *socket) Mark() { s.reach.mark = s.reach.written }

// Reached implements loop.Socket.
func (s *socket) Reached() bool {
	if s.reach.broken {
		return true
	}
	acked := s.reach.acked
	if acked < 0 {
		acked = ackedBytes(s.fd)
	}
	return acked > s.reach.before+s.reach.mark
}
