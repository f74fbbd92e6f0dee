//go:build integration

package conformance

import (
	"bufio"
	"bytes"
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
	"time"
)

// A process is one running relay.
type process struct {
	name      string
	command   *exec.Cmd
	inference string // address
	control   string // address
	log       string // path of what it wrote to stderr
	catalog   string // path
}

// startProcess starts a relay and waits until it listens.
func startProcess(binary, catalog, folder string, settings []string) (*process, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	p := &process{name: filepath.Base(folder), log: filepath.Join(folder, "stderr"), catalog: catalog}
	stderr, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer stderr.Close()
	p.command = exec.Command(binary, "serve")
	p.command.Dir = folder
	p.command.Stderr = stderr
	p.command.Env = append([]string{
		"RELAY_BIND=127.0.0.1", "RELAY_PORT=0", "RELAY_CONTROL_PORT=0", "RELAY_LOOPS=2",
		"RELAY_CATALOG=" + catalog, "RELAY_DATA_DIR=" + filepath.Join(folder, "data"),
		fmt.Sprintf("RELAY_MAX_REQUEST_BYTES=%d", bodyMax), "RELAY_LOG_LEVEL=info",
		"RELAY_ADMIN_TOKEN=" + adminToken,
	}, settings...)
	stdout, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(stdout)
	for (p.inference == "" || p.control == "") && lines.Scan() {
		at, found := strings.CutPrefix(lines.Text(), "listening inference=")
		if found {
			p.inference = at
		}
		if at, found = strings.CutPrefix(lines.Text(), "listening control="); found {
			p.control = at
		}
	}
	if p.control == "" {
		_ = p.command.Wait()
		text, _ := os.ReadFile(p.log)
		return nil, fmt.Errorf("the relay did not start: %s", text)
	}
	go func() { _, _ = io.Copy(io.Discard, stdout) }()
	return p, nil
}

// stop ends the relay: in good order, or by force if it does not.
func (p *process) stop() {
	_ = p.command.Process.Signal(syscall.SIGTERM)
	done := make(chan error, 1)
	go func() { done <- p.command.Wait() }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		_ = p.command.Process.Kill()
		<-done
	}
}

// metrics reads all series of the relay.
func (p *process) metrics() map[string]float64 {
	series := map[string]float64{}
	c := http.Client{Timeout: soon}
	r, err := c.Get("http://" + p.control + "/metrics")
	if err != nil {
		return series
	}
	defer r.Body.Close()
	for lines := bufio.NewScanner(r.Body); lines.Scan(); {
		if at := strings.LastIndexByte(lines.Text(), ' '); at > 0 && lines.Text()[0] != '#' {
			series[lines.Text()[:at]], _ = strconv.ParseFloat(lines.Text()[at+1:], 64)
		}
	}
	return series
}

// residentBytes is the memory of the relay.
func (p *process) residentBytes() int64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.command.Process.Pid))
	_, after, _ := bytes.Cut(text, []byte("VmRSS:"))
	n := int64(0)
	_, _ = fmt.Sscan(string(after), &n)
	return n << 10
}

// A trace is what a relay uses at a moment.
type trace struct {
	goroutines int
	resident   int64
}

func (p *process) trace() trace {
	n, _ := p.goroutines()
	return trace{goroutines: n, resident: p.residentBytes()}
}

// adminToken opens the profiles of a relay.
const adminToken = "conformance-admin-token"

// goroutines counts those of the relay but for the workers that gnet keeps for
// some seconds after they have registered connections.
func (p *process) goroutines() (n int, profile string) {
	r, err := http.NewRequest("GET", "http://"+p.control+"/debug/pprof/goroutine?debug=1", nil)
	if err != nil {
		panic(err)
	}
	r.Header.Set("Authorization", "Bearer "+adminToken)
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer a.Body.Close()
	text, _ := io.ReadAll(a.Body)
	for stack := range strings.SplitSeq(string(text), "\n\n") {
		at, rest, found := strings.Cut(strings.TrimPrefix(stack, "goroutine profile: "), " @ ")
		if found && !strings.Contains(rest, "panjf2000/ants") {
			lines := strings.Split(at, "\n")
			count, _ := strconv.Atoi(lines[len(lines)-1])
			n += count
		}
	}
	return n, string(text)
}

// What a relay may have kept after everything.
const (
	goroutinesGrown = 16
	residentGrown   = 1 << 30 // garbage that waits for its collection included
	heldGrown       = 1 << 20
	clientsLeft     = 4 // the canary's
)

// aftermath looks for what the cases have left behind: bugs caught, goroutines
// and memory kept, exchanges that never ended.
func (p *process) aftermath(before trace) (problems []string) {
	for end := time.Now().Add(soon); ; time.Sleep(50 * time.Millisecond) {
		if problems = p.leftovers(before); len(problems) == 0 || time.Now().After(end) {
			break
		}
	}
	if n := p.residentBytes() - before.resident; n > residentGrown && !*checked {
		problems = append(problems, fmt.Sprintf("%d MiB of memory more than at the start", n>>20))
	}
	text, _ := os.ReadFile(p.log)
	for line := range bytes.Lines(text) {
		if bytes.Contains(line, []byte("BUG:")) || bytes.Contains(line, []byte("DATA RACE")) || bytes.Contains(line, []byte(`"level":"ERROR"`)) {
			problems = append(problems, string(line))
		}
	}
	if bytes.Contains(text, []byte(relayKey)) || bytes.Contains(text, []byte(hostKey)) {
		problems = append(problems, "a key stands in the log")
	}
	return problems
}

func (p *process) leftovers(before trace) (problems []string) {
	m := p.metrics()
	for _, g := range []struct {
		series string
		most   float64
	}{
		{"relay_exchanges", 0},
		{"relay_streams", 0},
		{"relay_inflight_requests", 0},
		{"relay_callback_panics_total", 0},
		{"relay_held_bytes", heldGrown},
		{`relay_open_connections{side="client"}`, clientsLeft},
	} {
		if n, ok := m[g.series]; !ok || n > g.most {
			problems = append(problems, fmt.Sprintf("%s is %.0f, there: %t", g.series, n, ok))
		}
	}
	if n, profile := p.goroutines(); n-before.goroutines > goroutinesGrown {
		problems = append(problems, fmt.Sprintf("goroutines went from %d to %d", before.goroutines, n))
		_ = os.WriteFile(p.log+".goroutines", []byte(profile), 0o600)
	}
	return problems
}

// A canary asks for something small again and again, to see whether what
// others do can be felt.
type canary struct {
	stopped chan struct{}
	done    sync.WaitGroup
	failed  []string
	worst   time.Duration
}

const (
	canaryPause = 50 * time.Millisecond
	canaryWorst = 3 * time.Second // the machine's own hiccups included
)

func startCanary(p *process) *canary {
	c := &canary{stopped: make(chan struct{})}
	c.done.Go(func() {
		for {
			select {
			case <-c.stopped:
				return
			case <-time.After(canaryPause):
			}
			began := time.Now()
			if err := askOnce(p.inference, "canary"); err != nil && len(c.failed) < 5 {
				c.failed = append(c.failed, "canary: "+err.Error())
			}
			c.worst = max(c.worst, time.Since(began))
		}
	})
	return c
}

func (c *canary) stop() (problems []string) {
	close(c.stopped)
	c.done.Wait()
	if *checked {
		return nil
	}
	problems = c.failed
	if c.worst > canaryWorst {
		problems = append(problems, fmt.Sprintf("a canary waited %v", c.worst))
	}
	return problems
}
