package soak

import (
	"context"
	"fmt"
	"time"
)

// size reads how large the target is.
func (s *soak) size(ctx context.Context) (Size, error) {
	u, err := s.t.Usage()
	if err != nil {
		return Size{}, fmt.Errorf("soak: %w", err)
	}
	size := Size{RSS: u.RSS, Goroutines: -1, Exchanges: -1}
	if size.Descriptors, err = s.t.Descriptors(); err != nil {
		return Size{}, fmt.Errorf("soak: %w", err)
	}
	if s.t.Control == "" {
		return size, nil
	}
	if size.Goroutines, err = s.t.Goroutines(ctx); err != nil {
		return Size{}, fmt.Errorf("soak: %w", err)
	}
	if n, err := s.t.Metric(ctx, "relay_exchanges"); err == nil { // not of every target
		size.Exchanges = int(n)
	}
	return size, nil
}

// watch samples the target until the returned function is called, which tells
// what went wrong. The context that it returns ends with the target.
func (s *soak) watch(ctx context.Context) (context.Context, func() error) {
	watched, cancel := context.WithCancel(ctx)
	stop, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		defer cancel()
		for {
			size, err := s.size(watched)
			if err != nil { // it has ended, or hangs
				ended <- err
				return
			}
			s.result.note(size)
			select {
			case <-stop:
				ended <- nil
				return
			case <-ctx.Done():
				ended <- ctx.Err()
				return
			case <-time.After(sampleEvery):
			}
		}
	}()
	return watched, func() error {
		close(stop)
		return <-ended
	}
}

// note takes a sample. It is called by one goroutine at a time.
func (r *Result) note(size Size) {
	m := &r.Most
	if size.Exchanges > m.Exchanges {
		r.InFlight = size.Exchanges
		r.KiBPerWaiting = float64(size.RSS-r.Base.RSS) / 1024 / float64(size.Exchanges)
	}
	m.RSS, m.Descriptors = max(m.RSS, size.RSS), max(m.Descriptors, size.Descriptors)
	m.Goroutines, m.Exchanges = max(m.Goroutines, size.Goroutines), max(m.Exchanges, size.Exchanges)
}

// settle waits for the target to be as small as it was.
func (s *soak) settle(ctx context.Context) error {
	r := s.result
	for began := time.Now(); ; {
		var err error
		if r.After, err = s.size(ctx); err != nil {
			return err
		}
		took := time.Since(began)
		if len(r.larger()) == 0 {
			r.ReturnSeconds = took.Seconds()
			return nil
		}
		if took >= s.o.Return {
			return nil
		}
		if !pause(ctx, sampleEvery) {
			return ctx.Err()
		}
	}
}

// larger names everything that is not back at its base.
func (r *Result) larger() []string {
	var found []string
	if r.After.RSS > r.Filled.RSS+max(returnedBytes, int64(returnedShare*float64(r.Filled.RSS))) {
		found = append(found, fmt.Sprintf("memory: %.1f MiB, with full pools it was %.1f before the load, and %.1f at most", mib(r.After.RSS), mib(r.Filled.RSS), mib(r.Most.RSS)))
	}
	if r.After.Descriptors > r.Base.Descriptors+returnedFiles {
		found = append(found, fmt.Sprintf("descriptors: %d are open, the base is %d", r.After.Descriptors, r.Base.Descriptors))
	}
	if r.After.Goroutines > r.Base.Goroutines+returnedGoroutines {
		found = append(found, fmt.Sprintf("goroutines: %d run, the base is %d", r.After.Goroutines, r.Base.Goroutines))
	}
	if r.After.Exchanges > 0 {
		found = append(found, fmt.Sprintf("exchanges: %d are being worked on with no caller there", r.After.Exchanges))
	}
	return found
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }
