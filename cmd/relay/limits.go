package main

import (
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"relay/admit"
)

// Shares and budgets from which the limits of the process are derived.
const (
	bodiesPercent    = 40       // of the memory limit, for bodies and held bytes
	connsPercent     = 40       // of the memory limit, for client connections
	connBytes        = 16 << 10 // budget of one client connection: parser, output, socket objects
	connFilesPercent = 80       // of the descriptors, for client connections; the rest is for upstreams
	filesKept        = 64       // descriptors for listeners, spool, catalog, control plane
	connsMin         = 16       // fewer make no gateway
	spoolRowBytes    = 512      // of a usage row, for the reserve of the spool
	spoolReserveMax  = 4 << 20  // reserve per loop: more would hurt small disks
	lanePendingMax   = 1 << 16  // group operations that wait for a lane; past it requests are refused as overloaded
	scrapeTimeout    = 2 * time.Second
)

// Times of the shared store.
const (
	storeLook  = 100 * time.Millisecond // between looks at how it is
	storeCalm  = 2 * time.Second        // without a failure, until it counts as back
	storeGrace = 2 * time.Second        // that it may be lost before a relay that refuses is not ready
)

// limits are what the process and each of its loops may use.
type limits struct {
	memory       memoryLimit
	files        uint64 // descriptors
	loops        int
	inflight     int64 // requests in flight, process
	conns        int   // client connections, process
	budgetBytes  int64 // bodies and held bytes, per loop
	requestBytes int64 // largest request body: never more than a loop may hold
	idlePerHost  int   // idle upstream connections per host, per loop
}

// deriveLimits computes the limits from the settings and the machine.
func deriveLimits(s *Settings, memory memoryLimit, files uint64) (limits, error) {
	l := limits{memory: memory, files: files, loops: int(s.Loops)}
	if l.loops == 0 {
		l.loops = runtime.GOMAXPROCS(0)
	}
	l.inflight = admit.HardCap(int64(s.MaxInflight), memory.bytes)
	l.budgetBytes = memory.bytes / 100 * bodiesPercent / int64(l.loops)
	l.requestBytes = min(int64(s.MaxRequestBytes), l.budgetBytes)
	idle := int64(s.UpstreamMaxIdlePerHost)
	if idle == 0 {
		idle = l.inflight
	}
	l.idlePerHost = int((idle + int64(l.loops) - 1) / int64(l.loops))
	return l, l.deriveConns(s)
}

// deriveConns bounds client connections by memory and by descriptors.
func (l *limits) deriveConns(s *Settings) error {
	if l.files < filesKept+connsMin {
		return fmt.Errorf("limit of open files (ulimit -n) is %d: allowed is %d or more", l.files, filesKept+connsMin)
	}
	byFiles := int64(min(l.files, 1<<31)-filesKept) * connFilesPercent / 100
	if s.MaxConns != 0 {
		if int64(s.MaxConns) > byFiles {
			return &wrongValue{"RELAY_MAX_CONNS (--max-conns)", fmt.Sprint(s.MaxConns),
				fmt.Sprintf("at most %d here (%d %% of the limit of open files, %d)", byFiles, connFilesPercent, l.files)}
		}
		l.conns = int(s.MaxConns)
		return nil
	}
	byMemory := l.memory.bytes / 100 * connsPercent / connBytes
	l.conns = int(max(connsMin, min(byMemory, byFiles)))
	return nil
}

// raiseFiles raises the soft limit of open files to the hard one and returns
// what is then allowed.
func raiseFiles() (uint64, error) {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err != nil {
		return 0, fmt.Errorf("limit of open files: %w", err)
	}
	if r.Cur < r.Max {
		raised := unix.Rlimit{Cur: r.Max, Max: r.Max}
		if unix.Setrlimit(unix.RLIMIT_NOFILE, &raised) == nil {
			r = raised
		}
	}
	return r.Cur, nil
}
