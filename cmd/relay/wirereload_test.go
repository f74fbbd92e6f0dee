//go:build integration

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestWireReload takes a catalog from good to bad to good. The bad one changes
// nothing, and /readyz tells both what is live and what went wrong.
func TestWireReload(t *testing.T) {
	g := startGateway(t)
	good := catalogText(g.openai.URL(), g.anthropic.URL(), "")
	await := func(what string, condition func() bool) {
		t.Helper()
		if !eventually(5*time.Second, condition) {
			t.Fatalf("%s: %+v", what, g.readiness())
		}
	}
	if r := g.readiness(); !r.Ready || r.Generation != 1 || r.LastError != "" {
		t.Fatalf("at the start: %+v", r)
	}
	added := strings.Replace(good, "policies:\n", "  - name: gpt-added\n    bindings: [{host: o, upstream_model: gpt-mock}]\npolicies:\n", 1)
	body := strings.Replace(chatBody, "gpt-mock", "gpt-added", 1)
	wantError(t, "before", g.call("POST", chatPath, keyWide, body), chatPath, 404)
	g.writeCatalog(added)
	await("a good catalog", func() bool { return g.readiness().Generation == 2 })
	if a := g.call("POST", chatPath, keyWide, body); a.StatusCode != 200 {
		t.Errorf("after: %d %s", a.StatusCode, a.body)
	}
	g.writeCatalog(strings.Replace(added, "shape: openai", "shape: opensesame", 1))
	await("a bad catalog", func() bool { return g.readiness().LastError != "" })
	if r := g.readiness(); !r.Ready || r.Generation != 2 || !strings.Contains(r.LastError, ":3: ") {
		t.Errorf("with a bad catalog: %+v", r)
	}
	m := g.metrics()
	if m["relay_catalog_last_reload_ok"] != 0 || m["relay_catalog_reload_failures_total"] != 1 || m["relay_catalog_generation"] != 2 {
		t.Errorf("metrics: %v %v %v", m["relay_catalog_last_reload_ok"], m["relay_catalog_reload_failures_total"], m["relay_catalog_generation"])
	}
	if a := g.call("POST", chatPath, keyWide, body); a.StatusCode != 200 {
		t.Errorf("what was live is gone: %d", a.StatusCode)
	}
	g.writeCatalog(good)
	await("a good one again", func() bool { r := g.readiness(); return r.Generation == 3 && r.LastError == "" })
	wantError(t, "at the end", g.call("POST", chatPath, keyWide, body), chatPath, 404)
	if n := strings.Count(g.log.text(), `"msg":"catalog live"`); n != 3 {
		t.Errorf("3 generations are logged %d times", n)
	}
}

// TestWireReloadTakesKeysAway removes a key while a stream of it runs: the
// stream goes on, the next request is refused.
func TestWireReloadTakesKeysAway(t *testing.T) {
	g := startGateway(t)
	good := catalogText(g.openai.URL(), g.anthropic.URL(), "")
	s := g.stream(chatPath+"?mock=tick=50ms,events=30", keyNarrow, chatStreamBody)
	s.event()
	var kept []string
	for line := range strings.Lines(good) {
		if !strings.Contains(line, "{name: narrow, sha256") {
			kept = append(kept, line)
		}
	}
	g.writeCatalog(strings.Join(kept, ""))
	if !eventually(2*time.Second, func() bool {
		return g.call("POST", chatPath, keyNarrow, chatBody).StatusCode == 401
	}) {
		t.Error("a removed key is still accepted after 2 s")
	}
	if events, cut := s.rest(); cut != nil || len(events) == 0 || events[len(events)-1] != "[DONE]" {
		t.Errorf("its stream ended early: %v", cut)
	}
}

func TestWireReloadBySignalAndSymlink(t *testing.T) {
	g := prepareGateway(t)
	text := catalogText(g.openai.URL(), g.anthropic.URL(), "")
	for _, version := range []string{"v1", "v2"} {
		if err := os.MkdirAll(filepath.Join(g.folder, version), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	secret := filepath.Join(g.folder, "secret")
	text = strings.Replace(text, `"plain:`+hostSecret+`-o"`, `"file:`+secret+`"`, 1)
	write := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(secret, hostSecret+"-first\n")
	write(filepath.Join(g.folder, "v1", "relay.yaml"), text)
	write(filepath.Join(g.folder, "v2", "relay.yaml"), strings.Replace(text, "gpt-alias", "gpt-other", 1))
	// As a mounted configuration is swapped: a link to a folder changes.
	link := func(version string) {
		if err := os.Symlink(version, filepath.Join(g.folder, "next")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(g.folder, "next"), filepath.Join(g.folder, "current")); err != nil {
			t.Fatal(err)
		}
	}
	link("v1")
	if err := os.Symlink("current/relay.yaml", g.catalog); err != nil {
		t.Fatal(err)
	}
	g.start()
	link("v2")
	if !eventually(5*time.Second, func() bool { return g.readiness().Generation == 2 }) {
		t.Fatalf("after the swap: %+v", g.readiness())
	}
	credential := func() string {
		g.call("POST", chatPath, keyWide, chatBody)
		requests := g.openai.Requests()
		return strings.Join(fieldsOf(requests[len(requests)-1].Head)["authorization"], " ")
	}
	if got := credential(); got != "Bearer "+hostSecret+"-first" {
		t.Errorf("credential is %q", got)
	}
	write(secret, hostSecret+"-second\n")
	g.signal(syscall.SIGHUP)
	if !eventually(5*time.Second, func() bool { return g.readiness().Generation == 3 }) {
		t.Fatalf("after SIGHUP: %+v", g.readiness())
	}
	if got := credential(); got != "Bearer "+hostSecret+"-second" {
		t.Errorf("credential is %q", got)
	}
}
