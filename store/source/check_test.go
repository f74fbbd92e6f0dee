package source

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"relay/store/catalog"
)

const (
	envSecret   = "sk-env-1f0c97ab52d8"
	fileSecret  = "sk-file-77e3b1c09d42"
	plainSecret = "sk-plain-c3d5e6f70811"
	keySecret   = "rk-written-0a1b2c3d4e5f"
	someHash    = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
)

// good is a catalog with every field that this version carries out.
const good = `hosts:
  - name: openai
    shape: openai
    base_url: https://api.openai.com/v1
    keys:
      - name: main
        value: env:TEST_OPENAI_KEY
        tier: 0
        weight: 1
        limits: [{meter: requests, amount: 10000, window: 1m}]
      - {name: spare, value: "file:SECRET_FILE", tier: 1, weight: 3}
    timeouts: {connect: 2s, first_byte: 500s, first_token: 400s, idle: 300s}
    max_connections: 64
    flags: [no_stream_options]
    anthropic_version: "2023-06-01"
    organization: org-1
    project: proj-1
  - name: claude
    shape: anthropic
    base_url: http://[::1]:8080/proxy/v1/
    anthropic_version: 2024-01-01
    keys: [{name: main, value: "env:TEST_OPENAI_KEY"}]
models:
  - name: gpt-5
    aliases: ["gpt-5-*", latest]
    bindings:
      - {host: claude, upstream_model: 4.10, priority: 1, weight: 2, price: {input: 3}}
      - {host: openai, upstream_model: gpt-5, priority: 0, weight: 1}
    price: {input: 1.25, cached_input: 0.125, cache_write_5m: 1.5, cache_write_1h: 2, output: 10, audio: 40, web_search: 0.01, request: 0.000000001}
    flags: []
    # max_output_tokens: 16384
policies:
  - name: default
    models: [gpt-5, "claude-*"]
    limits:
      - {meter: requests, amount: 600, window: 1m, strategy: token-bucket}
      - {meter: concurrency, amount: 100}
    pool: round-robin
    retry: {attempts: 1, budget: 20s, retry_sent: false}
    fallback: []
    rescue: off
    on_hangup: cancel
accounts:
  - {name: team-a}
relay_keys:
  - {name: app-1, sha256: "` + someHash + `", account: team-a, policy: default, expires: 2030-01-31T00:00:00Z, limits: [{meter: requests, amount: 5, window: 1s}]}
  - {name: app-2, sha256: "0000000000000000000000000000000000000000000000000000000000000001", account: team-a, policy: default, enabled: false}
`

