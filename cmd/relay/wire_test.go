//go:build integration

package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"relay/perf/mockhost"
)

// binary is the relay under test, built once.
var binary string

func TestMain(m *testing.M) {
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	folder, err := os.MkdirTemp("", "relay-wire-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	binary = filepath.Join(folder, "relay")
	arguments := append([]string{"build", "-buildvcs=false", "-o", binary}, buildFlags...)
	build := exec.Command("go", append(arguments, ".")...)
	build.Env = append(os.Environ(), cgo)
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// Relay keys of the test catalog, by what their policy allows.
const (
	keyWide     = "rk-wide-9c1d44f0a7"
	keyTight    = "rk-tight-83b2e5aa10" // 3 requests a minute
	keyTwo      = "rk-two-5502cc91de"   // 2 at a time
	keyNarrow   = "rk-narrow-77aa01b3f2"
	keyExpired  = "rk-expired-1f0e9d8c7b"
	keyDisabled = "rk-disabled-6a5b4c3d2e"
)

// hostSecret begins every credential of the test hosts.
const hostSecret = "sk-host-4242"

// catalogText is the usual test catalog. more is appended to the section of
// models.
func catalogText(openai, anthropic, more string) string {
	hash := func(key string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(key))) }
	return `hosts:
  - name: o
    shape: openai
    base_url: ` + openai + `/v1
    keys: [{name: k1, value: "plain:` + hostSecret + `-o"}]
    timeouts: {connect: 2s, first_byte: 2s, first_token: 2s, idle: 2s}
  - name: a
    shape: anthropic
    base_url: ` + anthropic + `
    keys: [{name: k1, value: "plain:` + hostSecret + `-a"}]
    timeouts: {connect: 2s, first_byte: 2s, first_token: 2s, idle: 2s}
  - name: dead
    shape: openai
    base_url: http://127.0.0.1:1/v1
    keys: [{name: k1, value: "plain:` + hostSecret + `-d"}]
models:
  - name: gpt-mock
    aliases: ["gpt-alias", "gpt-mock-*"]
    bindings: [{host: o}]
    price: {input: 2, cached_input: 0.5, output: 10}
  - name: claude-mock
    aliases: ["claude-alias"]
    bindings: [{host: a}]
    price: {input: 3, cached_input: 0.3, cache_write_5m: 3.75, cache_write_1h: 6, output: 15}
  - name: dead-mock
    bindings: [{host: dead}]
` + more + `policies:
  - {name: wide, models: ["*"], limits: [{meter: requests, amount: 1000000, window: 1m}, {meter: concurrency, amount: 10000}]}
  - {name: tight, models: ["*"], limits: [{meter: requests, amount: 3, window: 1m}]}
  - {name: two, models: ["*"], limits: [{meter: concurrency, amount: 2}]}
  - {name: narrow, models: ["gpt-*"]}
accounts:
  - {name: team}
relay_keys:
  - {name: wide, sha256: "` + hash(keyWide) + `", account: team, policy: wide}
  - {name: tight, sha256: "` + hash(keyTight) + `", account: team, policy: tight}
  - {name: two, sha256: "` + hash(keyTwo) + `", account: team, policy: two}
  - {name: narrow, sha256: "` + hash(keyNarrow) + `", account: team, policy: narrow}
  - {name: expired, sha256: "` + hash(keyExpired) + `", account: team, policy: wide, expires: "2020-01-01T00:00:00Z"}
  - {name: disabled, sha256: "` + hash(keyDisabled) + `", account: team, policy: wide, enabled: false}
`
}

// A gateway is a relay process over two mock hosts in this one.
type gateway struct {
	t                          *testing.T
	openai, anthropic          *mockhost.Server
	folder, catalog, data      string
	inference, secure, control string // addresses

	command *exec.Cmd
	log     logLines
	exited  chan struct{} // closed when the process has ended
	code    int           // then
	settled bool          // the test has ended the process itself
}

// startGateway starts a relay with the usual catalog. env are further
// settings.
func startGateway(t *testing.T, env ...string) *gateway {
	t.Helper()
	g := prepareGateway(t)
	g.writeCatalog(catalogText(g.openai.URL(), g.anthropic.URL(), ""))
	g.start(env...)
	return g
}

