package loop

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

const tickNs = int64(TickEvery)

// alarm is a timer that notes when it fires, and may do something then.
type alarm struct {
	timer timer
	name  int
	log   *[]int
	act   func()
}

func (a *alarm) onTimer() {
	*a.log = append(*a.log, a.name)
	if a.act != nil {
		a.act()
	}
}

// clockwork is a wheel with some alarms.
type clockwork struct {
	wheel  wheel
	alarms []*alarm
	log    []int
	firing any
}

func newClockwork(n int, nowNs int64) *clockwork {
	k := &clockwork{}
	k.wheel.init(nowNs)
	for i := range n {
		a := &alarm{name: i, log: &k.log}
		a.timer.wakes = a
		k.alarms = append(k.alarms, a)
	}
	return k
}

func (k *clockwork) arm(i int, ns int64)  { k.wheel.arm(&k.alarms[i].timer, ns) }
func (k *clockwork) disarm(i int)         { k.wheel.disarm(&k.alarms[i].timer) }
func (k *clockwork) advance(ns int64)     { k.wheel.advance(ns, &k.firing) }
func (k *clockwork) fired() (names []int) { names, k.log = k.log, nil; return names }

func (k *clockwork) check(t *testing.T, want ...int) {
	t.Helper()
	if got := k.fired(); !slices.Equal(got, want) {
		t.Errorf("fired %v, want %v", got, want)
	}
}

// TestWheelModel holds the wheel against a table of deadlines: every alarm
// fires in the first advance that reaches its tick, in the order of ticks.
func TestWheelModel(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		now := rng.Int64N(int64(24 * time.Hour))
		k := newClockwork(50, now)
		at := now / tickNs
		due := map[int]int64{} // tick by alarm
		for step := range 3000 {
			i := rng.IntN(len(k.alarms))
			switch rng.IntN(10) {
			case 0:
				k.disarm(i)
				delete(due, i)
			case 1, 2, 3, 4, 5:
				ns := now + []int64{-5, 1, tickNs, 300 * tickNs, 5000 * tickNs, 60_000 * tickNs}[rng.IntN(6)]
				ns += rng.Int64N(50 * tickNs)
				k.arm(i, ns)
				due[i] = max((ns+tickNs-1)/tickNs, at+1)
			default:
				now += []int64{0, tickNs / 3, tickNs, 40 * tickNs, 900 * tickNs, 2 * wheelSlots * tickNs}[rng.IntN(6)]
				k.advance(now)
				at = now / tickNs
				var want []int
				for i, tick := range due {
					if tick <= at {
						want = append(want, i)
						delete(due, i)
					}
				}
				got := k.fired()
				slices.Sort(want)
				slices.Sort(got)
				if !slices.Equal(got, want) {
					t.Fatalf("seed %d, step %d: fired %v, want %v", seed, step, got, want)
				}
			}
			if k.wheel.armed != int64(len(due)) {
				t.Fatalf("seed %d, step %d: %d armed, want %d", seed, step, k.wheel.armed, len(due))
			}
		}
	}
}

func TestWheelOrder(t *testing.T) {
	k := newClockwork(5, 0)
	k.arm(3, 4*tickNs)
	k.arm(1, 2*tickNs)
	k.arm(4, 5*tickNs)
	k.arm(0, tickNs+1)
	k.arm(2, 3*tickNs)
	k.advance(tickNs)
	k.check(t)
	k.advance(10 * tickNs)
	k.check(t, 1, 0, 2, 3, 4) // 0 and 1 share a tick: first armed, first fired
}

func TestWheelBeyondOneTurn(t *testing.T) {
	k := newClockwork(2, 0)
	far := int64(3*wheelSlots+7) * tickNs
	k.arm(0, far)
	k.arm(1, 7*tickNs) // the same slot
	for ns := tickNs; ns < far; ns += 100 * tickNs {
		k.advance(ns)
	}
	k.check(t, 1)
	k.advance(far - 1)
	k.check(t)
	k.advance(far)
	k.check(t, 0)
}

// TestWheelRearm moves, arms and disarms timers from inside a firing one.
func TestWheelRearm(t *testing.T) {
	for _, tt := range []struct {
		name       string
		act        func(k *clockwork)
		then, next []int
	}{
		{"itself", func(k *clockwork) { k.arm(0, 20*tickNs) }, []int{0, 1, 2}, []int{0}},
		{"itself in the past", func(k *clockwork) { k.alarms[0].act = nil; k.arm(0, 0) }, []int{0, 1, 2}, []int{0}},
		{"another of the same tick", func(k *clockwork) { k.arm(2, 20*tickNs) }, []int{0, 1}, []int{2}},
		{"another of the same tick to where it is", func(k *clockwork) { k.arm(2, 5*tickNs) }, []int{0, 1, 2}, nil},
		{"disarm one of the same tick", func(k *clockwork) { k.disarm(1) }, []int{0, 2}, nil},
		{"disarm itself", func(k *clockwork) { k.disarm(0) }, []int{0, 1, 2}, nil},
		{"a later one", func(k *clockwork) { k.arm(3, 20*tickNs) }, []int{0, 1, 2}, []int{3}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := newClockwork(4, 0)
			for i := range 3 {
				k.arm(i, 5*tickNs)
			}
			k.alarms[0].act = func() { tt.act(k) }
			k.advance(5 * tickNs)
			k.check(t, tt.then...)
			k.alarms[0].act = nil
			k.advance(20 * tickNs)
			k.check(t, tt.next...)
			if k.wheel.armed != 0 {
				t.Errorf("%d armed", k.wheel.armed)
			}
		})
	}
}

// TestWheelPanic: a panic inside a firing timer loses no other, neither of its
// slot nor of the later ones.
func TestWheelPanic(t *testing.T) {
	k := newClockwork(5, 0)
	for i := range 3 {
		k.arm(i, 5*tickNs)
	}
	k.arm(3, 6*tickNs)
	k.arm(4, 900*tickNs)
	k.alarms[1].act = func() { panic(planted) }
	func() {
		defer func() {
			if recover() != planted || k.firing != k.alarms[1] {
				t.Errorf("the blame is on %v", k.firing)
			}
		}()
		k.advance(8 * tickNs)
	}()
	k.check(t, 0, 1)
	k.advance(8 * tickNs)
	k.check(t, 2, 3)
	k.advance(900 * tickNs)
	k.check(t, 4)
}

func TestWheelAllocs(t *testing.T) {
	k := newClockwork(10, 0)
	k.log = make([]int, 0, 1024)
	ns := int64(0)
	if n := testing.AllocsPerRun(1000, func() {
		for i := range k.alarms {
			k.arm(i, ns+int64(i)*tickNs)
		}
		ns += 20 * tickNs
		k.advance(ns)
		k.log = k.log[:0]
	}); n != 0 {
		t.Errorf("%v allocations per round", n)
	}
}
