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
