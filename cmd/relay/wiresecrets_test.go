//go:build integration

package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWireSecretsStayIn makes requests of every kind and looks for relay keys,
// their hashes and host credentials everywhere but where they belong.
func TestWireSecretsStayIn(t *testing.T) {
	const admin = "admin-token-5f1c"
	g := startGateway(t, "RELAY_LOG_LEVEL=debug", "RELAY_ADMIN_TOKEN="+admin)
	const unknown = "rk-unknown-0123456789"
	keys := []string{keyWide, keyTight, keyNarrow, keyExpired, keyDisabled, unknown}
	var told strings.Builder // all that callers got
	for _, key := range keys {
		for _, r := range []struct{ path, body string }{
			{chatPath, chatBody}, {chatPath, chatStreamBody}, {messagePath, messageBody}, {chatPath, `{"model":`},
			{chatPath, strings.Replace(chatBody, "gpt-mock", "nothing", 1)}, {chatPath + "?mock=status=401", chatBody},
			{chatPath + "?mock=status=429", chatBody}, {chatPath + "?mock=reset", chatBody}, {messagePath + "?mock=status=403", messageBody},
			{chatPath, strings.Replace(chatBody, "gpt-mock", "dead-mock", 1)},
		} {
			for _, field := range []string{"X-None: 1", "x-api-key: " + key, "Cookie: k=" + key} {
				a := g.call("POST", r.path, key, r.body, field)
				fmt.Fprintln(&told, a.Header, a.body)
			}
		}
		fmt.Fprintln(&told, g.call("GET", "/v1/models", key, "").body)
	}
	fmt.Fprintln(&told, g.page("/metrics"), g.page("/readyz"), g.page("/debug/pprof/cmdline"))
	rows, code := g.runs(nil, "usage", "tail", "--json", "--data-dir", g.data)
	if code != 0 {
		t.Fatalf("usage tail: %s", rows)
	}
	spool := ""
	err := filepath.WalkDir(g.data, func(name string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			var b []byte
			b, err = os.ReadFile(name)
			spool += string(b)
		}
		return err
	})
	if err != nil || len(spool) == 0 {
		t.Fatalf("spool: %d bytes, %v", len(spool), err)
	}
	heads := ""
	for _, r := range append(g.openai.Requests(), g.anthropic.Requests()...) {
		heads += string(r.Head) + string(r.Body)
	}
	if !strings.Contains(heads, hostSecret) {
		t.Error("the hosts got no credential: the test looks at the wrong place")
	}
	places := map[string]string{"answers and pages": told.String(), "log": g.log.text(), "rows": rows, "spool": spool, "requests to hosts": heads}
	for place, text := range places {
		for _, key := range keys {
			hash := fmt.Sprintf("%x", sha256.Sum256([]byte(key)))
			if strings.Contains(text, key) || strings.Contains(text, hash) {
				t.Errorf("a relay key or its hash is in: %s", place)
			}
		}
		if place != "requests to hosts" && strings.Contains(text, hostSecret) {
			t.Errorf("a host credential is in: %s", place)
		}
		if strings.Contains(text, admin) {
			t.Errorf("the admin token is in: %s", place)
		}
	}
}

func TestWireNoRetryOfWork(t *testing.T) {
	g := startGateway(t)
	for _, mock := range []string{"close", "reset"} {
		before := len(g.openai.Requests())
		wantError(t, mock, g.call("POST", chatPath+"?mock="+mock, keyWide, chatBody), chatPath, 502)
		if n := len(g.openai.Requests()) - before; n != 1 {
			t.Errorf("%s: the host got the request %d times", mock, n)
		}
	}
}
