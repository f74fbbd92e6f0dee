package admit

import (
	"math"
	"sync"
	"sync/atomic"
	"testing"
)

func TestInflightCap(t *testing.T) {
	f := NewInflight(2)
	for i, want := range []bool{true, true, false} {
		if f.Acquire() != want {
			t.Fatalf("acquire %d, want %t", i, want)
		}
	}
	f.Release()
	if n, limit := f.Load(); n != 1 || limit != 2 {
		t.Fatalf("%d of %d in flight", n, limit)
	}
	if !f.Acquire() || f.Acquire() {
		t.Fatal("a slot that came back is one slot")
	}
}

func TestInflightConcurrent(t *testing.T) {
	const limit, workers, rounds = 3, 8, 20_000
	f := NewInflight(limit)
	var in, peak, granted atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range rounds {
				if !f.Acquire() {
					continue
				}
				granted.Add(1)
				n := in.Add(1)
				for p := peak.Load(); n > p && !peak.CompareAndSwap(p, n); p = peak.Load() {
				}
				in.Add(-1)
				f.Release()
			}
		})
	}
	wg.Wait()
	if peak.Load() > limit {
		t.Errorf("%d in flight at a time, cap %d", peak.Load(), limit)
	}
	if n, _ := f.Load(); n != 0 || granted.Load() == 0 {
		t.Errorf("%d left in flight, %d granted", n, granted.Load())
	}
}

func TestInflightBugs(t *testing.T) {
	f := NewInflight(1)
	for name, act := range map[string]func(){
		"release too much": f.Release,
		"no cap":           func() { NewInflight(0) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			act()
		}()
	}
	if !f.Acquire() || f.Acquire() {
		t.Error("the count is off after a release too much")
	}
}

func TestHardCap(t *testing.T) {
	for _, tt := range []struct{ setting, memoryBytes, want int64 }{
		{7, 1 << 40, 7},
		{1 << 40, 1, 1 << 40},
		{0, 0, InflightMin},
		{0, 512 << 20, 3276},
		{0, 64 << 30, 419430},
		{-1, 64 << 30, 419430},
		{0, math.MaxInt64, 56294995342131},
	} {
		if got := HardCap(tt.setting, tt.memoryBytes); got != tt.want {
			t.Errorf("HardCap(%d, %d) = %d, want %d", tt.setting, tt.memoryBytes, got, tt.want)
		}
	}
}
