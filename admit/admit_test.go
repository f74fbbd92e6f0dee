package admit

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"testing"

	"relay/store/catalog"
	"relay/upstream/wire"
)

const (
	goodKey     = "rk-good"
	offKey      = "rk-off"
	expiringKey = "rk-expiring"
	freeKey     = "rk-free"

	expiresUnix = 1_800_000_000
)

// tables compiles a catalog with two models, a policy that allows one of them,
// and relay keys in every condition.
func tables(t *testing.T) *catalog.Tables {
	t.Helper()
	str := catalog.Give[string]
	limits := func(amounts ...int64) catalog.List[catalog.LimitEntry] {
		var list []catalog.Field[catalog.LimitEntry]
		for _, n := range amounts {
			list = append(list, catalog.Give(catalog.LimitEntry{Meter: str("requests"), Amount: str(strconv.FormatInt(n, 10)), Window: str("1m")}))
		}
		return catalog.Give(list)
	}
	key := func(name, text, policy, account string) catalog.RelayKeyEntry {
		hash := sha256.Sum256([]byte(text))
		return catalog.RelayKeyEntry{Name: str(name), SHA256: str(hex.EncodeToString(hash[:])), Policy: str(policy), Account: str(account)}
	}
	good, off, expiring := key("good", goodKey, "some", "payer"), key("off", offKey, "all", "free"), key("expiring", expiringKey, "all", "free")
	good.Limits = limits(5)
	off.Enabled = catalog.Give(false)
	expiring.Expires = str("2027-01-15T08:00:00Z")
	model := func(name string) catalog.ModelEntry {
		return catalog.ModelEntry{Name: str(name), Bindings: list(catalog.BindingEntry{Host: str("host"), UpstreamModel: str(name)})}
	}
	doc := &catalog.Document{
		Hosts: list(catalog.HostEntry{
			Name: str("host"), Shape: str("openai"), URL: str("https://example.com/v1"),
			Keys: list(
				catalog.HostKeyEntry{Name: str("limited"), Value: catalog.Give(catalog.Secret("plain:one")), Limits: limits(1)},
				catalog.HostKeyEntry{Name: str("free"), Value: catalog.Give(catalog.Secret("plain:two"))},
			),
		}),
		Models: list(model("allowed"), model("forbidden")),
		Policies: list(
			catalog.PolicyEntry{Name: str("some"), Models: list("allowed"), Limits: limits(10)},
			catalog.PolicyEntry{Name: str("all"), Models: list("*")},
		),
		Accounts:  list(catalog.AccountEntry{Name: str("payer"), Limits: limits(20)}, catalog.AccountEntry{Name: str("free")}),
		RelayKeys: list(good, off, expiring, key("free", freeKey, "all", "free")),
	}
	tables, problems := catalog.Compile(doc, func(ref string) ([]byte, error) { return []byte(ref), nil })
	if tables == nil {
		t.Fatal(problems)
	}
	return tables
}

func list[T any](entries ...T) catalog.List[T] {
	var fields []catalog.Field[T]
	for _, e := range entries {
		fields = append(fields, catalog.Give(e))
	}
	return catalog.Give(fields)
}

func TestKey(t *testing.T) {
	tables := tables(t)
	for _, tt := range []struct {
		name, credential string
		nowUnix          int64
		want             string // name of the key
		err              wire.Error
	}{
		{"good", goodKey, 0, "good", wire.NoError},
		{"none", "", 0, "", wire.MissingKey},
		{"unknown", "rk-goof", 0, "", wire.InvalidKey},
		{"part of one", "rk-goo", 0, "", wire.InvalidKey},
		{"disabled", offKey, 0, "", wire.InvalidKey},
		{"before it expires", expiringKey, expiresUnix - 1, "expiring", wire.NoError},
		{"when it expires", expiringKey, expiresUnix, "", wire.InvalidKey},
		{"after it expired", expiringKey, expiresUnix + 1, "", wire.InvalidKey},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k, err := Key(tables, []byte(tt.credential), tt.nowUnix)
			if err != tt.err || (k == nil) != (tt.want == "") || k != nil && k.Name != tt.want {
				t.Errorf("%v, error %d, want %q, error %d", k, err, tt.want, tt.err)
			}
		})
	}
}

func TestModel(t *testing.T) {
	tables := tables(t)
	k, _ := Key(tables, []byte(goodKey), 0)
	for _, tt := range []struct {
		name string
		err  wire.Error
	}{
		{"allowed", wire.NoError},
		{"forbidden", wire.ModelNotAllowed},
		{"unheard", wire.UnknownModel},
		{"", wire.UnknownModel},
	} {
		m, err := Model(tables, k, []byte(tt.name))
		if err != tt.err || (m == nil) != (err != wire.NoError) || m != nil && m.Name != tt.name {
			t.Errorf("%q: %v, error %d, want error %d", tt.name, m, err, tt.err)
		}
	}
}

func TestAllocs(t *testing.T) {
	tables := tables(t)
	r := head("Host: x", "Accept: */*", "Authorization: Bearer "+goodKey)
	d := &Demand{}
	name := []byte("allowed")
	f := NewInflight(10)
	if n := testing.AllocsPerRun(1000, func() {
		f.Acquire()
		k, _ := Key(tables, Credential(r, wire.OpenAI), 0)
		Model(tables, k, name)
		d.Plan(k, tables.Hosts[0].Keys[0])
		f.Release()
	}); n != 0 {
		t.Errorf("%v allocations per request", n)
	}
}
