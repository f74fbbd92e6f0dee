package soak

import (
	"bytes"
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"relay/perf/mockhost"
	"relay/perf/target"
	"relay/store/catalog"
	"relay/usage"
	"relay/usage/spool"
)

// TestMain makes the test binary be the mock provider and a small gateway, in
// the processes that the target package starts.
func TestMain(m *testing.M) {
	if len(os.Args) < 2 || os.Args[1] != "mock" && os.Args[1] != "serve" {
		flag.Set("test.parallel", "5") // they wait more than they work
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	serve := serveGateway
	if os.Args[1] == "mock" {
		serve = serveMock
	}
	if err := serve(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serveMock(ctx context.Context) error {
	flags := flag.NewFlagSet("mock", flag.ExitOnError)
	addr, scenario := flags.String("addr", "", ""), flags.String("scenario", "", "")
	flags.Parse(os.Args[2:])
	mock, err := mockhost.Start(mockhost.Options{Addr: *addr, Scenario: *scenario})
	if err != nil {
		return err
	}
	fmt.Printf("listening mock=%s\n", mock.Addr())
	<-ctx.Done()
	return mock.Close()
}

// faultSetting names the one thing that the gateway does wrong.
const faultSetting = "GATEWAY_FAULT"

// A gateway passes requests on and keeps books, as Relay does, but for its fault.
type gateway struct {
	fault string
	proxy *httputil.ReverseProxy
	keys  map[string]string // account by key

	mu       sync.Mutex // guards everything below
	spool    *spool.Spool
	requests int
	leaked   [][]byte
	files    []*os.File
}

func serveGateway(ctx context.Context) error {
	text, err := os.ReadFile(os.Getenv("RELAY_CATALOG"))
	if err != nil {
		return err
	}
	mock, err := url.Parse(string(regexp.MustCompile(`http://[0-9.:]+`).Find(text)))
	if err != nil {
		return err
	}
	g := &gateway{fault: os.Getenv(faultSetting), proxy: httputil.NewSingleHostReverseProxy(mock), keys: make(map[string]string)}
	g.proxy.Transport = &http.Transport{MaxIdleConnsPerHost: 4}
	for i := range 1000 {
		g.keys[target.RelayKey(i)] = fmt.Sprintf("team-%d", i)
	}
	if g.spool, err = spool.Open(spool.Options{Dir: filepath.Join(os.Getenv("RELAY_DATA_DIR"), "spool"), Loops: 1, Sync: 20 * time.Millisecond}); err != nil {
		return err
	}
	control := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "go_goroutines %d\nrelay_exchanges 0\n", runtime.NumGoroutine())
	})
	for name, handler := range map[string]http.Handler{"inference": g, "control": control} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		fmt.Printf("listening %s=%s\n", name, listener.Addr())
		go http.Serve(listener, handler)
	}
	for {
		select {
		case <-ctx.Done():
			return g.spool.Close()
		case <-time.After(200 * time.Millisecond):
			debug.FreeOSMemory() // else what a load has left as garbage looks like a leak
		}
	}
}

// ServeHTTP writes the row when the mock has answered, and then the answer.
func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	answer := &record{header: w.Header(), status: 200}
	if n, refused := g.misbehave(); refused {
		answer.status = 503
		fmt.Fprintf(answer, "request %d is one too many", n)
	} else {
		e := g.event(r)
		g.admit(e, n)
		g.pass(answer, r)
		e.Status = answer.status
		g.mu.Lock()
		g.book(e, n)
		g.mu.Unlock()
	}
	if answer.status == 0 {
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(answer.status)
	if g.fault == "cuts" && answer.Len() > slowBytes/2 {
		answer.Truncate(slowBytes / 2)
		w.Write(answer.Bytes())
		panic(http.ErrAbortHandler)
	}
	w.Write(answer.Bytes())
}

// pass asks the mock. Without a whole answer there is no status.
func (g *gateway) pass(answer *record, r *http.Request) {
	defer func() {
		if recover() != nil {
			answer.status = 0
		}
	}()
	g.proxy.ServeHTTP(answer, r)
}

// A record keeps an answer.
type record struct {
	bytes.Buffer
	header http.Header
	status int
}

func (r *record) Header() http.Header    { return r.header }
func (r *record) WriteHeader(status int) { r.status = status }

// misbehave counts a request. Faults that are no matter of books happen here.
func (g *gateway) misbehave() (n int, refused bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.requests++
	n = g.requests
	switch g.fault {
	case "dies":
		if n == 500 {
			fmt.Fprintln(os.Stderr, "panic: out of luck")
			os.Exit(3)
		}
	case "refuses":
		return n, n%50 == 0
	case "leaks goroutines":
		go func() { select {} }()
	case "leaks files":
		if f, err := os.Open(os.DevNull); err == nil {
			g.files = append(g.files, f)
		}
	case "leaks memory":
		g.leaked = append(g.leaked, bytes.Repeat([]byte{1}, 512<<10))
	}
	return n, false
}

func (g *gateway) event(r *http.Request) *usage.Event {
	e := &usage.Event{
		StartUnixNs: 1, EndUnixNs: 2, Model: "gpt-mock", Price: catalog.Price{Input: 1_250_000, Output: 10_000_000},
		Account: g.keys[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")],
		Tokens:  usage.Tokens{Input: tokensIn, Output: tokensOut}, Source: usage.Reported,
	}
	if key := r.Header.Get("x-api-key"); key != "" {
		e.Account, e.Model, e.Price = g.keys[key], "claude-mock", catalog.Price{Input: 3_000_000, Output: 15_000_000}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	binary.BigEndian.PutUint64(e.RequestID[:], uint64(g.requests))
	binary.BigEndian.PutUint64(e.RequestID[8:], uint64(time.Now().UnixNano()))
	return e
}

func (g *gateway) admit(e *usage.Event, n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.fault != "no record" || n%100 != 7 {
		g.spool.Writer(0).Admitted(e)
	}
}

// book writes the row of request n. Faults of books happen here.
func (g *gateway) book(e *usage.Event, n int) {
	w, nth := g.spool.Writer(0), n%100 == 7
	switch {
	case g.fault == "another account" && nth:
		e.Account = "team-0"
	case g.fault == "an unknown account" && nth:
		e.Account = "nobody"
	case g.fault == "another usage" && nth:
		e.Tokens.Output--
	case g.fault == "no price" && nth:
		e.Price = catalog.Price{}
	}
	e.Cost = usage.Charge(&e.Tokens, &e.Price)
	switch {
	case g.fault == "another cost" && nth:
		e.Cost.Total *= 2
	case nth && (g.fault == "no end" || g.fault == "no record"):
		return
	case g.fault == "two rows" && nth:
		w.Row(e)
	}
	w.Row(e)
}
