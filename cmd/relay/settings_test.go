package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
)

// parse reads a command line of serve into its settings.
func parse(t *testing.T, args ...string) (*Settings, string) {
	t.Helper()
	var c commands
	values := &valueReader{}
	parser, err := newParser(&c, values, streams{&bytes.Buffer{}, &bytes.Buffer{}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse(append([]string{"serve"}, args...)); err != nil {
		if values.wrong == nil {
			return nil, err.Error()
		}
		return nil, values.wrong.Error()
	}
	if err := c.Serve.check(); err != nil {
		return nil, err.Error()
	}
	return &c.Serve.Settings, ""
}

func TestSettingsDefaults(t *testing.T) {
	s, wrong := parse(t)
	if wrong != "" {
		t.Fatal(wrong)
	}
	want := Settings{
		Port: 8080, ControlPort: 8081, ControlBind: "127.0.0.1", TLSPort: portOff,
		ProxyProtocol: "off", StateBackend: "memory", Catalog: "relay.yaml",
		SpoolSync: span(20 * time.Millisecond), SpoolFull: "refuse",
		ConnQueue: 128, ConnQueueTimeout: span(time.Second), MaxRequestBytes: 32 << 20,
		StreamIdle: span(600 * time.Second), KeepAlive: span(15 * time.Second),
		ShutdownDeadline: span(15 * time.Second), LogLevel: "info", StoreOutage: "refuse",
	}
	if !reflect.DeepEqual(*s, want) {
		t.Errorf("defaults are %+v, want %+v", *s, want)
	}
	if s.dataDir() != "./relay-data" {
		t.Errorf("data dir is %q", s.dataDir())
	}
}

func TestSettingsValues(t *testing.T) {
	for _, tt := range []struct {
		args []string
		get  func(*Settings) any
		want any
	}{
		{[]string{"--port=0"}, func(s *Settings) any { return s.Port }, port(0)},
		{[]string{"--control-port=off"}, func(s *Settings) any { return s.ControlPort }, portOff},
		{[]string{"--bind=::1"}, func(s *Settings) any { return s.Bind }, address("::1")},
		{[]string{"--max-request-bytes=33554432"}, func(s *Settings) any { return s.MaxRequestBytes }, size(32 << 20)},
		{[]string{"--max-request-bytes=64 KiB"}, func(s *Settings) any { return s.MaxRequestBytes }, size(64 << 10)},
		{[]string{"--spool-sync=0"}, func(s *Settings) any { return s.SpoolSync }, span(0)},
		{[]string{"--spool-sync=1s"}, func(s *Settings) any { return s.SpoolSync }, span(time.Second)},
		{[]string{"--stream-idle=90"}, func(s *Settings) any { return s.StreamIdle }, span(90 * time.Second)},
		{[]string{"--shutdown-deadline-s=2m"}, func(s *Settings) any { return s.ShutdownDeadline }, span(2 * time.Minute)},
		{[]string{"--proxy-protocol=on", "--trusted-proxies=10.1.2.3/8, ::1"}, func(s *Settings) any { return len(s.TrustedProxies) }, 2},
		{[]string{"--proxy-protocol=on", "--trusted-proxies=10.1.2.3/8"}, func(s *Settings) any { return s.TrustedProxies[0].String() }, "10.0.0.0/8"},
		{redisWith("--redis-addr=redis://u:p%40@a:1/2"), func(s *Settings) any { return s.RedisAddr[0] + " " + s.RedisAddr.String() }, "redis://u:p%40@a:1/2 a:1"},
		{redisWith("--redis-addr=a:1, redis://b:2"), func(s *Settings) any { return s.RedisAddr.String() }, "a:1,b:2"},
		{redisWith("--redis-addr=a:1", "--redis-lanes=4", "--redis-tags=8", "--redis-max-pending=100", "--store-outage=local"),
			func(s *Settings) any {
				return fmt.Sprint(s.RedisLanes, s.RedisTags, s.RedisMaxPending, " ", s.StoreOutage)
			}, "4 8 100 local"},
		{[]string{"--spool-full=serve"}, func(s *Settings) any { return s.SpoolFull }, choice("serve")},
	} {
		s, wrong := parse(t, tt.args...)
		if wrong != "" {
			t.Errorf("%q: %s", tt.args, wrong)
		} else if got := tt.get(s); got != tt.want {
			t.Errorf("%q gives %v, want %v", tt.args, got, tt.want)
		}
	}
}

// redisWith are arguments beside those that choose the shared store.
func redisWith(args ...string) []string { return append(args, "--state-backend=redis") }

// wrongSettings are one or more wrong values for each setting, with what the
// complaint says is allowed.
var wrongSettings = []struct{ variable, value, allowed string }{
	{"RELAY_PORT", "80 80", "a port from 0 to 65535 (0 = a free one)"},
	{"RELAY_PORT", "off", "a port from 0 to 65535 (0 = a free one)"},
	{"RELAY_PORT", "65536", "a port from 0 to 65535 (0 = a free one)"},
	{"RELAY_BIND", "localhost", "an IP address of this machine, such as 127.0.0.1 or ::1"},
	{"RELAY_CONTROL_PORT", "-1", `a port from 0 to 65535 (0 = a free one), or "off"`},
	{"RELAY_CONTROL_BIND", "*", "an IP address of this machine, such as 127.0.0.1 or ::1"},
	{"RELAY_TLS_PORT", "x", `a port from 0 to 65535 (0 = a free one), or "off"`},
	{"RELAY_TLS_CERT_FILE", strings.Repeat("x", 5000), "a path of at most 4095 bytes"},
	{"RELAY_TLS_KEY_FILE", strings.Repeat("x", 5000), "a path of at most 4095 bytes"},
	{"RELAY_PROXY_PROTOCOL", "v2", "off or on"},
	{"RELAY_TRUSTED_PROXIES", "10.0.0.0/33", "a comma list of at most 64 addresses or networks, such as 10.0.0.0/8,::1"},
	{"RELAY_TRUSTED_PROXIES", strings.Repeat("::1,", 64) + "::2", "a comma list of at most 64 addresses or networks, such as 10.0.0.0/8,::1"},
	{"RELAY_LOOPS", "0", "a whole number from 1 to 1024"},
	{"RELAY_LOOPS", "two", "a whole number from 1 to 1024"},
	{"RELAY_STATE_BACKEND", "etcd", "memory or redis"},
	{"RELAY_REDIS_LANES", "17", "a whole number from 1 to 16"},
	{"RELAY_REDIS_TAGS", "0", "a whole number from 1 to 1024"},
	{"RELAY_REDIS_MAX_PENDING", "0", "a whole number from 1 to 10000000"},
	{"RELAY_STORE_OUTAGE", "open", "refuse or local"},
	{"RELAY_CATALOG", strings.Repeat("x", 5000), "a path of at most 4095 bytes"},
	{"RELAY_DATA_DIR", strings.Repeat("x", 5000), "a path of at most 4095 bytes"},
	{"RELAY_SPOOL_SYNC", "-1", "a time from 0s to 10s, such as 20; a plain number is in ms"},
	{"RELAY_SPOOL_SYNC", "11s", "a time from 0s to 10s, such as 20; a plain number is in ms"},
	{"RELAY_SPOOL_FULL", "drop", "refuse or serve"},
	{"RELAY_MAX_INFLIGHT", "0", "a whole number from 1 to 10000000"},
	{"RELAY_MAX_CONNS", "1e6", "a whole number from 1 to 10000000"},
	{"RELAY_CONN_QUEUE", "-1", "a whole number from 0 to 65536"},
	{"RELAY_CONN_QUEUE_TIMEOUT", "2h", "a time from 0s to 1m0s, such as 1s; a plain number is in s"},
	{"RELAY_UPSTREAM_MAX_IDLE_PER_HOST", "0", "a whole number from 1 to 10000000"},
	{"RELAY_MAX_REQUEST_BYTES", "32MB", "a size from 1KiB to 1GiB, in bytes or with KiB, MiB, GiB"},
	{"RELAY_MAX_REQUEST_BYTES", "9999999TiB", "a size from 1KiB to 1GiB, in bytes or with KiB, MiB, GiB"},
	{"RELAY_STREAM_IDLE", "0", "a time from 1s to 24h0m0s, such as 600s; a plain number is in s"},
	{"RELAY_KEEPALIVE", "soon", "a time from 1s to 1h0m0s, such as 15s; a plain number is in s"},
	{"RELAY_SHUTDOWN_DEADLINE_S", "-5", "a time from 0s to 24h0m0s, such as 15; a plain number is in s"},
	{"RELAY_INSTANCE_ID", "a b", "1 to 64 letters, digits and -_."},
	{"RELAY_LOG_LEVEL", "loud", "debug or info or warn or error"},
}

func TestSettingsWrong(t *testing.T) {
	tested := map[string]bool{"RELAY_ADMIN_TOKEN": true, "RELAY_REDIS_ADDR": true} // below: their values are not quoted
	for _, tt := range wrongSettings {
		tested[tt.variable] = true
		t.Run(tt.variable, func(t *testing.T) {
			t.Setenv(tt.variable, tt.value)
			var out, err bytes.Buffer
			if code := run([]string{"serve"}, streams{&out, &err}); code != exitUsage {
				t.Errorf("exit code %d", code)
			}
			flag := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(tt.variable, "RELAY_"), "_", "-"))
			want := "relay: " + tt.variable + " (--" + flag + ") is \"" + tt.value + "\": allowed is " + tt.allowed + "\n"
			if err.String() != want || out.Len() != 0 {
				t.Errorf("stderr %q, want %q; stdout %q", err.String(), want, out.String())
			}
		})
	}
	for _, name := range settingNames(t) {
		if !tested[name] {
			t.Errorf("no wrong value of %s is tested", name)
		}
	}
}

