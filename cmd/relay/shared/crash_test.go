//go:build integration

package shared

import (
	"net/http"
	"testing"
	"time"
)

// The store forgets the slots of a relay that died 30 s after it has heard of
// them last.
const (
	slotsAge  = 40 * time.Second
	slotsHeld = 10 * time.Second // for sure: a relay tells of them every 10 s
)

// TestCrash has a relay die with most slots of a limit while another one goes
// on asking without a pause: each slot comes free by its own age, and asking
// does not renew it.
func TestCrash(t *testing.T) {
	t.Parallel()
	const slots, held = 8, 6
	f := startFleet(t, onRedis, 2, []tenant{{name: "eight", limits: []string{"meter: concurrency, amount: 8"}}})
	for i := range held {
		s := f.open(0, question{name: "eight", words: "hold=120s"})
		if s.status != http.StatusOK {
			t.Fatalf("stream %d: %d", i, s.status)
		}
	}
	f.relays[0].kill()
	died := time.Now()
	if _, ok := eventually(soon, func() bool { return f.provider.of("eight").running == 0 }); !ok {
		t.Fatal("the requests of the dead relay still run")
	}
	f.provider.anew("eight")

	load, going := newTraffic()
	load.send(going, f, question{name: "eight", words: "hold=50ms"}, 2*slots, 20*time.Millisecond, f.addresses)
	_, free := eventually(slotsAge, func() bool { return f.provider.of("eight").most > slots-held })
	age := time.Since(died)
	t.Logf("the first slots of the dead relay were free after %v", age.Round(100*time.Millisecond))
	if !free || age < slotsHeld {
		t.Errorf("the first slots of the dead relay were free after %v: %t, want %v to %v", age, free, slotsHeld, slotsAge)
	}
	load.stop()
	f.fills("after the load", 5*time.Second, slots, question{name: "eight"})
	f.relays[1].awaitQuiet()
}
