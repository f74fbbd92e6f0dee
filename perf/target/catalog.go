package target

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
)

// A Catalog is what a gateway under measurement is told: one mock host per
// shape, and policies whose limits are counted.
type Catalog struct {
	Mock     string // URL of the mock
	Keys     int    // relay keys, each with its account; 1 when 0
	Policies int    // that the keys take turns in; 1 when 0
	Limits   string // of every policy, in YAML; "" = LimitsUsual
}

// LimitsUsual are never reached.
const LimitsUsual = "{meter: requests, amount: 100000000, window: 1m}, {meter: concurrency, amount: 100000}"

// Bounds of a catalog.
const (
	keysMax     = 100_000
	policiesMax = 100_000
)

// RelayKey is the text of relay key i of such a catalog.
func RelayKey(i int) string { return fmt.Sprintf("rk-perf-%06d", i) }

// Text is the catalog as YAML.
func (c Catalog) Text() ([]byte, error) {
	keys, policies := max(c.Keys, 1), max(c.Policies, 1)
	if c.Keys < 0 || keys > keysMax || c.Policies < 0 || policies > policiesMax {
		return nil, fmt.Errorf("target: %d relay keys in %d policies: want 1 to %d keys and 1 to %d policies", c.Keys, c.Policies, keysMax, policiesMax)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `hosts:
  - {name: mock-openai, shape: openai, base_url: "%[1]s/v1", keys: [{name: main, value: "plain:sk-upstream"}]}
  - {name: mock-anthropic, shape: anthropic, base_url: "%[1]s", keys: [{name: main, value: "plain:sk-upstream"}]}
models:
  - name: gpt-mock
    bindings: [{host: mock-openai, upstream_model: gpt-mock}]
    price: {input: 1.25, cached_input: 0.125, output: 10}
  - name: claude-mock
    bindings: [{host: mock-anthropic, upstream_model: claude-mock}]
    price: {input: 3, cached_input: 0.3, cache_write_5m: 3.75, cache_write_1h: 6, output: 15}
policies:
`, c.Mock)
	for i := range policies {
		fmt.Fprintf(&b, "  - {name: policy-%d, models: [\"*\"], limits: [%s]}\n", i, cmp.Or(c.Limits, LimitsUsual))
	}
	b.WriteString("accounts:\n")
	for i := range keys {
		fmt.Fprintf(&b, "  - {name: team-%d}\n", i)
	}
	b.WriteString("relay_keys:\n")
	for i := range keys {
		fmt.Fprintf(&b, "  - {name: app-%d, sha256: \"%x\", account: team-%d, policy: policy-%d}\n", i, sha256.Sum256([]byte(RelayKey(i))), i, i%policies)
	}
	return b.Bytes(), nil
}
