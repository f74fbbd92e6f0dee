package control

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"relay/loop/reactor"
	"relay/store/source"
)

// Sources are what the control plane reports about. The functions are called
// from any goroutine.
type Sources struct {
	Loops      []Poster
	Catalog    func() source.Status
	Reactor    func() reactor.Stats
	Draining   func() bool
	Store      func() Store
	Readings   []Reading
	Outcomes   []string // of attempts, by index; "" = no such outcome
	Version    string
	Commit     string
	AdminToken string // "" = no profiles
	Log        *slog.Logger
}

// A Store is how the store of the limits is.
type Store struct {
	Backend string    // memory or redis
	LostAt  time.Time // zero: it is there
	Error   string    // why it was lost
	Note    string    // what that means
	Refuses bool      // it means that this relay should get no new connections
}

// A Server answers operators and their tools.
type Server struct {
	sources  *Sources
	http     *http.Server
	listener *boundedListener // nil until Start
	done     chan struct{}
}

// New makes a server.
func New(s Sources) *Server {
	server := &Server{sources: &s, done: make(chan struct{})}
	server.http = &http.Server{
		Handler:           server.routes(),
		ReadHeaderTimeout: readHeadTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    headBytesMax,
		ErrorLog:          slog.NewLogLogger(s.Log.Handler(), slog.LevelWarn),
	}
	return server
}

// Start serves on l, which the server owns from here, until Close.
func (s *Server) Start(l net.Listener) {
	s.listener = newBoundedListener(l, connectionsMax)
	go func() {
		defer close(s.done)
		if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
			s.sources.Log.Error("control listener failed", "error", err.Error())
		}
	}()
}

// Close ends the server; what is being answered has a moment to end.
func (s *Server) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		s.http.Close()
	}
	<-s.done
}

// routes are the pages. Nothing else is answered, and nothing registers itself.
func (s *Server) routes() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		newCollector(s.sources),
		buildMetric(s.sources.Version, s.sources.Commit),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		MaxRequestsInFlight: scrapesMax,
		ErrorLog:            slog.NewLogLogger(s.sources.Log.Handler(), slog.LevelError),
		ErrorHandling:       promhttp.HTTPErrorOnError,
	}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Write([]byte("ok\n"))
	})
	mux.HandleFunc("GET /readyz", s.ready)
	if s.sources.AdminToken != "" {
		profiles := http.NewServeMux()
		profiles.HandleFunc("/debug/pprof/", pprof.Index)
		profiles.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		profiles.HandleFunc("/debug/pprof/profile", pprof.Profile)
		profiles.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		profiles.HandleFunc("/debug/pprof/trace", pprof.Trace)
		mux.Handle("/debug/pprof/", s.guarded(profiles))
	}
	return mux
}

// guarded lets only bearers of the admin token through. The token may also be
// the password of basic authentication, since go tool pprof can send that.
func (s *Server) guarded(next http.Handler) http.Handler {
	want := sha256.Sum256([]byte(s.sources.AdminToken))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok {
			_, token, _ = r.BasicAuth()
		}
		got := sha256.Sum256([]byte(token))
		if subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			w.Header().Set("WWW-Authenticate", `Bearer realm="relay"`)
			http.Error(w, "the admin token is missing or wrong", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// readiness is the answer of /readyz.
type readiness struct {
	Ready          bool       `json:"ready"`
	Draining       bool       `json:"draining"`
	Loops          int        `json:"loops"`
	LoopsAnswering int        `json:"loops_answering"`
	Catalog        string     `json:"catalog"`
	Generation     uint64     `json:"generation"`
	Revision       string     `json:"revision"`
	LoadedAt       time.Time  `json:"loaded_at"`
	LastError      string     `json:"last_error"`
	LastErrorAt    *time.Time `json:"last_error_at"`
	Store          string     `json:"store"`
	StoreLostAt    *time.Time `json:"store_lost_at"`
	StoreError     string     `json:"store_error"`
	Note           string     `json:"note"`
}

// ready says whether new connections should come here. A refused reload does
// not change that, since what was live before still is; it is told.
func (s *Server) ready(w http.ResponseWriter, _ *http.Request) {
	catalog := s.sources.Catalog()
	r := readiness{
		Draining: s.sources.Draining(), Loops: len(s.sources.Loops),
		Catalog: catalog.Path, Generation: catalog.Generation, Revision: catalog.Revision,
		LoadedAt: catalog.LoadedAt, LastError: catalog.LastError,
	}
	r.LastError = shortened(r.LastError)
	if !catalog.LastErrorAt.IsZero() {
		r.LastErrorAt = &catalog.LastErrorAt
	}
	for _, a := range Ask(s.sources.Loops, ScrapeTimeout) {
		if a.OK {
			r.LoopsAnswering++
		}
	}
	store := s.sources.Store()
	r.Store, r.StoreError = store.Backend, shortened(store.Error)
	if !store.LostAt.IsZero() {
		r.StoreLostAt = &store.LostAt
	}
	r.Ready = !r.Draining && r.LoopsAnswering == r.Loops && !store.Refuses
	r.Note = r.note(store.Note)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if !r.Ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(r); err != nil {
		s.sources.Log.Debug("readyz: caller left", "error", err.Error())
	}
}

// note says in words what is the matter, "" = nothing.
func (r *readiness) note(store string) string {
	var notes []string
	if r.Draining {
		notes = append(notes, "a shutdown runs")
	}
	if silent := r.Loops - r.LoopsAnswering; silent > 0 {
		notes = append(notes, fmt.Sprintf("%d of %d loops do not answer", silent, r.Loops))
	}
	if store != "" {
		notes = append(notes, store)
	}
	return strings.Join(notes, "; ")
}

// shortened is an error text of bounded length.
func shortened(text string) string {
	if len(text) <= errorTextBytesMax {
		return text
	}
	return strings.ToValidUTF8(text[:errorTextBytesMax], "") + "…"
}
