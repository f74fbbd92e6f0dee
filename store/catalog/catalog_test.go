package catalog

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

const hostSecret = "sk-host-5d1f02c4"

// texts makes a list of texts.
func texts(values ...string) List[string] {
	list := make([]Field[string], len(values))
	for i, v := range values {
		list[i] = Give(v)
	}
	return Give(list)
}

// items makes a list of entries.
func items[T any](entries ...T) List[T] {
	list := make([]Field[T], len(entries))
	for i, e := range entries {
		list[i] = Give(e)
	}
	return Give(list)
}

// sample is a sound document with the given models and policies.
func sample(models []ModelEntry, policies ...PolicyEntry) *Document {
	for i := range models {
		models[i].Bindings = items(BindingEntry{Host: Give("h")})
	}
	return &Document{
		Hosts: items(HostEntry{
			Name: Give("h"), Shape: Give("openai"), URL: Give("https://h/v1"),
			Keys: items(HostKeyEntry{Name: Give("k"), Value: Give(Secret("env:K"))}),
		}),
		Models:   items(models...),
		Policies: items(policies...),
		Accounts: items(AccountEntry{Name: Give("a")}),
		RelayKeys: items(RelayKeyEntry{
			Name: Give("r"), Key: Give(Secret("rk-0123456789abcdef-0123456789")), Account: Give("a"), Policy: Give("p0"),
		}),
	}
}

func resolveSample(string) ([]byte, error) { return []byte(hostSecret), nil }

func compile(t testing.TB, doc *Document) *Tables {
	t.Helper()
	tables, problems := Compile(doc, resolveSample)
	if tables == nil {
		t.Fatal(problems)
	}
	return tables
}

func lookups(t testing.TB) *Tables {
	return compile(t, sample(
		[]ModelEntry{
			{Name: Give("gpt-5"), Aliases: texts("gpt-5-*", "gpt", "*-latest")},
			{Name: Give("gpt-5-mini"), Aliases: texts("gpt-5-mini-*", "*mini")},
			{Name: Give("gpt-5-nano"), Aliases: texts("*xyz", "gpt-5*-b")},
			{Name: Give("any/model"), Aliases: texts("*", "xyz*")},
		},
		PolicyEntry{Name: Give("p0"), Models: texts("*")},
		PolicyEntry{Name: Give("p1"), Models: texts("gpt-5-mini", "any/model")},
		PolicyEntry{Name: Give("p2"), Models: texts("gpt-5-*", "gpt-5")},
		PolicyEntry{Name: Give("p3"), Models: texts("gpt-*-mini", "*/model")},
	))
}

func TestModel(t *testing.T) {
	tables := lookups(t)
	for _, tt := range []struct{ name, want string }{
		{"gpt-5", "gpt-5"},
		{"gpt", "gpt-5"},
		{"gpt-5-2026-01-01", "gpt-5"},
		{"gpt-5-", "gpt-5"},
		{"gpt-5-mini", "gpt-5-mini"},      // a name before every glob
		{"gpt-5-mini-2026", "gpt-5-mini"}, // more literal bytes than gpt-5-*
		{"gpt-5-nano", "gpt-5-nano"},      // a name before gpt-5-*
		{"gpt-5-x-b", "gpt-5-nano"},       // 7 literal bytes before 6
		{"gpt-5-b", "gpt-5-nano"},         // a star may stand for nothing
		{"gpt-5-latest", "gpt-5"},         // *-latest and gpt-5-* lead to one model
		{"xyz-xyz", "any/model"},          // equally many literal bytes: the longer prefix
		{"xyz", "any/model"},              // prefix and suffix may be the whole name
		{"something else", "any/model"},   // the star alone
		{"", "any/model"},                 //
		{strings.Repeat("x", nameBytesMax), "any/model"},
		{strings.Repeat("x", nameBytesMax+1), ""},
	} {
		got := ""
		if m := tables.Model([]byte(tt.name)); m != nil {
			got = m.Name
		}
		if got != tt.want {
			t.Errorf("%q leads to %q, want %q", tt.name, got, tt.want)
		}
	}
	if m := (&Tables{}).Model([]byte("gpt-5")); m != nil {
		t.Errorf("empty tables know %v", m)
	}
	// Prefix and suffix of a glob must not overlap in a name.
	overlap := compile(t, sample([]ModelEntry{{Name: Give("m"), Aliases: texts("aba*aba")}}, PolicyEntry{Name: Give("p0"), Models: texts("*")}))
	if m := overlap.Model([]byte("ababa")); m != nil {
		t.Error("ababa matches aba*aba")
	}
	if m := overlap.Model([]byte("abaaba")); m == nil {
		t.Error("abaaba does not match aba*aba")
	}
}