// goodText puts the secrets of good into the environment and a file.
func goodText(t testing.TB) string {
	t.Helper()
	t.Setenv("TEST_OPENAI_KEY", envSecret+" \r\n")
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(fileSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return strings.Replace(good, "SECRET_FILE", path, 1)
}

func TestCheckGood(t *testing.T) {
	text := goodText(t)
	tables, problems := Check([]byte(text))
	if len(problems) > 0 || tables == nil {
		t.Fatalf("problems: %v", problems)
	}
	sum := sha256.Sum256([]byte(text))
	if tables.Revision != hex.EncodeToString(sum[:]) {
		t.Errorf("revision is %s", tables.Revision)
	}
	openai, claude := tables.Hosts[0], tables.Hosts[1]
	if string(openai.Keys[0].Value) != envSecret || string(openai.Keys[1].Value) != fileSecret {
		t.Error("the secrets are not what the environment and the file hold, without blanks at the end")
	}
	if want := (catalog.Timeouts{Connect: 2 * time.Second, FirstByte: 500 * time.Second, FirstToken: 400 * time.Second, Idle: 300 * time.Second}); openai.Timeouts != want {
		t.Errorf("timeouts are %v", openai.Timeouts)
	}
	if openai.BasePath != "/v1" || openai.HostPort != "api.openai.com" || !openai.TLS || openai.Port != 443 ||
		openai.MaxConnections != 64 || !openai.NoStreamOptions || openai.Organization != "org-1" || openai.Project != "proj-1" {
		t.Errorf("host is %+v", openai)
	}
	if claude.BasePath != "/proxy" || claude.HostPort != "[::1]:8080" || claude.Hostname != "::1" || claude.AnthropicVersion != "2024-01-01" {
		t.Errorf("host is %+v", claude)
	}
	m := tables.Models[0]
	if m.Bindings[0].Host != openai || m.Bindings[1].UpstreamModel != "4.10" || m.Bindings[1].Price.Input != 3_000_000 {
		t.Errorf("model is %+v", m)
	}
	if want := (catalog.Price{Input: 1_250_000, CachedInput: 125_000, CacheWrite5m: 1_500_000, CacheWrite1h: 2_000_000, Output: 10_000_000,
		Audio: 40_000_000, WebSearchNano: 10_000_000, RequestNano: 1}); *m.Bindings[0].Price != want {
		t.Errorf("price is %+v", *m.Bindings[0].Price)
	}
	p := tables.Policies[0]
	if p.Group.Name != "policy/default" || p.Group.ID == 0 || len(p.Group.Limits) != 2 ||
		p.Group.Limits[0] != (catalog.Limit{Meter: catalog.Requests, Amount: 600, Window: time.Minute}) ||
		p.Group.Limits[1] != (catalog.Limit{Meter: catalog.Concurrency, Amount: 100}) {
		t.Errorf("group is %+v", p.Group)
	}
	k := tables.RelayKeys[0]
	if hex.EncodeToString(k.Hash[:]) != someHash || tables.RelayKey(&k.Hash) != k || !k.Enabled || tables.RelayKeys[1].Enabled ||
		k.ExpiresUnix != time.Date(2030, 1, 31, 0, 0, 0, 0, time.UTC).Unix() || k.Account != tables.Accounts[0] || k.Policy != p || k.Group.ID == 0 {
		t.Errorf("relay key is %+v", k)
	}
}

const goodRelayKey = `{name: app-2, sha256: "0000000000000000000000000000000000000000000000000000000000000001", account: team-a, policy: default, enabled: false}`

// problemCases replace one text of good by another one.
var problemCases = []struct {
	name, old, new string
	path, message  string
	warning        bool
}{
	{"unknown field", "    max_connections: 64", "    max_conns: 64", "hosts[0]", `unknown field "max_conns"; allowed: name, shape, base_url`, false},
	{"unknown section", "accounts:\n  - {name: team-a}\n", "accounts: [{name: team-a}]\nteams: []\n", "", `unknown field "teams"; allowed: hosts, models`, false},
	{"field given twice", "shape: openai\n", "shape: openai\n    shape: openai\n", "hosts[0].shape", "given twice, first on line 3", false},
	{"host named twice", "- name: claude\n", "- name: openai\n", "hosts[1].name", `"openai" is the name of entry [0] on line 2`, false},
	{"blank in a name", "{name: team-a}", "{name: team a}", "accounts[0].name", "without blanks", false},
	{"credential for a name", "upstream_model: gpt-5,", "upstream_model: " + plainSecret + ",", "models[0].bindings[1].upstream_model", "looks like a credential", false},
	{"slash in a host", "- name: claude", "- name: cla/ude", "hosts[1].name", `may not hold "/"`, false},
	{"unknown policy", "account: team-a, policy: default, enabled", "account: team-a, policy: defualt, enabled", "relay_keys[1].policy", `no policy named "defualt"`, false},
	{"unknown account", "account: team-a, policy: default, enabled", "account: team-b, policy: default, enabled", "relay_keys[1].account", `no account named "team-b"`, false},
	{"unknown host", "{host: openai,", "{host: open,", "models[0].bindings[1].host", `no host named "open"`, false},
	{"unknown model", "models: [gpt-5, ", "models: [gpt-6, ", "policies[0].models[0]", `no model named "gpt-6"`, false},
	{"alias for a model", "models: [gpt-5, ", "models: [latest, ", "policies[0].models[0]", `alias; write the name of its model, "gpt-5"`, false},
	{"no account", "account: team-a, policy: default, enabled", "policy: default, enabled", "relay_keys[1].account", "is missing", false},
	{"wrong shape", "shape: openai\n", "shape: azure\n", "hosts[0].shape", "is none of: openai, anthropic", false},
	{"window without unit", "window: 1m, strategy", "window: 60, strategy", "policies[0].limits[0].window", "number with its unit, such as 500ms, 30s, 1m", false},
	{"window of days", "window: 1m, strategy", "window: 1d, strategy", "policies[0].limits[0].window", "is not a duration", false},
	{"no window", "window: 1m, strategy", "strategy", "policies[0].limits[0].window", "is missing", false},
	{"window of concurrency", "concurrency, amount: 100", "concurrency, amount: 100, window: 1m", "policies[0].limits[1].window", "is not for concurrency", false},
	{"timeout out of range", "connect: 2s", "connect: 2h", "hosts[0].timeouts.connect", "is 2h0m0s; allowed are 1ms to 1m0s", false},
	{"zero timeout", "idle: 300s", "idle: 0s", "hosts[0].timeouts.idle", "allowed are 1ms", false},
	{"no scheme", "https://api.openai.com/v1", "api.openai.com/v1", "hosts[0].base_url", "must begin with http:// or https://", false},
	{"other scheme", "https://api.openai.com/v1", "ftp://api.openai.com/v1", "hosts[0].base_url", "must begin with http:// or https://", false},
	{"query", "https://api.openai.com/v1", "https://api.openai.com/v1?a=b", "hosts[0].base_url", "may not hold a query", false},
	{"fragment", "https://api.openai.com/v1", "https://api.openai.com/v1#a", "hosts[0].base_url", "may not hold a fragment", false},
	{"user", "https://api.openai.com/v1", "https://me:" + plainSecret + "@api.openai.com/v1", "hosts[0].base_url", "may not hold a user", false},
	{"bad port", "https://api.openai.com/v1", "https://api.openai.com:70000/v1", "hosts[0].base_url", "allowed are 1 to 65535", false},
	{"no port", "https://api.openai.com/v1", "https://api.openai.com:/v1", "hosts[0].base_url", "a colon without a port", false},
	{"no host name", "https://api.openai.com/v1", "https:///v1", "hosts[0].base_url", "no sound host name", false},
	{"dots", "https://api.openai.com/v1", "https://api.openai.com/a/../v1", "hosts[0].base_url", "may not hold . or ..", false},
	{"two stars in an alias", `"gpt-5-*"`, `"gpt-*-*"`, "models[0].aliases[0]", `more than one "*"`, false},
	{"two stars in a policy", `"claude-*"`, `"*claude-*"`, "policies[0].models[1]", `more than one "*"`, false},
	{"alias is a name", "latest", "gpt-5", "models[0].aliases[1]", "leads to this model already", false},
	{"short sha256", "0000000001\"", "000000000\"", "relay_keys[1].sha256", "64 hexadecimal digits", false},
	{"sha256 not hex", "0000000001\"", "000000000g\"", "relay_keys[1].sha256", "64 hexadecimal digits", false},
	{"sha256 of nothing", "0000000000000000000000000000000000000000000000000000000000000001", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "relay_keys[1].sha256", "of an empty text", false},
	{"the same key", "0000000000000000000000000000000000000000000000000000000000000001", someHash, "relay_keys[1]", `the same key as "app-1"`, false},
	{"key and sha256", "enabled: false", "key: " + keySecret, "relay_keys[1]", "has both sha256 and key", false},
	{"neither", goodRelayKey, "{name: app-2, account: team-a, policy: default}", "relay_keys[1]", "has neither sha256 nor key", false},
	{"key in clear", goodRelayKey, "{name: app-2, key: " + keySecret + ", account: team-a, policy: default}", "relay_keys[1].key", "in clear", true},
	{"blank in a key", goodRelayKey, "{name: app-2, key: " + keySecret + " x, account: team-a, policy: default}", "relay_keys[1].key", "without blanks", false},
	{"enabled by a word", "enabled: false", "enabled: yes", "relay_keys[1].enabled", "must be true or false", false},
	{"expires on a day", "2030-01-31T00:00:00Z", "2030-01-31", "relay_keys[0].expires", "RFC 3339", false},
	{"expires at zero", "2030-01-31T00:00:00Z", "1970-01-01T00:00:00Z", "relay_keys[0].expires", "before the year 2000", false},
	{"empty pool", `keys: [{name: main, value: "env:TEST_OPENAI_KEY"}]`, "keys: []", "hosts[1].keys", "at least one entry", false},
	{"no pool", "    keys: [{name: main, value: \"env:TEST_OPENAI_KEY\"}]\n", "", "hosts[1].keys", "at least one entry", false},
	{"no value", "weight: 1\n        limits", "weight:\n        limits", "hosts[0].keys[0].weight", "whole number", false},
	{"weight of a key", "weight: 3", "weight: 0", "hosts[0].keys[1].weight", "is 0; allowed are 1 to", false},
	{"weight of a binding", "weight: 2", "weight: -1", "models[0].bindings[0].weight", "is -1; allowed are 1 to", false},
	{"negative price", "input: 1.25", "input: -1.25", "models[0].price.input", "must not be negative", false},
	{"price too fine", "input: 1.25", "input: 1.2345678", "models[0].price.input", "has 7 decimals; allowed are 6", false},
	{"price too fine per call", "0.000000001", "0.0000000001", "models[0].price.request", "has 10 decimals; allowed are 9", false},
	{"price with an exponent", "input: 1.25", "input: 1e3", "models[0].price.input", "is not a plain decimal", false},
	{"price too high", "input: 1.25", "input: 100000.000001", "models[0].price.input", "is above 100000 USD", false},
	{"empty price", "price: {input: 3}", "price: {}", "models[0].bindings[0].price", "at least one kind", false},
	{"no price", "    price: {input: 1.25, cached_input: 0.125, cache_write_5m: 1.5, cache_write_1h: 2, output: 10, audio: 40, web_search: 0.01, request: 0.000000001}\n", "", "models[0].bindings[1]", "counted at no cost", true},
	{"budget of a year", "{name: team-a}", "{name: team-a, budget: {usd: 100, period: year}}", "accounts[0].budget.period", "is none of: hour, day, week, month", false},
	{"amount of zero", "amount: 600", "amount: 0", "policies[0].limits[0].amount", "is 0; allowed are 1 to 9007199254740992", false},
	{"amount too large", "amount: 600", "amount: 9007199254740993", "policies[0].limits[0].amount", "allowed are 1 to 9007199254740992", false},
	{"amount beyond all", "amount: 600", "amount: 99999999999999999999", "policies[0].limits[0].amount", "whole number", false},
	{"amount octal", "amount: 600", "amount: 0600", "policies[0].limits[0].amount", "plain decimal digits", false},
	{"amount with a fraction", "amount: 600", "amount: 600.5", "policies[0].limits[0].amount", "whole number", false},
	{"amount of cost", "concurrency, amount: 100", "cost, amount: 0.0000000001, window: 1h", "policies[0].limits[1].amount", "10 decimals", false},
	{"amount of no cost", "concurrency, amount: 100", "cost, amount: 0, window: 1h", "policies[0].limits[1].amount", "above zero", false},
	{"limit of tokens without a window", "concurrency, amount: 100", "tokens, amount: 100", "policies[0].limits[1].window", "is missing", false},
	{"limit of tokens in no time", "concurrency, amount: 100", "tokens, amount: 100, window: 0s", "policies[0].limits[1].window", "is 0s; allowed are", false},
	{"unknown strategy", "strategy: token-bucket", "strategy: tumbling-window", "policies[0].limits[0].strategy", "is none of: token-bucket, leaky-bucket, fixed-window, sliding-window, session-window, calendar", false},
	{"unknown reserve", "concurrency, amount: 100", "tokens, amount: 100, window: 1m, reserve: all", "policies[0].limits[1].reserve", "is none of: expected, strict, posthoc", false},
	{"unknown meter", "concurrency, amount: 100", "request, amount: 100, window: 1m", "policies[0].limits[1].meter", "is none of: requests, tokens, tokens.input, tokens.output, cost, concurrency", false},
	{"reserve", "strategy: token-bucket", "reserve: expected", "policies[0].limits[0].reserve", "is for the meters of tokens and cost", false},
	{"calendar with a window", "concurrency, amount: 100", "tokens, amount: 100, strategy: calendar, period: day, window: 1m", "policies[0].limits[1].window", "is not for calendars", false},
	{"calendar without a period", "concurrency, amount: 100", "tokens, amount: 100, strategy: calendar", "policies[0].limits[1].period", "is missing", false},
	{"calendar of a decade", "concurrency, amount: 100", "tokens, amount: 100, strategy: calendar, period: decade", "policies[0].limits[1].period", "is none of: hour, day, week, month", false},
	{"calendar of nowhere", "concurrency, amount: 100", "tokens, amount: 100, strategy: calendar, period: day, timezone: Mars", "policies[0].limits[1].timezone", "is no time zone", false},
	{"period without a calendar", "concurrency, amount: 100", "tokens, amount: 100, window: 1m, period: day", "policies[0].limits[1].period", "is for the strategy calendar only", false},
	{"time zone without a calendar", "concurrency, amount: 100", "tokens, amount: 100, window: 1m, timezone: UTC", "policies[0].limits[1].timezone", "is for the strategy calendar only", false},
	{"limit given twice", "{meter: concurrency, amount: 100}", "{meter: requests, amount: 100, window: 60s}", "policies[0].limits[1]", "same meter over the same window", false},
	{"pool", "pool: round-robin", "pool: weighted", "policies[0].pool", "weighted is not enforced by this version: keys are taken round-robin", true},
	{"unknown pool", "pool: round-robin", "pool: random", "policies[0].pool", "is none of: round-robin, least", false},
	{"retry", "attempts: 1", "attempts: 3", "policies[0].retry", "every request has one attempt", true},
	{"too many attempts", "attempts: 1,", "attempts: 11,", "policies[0].retry.attempts", "allowed are 1 to 10", false},
	{"fallback", "fallback: []", "fallback: [gpt-5]", "policies[0].fallback", "no other model is tried", true},
	{"rescue", "rescue: off", "rescue: hold", "policies[0].rescue", "hold is not enforced by this version", true},
	{"hang-up", "on_hangup: cancel", "on_hangup: drain", "policies[0].on_hangup", "drain is not enforced by this version", true},
	{"flag of a model", "    flags: []", "    flags: [reasoning: adaptive]", "models[0].flags[0]", "reasoning: adaptive has no effect", true},
	{"unknown flag", "[no_stream_options]", "[no_stream]", "hosts[0].flags[0]", "is none of: no_stream_options", false},
	{"stored", `"file:SECRET_FILE"`, "stored:OPENAI", "hosts[0].keys[1].value", "stored: is not enforced by this version", true},
	{"plain", `"file:SECRET_FILE"`, "plain:" + plainSecret, "hosts[0].keys[1].value", "in clear", true},
	{"no reference", `"file:SECRET_FILE"`, plainSecret, "hosts[0].keys[1].value", "allowed are env:NAME, file:PATH", false},
	{"no variable", `"file:SECRET_FILE"`, "env:TEST_NOT_THERE", "hosts[0].keys[1].value", "env:TEST_NOT_THERE is not set", false},
	{"no sound variable", `"file:SECRET_FILE"`, "env:" + plainSecret, "hosts[0].keys[1].value", "name of a variable", false},
	{"no file", `"file:SECRET_FILE"`, "file:/not/there", "hosts[0].keys[1].value", "file:/not/there: no such file", false},
	{"folder", `"file:SECRET_FILE"`, "file:/", "hosts[0].keys[1].value", "file:/: is not a regular file", false},
	{"control bytes", `"file:SECRET_FILE"`, "env:TEST_TWO_LINES", "hosts[0].keys[1].value", "no header may hold", false},
	{"empty variable", `"file:SECRET_FILE"`, "env:TEST_BLANK", "hosts[0].keys[1].value", "is empty", false},
	{"header", "organization: org-1", "organization: \"org\\r\\nx: y\"", "hosts[0].organization", "goes into a header", false},
	{"list for a text", "name: gpt-5\n", "name: [gpt-5]\n", "models[0].name", "must be a single value", false},
	{"text for a list", `["gpt-5-*", latest]`, "latest", "models[0].aliases", "must be a list", false},
	{"text for a mapping", "{name: team-a}", "team-a", "accounts[0]", "must be a mapping", false},
	{"tag", "rescue: off", "rescue: !mine off", "policies[0].rescue", "YAML tag", false},
	{"merge key", "pool: round-robin", "<<: {pool: round-robin}", "policies[0]", "merge key", false},
}

// TestCheckProblems expects of every case one problem, at the line of what was
// replaced.
func TestCheckProblems(t *testing.T) {
	for _, tt := range problemCases {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("TEST_TWO_LINES", "sk-a\nsk-b")
			t.Setenv("TEST_BLANK", " \n")
			base := goodText(t)
			_, file, _ := strings.Cut(base, `"file:`)
			file, _, _ = strings.Cut(file, `"`)
			old := strings.ReplaceAll(tt.old, "SECRET_FILE", file)
			before, after, found := strings.Cut(base, old)
			if !found {
				t.Fatal("good has no such text")
			}
			wantLine := 1 + strings.Count(before, "\n")
			wantLine += lineInside(tt.new, tt.path)
			tables, problems := Check([]byte(before + tt.new + after))
			if (tables != nil) != tt.warning {
				t.Errorf("accepted: %v", tables != nil)
			}
			var first catalog.Problem
			for _, p := range problems {
				if p.Path == tt.path && strings.Contains(p.Message, tt.message) {
					first = p
				}
				for _, secret := range []string{envSecret, fileSecret, plainSecret, keySecret, someHash} {
					if strings.Contains(p.Text("f"), secret) {
						t.Errorf("a secret is in: %s", p.Text("f"))
					}
				}
			}
			if first.Message == "" || first.Warning != tt.warning {
				t.Fatalf("got %v", problems)
			}
			if !strings.HasPrefix(tt.message, "at least one entry") && tt.name != "no price" && first.Line != wantLine {
				t.Errorf("line is %d, want %d", first.Line, wantLine)
			}
			if len(problems) > 1 && !cascades[tt.name] {
				t.Errorf("more than one problem: %v", problems)
			}
		})
	}
}