// addrAllowed is what is told of an address that is wrong.
const addrAllowed = "allowed is host:port or redis://user:password@host:port/db, or a comma list of at most 64 of them for a cluster"

func TestSettingsTogether(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"TLS without certificate", []string{"--tls-port=0", "--tls-key-file=k"},
			`RELAY_TLS_CERT_FILE (--tls-cert-file) is "": allowed is a PEM file, since RELAY_TLS_PORT is set`},
		{"TLS without key", []string{"--tls-port=0", "--tls-cert-file=c"},
			`RELAY_TLS_KEY_FILE (--tls-key-file) is "": allowed is a PEM file, since RELAY_TLS_PORT is set`},
		{"certificate without TLS", []string{"--tls-cert-file=c"},
			`RELAY_TLS_CERT_FILE (--tls-cert-file) is "c": allowed is nothing while RELAY_TLS_PORT is off: nobody would be served by TLS`},
		{"key without TLS", []string{"--tls-key-file=k"},
			`RELAY_TLS_KEY_FILE (--tls-key-file) is "k": allowed is nothing while RELAY_TLS_PORT is off: nobody would be served by TLS`},
		{"proxies without their protocol", []string{"--trusted-proxies=10.1.2.3/8,::1"},
			`RELAY_TRUSTED_PROXIES (--trusted-proxies) is "10.0.0.0/8,::1/128": allowed is nothing while RELAY_PROXY_PROTOCOL is off: no connection would be checked`},
		{"proxies with their protocol", []string{"--trusted-proxies=::1", "--proxy-protocol=on"}, ""},
		{"short token", []string{"--admin-token=abc"},
			`RELAY_ADMIN_TOKEN (--admin-token) is "***": allowed is 8 to 4096 printable ASCII characters without blank`},
		{"address without a port", redisWith("--redis-addr=se:cret@localhost"),
			`RELAY_REDIS_ADDR (--redis-addr) is "***": ` + addrAllowed + ` (address 1: has a port that is no number of 1 to 65535)`},
		{"comma in a password", redisWith("--redis-addr=redis://u:se,cret@localhost:6379"),
			`RELAY_REDIS_ADDR (--redis-addr) is "***": ` + addrAllowed + ` (address 1: is no URL: in a password, characters such as @ / % are written as %40 %2F %25)`},
		{"too many addresses", redisWith("--redis-addr=" + strings.Repeat("a:1,", 64) + "a:1"),
			`RELAY_REDIS_ADDR (--redis-addr) is "***": ` + addrAllowed},
		{"store without an address", redisWith(),
			`RELAY_REDIS_ADDR (--redis-addr) is "": allowed is host:port of the store, since RELAY_STATE_BACKEND is redis`},
		{"address without a store", []string{"--redis-addr=redis://u:secret@a:1/2,redis://u:secret@b:2/2"},
			`RELAY_REDIS_ADDR (--redis-addr) is "***": ` + addrAllowed + ` (a cluster has database 0 only)`},
		{"address of a store that is not asked", []string{"--redis-addr=redis://u:secret@a:1/2"},
			`RELAY_REDIS_ADDR (--redis-addr) is "a:1": allowed is nothing while RELAY_STATE_BACKEND is memory: each relay would still count by itself`},
		{"lanes without a store", []string{"--redis-lanes=1"},
			`RELAY_REDIS_LANES (--redis-lanes) is "1": allowed is nothing while RELAY_STATE_BACKEND is memory: each relay would still count by itself`},
		{"tags without a store", []string{"--redis-tags=1"},
			`RELAY_REDIS_TAGS (--redis-tags) is "1": allowed is nothing while RELAY_STATE_BACKEND is memory: each relay would still count by itself`},
		{"pending without a store", []string{"--redis-max-pending=1"},
			`RELAY_REDIS_MAX_PENDING (--redis-max-pending) is "1": allowed is nothing while RELAY_STATE_BACKEND is memory: each relay would still count by itself`},
		{"outage without a store", []string{"--store-outage=local"},
			`RELAY_STORE_OUTAGE (--store-outage) is "local": allowed is nothing while RELAY_STATE_BACKEND is memory: each relay would still count by itself`},
		{"usual outage without a store", []string{"--store-outage=refuse"}, ""},
		{"token with a blank", []string{"--admin-token=abcdefgh ijkl"},
			`RELAY_ADMIN_TOKEN (--admin-token) is "***": allowed is 8 to 4096 printable ASCII characters without blank`},
	} {
		_, wrong := parse(t, tt.args...)
		if wrong != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, wrong, tt.want)
		}
		if strings.Contains(wrong, "cret") {
			t.Errorf("%s: %q tells the password", tt.name, wrong)
		}
	}
}

