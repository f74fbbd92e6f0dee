package baseline

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"relay/admit"
	"relay/perf/machine"
	"relay/store/catalog"
	"relay/store/source"
	"relay/upstream"
	"relay/upstream/wire"
	"relay/usage"
	"relay/usage/spool"
)

// A core is what the goroutines of all connections share.
type core struct {
	options  Options
	tables   *catalog.Tables
	inflight *admit.Inflight
	limiter  *limiter
	spool    *spool.Spool
	lanes    []*lane
	metrics  metrics
	tickets  sync.Pool
	bodies   sync.Pool
}

// A lane is one of several writers of the spool, and one of several rotations:
// what is not made for many goroutines is there once per P.
type lane struct {
	turning  sync.Mutex
	rotation *upstream.Rotation

	writing sync.Mutex
	writer  *spool.Writer
	closed  bool // the spool is, or will be

	waiting sync.Mutex
	synced  sync.Cond // of waiting: more is safe on disk
}

// newCore reads the catalog and opens the spool.
func newCore(o Options) (*core, error) {
	_, tables, err := source.Open(o.Catalog)
	if err != nil {
		return nil, fmt.Errorf("RELAY_CATALOG is %q: %w", o.Catalog, err)
	}
	count := runtime.GOMAXPROCS(0)
	c := &core{
		options: o, tables: tables,
		inflight: admit.NewInflight(admit.HardCap(o.InflightMax, int64(machine.Host().MemoryBytes))),
		lanes:    make([]*lane, count),
	}
	for i := range c.lanes {
		c.lanes[i] = &lane{rotation: upstream.NewRotation(rand.Uint64())}
		c.lanes[i].synced.L = &c.lanes[i].waiting
	}
	if o.Instance == "" {
		o.Instance, _ = os.Hostname()
	}
	c.spool, err = spool.Open(spool.Options{
		Dir: filepath.Join(o.DataDir, "spool"), Loops: count, Sync: o.SpoolSync, Instance: o.Instance, Full: o.SpoolFull, Log: o.Log,
		Synced: func(i int) {
			n := c.lanes[i]
			n.waiting.Lock() // or a waiter could miss it between its look and its wait
			n.synced.Broadcast()
			n.waiting.Unlock()
		},
	})
	if err != nil {
		return nil, fmt.Errorf("RELAY_DATA_DIR is %q: %w", o.DataDir, err)
	}
	for i, n := range c.lanes {
		n.writer = c.spool.Writer(i)
	}
	c.metrics.init()
	c.limiter = newLimiter()
	c.tickets.New = func() any { return newTicket(c) }
	c.bodies.New = func() any { return &body{core: c} }
	return c, nil
}

// lane is one of the lanes, whichever.
func (c *core) lane() *lane {
	if len(c.lanes) == 1 {
		return c.lanes[0]
	}
	return c.lanes[rand.Uint32N(uint32(len(c.lanes)))]
}

// pick chooses a binding and a host key.
func (n *lane) pick(m *catalog.Model, s wire.Shape) (*catalog.Binding, *catalog.HostKey, bool) {
	var tried upstream.Tried
	n.turning.Lock()
	defer n.turning.Unlock()
	return upstream.Pick(m, s, n.rotation, &tried)
}

// admitted writes that an attempt starts, or reports that it must not.
func (n *lane) admitted(e *usage.Event) bool {
	n.writing.Lock()
	defer n.writing.Unlock()
	return !n.closed && n.writer.Admitted(e)
}

// row writes how a request ended. When every answer has to wait until its row
// is safe, it waits.
func (n *lane) row(e *usage.Event, wait bool) (written bool) {
	n.writing.Lock()
	if n.closed {
		n.writing.Unlock()
		return false
	}
	written = n.writer.Row(e)
	to := n.writer.Position()
	n.writing.Unlock()
	if !written || !wait {
		return written
	}
	n.waiting.Lock()
	for n.writer.SyncedTo() < to {
		n.synced.Wait()
	}
	n.waiting.Unlock()
	return true
}

// close closes the spool. Requests that still run get their rows from it.
func (c *core) close() error {
	for _, n := range c.lanes {
		n.writing.Lock()
		n.closed = true
		n.writing.Unlock()
	}
	c.limiter.close()
	if err := c.spool.Close(); err != nil {
		return fmt.Errorf("RELAY_DATA_DIR is %q: %w", c.options.DataDir, err)
	}
	return nil
}