// cascades are the cases where one slip is rightly several problems.
var cascades = map[string]bool{
	"host named twice": true, "slash in a host": true, "blank in a name": true, "text for a mapping": true, "unknown model": true, "list for a text": true,
}

// lineInside is where in a replacement of several lines its problem is.
func lineInside(text, path string) int {
	switch path {
	case "", "hosts[0].shape":
		return strings.Count(strings.TrimRight(text, "\n"), "\n")
	}
	return 0
}

func TestCheckWholeFile(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		line     int
		message  string
	}{
		{"nothing", "", 0, "is empty"},
		{"comments", "# nothing\n\n", 0, "is empty"},
		{"null", "---\n~\n", 1, "is empty"},
		{"list", "- a\n", 1, "must be a mapping"},
		{"syntax", "hosts:\n  - name: a\n   b: c\n", 0, "is not YAML: "},
		{"tab", "hosts:\n\t- name: a\n", 2, "is not YAML: "},
		{"unknown anchor", "hosts: *" + keySecret + "\n", 0, "an alias (*name) refers to an anchor"},
		{"second document", "hosts: []\n---\nhosts: []\n", 2, "a second document"},
		{"not text", "\xff\xfe\x00", 0, "is not YAML"},
		{"hosts missing", "models: []\n", 0, "must hold at least one entry"},
		{"section broken", "hosts: 5\n", 1, "must be a list"},
		{"too many entries", "hosts: [" + strings.Repeat("0,", entriesMax+1) + "]", 1, "holds 1000001 entries; allowed are at most 1000000"},
		{"too long", strings.Repeat("#", fileBytesMax+1), 0, "is longer than 67108864 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tables, problems := Check([]byte(tt.in))
			if tables != nil || len(problems) == 0 {
				t.Fatal("accepted")
			}
			for _, p := range problems {
				if strings.Contains(p.Message, keySecret) {
					t.Errorf("secret in %v", p)
				}
				if strings.Contains(p.Message, tt.message) && (tt.line == 0 || p.Line == tt.line) {
					return
				}
			}
			t.Errorf("got %v", problems)
		})
	}
}