func TestRuntimeSettings(t *testing.T) {
	for _, tt := range []struct{ name, value, want string }{
		{"GOGC", "", ""}, {"GOGC", "off", ""}, {"GOGC", "400", ""}, {"GOMAXPROCS", "2", ""}, {"GOMAXPROCS", "", ""},
		{"GOGC", "much", `GOGC is "much": allowed is off or a whole number, 0 or more`},
		{"GOGC", "-1", `GOGC is "-1": allowed is off or a whole number, 0 or more`},
		{"GOMAXPROCS", "0", `GOMAXPROCS is "0": allowed is a whole number, 1 or more`},
		{"GOMAXPROCS", "all", `GOMAXPROCS is "all": allowed is a whole number, 1 or more`},
	} {
		got := ""
		if err := checkRuntime(func(name string) string { return map[string]string{tt.name: tt.value}[name] }); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s=%s: %q, want %q", tt.name, tt.value, got, tt.want)
		}
	}
}

func TestFlagWinsAndEmptyIsUnset(t *testing.T) {
	t.Setenv("RELAY_PORT", "1")
	t.Setenv("RELAY_CONTROL_PORT", "")
	t.Setenv("RELAY_MAX_CONNS", " ")
	s, wrong := parse(t, "--port=2")
	if wrong != "" || s.Port != 2 || s.ControlPort != 8081 || s.MaxConns != 0 {
		t.Errorf("%q, %+v", wrong, s)
	}
}

