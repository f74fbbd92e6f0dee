package catalog

import (
	"fmt"
	"testing"
)

// BenchmarkModel looks a name up among 10,000 globs that it does not match
// exactly: the cost is that of the distinct lengths, not of the globs.
func BenchmarkModel(b *testing.B) {
	models := make([]ModelEntry, 10_000)
	for i := range models {
		models[i] = ModelEntry{Name: Give(fmt.Sprintf("model-%d", i)), Aliases: texts(fmt.Sprintf("model-%d-*", i))}
	}
	tables := compile(b, sample(models, PolicyEntry{Name: Give("p0"), Models: texts("*")}))
	for _, name := range []string{"model-7777", "model-7777-2026-01-01", "unknown-model"} {
		b.Run(name, func(b *testing.B) {
			asked := []byte(name)
			b.ReportAllocs() // budget 0, enforced by TestLookupAllocs
			for b.Loop() {
				tables.Model(asked)
			}
		})
	}
}
