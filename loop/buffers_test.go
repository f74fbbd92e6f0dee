package loop

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestBuffersModel: what is charged is at any time the capacity of what is
// out, contents survive growing, and what is kept is bounded.
func TestBuffersModel(t *testing.T) {
	for seed := range uint64(10) {
		rng := rand.New(rand.NewPCG(seed, 2))
		b := buffers{budget: 1 << 30}
		var out [][]byte
		sizes := []int{0, 1, 1023, 1024, 1025, 5000, 64 << 10, 64<<10 + 1, 300 << 10}
		for step := range 2000 {
			size := sizes[rng.IntN(len(sizes))]
			switch k := rng.IntN(4); {
			case k == 0 || len(out) == 0:
				p := b.take(size)
				if len(p) != 0 || cap(p) < size {
					t.Fatalf("take(%d) has length %d, capacity %d", size, len(p), cap(p))
				}
				out = append(out, p)
			case k == 1:
				i := rng.IntN(len(out))
				was := append([]byte(nil), out[i]...)
				p := b.grow(out[i], size)
				if cap(p)-len(p) < size || !bytes.Equal(p, was) {
					t.Fatalf("grow by %d has room for %d", size, cap(p)-len(p))
				}
				out[i] = append(p, bytes.Repeat([]byte{byte(step)}, min(size, 2000))...)
			case k == 2: // append beyond the capacity, as an encoder may
				i := rng.IntN(len(out))
				was := cap(out[i])
				out[i] = append(out[i], make([]byte, min(size, 9000))...)
				b.recharge(out[i], was)
			default:
				i := rng.IntN(len(out))
				b.give(out[i])
				out[i] = out[len(out)-1]
				out = out[:len(out)-1]
			}
			var used int64
			for _, p := range out {
				used += int64(cap(p))
			}
			if b.used != used || b.kept > pooledBytesMax || b.kept < 0 {
				t.Fatalf("seed %d, step %d: %d bytes charged, %d are out; %d kept", seed, step, b.used, used, b.kept)
			}
		}
	}
}

func TestBuffersReuse(t *testing.T) {
	var b buffers
	p := append(b.take(3000), "text"...)
	b.give(p)
	q := b.take(2049)
	if &q[:1][0] != &p[0] || len(q) != 0 {
		t.Error("a buffer of the class is not used again")
	}
	b.give(nil)
	if b.used != int64(cap(q)) {
		t.Errorf("%d bytes charged, %d are out", b.used, cap(q))
	}
}

func TestBuffersKeepBounded(t *testing.T) {
	var b buffers
	var out [][]byte
	for range 2 * pooledBytesMax / (64 << 10) {
		out = append(out, b.take(64<<10))
	}
	for _, p := range out {
		b.give(p)
	}
	if b.kept != pooledBytesMax || b.used != 0 {
		t.Errorf("%d bytes kept, limit %d; %d charged", b.kept, pooledBytesMax, b.used)
	}
}

func TestBuffersBudget(t *testing.T) {
	b := buffers{budget: 100 << 10}
	if !b.room(100<<10) || b.room(100<<10+1) || b.tight() {
		t.Error("an empty budget is not all room")
	}
	p := b.take(64 << 10)
	if b.room(36<<10+1) || !b.room(36<<10) || !b.tight() {
		t.Error("what is out does not count")
	}
	b.give(p)
	if b.tight() {
		t.Error("what came back counts")
	}
}
