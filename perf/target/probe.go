package target

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"

	"relay/perf/openloop"
)

const (
	probeTimeout = 5 * time.Second
	probeMaxUs   = 60_000_000
)

// WarmUp sends ordinary requests, so that the target's working set is that of
// a process at work before anything is held against it.
func (t *Target) WarmUp(ctx context.Context, mix openloop.Mix, requests int) error {
	const rate = 2000
	hold := max(time.Duration(requests)*time.Second/rate, 100*time.Millisecond)
	result, err := openloop.Run(ctx, openloop.Options{Addr: t.Addr, Rate: rate, Hold: hold, Mix: mix, Connections: 32, ConnectionsMax: 512})
	if err != nil {
		return fmt.Errorf("target: warm up %s: %w", t.Name, err)
	}
	if result.ErrorShare > 0.5 {
		return fmt.Errorf("target: warm up %s: most requests failed: statuses %v, failures %v", t.Name, result.ByStatus, result.Failures)
	}
	return nil
}

// Exchange sends one request on a connection and reads its answer.
func Exchange(nc net.Conn, request []byte) (status int, err error) {
	nc.SetDeadline(time.Now().Add(probeTimeout))
	defer nc.SetDeadline(time.Time{})
	if _, err := nc.Write(request); err != nil {
		return 0, err
	}
	answer, err := http.ReadResponse(bufio.NewReader(nc), nil)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, err
}

// Cause is what distinguishes failures of connections, without their addresses.
func Cause(err error) string {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Op + ": " + op.Err.Error()
	}
	return err.Error()
}

// A Probe sends a small request now and then and sees how long it takes, each
// on a connection of its own, as a caller who comes anew.
type Probe struct {
	mu     sync.Mutex
	times  *hdrhistogram.Histogram // microseconds
	failed map[string]int
	stop   context.CancelFunc
	ended  chan struct{}
}

// StartProbe probes until Stop.
func (t *Target) StartProbe(ctx context.Context, request []byte, every time.Duration) *Probe {
	ctx, stop := context.WithCancel(ctx)
	p := &Probe{times: hdrhistogram.New(1, probeMaxUs, 3), failed: make(map[string]int), stop: stop, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		for {
			p.once(t.Addr, request)
			select {
			case <-ctx.Done():
				return
			case <-time.After(every):
			}
		}
	}()
	return p
}

func (p *Probe) once(addr string, request []byte) {
	began := time.Now()
	status := 0
	nc, err := net.DialTimeout("tcp", addr, probeTimeout)
	if err == nil {
		status, err = Exchange(nc, request)
		nc.Close()
	}
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("status %d", status)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.failed[Cause(err)]++
		return
	}
	p.times.RecordValue(min(time.Since(began).Microseconds(), probeMaxUs))
}

// Probed is what probes have shown.
type Probed struct {
	Count       int64
	P50Ms       float64
	P99Ms       float64
	MaxMs       float64
	FailedCount int
	Failed      map[string]int // by cause
}

// Stop ends the probe.
func (p *Probe) Stop() Probed {
	p.stop()
	<-p.ended
	out := Probed{
		Count: p.times.TotalCount(), P50Ms: float64(p.times.ValueAtQuantile(50)) / 1000,
		P99Ms: float64(p.times.ValueAtQuantile(99)) / 1000, MaxMs: float64(p.times.Max()) / 1000, Failed: p.failed,
	}
	for _, n := range p.failed {
		out.FailedCount += n
	}
	return out
}

// Alive says whether the peer has neither closed an idle connection nor sent
// anything on it.
func Alive(nc net.Conn) bool {
	raw, err := nc.(*net.TCPConn).SyscallConn()
	if err != nil {
		return false
	}
	alive := false
	err = raw.Control(func(fd uintptr) {
		var b [1]byte
		_, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		alive = err == unix.EAGAIN
	})
	return alive && err == nil
}

// A Sampler watches the working set of a target.
type Sampler struct {
	mu    sync.Mutex
	max   int64
	last  int64
	stop  context.CancelFunc
	ended chan struct{}
}

// StartSampler samples until Stop.
func (t *Target) StartSampler(ctx context.Context, every time.Duration) *Sampler {
	ctx, stop := context.WithCancel(ctx)
	s := &Sampler{stop: stop, ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		for {
			if u, err := t.Usage(); err == nil {
				s.mu.Lock()
				s.last, s.max = u.RSS, max(s.max, u.RSS)
				s.mu.Unlock()
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(every):
			}
		}
	}()
	return s
}

// Stop ends the sampler; it gives the most and the last that was seen, in bytes.
func (s *Sampler) Stop() (most, last int64) {
	s.stop()
	<-s.ended
	return s.max, s.last
}