func TestOtherCommandsIgnoreSettings(t *testing.T) {
	t.Setenv("RELAY_PORT", "nonsense")
	var out, err bytes.Buffer
	if code := run([]string{"version"}, streams{&out, &err}); code != exitOK || !strings.HasPrefix(out.String(), "relay ") {
		t.Errorf("exit %d: %q %q", code, out.String(), err.String())
	}
}

// TestDemoTakesNoCatalog wants the flag refused and the variable told: it may be
// set for a relay beside.
func TestDemoTakesNoCatalog(t *testing.T) {
	var out, err bytes.Buffer
	code := run([]string{"demo", "--port=0", "--control-port=off", "--catalog=mine.yaml"}, streams{&out, &err})
	if want := "relay: RELAY_CATALOG (--catalog) is \"mine.yaml\": allowed is nothing with relay demo, which has a catalog of its own\n"; code != exitUsage || err.String() != want || out.Len() != 0 {
		t.Errorf("exit %d, %q %q", code, out.String(), err.String())
	}
	var told bytes.Buffer
	log := slog.New(slog.NewTextHandler(&told, nil))
	for value, want := range map[string]int{"": 0, "mine.yaml": 1} {
		told.Reset()
		warnCatalog(log, value)
		if strings.Count(told.String(), "RELAY_CATALOG") != want {
			t.Errorf("RELAY_CATALOG=%s: %q", value, told.String())
		}
	}
}

