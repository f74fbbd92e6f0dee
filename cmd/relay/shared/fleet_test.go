//go:build integration

package shared

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"relay/store/redis/redistest"
)

// secretPrefix begins every relay key and host key.
const secretPrefix = "rk-shared-"

// keyOf is the relay key of a name.
func keyOf(name string) string { return secretPrefix + name }

// A tenant is a relay key with a policy of its own, and an account of its own
// if it has a budget; all have the tenant's name.
type tenant struct {
	name   string
	limits []string // of the policy, in YAML without the braces
	own    []string // of the key
	budget string   // of the account
	policy string   // another tenant's, in place of an own one
}

// Models of the catalog. Output costs 100 USD per million tokens, which is
// 0.001 USD for the ten tokens of a usual answer.
const (
	chatModel    = "chat-model"
	messageModel = "message-model"
	embedModel   = "embed-model" // 1,000 USD per million tokens of input
	hastyModel   = "hasty-model" // its host waits hastyWait for an answer
	hastyWait    = "400ms"
	cappedModel  = "capped-model" // the key of its host has 10 requests a day
)

// catalogText is a catalog over one provider.
func catalogText(url string, tenants []tenant) string {
	var b strings.Builder
	host := func(name, shape, base, firstByte, limits string) {
		fmt.Fprintf(&b, "  - {name: %s, shape: %s, base_url: %s, keys: [{name: k, value: \"plain:%shost\"%s}], timeouts: {connect: 5s, first_byte: %s, first_token: 30s, idle: 30s}}\n",
			name, shape, base, secretPrefix, limits, firstByte)
	}
	b.WriteString("hosts:\n")
	host("chat", "openai", url+"/v1", "30s", "")
	host("hasty", "openai", url+"/v1", hastyWait, "")
	host("capped", "openai", url+"/v1", "30s", ", limits: [{meter: requests, amount: 10, window: 24h, strategy: fixed-window}]")
	host("messages", "anthropic", url, "30s", "")
	fmt.Fprintf(&b, `models:
  - {name: %s, bindings: [{host: chat}], price: {input: 0, output: 100}}
  - {name: %s, bindings: [{host: messages}], price: {input: 0, output: 100}}
  - {name: %s, bindings: [{host: chat}], price: {input: 1000, output: 0}}
  - {name: %s, bindings: [{host: hasty}], price: {input: 0, output: 100}}
  - {name: %s, bindings: [{host: capped}], price: {input: 0, output: 100}}
policies:
  - {name: free, models: ["*"]}
`, chatModel, messageModel, embedModel, hastyModel, cappedModel)
	list := func(rules []string) string {
		if len(rules) == 0 {
			return ""
		}
		return ", limits: [{" + strings.Join(rules, "}, {") + "}]"
	}
	for _, n := range tenants {
		if n.policy == "" && len(n.limits) > 0 {
			fmt.Fprintf(&b, "  - {name: %s, models: [\"*\"]%s}\n", n.name, list(n.limits))
		}
	}
	b.WriteString("accounts:\n  - {name: anyone}\n")
	for _, n := range tenants {
		if n.budget != "" {
			fmt.Fprintf(&b, "  - {name: %s, budget: {%s}}\n", n.name, n.budget)
		}
	}
	b.WriteString("relay_keys:\n")
	for _, n := range tenants {
		policy, account := n.policy, "anyone"
		if policy == "" && len(n.limits) > 0 {
			policy = n.name
		} else if policy == "" {
			policy = "free"
		}
		if n.budget != "" {
			account = n.name
		}
		fmt.Fprintf(&b, "  - {name: %s, sha256: \"%x\", account: %s, policy: %s%s}\n", n.name, sha256.Sum256([]byte(keyOf(n.name))), account, policy, list(n.own))
	}
	return b.String()
}

// A fleet is some relays with one catalog over one provider, and over one store
// unless each counts for itself.
type fleet struct {
	t        *testing.T
	provider *provider
	store    *redistest.Server // nil: memory
	proxy    *proxy            // in front of the store
	catalog  string            // path
	relays   []*relay
	callers  callers
}

// Backends of a fleet.
const (
	onMemory = "memory"
	onRedis  = "redis"
)

// startFleet starts so many relays. settings are further ones, of all.
func startFleet(t *testing.T, backend string, n int, tenants []tenant, settings ...string) *fleet {
	t.Helper()
	folder := t.TempDir()
	f := &fleet{t: t, provider: startProvider(t), catalog: filepath.Join(folder, "relay.yaml")}
	t.Cleanup(f.callers.close)
	settings = append(settings, "RELAY_CATALOG="+f.catalog, "RELAY_STATE_BACKEND="+backend)
	if backend == onRedis {
		f.store = redistest.Start(t)
		f.proxy = startProxy(t, f.store.Addr())
		settings = append(settings, "RELAY_REDIS_ADDR="+f.proxy.address())
	}
	f.write(tenants)
	for i := range n {
		r := &relay{t: t, name: fmt.Sprintf("relay-%d", i), settings: settings}
		r.folder = filepath.Join(folder, r.name)
		if err := os.MkdirAll(r.folder, 0o700); err != nil {
			t.Fatal(err)
		}
		f.relays = append(f.relays, r)
		r.start()
		t.Cleanup(r.finish)
	}
	return f
}

// write puts a catalog in place at once, as an editor does.
func (f *fleet) write(tenants []tenant) {
	f.t.Helper()
	text := catalogText(f.provider.server.URL, tenants)
	if err := os.WriteFile(f.catalog+".new", []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
	if err := os.Rename(f.catalog+".new", f.catalog); err != nil {
		f.t.Fatal(err)
	}
}

// reload puts another catalog in place, and waits until all relays have it.
func (f *fleet) reload(tenants []tenant) {
	f.t.Helper()
	before := make([]uint64, len(f.relays))
	for i, r := range f.relays {
		before[i] = r.ready(f.t).Generation
	}
	f.write(tenants)
	for i, r := range f.relays {
		var got readiness
		if _, ok := eventually(soon, func() bool {
			got = r.ready(f.t)
			return got.Generation > before[i]
		}); !ok {
			f.t.Fatalf("%s does not take the new catalog: %+v", r.name, got)
		}
	}
}

// A readiness is what /readyz says.
type readiness struct {
	Ready      bool
	Generation uint64
	LastError  string `json:"last_error"`
}

func (r *relay) ready(t *testing.T) (got readiness) {
	t.Helper()
	_, body := r.page("/readyz")
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Errorf("%s: /readyz: %v: %s", r.name, err, body)
	}
	return got
}

// addresses are those of the relays that run.
func (f *fleet) addresses() (list []string) {
	for _, r := range f.relays {
		if r.running {
			list = append(list, r.inference)
		}
	}
	return list
}

// eachBackend runs a test on one relay with its own memory, and on two with a
// store.
func eachBackend(t *testing.T, tenants []tenant, test func(t *testing.T, f *fleet)) {
	for backend, relays := range map[string]int{onMemory: 1, onRedis: 2} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			test(t, startFleet(t, backend, relays, tenants))
		})
	}
}
