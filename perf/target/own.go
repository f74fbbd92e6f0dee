package target

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Mock starts the mock provider as a process: program is relay-perf itself.
func Mock(ctx context.Context, program, scenario string) (*Target, error) {
	t, pipe, err := start(ctx, "mock", exec.Command(program, "mock", "--addr=127.0.0.1:0", "--scenario="+scenario))
	if err != nil {
		return nil, err
	}
	addrs, err := t.awaitLines(pipe, "mock")
	if err != nil {
		return nil, err
	}
	t.Addr = addrs["mock"]
	return t, nil
}

// Baseline starts the net/http proxy before the mock: program is relay-perf.
func Baseline(ctx context.Context, program, mock string) (*Target, error) {
	t, pipe, err := start(ctx, "net/http", exec.Command(program, "baseline-proxy", "--addr=127.0.0.1:0", "--upstream=http://"+mock))
	if err != nil {
		return nil, err
	}
	return t, t.awaitAddrs(pipe)
}

// awaitAddrs takes the addresses of both listeners from the output.
func (t *Target) awaitAddrs(pipe io.Reader) error {
	addrs, err := t.awaitLines(pipe, "inference", "control")
	if err != nil {
		return err
	}
	t.Addr, t.Control = addrs["inference"], addrs["control"]
	return nil
}

// RelayOptions say how Relay is started.
type RelayOptions struct {
	Path string   // of the relay binary
	Mock string   // host:port of the mock
	Env  []string // further settings, NAME=VALUE; they win
	Keys int      // relay keys, each with its account; 1 when 0
}

// RelayKey is the text of relay key i of a Relay started here.
func RelayKey(i int) string { return fmt.Sprintf("rk-perf-%06d", i) }

// keysMax bounds the relay keys of a catalog.
const keysMax = 100_000

// Relay starts Relay before the mock, with limits that are on and never reached.
func Relay(ctx context.Context, o RelayOptions) (*Target, error) {
	if o.Keys == 0 {
		o.Keys = 1
	}
	if o.Keys < 0 || o.Keys > keysMax {
		return nil, fmt.Errorf("target: %d relay keys: want 1 to %d", o.Keys, keysMax)
	}
	dir, err := os.MkdirTemp("", "relay-perf-relay-")
	if err != nil {
		return nil, fmt.Errorf("target: folder of relay: %w", err)
	}
	catalog := filepath.Join(dir, "relay.yaml")
	if err := os.WriteFile(catalog, []byte(catalogText(o)), 0o600); err != nil {
		os.RemoveAll(dir)
		return nil, fmt.Errorf("target: catalog of relay: %w", err)
	}
	cmd := exec.Command(o.Path, "serve")
	cmd.Env = append(os.Environ(), "RELAY_BIND=127.0.0.1", "RELAY_PORT=0", "RELAY_CONTROL_PORT=0", "RELAY_CATALOG="+catalog,
		"RELAY_DATA_DIR="+filepath.Join(dir, "state"), "RELAY_MAX_INFLIGHT=20000", "RELAY_LOG_LEVEL=warn")
	cmd.Env = append(cmd.Env, o.Env...)
	t, pipe, err := start(ctx, "relay", cmd)
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	t.dir = dir
	return t, t.awaitAddrs(pipe)
}

// catalogText is a catalog of one mock host per shape and one policy.
func catalogText(o RelayOptions) string {
	var b strings.Builder
	fmt.Fprintf(&b, `hosts:
  - {name: mock-openai, shape: openai, base_url: "http://%[1]s/v1", keys: [{name: main, value: "plain:sk-upstream"}]}
  - {name: mock-anthropic, shape: anthropic, base_url: "http://%[1]s", keys: [{name: main, value: "plain:sk-upstream"}]}
models:
  - name: gpt-mock
    bindings: [{host: mock-openai, upstream_model: gpt-mock}]
    price: {input: 1.25, cached_input: 0.125, output: 10}
  - name: claude-mock
    bindings: [{host: mock-anthropic, upstream_model: claude-mock}]
    price: {input: 3, cached_input: 0.3, cache_write_5m: 3.75, cache_write_1h: 6, output: 15}
policies:
  - name: default
    models: ["*"]
    limits:
      - {meter: requests, amount: 100000000, window: 1m}
      - {meter: concurrency, amount: 100000}
accounts:
`, o.Mock)
	for i := range o.Keys {
		fmt.Fprintf(&b, "  - {name: team-%d}\n", i)
	}
	b.WriteString("relay_keys:\n")
	for i := range o.Keys {
		fmt.Fprintf(&b, "  - {name: app-%d, sha256: \"%x\", account: team-%d, policy: default}\n", i, sha256.Sum256([]byte(RelayKey(i))), i)
	}
	return b.String()
}