// prepareGateway makes the mocks and the folders.
func prepareGateway(t *testing.T) *gateway {
	t.Helper()
	g := &gateway{t: t, folder: t.TempDir()}
	g.catalog = filepath.Join(g.folder, "relay.yaml")
	g.data = filepath.Join(g.folder, "data")
	for _, at := range []**mockhost.Server{&g.openai, &g.anthropic} {
		server, err := mockhost.Start(mockhost.Options{Scenario: "instant", Record: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { server.Close() })
		*at = server
	}
	return g
}

// writeCatalog puts a catalog in place at once, as an editor does.
func (g *gateway) writeCatalog(text string) {
	g.t.Helper()
	if err := os.WriteFile(g.catalog+".new", []byte(text), 0o600); err != nil {
		g.t.Fatal(err)
	}
	if err := os.Rename(g.catalog+".new", g.catalog); err != nil {
		g.t.Fatal(err)
	}
}

// start runs the process and waits for its lines. It is ended, and looked at
// for leaks and bugs, when the test ends.
func (g *gateway) start(env ...string) {
	g.t.Helper()
	g.settled = false
	g.command = exec.Command(binary, "serve")
	g.command.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "RELAY_BIND=127.0.0.1", "RELAY_PORT=0", "RELAY_CONTROL_PORT=0",
		"RELAY_CATALOG=" + g.catalog, "RELAY_DATA_DIR=" + g.data, "RELAY_LOOPS=2", "GOMEMLIMIT=1GiB",
	}, env...)
	g.command.Stderr = &g.log
	lines, err := g.command.StdoutPipe()
	if err != nil {
		g.t.Fatal(err)
	}
	if err := g.command.Start(); err != nil {
		g.t.Fatal(err)
	}
	g.exited = make(chan struct{})
	ready := make(chan struct{})
	secure := false
	for _, e := range env {
		secure = secure || strings.HasPrefix(e, "RELAY_TLS_PORT=")
	}
	go g.follow(lines, secure, ready)
	g.t.Cleanup(g.finish)
	select {
	case <-ready:
	case <-g.exited:
		g.t.Fatalf("the relay ended with code %d:\n%s", g.code, g.log.text())
	case <-time.After(20 * time.Second):
		g.t.Fatalf("the relay does not get ready:\n%s", g.log.text())
	}
}

// follow reads stdout to its end and reaps the process.
func (g *gateway) follow(lines io.Reader, secure bool, ready chan<- struct{}) {
	scanner := bufio.NewScanner(lines)
	told := false
	g.inference, g.control, g.secure = "", "", ""
	for scanner.Scan() {
		switch name, address, _ := strings.Cut(strings.TrimPrefix(scanner.Text(), "listening "), "="); name {
		case "inference":
			g.inference = address
		case "inference-tls":
			g.secure = address
		case "control":
			g.control = address
		}
		if !told && g.inference != "" && g.control != "" && (g.secure != "" || !secure) {
			told = true
			close(ready)
		}
	}
	err := g.command.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		g.code = exit.ExitCode()
	} else {
		g.code = 0
	}
	close(g.exited)
}

// signal sends the process a signal.
func (g *gateway) signal(s syscall.Signal) {
	g.t.Helper()
	if err := g.command.Process.Signal(s); err != nil {
		g.t.Fatal(err)
	}
}

// wait waits for the end of the process and returns its exit code.
func (g *gateway) wait(most time.Duration) int {
	g.t.Helper()
	g.settled = true
	select {
	case <-g.exited:
	case <-time.After(most):
		g.signal(syscall.SIGQUIT)
		<-g.exited
		g.t.Fatalf("the relay does not end within %v:\n%s", most, g.log.text())
	}
	return g.code
}

// finish looks for leaks, ends the process, and looks for bugs in its log.
func (g *gateway) finish() {
	if !g.settled {
		g.settled = true
		g.awaitQuiet()
		g.signal(syscall.SIGTERM)
		select {
		case <-g.exited:
			if g.code != 0 {
				g.t.Errorf("exit code %d", g.code)
			}
		case <-time.After(25 * time.Second):
			g.signal(syscall.SIGQUIT)
			<-g.exited
			g.t.Error("the relay does not end")
		}
	}
	<-g.exited
	text := g.log.text()
	if strings.Contains(text, "BUG:") || strings.Contains(text, "panic") || strings.Contains(text, "DATA RACE") {
		g.t.Error("the log tells of a bug")
	}
	if strings.Contains(text, hostSecret) || strings.Contains(text, "rk-") {
		g.t.Error("the log holds a secret")
	}
	if g.t.Failed() {
		g.t.Logf("log of the relay:\n%s", text)
	}
}

