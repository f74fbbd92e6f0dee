package upstream

import (
	"testing"

	"relay/store/catalog"
	"relay/upstream/wire"
)

// A hostSpec makes a host with one key per weight, and a binding to it.
type hostSpec struct {
	name     string
	shape    catalog.Shape
	priority int
	weight   int
	keys     []int
}

func modelOf(specs ...hostSpec) *catalog.Model {
	m := &catalog.Model{Name: "m"}
	for i, s := range specs {
		h := &catalog.Host{Name: s.name, ID: i, Shape: s.shape}
		for k, w := range s.keys {
			h.Keys = append(h.Keys, &catalog.HostKey{Name: s.name + string(rune('1'+k)), Host: h, Weight: w})
		}
		m.Bindings = append(m.Bindings, &catalog.Binding{Model: m, Host: h, Priority: s.priority, Weight: s.weight})
	}
	return m
}

func one(w int) []int { return []int{w} }

// walk is the set of host keys that one request may try at each step, told by
// trying until nothing is left.
func TestPickWalk(t *testing.T) {
	for _, tt := range []struct {
		name  string
		shape wire.Shape
		model *catalog.Model
		steps []string // names of keys; those of one step may come in any order
	}{
		{"no bindings", wire.OpenAI, modelOf(), nil},
		{"one", wire.OpenAI, modelOf(hostSpec{"a", wire.OpenAI, 0, 1, one(1)}), []string{"a1"}},
		{"another shape", wire.Anthropic, modelOf(hostSpec{"a", wire.OpenAI, 0, 1, one(1)}), nil},
		{"shape before priority", wire.OpenAI,
			modelOf(hostSpec{"a", wire.Anthropic, 0, 9, one(1)}, hostSpec{"b", wire.OpenAI, 5, 1, one(1)}), []string{"b1"}},
		{"a host without keys", wire.OpenAI,
			modelOf(hostSpec{"a", wire.OpenAI, 0, 9, nil}, hostSpec{"b", wire.OpenAI, 1, 1, one(1)}), []string{"b1"}},
		{"by priority", wire.OpenAI,
			modelOf(hostSpec{"a", wire.OpenAI, 0, 1, one(1)}, hostSpec{"b", wire.OpenAI, 1, 100, one(1)}, hostSpec{"c", wire.OpenAI, 7, 1, one(1)}),
			[]string{"a1", "b1", "c1"}},
		{"keys before the next priority", wire.OpenAI,
			modelOf(hostSpec{"a", wire.OpenAI, 0, 1, []int{1, 1, 1}}, hostSpec{"b", wire.OpenAI, 1, 1, one(1)}),
			[]string{"a1a2a3", "a1a2a3", "a1a2a3", "b1"}},
		{"equal priority", wire.OpenAI,
			modelOf(hostSpec{"a", wire.OpenAI, 3, 1, []int{1, 5}}, hostSpec{"b", wire.OpenAI, 3, 1, one(1)}, hostSpec{"c", wire.Anthropic, 3, 1, one(1)}),
			[]string{"a1a2b1", "a1a2b1", "a1a2b1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for seed := range uint64(50) {
				o := NewRotation(seed)
				var tried Tried
				seen := map[string]bool{}
				for _, want := range tt.steps {
					b, k, ok := Pick(tt.model, tt.shape, o, &tried)
					if !ok || b.Host != k.Host || !contains(want, k.Name) || seen[k.Name] {
						t.Fatalf("seed %d: picked %v, %t, want one of %s", seed, k, ok, want)
					}
					seen[k.Name] = true
					tried.Add(b, k)
				}
				if b, k, ok := Pick(tt.model, tt.shape, o, &tried); ok || b != nil || k != nil {
					t.Fatalf("seed %d: picked %v after all", seed, k)
				}
				tried.Reset()
				if _, _, ok := Pick(tt.model, tt.shape, o, &tried); ok != (len(tt.steps) > 0) {
					t.Fatalf("seed %d: %t after a reset", seed, ok)
				}
			}
		})
	}
}

func contains(step, name string) bool {
	for ; len(step) >= 2; step = step[2:] {
		if step[:2] == name {
			return true
		}
	}
	return false
}

// Two bindings of one host are two ways: its key may be tried by both.
func TestPickSameHostTwice(t *testing.T) {
	m := modelOf(hostSpec{"a", wire.OpenAI, 0, 1, one(1)})
	second := *m.Bindings[0]
	second.Priority = 1
	m.Bindings = append(m.Bindings, &second)
	var tried Tried
	o := NewRotation(1)
	for i, want := range m.Bindings {
		b, k, ok := Pick(m, wire.OpenAI, o, &tried)
		if !ok || b != want {
			t.Fatalf("step %d: %t", i, ok)
		}
		tried.Add(b, k)
	}
}

