package target

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"relay/perf/machine"
)

const (
	startTimeout = 20 * time.Second
	dyingTime    = 2 * time.Second
	stopTimeout  = 20 * time.Second // then it is killed: a gateway may take 15 s for what runs
	outputKept   = 64 << 10         // last bytes of what a target said
	outputTold   = 3 << 10          // of them, in errors
)

// A Target is a running process under measurement.
type Target struct {
	Name    string
	Addr    string // host:port of its inference listener
	Control string // host:port of its control listener; "" = it has none
	DataDir string // what a gateway keeps; there until Close, unless it was named by whoever started it; "" = it keeps nothing

	machine.Tree
	cmd    *exec.Cmd
	output *tail
	ended  chan struct{}
	stop   sync.Once
	clear  sync.Once
	dir    string // removed at the end; "" = none
	away   bool   // somebody else has started it, and stops it
}

// A Missing error says that a program is not installed.
type Missing struct{ Program string }

// Error names the program.
func (m *Missing) Error() string { return m.Program + " is not installed" }

// tail keeps the last bytes written to it.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	if len(t.kept) > outputKept {
		t.kept = append(t.kept[:0], t.kept[len(t.kept)-outputKept:]...)
	}
	return len(p), nil
}

// String is where a crash of Go begins, or else the end.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, word := range []string{"panic: ", "fatal error: ", "SIGABRT: ", "SIGSEGV: "} {
		if i := bytes.LastIndex(t.kept, []byte(word)); i >= 0 && (i == 0 || t.kept[i-1] == '\n') {
			return string(bytes.TrimSpace(t.kept[i:min(i+outputTold, len(t.kept))]))
		}
	}
	return string(bytes.TrimSpace(t.kept[max(0, len(t.kept)-outputTold):]))
}

// start runs a command. The kernel kills it when this process dies.
func start(ctx context.Context, name string, cmd *exec.Cmd) (*Target, io.Reader, error) {
	t := &Target{Name: name, cmd: cmd, output: &tail{}, ended: make(chan struct{})}
	cmd.Stderr = t.output
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	pipe, stdout, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("target: start %s: %w", name, err)
	}
	cmd.Stdout = stdout
	err = cmd.Start()
	stdout.Close()
	if err != nil {
		pipe.Close()
		return nil, nil, fmt.Errorf("target: start %s: %w", name, err)
	}
	t.PID = cmd.Process.Pid
	go func() {
		cmd.Wait()
		close(t.ended)
	}()
	context.AfterFunc(ctx, func() { t.Close() })
	return t, pipe, nil
}

// Stop asks the process to stop and kills it when it does not. What it kept is
// there until Close.
func (t *Target) Stop() {
	if t.away {
		return
	}
	t.stop.Do(func() {
		t.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-t.ended:
		case <-time.After(stopTimeout):
			syscall.Kill(-t.PID, syscall.SIGKILL) // its group: children too
			<-t.ended
		}
	})
	<-t.ended
}

// Close stops the process and removes its folder.
func (t *Target) Close() error {
	t.Stop()
	t.clear.Do(func() {
		if t.dir != "" {
			os.RemoveAll(t.dir)
		}
	})
	return nil
}

// Remote is a target that runs already, perhaps on another host: it is neither
// watched nor stopped. The control address may be empty.
func Remote(name, addr, control string) *Target {
	return &Target{Name: name, Addr: addr, Control: control, away: true}
}

// Local says whether the process can be watched.
func (t *Target) Local() bool { return t.PID != 0 }

// Ended says whether the process is gone, and what it said last.
func (t *Target) Ended() (bool, string) {
	if t.away {
		return false, ""
	}
	select {
	case <-t.ended:
		return true, t.output.String()
	default:
		return false, ""
	}
}

// EndedSoon is Ended for a target that does not answer: one that is dying gets
// a moment to be gone.
func (t *Target) EndedSoon() (bool, string) {
	if !t.away {
		select {
		case <-t.ended:
		case <-time.After(dyingTime):
		}
	}
	return t.Ended()
}

// awaitLines reads "listening NAME=ADDRESS" lines until all names have come.
// The rest of the output is read and forgotten, so that the process never
// blocks on it.
func (t *Target) awaitLines(pipe io.Reader, names ...string) (map[string]string, error) {
	found := make(chan map[string]string, 1)
	go func() {
		addrs := make(map[string]string)
		lines := bufio.NewScanner(pipe)
		for lines.Scan() {
			fmt.Fprintln(t.output, lines.Text())
			rest, ok := strings.CutPrefix(lines.Text(), "listening ")
			if !ok {
				continue
			}
			if name, addr, ok := strings.Cut(rest, "="); ok {
				addrs[name] = addr
			}
			if len(addrs) == len(names) {
				found <- addrs
				break
			}
		}
		io.Copy(io.Discard, pipe)
	}()
	select {
	case addrs := <-found:
		for _, name := range names {
			if addrs[name] == "" {
				return nil, t.failed(fmt.Sprintf("printed no line for %s", name))
			}
		}
		return addrs, nil
	case <-t.ended:
		return nil, t.failed("ended at once")
	case <-time.After(startTimeout):
		return nil, t.failed(fmt.Sprintf("did not print its addresses within %v", startTimeout))
	}
}

func (t *Target) failed(what string) error {
	t.Close()
	return fmt.Errorf("target: %s %s: %s", t.Name, what, t.output)
}

// awaitConnect waits until the target accepts.
func (t *Target) awaitConnect() error {
	for until := time.Now().Add(startTimeout); time.Now().Before(until); {
		if nc, err := net.DialTimeout("tcp", t.Addr, time.Second); err == nil {
			nc.Close()
			return nil
		}
		if ended, _ := t.Ended(); ended {
			return t.failed("ended at once")
		}
		time.Sleep(20 * time.Millisecond)
	}
	return t.failed("does not accept connections")
}

// freeAddr is a loopback address that was free a moment ago.
func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("target: find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().String(), nil
}

func lookPath(program string) (string, error) {
	path, err := exec.LookPath(program)
	if errors.Is(err, exec.ErrNotFound) {
		return "", &Missing{program}
	}
	return path, err
}
