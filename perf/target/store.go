package target

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Programs of stores that count limits.
const (
	ProgramRedis     = "redis-server"
	ProgramValkey    = "valkey-server"
	ProgramDragonfly = "dragonfly"
)

// infoBytesMax bounds what a store tells of itself.
const infoBytesMax = 1 << 20

// StoreEnv are the settings of a relay that counts its limits in a store.
func StoreEnv(addr string) []string {
	return []string{"RELAY_STATE_BACKEND=redis", "RELAY_REDIS_ADDR=" + addr}
}

// Installed reports whether a program is in the path.
func Installed(program string) bool {
	_, err := lookPath(program)
	return err == nil
}

// Store starts a store that counts limits. It writes nothing to disk.
func Store(ctx context.Context, program string) (*Target, error) {
	path, err := lookPath(program)
	if err != nil {
		return nil, err
	}
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "relay-perf-"+program+"-")
	if err != nil {
		return nil, fmt.Errorf("target: folder of %s: %w", program, err)
	}
	host, port, _ := net.SplitHostPort(addr)
	args := []string{"--bind", host, "--port", port, "--dir", dir, "--save", "", "--appendonly", "no"}
	if program == ProgramDragonfly {
		args = []string{"--bind", host, "--port", port, "--dir", dir, "--dbfilename", ""}
	}
	t, pipe, err := start(ctx, program, exec.Command(path, args...))
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	t.Addr, t.dir = addr, dir
	go io.Copy(t.output, pipe)
	return t, t.awaitConnect()
}

// StoreStats is what a store has used so far.
type StoreStats struct {
	CPU      time.Duration // user and system time
	Commands int64         // those that scripts make among them
	Evals    int64         // EVALSHA
}

// ReadStoreStats asks the store at an address, which has no password.
func ReadStoreStats(addr string) (StoreStats, error) {
	var s StoreStats
	text, err := storeInfo(addr)
	if err != nil {
		return s, fmt.Errorf("target: ask the store at %s: %w", addr, err)
	}
	known := false
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch strings.ToLower(name) {
		case "used_cpu_user", "used_cpu_sys":
			seconds, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return s, fmt.Errorf("target: %s of the store at %s: %w", name, addr, err)
			}
			s.CPU += time.Duration(seconds * float64(time.Second))
			known = true
		case "total_commands_processed":
			s.Commands, _ = strconv.ParseInt(value, 10, 64)
		case "cmdstat_evalsha":
			_, calls, _ := strings.Cut(value, "calls=")
			calls, _, _ = strings.Cut(calls, ",")
			s.Evals, _ = strconv.ParseInt(calls, 10, 64)
		}
	}
	if !known {
		return s, fmt.Errorf("target: the store at %s does not tell its CPU", addr)
	}
	return s, nil
}

// storeInfo is the reply to INFO.
func storeInfo(addr string) (string, error) {
	nc, err := net.DialTimeout("tcp", addr, askTimeout)
	if err != nil {
		return "", err
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(askTimeout))
	if _, err := io.WriteString(nc, "*2\r\n$4\r\nINFO\r\n$3\r\nall\r\n"); err != nil {
		return "", err
	}
	in := bufio.NewReader(nc)
	line, err := in.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimSpace(line)
	digits, isText := strings.CutPrefix(line, "$")
	n, err := strconv.ParseUint(digits, 10, 31)
	if !isText || err != nil || n > infoBytesMax {
		return "", errors.New(line)
	}
	text := make([]byte, n)
	_, err = io.ReadFull(in, text)
	return string(text), err
}
