package redistest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A Server is one running store.
type Server struct {
	tb      testing.TB
	program string
	args    []string
	port    int
	cmd     *exec.Cmd
	exited  chan struct{}
}

// Start runs redis-server. The test fails when it is not installed.
func Start(tb testing.TB, args ...string) *Server {
	tb.Helper()
	return StartProgram(tb, "redis-server", args...)
}

// StartProgram runs redis-server, valkey-server or dragonfly.
func StartProgram(tb testing.TB, program string, args ...string) *Server {
	tb.Helper()
	if _, err := exec.LookPath(program); err != nil {
		tb.Fatalf("%s is not installed: the tests of the shared store need it", program)
	}
	var err error
	for range startTry {
		s := &Server{tb: tb, program: program, port: FreePort(tb)}
		s.args = append(s.arguments(), args...)
		if err = s.start(); err == nil {
			tb.Cleanup(s.Stop)
			return s
		}
		s.Stop()
	}
	tb.Fatalf("%s: %v", program, err)
	return nil
}

// Installed reports whether a program is in the path.
func Installed(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}

// arguments are those of every server: nothing is written to disk.
func (s *Server) arguments() []string {
	port := strconv.Itoa(s.port)
	if filepath.Base(s.program) == "dragonfly" {
		return []string{"--port", port, "--bind", "127.0.0.1", "--dbfilename", "", "--proactor_threads", "2", "--lock_on_hashtags", "--dir", s.tb.TempDir()}
	}
	return []string{"--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", s.tb.TempDir()}
}

// FreePort is a loopback port that nobody listens on.
func FreePort(tb testing.TB) int {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func (s *Server) start() error {
	s.cmd = exec.Command(s.program, s.args...)
	s.cmd.Stderr = os.Stderr
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	exited := make(chan struct{})
	s.exited = exited
	go func(cmd *exec.Cmd) {
		cmd.Wait()
		close(exited)
	}(s.cmd)
	for end := time.Now().Add(startMax); time.Now().Before(end); {
		select {
		case <-exited:
			return fmt.Errorf("ended at once: %v", s.cmd.ProcessState)
		case <-time.After(5 * time.Millisecond):
		}
		if c, err := dial(s.Addr()); err == nil {
			_, err = c.do("PING")
			c.close()
			if err == nil || strings.HasPrefix(err.Error(), "NOAUTH") {
				return nil
			}
		}
	}
	return fmt.Errorf("did not answer within %v", startMax)
}

// Addr is host:port.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// Stop kills the server. What it held is lost.
func (s *Server) Stop() {
	if s.cmd == nil || s.cmd.Process == nil {
		return
	}
	s.cmd.Process.Signal(syscall.SIGKILL)
	<-s.exited
}

// Restart starts the server again on its port, empty.
func (s *Server) Restart() {
	s.tb.Helper()
	s.Stop()
	if err := s.start(); err != nil {
		s.tb.Fatalf("%s: restart: %v", s.program, err)
	}
}

// Pause stops the server from running; it stays connected.
func (s *Server) Pause() { s.signal(syscall.SIGSTOP) }

// Resume lets it go on.
func (s *Server) Resume() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) {
	s.tb.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.tb.Fatal(err)
	}
}

// Do sends one command over a connection of its own, and returns the reply:
// string, int64, nil or []any.
func (s *Server) Do(args ...string) any {
	s.tb.Helper()
	reply, err := s.Try(args...)
	if err != nil {
		s.tb.Fatalf("%v: %v", args, err)
	}
	return reply
}

// Try is Do for commands that may fail.
func (s *Server) Try(args ...string) (any, error) {
	c, err := dial(s.Addr())
	if err != nil {
		return nil, err
	}
	defer c.close()
	return c.do(args...)
}
