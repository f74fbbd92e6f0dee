package source

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
)

func TestStarter(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-one")
	t.Setenv("ANTHROPIC_API_KEY", "sk-two")
	key, hash := Mint()
	tables, problems := Check(Starter(hash))
	if tables == nil || len(problems) > 0 {
		t.Fatal(problems)
	}
	sum := sha256.Sum256([]byte(key))
	k := tables.RelayKey(&sum)
	if k == nil || !k.Enabled || len(k.Policy.Group.Limits) != 2 {
		t.Fatalf("the minted key is %+v", k)
	}
	for _, name := range []string{"gpt-5", "gpt-5-2026-01-01", "claude-sonnet-4-5-20250929"} {
		if m := tables.Model([]byte(name)); m == nil || !k.Policy.Allows(m) || m.Bindings[0].Price.Output == 0 {
			t.Errorf("%s cannot be used", name)
		}
	}
	want := `2 hosts, 2 host keys, 2 models, 1 policy, 1 account, 1 relay key
gpt-5 (also gpt-5-2*) -> openai:gpt-5
claude-sonnet-4-5 (also claude-sonnet-4-5-*) -> anthropic:claude-sonnet-4-5
`
	if got := Summary(tables); got != want {
		t.Errorf("summary is\n%swant\n%s", got, want)
	}
}

func TestMint(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		key, hash := Mint()
		sum := sha256.Sum256([]byte(key))
		if !strings.HasPrefix(key, "rk-") || len(key) != 46 || strings.ContainsAny(key, "+/=") || hash != hex.EncodeToString(sum[:]) || seen[key] {
			t.Fatalf("minted %s, %s", key, hash)
		}
		seen[key] = true
	}
}

func TestSummaryIsBounded(t *testing.T) {
	t.Setenv("BENCH_SECRET", "sk-bench")
	tables, problems := Check(bigCatalog(1, 200))
	if tables == nil {
		t.Fatal(problems)
	}
	lines := strings.Split(strings.TrimSpace(Summary(tables)), "\n")
	if len(lines) != summaryMax+2 || lines[len(lines)-1] != "… and 150 more models" {
		t.Errorf("%d lines, last %q", len(lines), lines[len(lines)-1])
	}
	if got := route(tables.Models[0]); got != "model-0 (also model-0-*) -> h:model-0\n" {
		t.Errorf("route is %q", got)
	}
	text := goodText(t)
	tables, _ = Check([]byte(text))
	if got := route(tables.Models[0]); got != "gpt-5 (also gpt-5-*, latest) -> openai:gpt-5, then claude:4.10\n" {
		t.Errorf("route is %q", got)
	}
}
