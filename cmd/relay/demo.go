package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"

	"github.com/alecthomas/kong"

	"relay/perf/mockhost"
)

// demoCommand runs the gateway over two mock providers in this process.
type demoCommand struct {
	Settings
}

// demoKey is the relay key of the demo.
const demoKey = "rk-demo"

// Run is the command.
func (c *demoCommand) Run(s streams, unknown variables, line *kong.Context) (err error) {
	if isGiven(line, "catalog") {
		return &wrongValue{"RELAY_CATALOG (--catalog)", string(c.Catalog), "nothing with relay demo, which has a catalog of its own"}
	}
	log := c.logger(s)
	unknown.warn(log)
	warnCatalog(log, os.Getenv("RELAY_CATALOG"))
	folder, err := os.MkdirTemp("", "relay-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	if c.DataDir == "" {
		c.DataDir = path(filepath.Join(folder, "data"))
	}
	if c.Bind == "" {
		c.Bind = "127.0.0.1"
	}
	var mocks [2]*mockhost.Server // openai, anthropic
	for i := range mocks {
		if mocks[i], err = mockhost.Start(mockhost.Options{}); err != nil {
			return err
		}
		defer mocks[i].Close()
	}
	credential := filepath.Join(folder, "host.key")
	c.Catalog = path(filepath.Join(folder, "relay.yaml"))
	err = errors.Join(
		os.WriteFile(credential, []byte("sk-mock\n"), 0o600),
		os.WriteFile(string(c.Catalog), demoCatalog(mocks[0].URL()+"/v1", mocks[1].URL(), credential), 0o600),
	)
	if err != nil {
		return err
	}
	return serve(&c.Settings, log, s.out, func(r *relay) error {
		return printRequests(s.out, r.sockets.inference.Addr())
	})
}

// isGiven reports whether a flag stands on the command line.
func isGiven(line *kong.Context, flag string) bool {
	for _, p := range line.Path {
		if p.Flag != nil && p.Flag.Name == flag {
			return true
		}
	}
	return false
}

// warnCatalog tells that the demo does not look at the variable, which may be
// set for a relay beside.
func warnCatalog(log *slog.Logger, value string) {
	if value != "" {
		log.Warn("relay demo has a catalog of its own: RELAY_CATALOG is not looked at", "value", value)
	}
}

// demoCatalog is the catalog of the demo, over one mock host per shape.
func demoCatalog(openai, anthropic, credential string) []byte {
	return fmt.Appendf(nil, `hosts:
  - name: mock-openai
    shape: openai
    base_url: %[1]s
    keys:
      - {name: main, value: "file:%[3]s"}
  - name: mock-anthropic
    shape: anthropic
    base_url: %[2]s
    keys:
      - {name: main, value: "file:%[3]s"}
models:
  - name: gpt-mock
    aliases: ["gpt-mock*"]
    bindings:
      - {host: mock-openai}
    price: {input: 1.25, cached_input: 0.125, output: 10}
  - name: claude-mock
    aliases: ["claude-mock*"]
    bindings:
      - {host: mock-anthropic}
    price: {input: 3, cached_input: 0.3, cache_write_5m: 3.75, cache_write_1h: 6, output: 15}
policies:
  - name: demo
    models: ["*"]
    limits:
      - {meter: requests, amount: 100000, window: 1m}
      - {meter: concurrency, amount: 10000}
accounts:
  - {name: demo}
relay_keys:
  - {name: demo, sha256: "%[4]x", account: demo, policy: demo}
`, openai, anthropic, credential, sha256.Sum256([]byte(demoKey)))
}

// printRequests prints three requests that work as they stand: one per shape,
// and a stream.
func printRequests(out io.Writer, at net.Addr) error {
	root := "http://" + reachable(at)
	_, err := fmt.Fprintf(out, `curl -sS %[1]s/v1/chat/completions -H 'Authorization: Bearer %[2]s' -H 'Content-Type: application/json' -d '{"model":"gpt-mock","messages":[{"role":"user","content":"Hello"}]}'
curl -sS %[1]s/v1/messages -H 'x-api-key: %[2]s' -H 'anthropic-version: 2023-06-01' -H 'Content-Type: application/json' -d '{"model":"claude-mock","max_tokens":256,"messages":[{"role":"user","content":"Hello"}]}'
curl -sSN %[1]s/v1/chat/completions -H 'Authorization: Bearer %[2]s' -H 'Content-Type: application/json' -d '{"model":"gpt-mock","stream":true,"messages":[{"role":"user","content":"Hello"}]}'
`, root, demoKey)
	return err
}

// reachable is an address for clients on this machine.
func reachable(at net.Addr) string {
	host, port, err := net.SplitHostPort(at.String())
	if err != nil {
		panic("BUG: listener address " + at.String())
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}
