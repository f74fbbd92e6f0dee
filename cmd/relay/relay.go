package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"relay/admit"
	"relay/cmd/relay/control"
	"relay/loop"
	"relay/loop/reactor"
	"relay/store/catalog"
	"relay/store/source"
	"relay/store/state"
	"relay/usage/spool"
)

// A relay is a running gateway: its parts, in the order in which they start.
type relay struct {
	settings *Settings
	log      *slog.Logger
	limits   limits

	spool    *spool.Spool
	file     *source.File
	sockets  sockets
	inflight *admit.Inflight
	shared   *sharedStore // nil: limits are counted in memory
	lanes    *lanes
	reactor  *reactor.Reactor
	loops    []*loop.Loop
	control  *control.Server

	draining atomic.Bool
	life     context.Context // of the catalog watch
	endLife  context.CancelFunc
	watching sync.WaitGroup
}

// startRelay starts all parts. When one of them cannot start, those before it
// are ended again.
func startRelay(settings *Settings, log *slog.Logger) (*relay, error) {
	r := &relay{settings: settings, log: log}
	r.life, r.endLife = context.WithCancel(context.Background())
	if err := r.start(); err != nil {
		r.endLife()
		if r.lanes != nil {
			r.lanes.stop()
		}
		if r.shared != nil {
			r.shared.close()
		}
		if r.reactor != nil {
			r.reactor.Stop()
		}
		if r.control != nil {
			r.control.Close() // before its socket is closed, which it would report as a fault
		}
		r.sockets.close()
		if r.spool != nil {
			_ = r.spool.Close()
		}
		return nil, err
	}
	return r, nil
}

func (r *relay) start() error {
	files, err := raiseFiles()
	if err != nil {
		return err
	}
	memory := findMemoryLimit("/")
	tuneCollector(memory)
	if r.limits, err = deriveLimits(r.settings, memory, files); err != nil {
		return err
	}
	r.tellLimits()
	file, tables, err := source.Open(string(r.settings.Catalog))
	if err != nil {
		return failed("RELAY_CATALOG (--catalog)", string(r.settings.Catalog), err)
	}
	r.file = file
	if r.sockets, err = openSockets(r.settings); err != nil {
		return err
	}
	if r.spool, err = r.openSpool(); err != nil {
		return failed("RELAY_DATA_DIR (--data-dir)", string(r.settings.DataDir), err)
	}
	r.inflight = admit.NewInflight(r.limits.inflight)
	if err := r.startLoops(tables); err != nil {
		return err
	}
	r.watching.Go(r.watch)
	if r.shared != nil {
		r.watching.Go(func() { r.shared.watch(r.life) })
	}
	go tidy(r.life)
	r.startControl()
	return r.listen()
}

// failed says which setting a failure is about.
func failed(setting, value string, err error) error {
	return fmt.Errorf("%s is %q: %w", setting, value, err)
}

// tellLimits logs what the process may use.
func (r *relay) tellLimits() {
	l := &r.limits
	r.log.Info("limits", "loops", l.loops, "memory_bytes", l.memory.bytes, "memory_source", l.memory.source,
		"open_files", l.files, "max_inflight", l.inflight, "max_conns", l.conns,
		"loop_budget_bytes", l.budgetBytes, "request_bytes", l.requestBytes,
		"idle_per_host_per_loop", l.idlePerHost)
	if l.requestBytes < int64(r.settings.MaxRequestBytes) {
		r.log.Warn("RELAY_MAX_REQUEST_BYTES is lowered to what one loop has for bodies: give more memory or run fewer loops",
			"asked", int64(r.settings.MaxRequestBytes), "got", l.requestBytes)
	}
}

func (r *relay) openSpool() (*spool.Spool, error) {
	instance := string(r.settings.InstanceID)
	if instance == "" {
		instance, _ = os.Hostname()
	}
	full := spool.Refuse
	if r.settings.SpoolFull == "serve" {
		full = spool.Serve
	}
	return spool.Open(spool.Options{
		Dir:      filepath.Join(string(r.settings.DataDir), "spool"),
		Loops:    r.limits.loops,
		Sync:     r.settings.SpoolSync.duration(),
		Instance: instance,
		Full:     full,
		// A row of each request that may run on a loop has to fit on a full disk.
		ReserveBytes: min(max(r.limits.inflight/int64(r.limits.loops)*spoolRowBytes, spool.ReserveBytesDefault), spoolReserveMax),
		Synced:       func(index int) { r.tell(r.life, r.loops[index:index+1], loop.Synced{}) },
	})
}