func TestPickBound(t *testing.T) {
	keys := make([]int, TriedMax+5)
	for i := range keys {
		keys[i] = 1
	}
	m := modelOf(hostSpec{"a", wire.OpenAI, 0, 1, keys})
	var tried Tried
	o := NewRotation(1)
	for range TriedMax {
		b, k, ok := Pick(m, wire.OpenAI, o, &tried)
		if !ok {
			t.Fatal("stopped early")
		}
		tried.Add(b, k)
	}
	if _, _, ok := Pick(m, wire.OpenAI, o, &tried); ok {
		t.Fatal("no end")
	}
	defer func() {
		if recover() == nil {
			t.Error("more pairs than there is room for")
		}
	}()
	tried.Add(m.Bindings[0], m.Bindings[0].Host.Keys[0])
}

// Keys share exactly by weight within a round, and bindings nearly so over many
// requests.
func TestPickShares(t *testing.T) {
	const rounds = 1000
	for _, keys := range [][]int{{1, 1}, {1, 1, 1}, {3, 1}, {5, 3, 2}, {1, 9, 1, 9}, {100, 100, 100}, {1000000, 1}} {
		m := modelOf(hostSpec{"a", wire.OpenAI, 0, 1, keys})
		total := 0
		for _, w := range keys {
			total += w
		}
		if total > 1000 {
			total = 1000 // one round of such weights is too long: look at its start
		}
		got := map[*catalog.HostKey]int{}
		o := NewRotation(9)
		var none Tried
		for range total {
			_, k, _ := Pick(m, wire.OpenAI, o, &none)
			got[k]++
		}
		for i, k := range m.Bindings[0].Host.Keys {
			if want := keys[i]; keys[0] < 1000 && got[k] != want {
				t.Errorf("weights %v: key %d was taken %d times in a round", keys, i, got[k])
			}
		}
		if keys[0] > 1000 && got[m.Bindings[0].Host.Keys[0]] < total-1 {
			t.Errorf("weights %v: the light key was taken too often", keys)
		}
	}
	m := modelOf(hostSpec{"a", wire.OpenAI, 0, 7, one(1)}, hostSpec{"b", wire.OpenAI, 0, 2, one(1)}, hostSpec{"c", wire.OpenAI, 0, 1, one(1)})
	got := map[*catalog.Binding]int{}
	o := NewRotation(3)
	var none Tried
	for range 10 * rounds {
		b, _, _ := Pick(m, wire.OpenAI, o, &none)
		got[b]++
	}
	for _, b := range m.Bindings {
		if want := b.Weight * rounds; got[b] < want*9/10 || got[b] > want*11/10 {
			t.Errorf("weight %d: %d of %d", b.Weight, got[b], 10*rounds)
		}
	}
}

// A heavy key is not taken many times in a row while a lighter one waits.
func TestPickInterleaves(t *testing.T) {
	m := modelOf(hostSpec{"a", wire.OpenAI, 0, 1, []int{50, 50}})
	o := NewRotation(1)
	var none Tried
	var last *catalog.HostKey
	run := 0
	for range 1000 {
		_, k, _ := Pick(m, wire.OpenAI, o, &none)
		if k == last {
			run++
		} else {
			last, run = k, 1
		}
		if run > 2 {
			t.Fatal("the same key three times in a row")
		}
	}
}

func TestPickIsRepeatable(t *testing.T) {
	m := modelOf(hostSpec{"a", wire.OpenAI, 0, 2, []int{1, 2}}, hostSpec{"b", wire.OpenAI, 0, 3, []int{4, 1}})
	var none Tried
	first, second, other := NewRotation(5), NewRotation(5), NewRotation(6)
	differs := false
	for range 100 {
		_, a, _ := Pick(m, wire.OpenAI, first, &none)
		_, b, _ := Pick(m, wire.OpenAI, second, &none)
		_, c, _ := Pick(m, wire.OpenAI, other, &none)
		if a != b {
			t.Fatal("equal seeds, other picks")
		}
		differs = differs || a != c
	}
	if !differs {
		t.Error("other seeds, equal picks")
	}
}

func TestStride(t *testing.T) {
	for total := uint64(1); total < 2000; total++ {
		step := stride(total)
		if step < 1 || step > total || gcd(step, total) != 1 {
			t.Fatalf("stride(%d) = %d", total, step)
		}
	}
	if step := stride(10_000 * 1_000_000); gcd(step, 10_000*1_000_000) != 1 {
		t.Fatalf("stride of the largest pool is %d", step)
	}
}

func TestPickAllocs(t *testing.T) {
	m := modelOf(hostSpec{"a", wire.OpenAI, 0, 2, []int{1, 2, 3}}, hostSpec{"b", wire.OpenAI, 0, 3, []int{4, 1}})
	o := NewRotation(5)
	var tried Tried
	if n := testing.AllocsPerRun(1000, func() {
		tried.Reset()
		for range 3 {
			b, k, _ := Pick(m, wire.OpenAI, o, &tried)
			tried.Add(b, k)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
