package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckCountsErrors(t *testing.T) {
	t.Setenv("CHECK_KEY", "sk-check")
	const text = `hosts: [{name: h, shape: openai, base_url: "https://h/v1", keys: [{name: k, value: env:CHECK_KEY}]}]
models: [{name: m, bindings: [{host: h}], price: {input: 1}}]
policies: [{name: p, models: ["*"]}]
accounts: [{name: a}]
relay_keys: [{name: r, sha256: "` + "%" + `", account: a, policy: p}]
`
	sound := strings.Replace(text, "%", strings.Repeat("1a", 32), 1)
	for _, tt := range []struct {
		text, want string
		code       int
	}{
		{sound, ": good\n", exitOK},
		{strings.Replace(sound, "shape: openai", "shape: x", 1), ": 1 error, 0 warnings: a relay refuses it\n", exitFailure},
		{sound + "more: 1\nless: 2\n", ": 2 errors, 0 warnings: a relay refuses it\n", exitFailure},
	} {
		file := filepath.Join(t.TempDir(), "relay.yaml")
		if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, err bytes.Buffer
		if code := run([]string{"check", file}, streams{&out, &err}); code != tt.code || !strings.Contains(out.String(), tt.want) {
			t.Errorf("exit %d, want %d and %q: %s%s", code, tt.code, tt.want, out.String(), err.String())
		}
	}
}

// TestCheckTellsOfLimits wants limits that cannot work refused with their line.
func TestCheckTellsOfLimits(t *testing.T) {
	t.Setenv("CHECK_KEY", "sk-check")
	file := filepath.Join(t.TempDir(), "relay.yaml")
	text := `hosts: [{name: h, shape: openai, base_url: "https://h/v1", keys: [{name: k, value: env:CHECK_KEY}]}]
models: [{name: m, bindings: [{host: h}]}]
policies:
  - name: p
    models: ["*"]
    limits:
      - {meter: tokens, amount: 5, window: 0s}
      - {meter: requests, amount: 5, window: 1m, strategy: buckets}
      - {meter: cost, amount: 2.50, window: 1h}
accounts: [{name: a}]
relay_keys: [{name: r, sha256: "` + strings.Repeat("1a", 32) + `", account: a, policy: p}]
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, err bytes.Buffer
	if code := run([]string{"check", file}, streams{&out, &err}); code != exitFailure {
		t.Errorf("exit %d: %s", code, err.String())
	}
	for _, line := range []string{
		":7: policies[0].limits[0].window: is 0s; allowed are 1ms to 8784h0m0s",
		":8: policies[0].limits[1].strategy: is none of: token-bucket, leaky-bucket, fixed-window, sliding-window, session-window, calendar",
		`:9: policies[0].limits[2]: limits cost, and model "m" has no price at host "h"`,
	} {
		if !strings.Contains(out.String(), file+line+"\n") {
			t.Errorf("no line %q in:\n%s", line, out.String())
		}
	}
}