func TestCheckReportsAll(t *testing.T) {
	tables, problems := Check([]byte(`hosts:
  - name: a
    shape: azure
    base_url: ftp://x
    color: red
    keys: [{name: k, value: nothing}]
models:
  - {name: m, bindings: [{host: b}], price: {input: -1}}
policies:
  - {name: p, models: ["*"], limits: [{meter: requests, amount: 0, window: 1}]}
accounts: []
relay_keys:
  - {name: k, sha256: zz, account: x, policy: y}
`))
	if tables != nil {
		t.Fatal("accepted")
	}
	want := []struct {
		line int
		path string
	}{
		{3, "hosts[0].shape"}, {4, "hosts[0].base_url"}, {5, "hosts[0]"}, {6, "hosts[0].keys[0].value"},
		{8, "models[0].price.input"}, {8, "models[0].bindings[0].host"},
		{10, "policies[0].limits[0].amount"}, {10, "policies[0].limits[0].window"},
		{13, "relay_keys[0].account"}, {13, "relay_keys[0].policy"}, {13, "relay_keys[0].sha256"},
	}
	if len(problems) != len(want) {
		t.Fatalf("%d problems, want %d: %v", len(problems), len(want), problems)
	}
	for i, p := range problems {
		if p.Line != want[i].line || p.Path != want[i].path {
			t.Errorf("problem %d is %s, want line %d of %s", i, p.Text("f"), want[i].line, want[i].path)
		}
	}
	err := &InvalidError{Path: "relay.yaml", Problems: problems}
	if text := err.Error(); !strings.HasPrefix(text, "catalog: relay.yaml has 11 errors:\nrelay.yaml:3: hosts[0].shape: is none of") {
		t.Errorf("error is %q", text)
	}
}

func TestCheckAliasesAreBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString("hosts:\n  - &h {name: h, flags: &f [")
	b.WriteString(strings.Repeat("x,", 2000))
	b.WriteString("]}\n")
	b.WriteString(strings.Repeat("  - *h\n", 2000))
	tables, problems := Check([]byte(b.String()))
	if tables != nil {
		t.Fatal("accepted")
	}
	found := false
	for _, p := range problems {
		found = found || strings.Contains(p.Message, "aliases stand for more than 1000000 values")
	}
	if !found {
		t.Error("not refused for its aliases")
	}
	text := strings.Replace(goodText(t), "value: env:TEST_OPENAI_KEY", "value: &v env:TEST_OPENAI_KEY", 1)
	text = strings.Replace(text, `value: "env:TEST_OPENAI_KEY"`, "value: *v", 1)
	if tables, problems := Check([]byte(text)); tables == nil || string(tables.Hosts[1].Keys[0].Value) != envSecret {
		t.Errorf("a plain use of an alias is refused: %v", problems)
	}
}

// The decoder sets fields by position.
func TestFieldPositions(t *testing.T) {
	var f catalog.Field[catalog.RetryEntry]
	kind := reflect.TypeOf(f)
	for name, position := range map[string]int{"Value": valueField, "Line": lineField, "State": stateField} {
		if kind.Field(position).Name != name {
			t.Errorf("field %d is %s, want %s", position, kind.Field(position).Name, name)
		}
	}
}