// openLanes makes the lanes that count limits, and opens the store that they
// share with other relays if there is one.
func (r *relay) openLanes() error {
	if r.settings.StateBackend == "memory" {
		one := []state.Store{state.NewMemory(r.limits.loops)}
		r.lanes = newLanes(one, lanePendingMax, func(uint64) int { return 0 })
		return nil
	}
	shared, err := openShared(r.settings, r.reactor, r.limits.loops, r.log)
	if err != nil {
		return err
	}
	r.shared = shared
	r.lanes = newLanes(shared.stores(), cmp.Or(int(r.settings.RedisMaxPending), lanePendingMax), shared.store.LaneOf)
	return nil
}

// startLoops starts the event loops, each with a Loop on it, and the lanes that
// count their limits.
func (r *relay) startLoops(tables *catalog.Tables) error {
	r.loops = make([]*loop.Loop, r.limits.loops)
	var decoders *inflaters
	running, err := reactor.Start(reactor.Options{
		Loops:            r.limits.loops,
		MaxConns:         r.limits.conns,
		ConnQueue:        int(r.settings.ConnQueue),
		ConnQueueTimeout: r.settings.ConnQueueTimeout.duration(),
		Yield:            func(h *catalog.Host) { r.offer(loop.Yield{Host: h}) },
		Log:              r.log,
	}, func(x *reactor.Reactor, index int, wake func()) reactor.Core {
		if decoders == nil {
			decoders = newInflaters(x.Post)
		}
		r.loops[index] = loop.New(r.loopConfig(index), loop.Ports{
			Dial:     x.Dial,
			Submit:   func(o *state.Op) bool { return r.lanes.submit(o) }, // there before the first client
			Spool:    r.spool.Writer(index),
			Inflight: r.inflight,
			Inflate:  decoders.start,
		}, tables, wake)
		return r.loops[index]
	})
	r.reactor = running
	if err != nil {
		return err
	}
	if err := r.openLanes(); err != nil {
		return err
	}
	r.lanes.start(running.Post)
	return nil
}

func (r *relay) loopConfig(index int) loop.Config {
	return loop.Config{
		Index:           index,
		Loops:           r.limits.loops,
		RequestBytesMax: r.limits.requestBytes,
		BudgetBytes:     r.limits.budgetBytes,
		IdlePerHostMax:  r.limits.idlePerHost,
		StreamIdle:      r.settings.StreamIdle.duration(),
		KeepAlive:       r.settings.KeepAlive.duration(),
		Seed:            uint64(time.Now().UnixNano()),
	}
}

// tell gives a message to loops and waits while their mailboxes are full, but
// not past the end of ctx. A mailbox is full for moments only, unless its loop
// is stuck.
func (r *relay) tell(ctx context.Context, loops []*loop.Loop, m loop.Message) {
	var waited time.Duration
	left := append([]*loop.Loop(nil), loops...)
	for {
		kept := left[:0]
		for _, l := range left {
			if !l.Post(m) {
				kept = append(kept, l)
			}
		}
		if left = kept; len(left) == 0 || ctx.Err() != nil {
			return
		}
		time.Sleep(tellPause)
		if waited += tellPause; waited%tellWarn == 0 {
			r.log.Error("loops do not take messages", "loops", len(left), "waited", waited.String())
		}
	}
}

const (
	tellPause = 5 * time.Millisecond
	tellWarn  = 10 * time.Second
)

// offer gives a message to all loops that have room for it.
func (r *relay) offer(m loop.Message) {
	for _, l := range r.loops {
		l.Post(m)
	}
}

// watch gives each accepted catalog to the loops, until the relay ends.
func (r *relay) watch() {
	err := r.file.Watch(r.life, func(t *catalog.Tables) {
		r.tell(r.life, r.loops, loop.Tables{Tables: t})
	})
	if err != nil && r.life.Err() == nil {
		r.log.Error("the catalog file is no longer watched: reloads need a restart", "error", err.Error())
	}
}