func TestVersion(t *testing.T) {
	texts := map[string]bool{}
	for _, arg := range []string{"version", "--version"} {
		var out, err bytes.Buffer
		if code := run([]string{arg}, streams{&out, &err}); code != exitOK || err.Len() != 0 || !strings.HasPrefix(out.String(), "relay ") {
			t.Errorf("%s: exit %d, %q %q", arg, code, out.String(), err.String())
		}
		texts[out.String()] = true
	}
	if len(texts) != 1 {
		t.Errorf("the two differ: %v", texts)
	}
}

func TestUnknownVariables(t *testing.T) {
	var c commands
	parser, err := newParser(&c, &valueReader{}, streams{})
	if err != nil {
		t.Fatal(err)
	}
	got := unknownVariables(parser.Model, []string{
		"RELAY_PROT=1", "RELAY_PORT=1", "HOME=/", "RELAY_DATA_DIR=x", "RELAY_CATALOGUE=y", "MY_RELAY_X=1",
	})
	if want := (variables{"RELAY_CATALOGUE", "RELAY_PROT"}); !reflect.DeepEqual(got, want) {
		t.Errorf("unknown are %q, want %q", got, want)
	}
}

func TestUsageErrors(t *testing.T) {
	for _, args := range [][]string{{}, {"sevre"}, {"serve", "--prot=1"}, {"check"}, {"serve", "extra"}} {
		var out, err bytes.Buffer
		if code := run(args, streams{&out, &err}); code != exitUsage {
			t.Errorf("%q: exit code %d", args, code)
		}
		if lines := strings.Count(err.String(), "\n"); lines != 1 || !strings.HasPrefix(err.String(), "relay: ") {
			t.Errorf("%q: stderr is %q", args, err.String())
		}
	}
}

// settingNames are the variables of all settings.
func settingNames(t *testing.T) []string {
	t.Helper()
	var names []string
	for i := range reflect.TypeFor[Settings]().NumField() {
		name := reflect.TypeFor[Settings]().Field(i).Tag.Get("env")
		if name == "" {
			t.Fatalf("%s has no variable", reflect.TypeFor[Settings]().Field(i).Name)
		}
		names = append(names, name)
	}
	return names
}

// TestSettingsDocumented wants a row in the operating guide for each setting,
// with its default, and no row without a setting.
func TestSettingsDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "operating.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{} // variable: its default
	for _, m := range regexp.MustCompile("(?m)^\\| `(RELAY_[A-Z0-9_]+)` \\| ([^|]*) \\|").FindAllStringSubmatch(string(text), -1) {
		rows[m[1]] = strings.Trim(m[2], " `")
	}
	known := map[string]bool{}
	for i := range reflect.TypeFor[Settings]().NumField() {
		tag := reflect.TypeFor[Settings]().Field(i).Tag
		name := tag.Get("env")
		known[name] = true
		told, ok := rows[name]
		if !ok {
			t.Errorf("docs/operating.md has no row for %s", name)
		} else if value := tag.Get("default"); value != "" && told != value {
			t.Errorf("docs/operating.md says that the default of %s is %q, want %q", name, told, value)
		}
	}
	for name := range rows {
		if !known[name] {
			t.Errorf("docs/operating.md tells of %s, which is no setting", name)
		}
	}
}
