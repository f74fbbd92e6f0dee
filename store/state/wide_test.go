package state

import (
	"math/big"
	"math/rand/v2"
	"testing"
)

func (w wide) big() *big.Int {
	return new(big.Int).Add(new(big.Int).Lsh(new(big.Int).SetUint64(w.hi), 64), new(big.Int).SetUint64(w.lo))
}

// random is a number of any length up to n bits.
func randomBits(rnd *rand.Rand, n int) uint64 { return rnd.Uint64() >> (64 - 1 - rnd.IntN(n)) }

func TestWide(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 20_000 {
		a, b := randomBits(rnd, 55), randomBits(rnd, 53)
		x := product(a, b)
		if x.big().Cmp(new(big.Int).Mul(new(big.Int).SetUint64(a), new(big.Int).SetUint64(b))) != 0 {
			t.Fatalf("%d * %d = %v", a, b, x.big())
		}
		y := product(randomBits(rnd, 55), randomBits(rnd, 53))
		if x.plus(y).big().Cmp(new(big.Int).Add(x.big(), y.big())) != 0 {
			t.Fatalf("%v + %v = %v", x.big(), y.big(), x.plus(y).big())
		}
		want := new(big.Int).Sub(x.big(), y.big())
		if want.Sign() < 0 {
			want.SetInt64(0)
		}
		if x.minus(y).big().Cmp(want) != 0 {
			t.Fatalf("%v - %v = %v", x.big(), y.big(), x.minus(y).big())
		}
		if x.atMost(y) != (x.big().Cmp(y.big()) <= 0) {
			t.Fatalf("%v <= %v = %t", x.big(), y.big(), x.atMost(y))
		}
		if b > 0 {
			part := product(a, b).plus(wide{0, randomBits(rnd, 53) % b})
			q, rest := new(big.Int).QuoRem(part.big(), new(big.Int).SetUint64(b), new(big.Int))
			if rest.Sign() > 0 {
				q.Add(q, big.NewInt(1))
			}
			if got := part.ceilDiv(b); got != q.Int64() {
				t.Fatalf("%v / %d = %d, want %v", part.big(), b, got, q)
			}
		}
	}
}

func TestLevelRescale(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for range 20_000 {
		amount := int64(randomBits(rnd, 53)) + 1
		from, to := int64(randomBits(rnd, 55))+1, int64(randomBits(rnd, 55))+1
		l := level{product(uint64(rnd.Int64N(amount)), uint64(from)).plus(wide{0, uint64(rnd.Int64N(from))})}
		want := new(big.Int).Mul(l.big(), big.NewInt(to))
		q, rest := new(big.Int).QuoRem(want, big.NewInt(from), new(big.Int))
		if rest.Sign() > 0 {
			q.Add(q, big.NewInt(1))
		}
		if got := l.rescale(from, to); got.big().Cmp(q) != 0 {
			t.Fatalf("%v from %d to %d: %v, want %v", l.big(), from, to, got.big(), q)
		}
	}
}
