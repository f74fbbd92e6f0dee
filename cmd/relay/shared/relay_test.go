//go:build integration

package shared

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"relay/usage/spool"
)

// A relay is one place of a fleet: a data folder, and the process that runs
// over it, if one does.
type relay struct {
	t        *testing.T
	name     string
	folder   string
	settings []string

	command   *exec.Cmd
	inference string // address
	control   string // address
	log       logText
	exited    chan struct{} // closed when the process has ended
	code      int           // then
	running   bool
}

// startMax is how long a relay may take to listen.
const startMax = 30 * time.Second

// start runs the process and waits until it listens.
func (r *relay) start() {
	r.t.Helper()
	r.command = exec.Command(binary, "serve")
	r.command.Dir = r.folder
	r.command.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "GOMEMLIMIT=512MiB", "RELAY_BIND=127.0.0.1", "RELAY_PORT=0", "RELAY_CONTROL_PORT=0",
		"RELAY_LOOPS=2", "RELAY_DATA_DIR=" + r.data(), "RELAY_INSTANCE_ID=" + r.name,
	}, r.settings...)
	r.command.Stderr = &r.log
	r.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdout, err := r.command.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := r.command.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.exited = make(chan struct{})
	r.inference, r.control = "", ""
	ready := make(chan struct{})
	go r.follow(stdout, ready)
	select {
	case <-ready:
		r.running = true
	case <-r.exited:
		r.t.Fatalf("%s ended with code %d:\n%s", r.name, r.code, r.log.text())
	case <-time.After(startMax):
		r.signal(syscall.SIGKILL)
		r.t.Fatalf("%s does not listen:\n%s", r.name, r.log.text())
	}
}

// follow reads stdout to its end and reaps the process.
func (r *relay) follow(stdout io.Reader, ready chan<- struct{}) {
	told := false
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		switch name, address, _ := strings.Cut(strings.TrimPrefix(lines.Text(), "listening "), "="); name {
		case "inference":
			r.inference = address
		case "control":
			r.control = address
		}
		if !told && r.inference != "" && r.control != "" {
			told = true
			close(ready)
		}
	}
	r.code = exitCode(r.command.Wait())
	close(r.exited)
}

func (r *relay) data() string { return filepath.Join(r.folder, "data") }

func (r *relay) signal(s syscall.Signal) {
	r.t.Helper()
	if err := r.command.Process.Signal(s); err != nil {
		r.t.Errorf("%s: signal %v: %v", r.name, s, err)
	}
}

// kill ends the process as a crash does.
func (r *relay) kill() {
	r.t.Helper()
	r.running = false
	r.signal(syscall.SIGKILL)
	<-r.exited
}

// stop ends the process in good order.
func (r *relay) stop() {
	r.t.Helper()
	if !r.running {
		return
	}
	r.running = false
	r.signal(syscall.SIGTERM)
	select {
	case <-r.exited:
		if r.code != 0 {
			r.t.Errorf("%s ends with code %d", r.name, r.code)
		}
	case <-time.After(2 * startMax):
		r.signal(syscall.SIGQUIT)
		<-r.exited
		r.t.Errorf("%s does not end", r.name)
	}
}

// finish stops the relay and looks for bugs and secrets in its log.
func (r *relay) finish() {
	r.stop()
	text := r.log.text()
	for _, word := range []string{"BUG:", "panic", "DATA RACE"} {
		if strings.Contains(text, word) {
			r.t.Errorf("the log of %s holds %q", r.name, word)
		}
	}
	if strings.Contains(text, secretPrefix) {
		r.t.Errorf("the log of %s holds a secret", r.name)
	}
	if r.t.Failed() {
		r.t.Logf("log of %s:\n%s", r.name, text)
	}
}

// page is the status and the body of a page of the control listener.
func (r *relay) page(path string) (status int, body string) {
	r.t.Helper()
	client := http.Client{Timeout: soon}
	a, err := client.Get("http://" + r.control + path)
	if err != nil {
		r.t.Errorf("%s: %v", r.name, err)
		return 0, ""
	}
	defer a.Body.Close()
	text, _ := io.ReadAll(a.Body)
	return a.StatusCode, string(text)
}

// metrics are all series.
func (r *relay) metrics() map[string]float64 {
	r.t.Helper()
	series := map[string]float64{}
	_, body := r.page("/metrics")
	for line := range strings.Lines(body) {
		if at := strings.LastIndexByte(line, ' '); at > 0 && line[0] != '#' {
			series[line[:at]], _ = strconv.ParseFloat(strings.TrimSpace(line[at+1:]), 64)
		}
	}
	return series
}

// awaitQuiet waits until nothing runs, and wants that nothing is kept.
func (r *relay) awaitQuiet() {
	r.t.Helper()
	var left string
	if _, ok := eventually(soon, func() bool {
		m := r.metrics()
		left = ""
		for _, name := range []string{"relay_exchanges", "relay_streams", "relay_inflight_requests", "relay_held_bytes"} {
			if v, known := m[name]; v != 0 || !known {
				left += fmt.Sprintf(" %s=%v", name, v)
			}
		}
		return left == ""
	}); !ok {
		r.t.Errorf("%s keeps%s", r.name, left)
	}
}

// rows are the rows of all processes that ran over the folder.
func (r *relay) rows() []spool.Record {
	r.t.Helper()
	var rows []spool.Record
	err := spool.Tail(context.Background(), filepath.Join(r.data(), "spool"), false, func(row spool.Record) error {
		rows = append(rows, row)
		return nil
	})
	if err != nil {
		r.t.Errorf("the spool of %s: %v", r.name, err)
	}
	return rows
}

// logText collects stderr.
type logText struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logText) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