func TestAllows(t *testing.T) {
	tables := lookups(t)
	want := []string{
		"gpt-5 gpt-5-mini gpt-5-nano any/model",
		"gpt-5-mini any/model",
		"gpt-5 gpt-5-mini gpt-5-nano",
		"gpt-5-mini any/model",
	}
	for i, p := range tables.Policies {
		var names []string
		for _, m := range tables.Models {
			if p.Allows(m) {
				names = append(names, m.Name)
			}
		}
		if got := strings.Join(names, " "); got != want[i] {
			t.Errorf("policy %s allows %q, want %q", p.Name, got, want[i])
		}
	}
}

func TestLookupAllocs(t *testing.T) {
	tables := lookups(t)
	exact, far, none := []byte("gpt-5-mini"), []byte("gpt-5-mini-2026-01-01"), []byte(strings.Repeat("y", 200))
	hash := sha256.Sum256([]byte("rk-0123456789abcdef-0123456789"))
	found := 0
	if n := testing.AllocsPerRun(100, func() {
		for _, name := range [][]byte{exact, far, none} {
			if m := tables.Model(name); m != nil {
				for _, p := range tables.Policies {
					if p.Allows(m) {
						found++
					}
				}
			}
		}
		if tables.RelayKey(&hash) != nil {
			found++
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if found == 0 {
		t.Error("nothing was found")
	}
}

func TestParseDecimal(t *testing.T) {
	for _, tt := range []struct {
		text   string
		places int
		most   int64
		value  int64
		wrong  string
	}{
		{"0", 6, 10, 0, ""},
		{"1.25", 6, 10, 1_250_000, ""},
		{"0.000001", 6, 10, 1, ""},
		{"0.1", 6, 10, 100_000, ""},
		{"1.2500000000", 6, 10, 1_250_000, ""},
		{"0010", 6, 10, 10_000_000, ""},
		{"0.0000001", 6, 10, 0, "has 7 decimals; allowed are 6"},
		{"10", 6, 10, 10_000_000, ""},
		{"10.000", 6, 10, 10_000_000, ""},
		{"10.000001", 6, 10, 0, "is above 10 USD"},
		{"11", 6, 10, 0, "is above 10 USD"},
		{"99999999999999999999999", 6, 10, 0, "is above 10 USD"},
		{"9000000", 9, budgetUSDMax, 9_000_000_000_000_000, ""},
		{"8999999.999999999", 9, budgetUSDMax, 8_999_999_999_999_999, ""},
		{"9000000.000000001", 9, budgetUSDMax, 0, "is above 9000000 USD"},
		{"-1", 6, 10, 0, "must not be negative"},
		{"-0", 6, 10, 0, "must not be negative"},
		{"", 6, 10, 0, "plain decimal"},
		{".5", 6, 10, 0, "plain decimal"},
		{"5.", 6, 10, 0, "plain decimal"},
		{"+5", 6, 10, 0, "plain decimal"},
		{"1e3", 6, 10, 0, "plain decimal"},
		{"1,25", 6, 10, 0, "plain decimal"},
		{"1.2.5", 6, 10, 0, "plain decimal"},
		{".nan", 6, 10, 0, "plain decimal"},
		{"1_000", 6, 10, 0, "plain decimal"},
	} {
		value, wrong := parseDecimal(tt.text, tt.places, tt.most)
		if value != tt.value || (wrong == "") != (tt.wrong == "") || !strings.Contains(wrong, tt.wrong) {
			t.Errorf("%q is %d, %q; want %d, %q", tt.text, value, wrong, tt.value, tt.wrong)
		}
	}
}

// Nothing is free by oversight.
func TestPriceDefaults(t *testing.T) {
	c := &compiler{}
	var root Place
	place := root.Field("price")
	for _, tt := range []struct {
		entry PriceEntry
		want  Price
	}{
		{PriceEntry{Input: Give("2")}, Price{Input: 2e6, CachedInput: 2e6, CacheWrite5m: 2e6, CacheWrite1h: 2e6}},
		{PriceEntry{Input: Give("2"), CachedInput: Give("0")}, Price{Input: 2e6, CacheWrite5m: 2e6, CacheWrite1h: 2e6}},
		{PriceEntry{Input: Give("2"), CacheWrite5m: Give("3")}, Price{Input: 2e6, CachedInput: 2e6, CacheWrite5m: 3e6, CacheWrite1h: 3e6}},
		{PriceEntry{WebSearch: Give("0.01"), Request: Give("1000")}, Price{WebSearchNano: 1e7, RequestNano: 1e12}},
	} {
		f := Give(tt.entry)
		if got := c.price(&place, &f); *got != tt.want {
			t.Errorf("%+v, want %+v", *got, tt.want)
		}
	}
	if c.problems.Failed() {
		t.Error(c.problems.List())
	}
}

func TestAddress(t *testing.T) {
	for _, tt := range []struct {
		shape              Shape
		url                string
		tls                bool
		hostname           string
		port               uint16
		hostPort, basePath string
	}{
		{OpenAI, "https://api.openai.com/v1", true, "api.openai.com", 443, "api.openai.com", "/v1"},
		{OpenAI, "https://API.openai.com:443/v1//", true, "api.openai.com", 443, "api.openai.com", "/v1"},
		{OpenAI, "HTTPS://a:8443", true, "a", 8443, "a:8443", ""},
		{OpenAI, "http://a/", false, "a", 80, "a", ""},
		{OpenAI, "http://a:443/x/v1", false, "a", 443, "a:443", "/x/v1"},
		{OpenAI, "http://127.0.0.1:9000/a%20b", false, "127.0.0.1", 9000, "127.0.0.1:9000", "/a%20b"},
		{OpenAI, "https://[2001:DB8:0::1]/v1", true, "2001:db8::1", 443, "[2001:db8::1]", "/v1"},
		{OpenAI, "https://[::1]:8443/v1", true, "::1", 8443, "[::1]:8443", "/v1"},
		{Anthropic, "https://api.anthropic.com", true, "api.anthropic.com", 443, "api.anthropic.com", ""},
		{Anthropic, "https://api.anthropic.com/", true, "api.anthropic.com", 443, "api.anthropic.com", ""},
		{Anthropic, "https://api.anthropic.com/v1", true, "api.anthropic.com", 443, "api.anthropic.com", ""},
		{Anthropic, "https://api.anthropic.com/v1/", true, "api.anthropic.com", 443, "api.anthropic.com", ""},
		{Anthropic, "http://mock_1:80/claude/v1", false, "mock_1", 80, "mock_1", "/claude"},
	} {
		c, h := &compiler{}, &Host{Shape: tt.shape}
		f := Give(tt.url)
		c.address(Place{}, &f, h)
		if c.problems.Failed() || h.TLS != tt.tls || h.Hostname != tt.hostname || h.Port != tt.port || h.HostPort != tt.hostPort || h.BasePath != tt.basePath || h.Endpoint == 0 {
			t.Errorf("%s: %v %+v", tt.url, c.problems.List(), h)
		}
	}
	for _, url := range []string{"", "https://", "//a", "https://a b", "https://ä", "https://-a", "https://a.", "https://a..b", "https://[fe80::1%25eth0]/v1", "https://[1.2.3.4]", "https://[::1", "https://a/\\b", "https://a:0", "https://a?", "mailto:a@b", "https://" + strings.Repeat("a", pathBytesMax)} {
		c := &compiler{}
		f := Give(url)
		c.address(Place{}, &f, &Host{})
		if !c.problems.Failed() {
			t.Errorf("%q is accepted", url)
		}
	}
}

// Equal endpoints share connections; anything that changes who answers must
// change the hash, and anything else must not.
func TestEndpoint(t *testing.T) {
	endpoint := func(url string) uint64 {
		c, h := &compiler{}, &Host{}
		f := Give(url)
		c.address(Place{}, &f, h)
		return h.Endpoint
	}
	first := endpoint("https://a/v1")
	for url, same := range map[string]bool{"https://A:443/v2": true, "http://a/v1": false, "https://a:444/v1": false, "https://b/v1": false, "http://a:443": false} {
		if (endpoint(url) == first) != same {
			t.Errorf("%s: same endpoint is %v, want %v", url, !same, same)
		}
	}
}

func TestGroups(t *testing.T) {
	limits := items(LimitEntry{Meter: Give("concurrency"), Amount: Give("3")})
	doc := sample([]ModelEntry{{Name: Give("m")}}, PolicyEntry{Name: Give("p0"), Models: texts("*"), Limits: limits})
	doc.Hosts.Value[0].Value.Keys.Value[0].Value.Limits = limits
	doc.RelayKeys.Value[0].Value.Limits = limits
	tables := compile(t, doc)
	sum := sha256.Sum256([]byte("policy/p0"))
	if g := tables.Policies[0].Group; g.ID != binary.BigEndian.Uint64(sum[:8]) || g.Name != "policy/p0" {
		t.Errorf("group of the policy is %+v", g)
	}
	if g := tables.Hosts[0].Keys[0].Group; g.Name != "host_key/h/k" || g.ID == 0 {
		t.Errorf("group of the host key is %+v", g)
	}
	if g := tables.RelayKeys[0].Group; g.Name != "relay_key/r" || g.ID == 0 {
		t.Errorf("group of the relay key is %+v", g)
	}
	if g := tables.Accounts[0].Group; g.ID != 0 || g.Limits != nil {
		t.Errorf("group without limits is %+v", g)
	}
	tables.Accept(5)
	for _, g := range []*Group{&tables.Policies[0].Group, &tables.Hosts[0].Keys[0].Group, &tables.RelayKeys[0].Group, &tables.Accounts[0].Group} {
		if g.Generation != 5 || tables.Generation != 5 {
			t.Errorf("%s is of generation %d", g.Name, g.Generation)
		}
	}
	many := make([]LimitEntry, limitsMax+1)
	doc = sample([]ModelEntry{{Name: Give("m")}}, PolicyEntry{Name: Give("p0"), Models: texts("*"), Limits: items(many...)})
	tables, problems := Compile(doc, resolveSample)
	nine := func(p Problem) bool {
		return p.Path == "policies[0].limits" && p.Message == "holds 9 entries; allowed are 8"
	}
	if tables != nil || !slices.ContainsFunc(problems, nine) {
		t.Errorf("nine limits: %v", problems)
	}
}

func TestPrefixOfKey(t *testing.T) {
	for text, want := range map[string]string{"rk-demo": "rk", "rk-0123456789abcdef-0123456789": "rk-01234", "rk-012345678": "rk-0"} {
		doc := sample([]ModelEntry{{Name: Give("m")}}, PolicyEntry{Name: Give("p0"), Models: texts("*")})
		doc.RelayKeys.Value[0].Value.Key = Give(Secret(text))
		k := compile(t, doc).RelayKeys[0]
		if k.Prefix != want || k.Hash != sha256.Sum256([]byte(text)) {
			t.Errorf("%s has prefix %q", text, k.Prefix)
		}
	}
}

// However tables and documents are printed, no secret is in it.
func TestPrintingHidesSecrets(t *testing.T) {
	doc := sample([]ModelEntry{{Name: Give("m")}}, PolicyEntry{Name: Give("p0"), Models: texts("*")})
	doc.Hosts.Value[0].Value.Keys.Value[0].Value.Value = Give(Secret("plain:" + hostSecret))
	tables := compile(t, doc)
	key := tables.Hosts[0].Keys[0]
	bytesOf := strings.Trim(fmt.Sprint([]byte(hostSecret[:8])), "[]")
	hexOf := fmt.Sprintf("%x", hostSecret[:8])
	values := []any{key, *key, tables.Hosts[0].Keys, tables.Hosts[0], *tables.Hosts[0], doc, *doc, doc.Hosts, key.LogValue()}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
		for _, value := range values {
			out := fmt.Sprintf(verb, value)
			for _, bad := range []string{hostSecret, bytesOf, hexOf, "rk-0123456789abcdef"} {
				if strings.Contains(out, bad) {
					t.Errorf("%s of %T shows a secret: %s", verb, value, out)
				}
			}
		}
	}
	key.Host = nil // json does not follow circles
	for _, value := range []any{key, doc} {
		out, err := json.Marshal(value)
		if err != nil || strings.Contains(string(out), hostSecret) || strings.Contains(string(out), "c2staG9zd") {
			t.Errorf("%v: %s", err, out)
		}
	}
}

func TestProblemsAreBounded(t *testing.T) {
	var l Problems
	for range problemsMax + 5 {
		l.Error(Place{}, 7, "wrong")
	}
	l.Warn(Place{}, 3, "odd")
	list := l.List()
	if len(list) != problemsMax+2 || list[0].Message != "odd" || list[len(list)-1].Message != "5 more errors are not listed" || Errors(list) != problemsMax+1 {
		t.Errorf("%d problems, first %v, last %v", len(list), list[0], list[len(list)-1])
	}
}

func TestQuote(t *testing.T) {
	for value, want := range map[string]string{
		"team-a":                `"team-a"`,
		"task-1":                `"task-1"`, // not what begins with sk-
		"":                      "an empty text",
		"sk-abc":                "this text",
		"x/rk-abc":              "this text",
		"plain:a":               "this text",
		"a b":                   "this text",
		strings.Repeat("a", 65): "a text of 65 bytes",
	} {
		if got := quote(value); got != want {
			t.Errorf("%q is quoted %s, want %s", value, got, want)
		}
	}
}
