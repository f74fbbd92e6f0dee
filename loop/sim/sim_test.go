package sim

import (
	"flag"
	"testing"

	"relay/store/catalog"
	"relay/store/source"
)

var (
	seeds = flag.Int("seeds", 200, "how many seeds to run")
	first = flag.Uint64("seed", 1, "the first seed")
)

const catalogText = `
hosts:
  - name: o
    shape: openai
    base_url: http://o.test/v1
    keys: [{name: k, value: "plain:host-secret-o"}]
    timeouts: {connect: 2s, first_byte: 3s, first_token: 3s, idle: 3s}
  - name: a
    shape: anthropic
    base_url: http://a.test
    keys: [{name: k, value: "plain:host-secret-a"}]
    timeouts: {connect: 2s, first_byte: 3s, first_token: 3s, idle: 3s}
models:
  - name: gpt-mock
    bindings: [{host: o, upstream_model: up-model}]
    price: {input: 1.25, output: 10}
  - name: claude-mock
    bindings: [{host: a, upstream_model: up-model}]
    price: {input: 3, output: 15}
policies:
  - name: p
    models: ["*"]
    limits:
      - {meter: requests, amount: 300, window: 1m}
      - {meter: concurrency, amount: 12}
      - {meter: tokens, amount: 60000, window: 1m, strategy: sliding-window}
accounts: [{name: acc, budget: {usd: 2, period: hour, timezone: Europe/Berlin}}]
relay_keys:
  - name: k
    key: rk-sim
    account: acc
    policy: p
    limits: [{meter: tokens.output, amount: 600000, window: 10s, strategy: fixed-window, reserve: strict}]
`

func simTables(t testing.TB) *catalog.Tables {
	tables, problems := source.Check([]byte(catalogText))
	if tables == nil {
		t.Fatal(problems)
	}
	return tables
}

// TestSim runs the seeds. A failure prints its seed: run it alone by
// go test ./loop/sim -run TestSim -seed=N -seeds=1.
func TestSim(t *testing.T) {
	tables := simTables(t)
	failed := 0
	for i := range *seeds {
		if err := Run(*first+uint64(i), tables); err != nil {
			t.Error(err)
			if failed++; failed == 5 {
				t.Fatal("five seeds failed")
			}
		}
	}
}
