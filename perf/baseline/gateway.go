package baseline

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"relay/usage/spool"
)

// Options of a gateway.
type Options struct {
	Engine          string       // one of Engines
	Inference       net.Listener // closed by the gateway
	Control         net.Listener // nil = none; closed by the gateway
	Catalog         string       // file
	DataDir         string       // folder of the spool
	SpoolSync       time.Duration
	SpoolFull       spool.FullMode
	InflightMax     int64 // 0 = what fits in the machine's memory
	RequestBytesMax int64 // of a body
	IdlePerHost     int   // upstream connections kept; 0 = the in-flight cap
	Instance        string
	Log             *slog.Logger
}

// An engine serves connections over a core.
type engine interface {
	serve(net.Listener) error
	// shutdown takes no new requests and waits for those that run, until ctx
	// ends.
	shutdown(ctx context.Context)
}

// engines make engines, by name.
var engines = map[string]func(*core) engine{
	"nethttp":  newNetHTTP,
	"fasthttp": newFastHTTP,
}

// Engines are the names of the engines.
func Engines() []string {
	names := make([]string, 0, len(engines))
	for name := range engines {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// CheckEngine says what is wrong with the name of an engine.
func CheckEngine(name string) error {
	if engines[name] == nil {
		return fmt.Errorf("baseline: no engine %q: want one of %s", name, strings.Join(Engines(), ", "))
	}
	return nil
}

// A Gateway is a running baseline.
type Gateway struct {
	core    *core
	engine  engine
	control *http.Server
	ended   chan error
}

// Start starts a gateway. It serves until Close.
func Start(o Options) (*Gateway, error) {
	if err := CheckEngine(o.Engine); err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	c, err := newCore(o)
	if err != nil {
		return nil, err
	}
	g := &Gateway{core: c, engine: engines[o.Engine](c), ended: make(chan error, 2)}
	go func() { g.ended <- g.engine.serve(o.Inference) }()
	if o.Control != nil {
		g.control = &http.Server{Handler: g.controlPages(), ReadHeaderTimeout: headTime}
		go func() { g.ended <- g.control.Serve(o.Control) }()
	}
	return g, nil
}

// controlPages are what the control listener serves.
func (g *Gateway) controlPages() http.Handler {
	pages := http.NewServeMux()
	pages.Handle("/metrics", promhttp.HandlerFor(g.core.registry(), promhttp.HandlerOpts{}))
	pages.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	pages.HandleFunc("/debug/pprof/", pprof.Index)
	pages.HandleFunc("/debug/pprof/profile", pprof.Profile)
	pages.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return pages
}

// Ended gives the error of a listener that fails.
func (g *Gateway) Ended() <-chan error { return g.ended }

// Close takes no new requests, gives those that run so long to end, and closes
// the spool.
func (g *Gateway) Close(deadline time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	g.engine.shutdown(ctx)
	// Those that were cut off write their rows, too.
	for end := time.Now().Add(closeGrace); time.Now().Before(end); time.Sleep(closeLook) {
		if n, _ := g.core.inflight.Load(); n == 0 {
			break
		}
	}
	if g.control != nil {
		g.control.Close()
	}
	return g.core.close()
}
