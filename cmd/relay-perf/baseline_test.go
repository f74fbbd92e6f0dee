package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"relay/perf/baseline"
	"relay/perf/mockhost"
	"relay/usage/spool"
)

// TestBaseline starts each engine as a process with the variables of a relay,
// sends one request, and ends it.
func TestBaseline(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, engine := range baseline.Engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			mock, err := mockhost.Start(mockhost.Options{Scenario: "instant"})
			if err != nil {
				t.Fatal(err)
			}
			defer mock.Close()
			dir := t.TempDir()
			catalog := fmt.Sprintf(`hosts: [{name: h, shape: openai, base_url: "http://%s/v1", keys: [{name: k, value: "plain:sk-upstream"}]}]
models: [{name: gpt-mock, bindings: [{host: h, upstream_model: gpt-mock}]}]
policies: [{name: p, models: ["*"]}]
accounts: [{name: a}]
relay_keys: [{name: r, sha256: "%x", account: a, policy: p}]
`, mock.Addr(), sha256.Sum256([]byte("rk-test")))
			if err := os.WriteFile(filepath.Join(dir, "relay.yaml"), []byte(catalog), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(program, "baseline", "--engine", engine)
			cmd.Env = append(os.Environ(), asCommand+"=1", "RELAY_BIND=127.0.0.1", "RELAY_PORT=0", "RELAY_CONTROL_PORT=0",
				"RELAY_CATALOG="+filepath.Join(dir, "relay.yaml"), "RELAY_DATA_DIR="+dir, "RELAY_MAX_INFLIGHT=20000", "RELAY_SPOOL_SYNC=0",
				"RELAY_MAX_REQUEST_BYTES=1MiB", "RELAY_LOG_LEVEL=error", "RELAY_STREAM_IDLE=5s", "RELAY_LOOPS=2", "RELAY_SHUTDOWN_DEADLINE_S=2")
			cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
			var complaints strings.Builder
			cmd.Stderr = &complaints
			pipe, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := time.AfterFunc(30*time.Second, func() { cmd.Process.Kill() })
			defer ended.Stop()
			addrs := make(map[string]string)
			for lines := bufio.NewScanner(pipe); len(addrs) < 2 && lines.Scan(); {
				name, addr, _ := strings.Cut(strings.TrimPrefix(lines.Text(), "listening "), "=")
				addrs[name] = addr
			}
			ask(t, "http://"+addrs["inference"]+"/v1/chat/completions", `{"model":"gpt-mock","messages":[]}`, `"choices"`)
			ask(t, "http://"+addrs["control"]+"/metrics", "", "\nrelay_usage_events_total 1\n")
			ask(t, "http://"+addrs["control"]+"/healthz", "", "ok")
			http.DefaultClient.CloseIdleConnections()
			cmd.Process.Signal(syscall.SIGTERM)
			if err := cmd.Wait(); err != nil || complaints.Len() > 0 {
				t.Errorf("%v %s", err, complaints.String())
			}
			rows := 0
			err = spool.Tail(t.Context(), filepath.Join(dir, "spool"), false, func(r spool.Record) error {
				rows++
				return nil
			})
			if runs, errRuns := spool.Runs(filepath.Join(dir, "spool")); err != nil || errRuns != nil || rows != 1 || len(runs) != 1 || !runs[0].Sealed {
				t.Errorf("%d rows, runs %+v, %v, %v", rows, runs, err, errRuns)
			}
		})
	}
}

// ask wants an answer of status 200 that holds a text. A body makes it a POST.
func ask(t *testing.T, url, body, has string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	q, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer rk-test")
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusOK || !strings.Contains(string(text), has) {
		t.Errorf("%s: %d %v %.200s", url, answer.StatusCode, err, text)
	}
}

// TestBaselineWrongUse wants what is wrong told in a line.
func TestBaselineWrongUse(t *testing.T) {
	for _, tt := range []struct{ args, has string }{
		{"baseline --engine epoll", "want one of fasthttp, nethttp"},
		{"baseline --port 0 --control-port off --catalog /nowhere/relay.yaml", "/nowhere/relay.yaml"},
		{"baseline --port nonsense", "RELAY_PORT"},
		{"baseline --max-request-bytes many", "want a number of bytes"},
		{"baseline --spool-sync=-1s", "must not be negative"},
	} {
		if out, err := run(t, strings.Fields(tt.args)...); err == nil || !strings.Contains(out, tt.has) {
			t.Errorf("%s: %v %s", tt.args, err, out)
		}
	}
}