// listen opens the relay for clients: the last step of a start.
func (r *relay) listen() error {
	proxied := r.settings.ProxyProtocol == "on"
	if err := r.reactor.Listen(r.sockets.inference, reactor.ListenOptions{ProxyProtocol: proxied, ProxiesFrom: r.settings.TrustedProxies}); err != nil {
		return err
	}
	if r.sockets.secure == nil {
		return nil
	}
	err := r.reactor.Listen(r.sockets.secure, reactor.ListenOptions{
		ProxyProtocol: proxied,
		ProxiesFrom:   r.settings.TrustedProxies,
		CertFile:      string(r.settings.TLSCertFile),
		KeyFile:       string(r.settings.TLSKeyFile),
	})
	if err != nil {
		return failed("RELAY_TLS_CERT_FILE (--tls-cert-file)", string(r.settings.TLSCertFile), err)
	}
	return nil
}

// end drains the relay and ends all parts. Lanes end before the loops, by way
// of which they reach their store.
func (r *relay) end(deadline time.Duration) error {
	r.draining.Store(true)
	r.reactor.StopAccept()
	told, cancel := context.WithTimeout(r.life, deadline+drainGrace)
	r.tell(told, r.loops, loop.Drain{AfterNs: int64(deadline)})
	cancel()
	if running := r.awaitDrained(deadline + drainGrace); running > 0 {
		r.log.Warn("requests were still running at the end", "requests", running)
	}
	r.endLife()
	r.watching.Wait()
	r.lanes.stop()
	if r.shared != nil {
		r.shared.close()
	}
	r.reactor.Stop()
	if r.control != nil {
		r.control.Close()
	}
	if err := r.spool.Close(); err != nil {
		return failed("RELAY_DATA_DIR (--data-dir)", string(r.settings.DataDir), err)
	}
	return nil
}

// awaitDrained waits until every loop says that it is drained, for at most so
// long, and returns how many requests still run.
func (r *relay) awaitDrained(most time.Duration) (running int64) {
	end := time.Now().Add(most)
	for {
		running = 0
		drained := true
		for _, a := range control.Ask(r.posters(), scrapeTimeout) {
			drained = drained && a.OK && a.Drained
			if a.OK {
				running += a.Metrics.Exchanges
			}
		}
		if drained || !time.Now().Before(end) {
			return running
		}
		time.Sleep(drainLook)
	}
}

func (r *relay) posters() []control.Poster {
	list := make([]control.Poster, len(r.loops))
	for i, l := range r.loops {
		list[i] = l
	}
	return list
}

// sockets are the listening sockets. They are opened before anything else
// starts, since a port in use is the commonest fault of a start.
type sockets struct {
	inference, secure, control net.Listener // secure and control may be nil
}

func openSockets(s *Settings) (opened sockets, err error) {
	for _, want := range []struct {
		at      *net.Listener
		bind    address
		port    port
		setting string
	}{
		{&opened.inference, s.Bind, s.Port, "RELAY_PORT (--port)"},
		{&opened.secure, s.Bind, s.TLSPort, "RELAY_TLS_PORT (--tls-port)"},
		{&opened.control, s.ControlBind, s.ControlPort, "RELAY_CONTROL_PORT (--control-port)"},
	} {
		if want.port == portOff {
			continue
		}
		hostPort := net.JoinHostPort(string(want.bind), strconv.Itoa(int(want.port)))
		if *want.at, err = net.Listen("tcp", hostPort); err != nil {
			opened.close()
			return sockets{}, failed(want.setting, strconv.Itoa(int(want.port)), err)
		}
	}
	return opened, nil
}

func (s *sockets) close() {
	for _, l := range []net.Listener{s.inference, s.secure, s.control} {
		if l != nil {
			_ = l.Close()
		}
	}
}

// listening are the lines that programs read from stdout.
func (r *relay) listening() []string {
	var lines []string
	for _, l := range []struct {
		name   string
		socket net.Listener
	}{
		{"inference", r.sockets.inference},
		{"inference-tls", r.sockets.secure},
		{"control", r.sockets.control},
	} {
		if l.socket != nil {
			lines = append(lines, fmt.Sprintf("listening %s=%s", l.name, l.socket.Addr()))
		}
	}
	return lines
}