// awaitQuiet waits until nothing runs and nothing is held, and wants no panics.
func (g *gateway) awaitQuiet() {
	var left string
	if !eventually(5*time.Second, func() bool {
		m := g.metrics()
		left = ""
		for _, name := range []string{"relay_exchanges", "relay_streams", "relay_inflight_requests", "relay_held_bytes", "relay_lane_pending"} {
			if m[name] != 0 {
				left += fmt.Sprintf(" %s=%v", name, m[name])
			}
		}
		return left == ""
	}) {
		g.t.Errorf("left at the end:%s", left)
	}
	m := g.metrics()
	for _, name := range []string{"relay_callback_panics_total", `relay_records_lost_total{kind="row"}`, `relay_records_lost_total{kind="admission"}`} {
		if v, ok := m[name]; v != 0 || !ok {
			g.t.Errorf("%s is %v (known: %v)", name, v, ok)
		}
	}
}

// metrics scrapes all series.
func (g *gateway) metrics() map[string]float64 {
	g.t.Helper()
	series := map[string]float64{}
	for line := range strings.Lines(g.page("/metrics")) {
		at := strings.LastIndexByte(line, ' ')
		if strings.HasPrefix(line, "#") || at < 0 {
			continue
		}
		var v float64
		if _, err := fmt.Sscan(line[at+1:], &v); err != nil {
			g.t.Fatalf("metric line %q: %v", line, err)
		}
		series[line[:at]] = v
	}
	return series
}

// page is the body of a page of the control listener.
func (g *gateway) page(path string) string {
	g.t.Helper()
	answer, err := http.Get("http://" + g.control + path)
	if err != nil {
		g.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return string(body)
}

// readiness is /readyz, decoded.
func (g *gateway) readiness() (r struct {
	Ready      bool
	Generation uint64
	LastError  string `json:"last_error"`
}) {
	g.t.Helper()
	if err := json.Unmarshal([]byte(g.page("/readyz")), &r); err != nil {
		g.t.Fatal(err)
	}
	return r
}

// A row is one line of usage tail --json.
type row struct {
	RequestID string `json:"request_id"`
	CallerID  string `json:"caller_id"`
	Outcome   string
	Error     string
	Status    int
	Key       string
	Model     string
	Stream    bool
	HungUp    bool `json:"hung_up"`
	Attempts  int
	Source    string
	Tokens    struct {
		Input        int64
		CachedInput  int64 `json:"cached_input"`
		CacheWrite5m int64 `json:"cache_write_5m"`
		CacheWrite1h int64 `json:"cache_write_1h"`
		Output       int64
	}
	CostUSD string `json:"cost_usd"`
}

// rows are the usage rows in the data folder.
func (g *gateway) rows() []row {
	g.t.Helper()
	out, code := g.runs(nil, "usage", "tail", "--json", "--data-dir", g.data)
	if code != 0 {
		g.t.Fatalf("usage tail: exit code %d: %s", code, out)
	}
	var rows []row
	for line := range strings.Lines(out) {
		var r row
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			g.t.Fatalf("row %q: %v", line, err)
		}
		rows = append(rows, r)
	}
	return rows
}

// rowsBy are the rows of requests with that X-Request-ID.
func (g *gateway) rowsBy(callerID string) []row {
	g.t.Helper()
	var found []row
	for _, r := range g.rows() {
		if r.CallerID == callerID {
			found = append(found, r)
		}
	}
	return found
}

// runs runs a command of the binary and returns its output and exit code.
func (g *gateway) runs(env []string, args ...string) (string, int) {
	g.t.Helper()
	return runBinary(g.t, env, args...)
}

func runBinary(t *testing.T, env []string, args ...string) (string, int) {
	t.Helper()
	c := exec.Command(binary, args...)
	c.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	out, err := c.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), c.ProcessState.ExitCode()
}

// eventually reports whether a condition becomes true in time.
func eventually(most time.Duration, condition func() bool) bool {
	for end := time.Now().Add(most); ; time.Sleep(20 * time.Millisecond) {
		if condition() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

// logLines collects stderr.
type logLines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logLines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
