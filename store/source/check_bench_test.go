package source

import (
	"bytes"
	"fmt"
	"testing"

	"go.yaml.in/yaml/v3"

	"relay/store/catalog"
)

// bigCatalog writes a catalog of many relay keys, each with its own policy.
func bigCatalog(keys, models int) []byte {
	var b bytes.Buffer
	b.WriteString("hosts:\n  - {name: h, shape: openai, base_url: \"https://h/v1\", keys: [{name: k, value: env:BENCH_SECRET}]}\nmodels:\n")
	for i := range models {
		fmt.Fprintf(&b, "  - {name: model-%d, aliases: [\"model-%d-*\"], bindings: [{host: h}], price: {input: 1.25, output: 10}}\n", i, i)
	}
	b.WriteString("policies:\n")
	for i := range keys {
		fmt.Fprintf(&b, "  - {name: policy-%d, models: [\"*\"], limits: [{meter: requests, amount: 600, window: 1m}]}\n", i)
	}
	b.WriteString("accounts:\n  - {name: team-a}\nrelay_keys:\n")
	for i := range keys {
		fmt.Fprintf(&b, "  - {name: app-%d, sha256: \"%064x\", account: team-a, policy: policy-%d}\n", i, i+1, i)
	}
	return b.Bytes()
}

// BenchmarkCheck is a catalog of 100,000 relay keys, 100,000 policies and
// 10,000 models: all of it, and the parser's and the compiler's shares.
func BenchmarkCheck(b *testing.B) {
	b.Setenv("BENCH_SECRET", "sk-bench")
	text := bigCatalog(100_000, 10_000)
	b.Run("all", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		b.ReportAllocs()
		for b.Loop() {
			if t, problems := Check(text); t == nil {
				b.Fatal(problems[0])
			}
		}
	})
	b.Run("parse", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			if _, _, wrong := parse(text); wrong != "" {
				b.Fatal(wrong)
			}
		}
	})
	b.Run("decode", func(b *testing.B) {
		node, _, wrong := parse(text)
		if wrong != "" {
			b.Fatal(wrong)
		}
		b.ReportAllocs()
		for b.Loop() {
			decodeNode(b, node)
		}
	})
	b.Run("compile", func(b *testing.B) {
		var problems catalog.Problems
		doc := decode(text, &problems)
		b.ReportAllocs()
		for b.Loop() {
			if t, _ := catalog.Compile(doc, newSecrets().resolve); t == nil {
				b.Fatal("refused")
			}
		}
	})
}

func decodeNode(b *testing.B, node *yaml.Node) {
	var problems catalog.Problems
	if decodeTree(node, &problems) == nil || problems.Failed() {
		b.Fatal(problems.List())
	}
}
