package lanes

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"relay/store/redis/redistest"
)

// measure runs a small load against a store of its own and gives the points at
// the full rate, by mode. Whether the rate was held is not asked: the machine
// may be busy.
func measure(t *testing.T, o Options) map[string]Point {
	t.Helper()
	o.Addr, o.Progress = redistest.Start(t).Addr(), io.Discard
	points, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(points) != 2*len(Modes()) {
		t.Fatalf("%d points, want each mode at both rates", len(points))
	}
	full := make(map[string]Point)
	for _, p := range points {
		if p.Lost+p.Refused+p.Unsettled > 0 {
			t.Errorf("%s", &p)
		}
		if p.Offered == o.Rate {
			full[p.Mode] = p
		}
	}
	return full
}

func TestModes(t *testing.T) {
	t.Parallel()
	points := measure(t, Options{Rate: 4000, Hot: true, WarmUp: 300 * time.Millisecond, Hold: 700 * time.Millisecond})
	for _, mode := range Modes() {
		if p := points[mode]; p.Decided == 0 || p.DeniedRate != 0 || p.P99Us < p.P50Us || p.ClientUs <= 0 {
			t.Errorf("%s", &p)
		}
	}
	leases, exact, plain, memory := points[Leases], points[Exact], points[Plain], points[Memory]
	if plain.Evals < 1.5 || plain.Evals > 2.5 || plain.Commands < 3*plain.Evals {
		t.Errorf("plain: %.3f EVALSHA and %.3f commands, want about 2, and what they call", plain.Evals, plain.Commands)
	}
	if leases.Ops <= 0 || 2*leases.Ops >= exact.Ops || exact.Evals > exact.Ops {
		t.Errorf("leases %.3f operations, exact %.3f, in %.3f EVALSHA", leases.Ops, exact.Ops, exact.Evals)
	}
	if leases.StoreUs <= 0 || memory.Evals > 0.01 || memory.Ops <= 0 {
		t.Errorf("leases took %.3f µs of the store, memory %.4f EVALSHA and %.3f operations", leases.StoreUs, memory.Evals, memory.Ops)
	}
}

// TestSaturated wants every way of asking to let about half through.
func TestSaturated(t *testing.T) {
	t.Parallel()
	points := measure(t, Options{Rate: 2000, Policies: 10, Saturated: true, WarmUp: 1200 * time.Millisecond, Hold: 800 * time.Millisecond})
	for _, mode := range Modes() {
		p := points[mode]
		if share := p.DeniedRate / p.Decided; share < 0.1 || share > 0.9 {
			t.Errorf("%s: %.0f %% denied", &p, 100*share)
		}
	}
}

// TestStoreEnds wants a store that goes away to end the run.
func TestStoreEnds(t *testing.T) {
	for _, mode := range []string{Plain, Leases} {
		t.Run(mode, func(t *testing.T) {
			server := redistest.Start(t)
			time.AfterFunc(400*time.Millisecond, server.Stop)
			_, err := Run(t.Context(), Options{
				Addr: server.Addr(), Progress: io.Discard, Modes: []string{mode}, Rate: 1000, WarmUp: 200 * time.Millisecond, Hold: time.Second,
			})
			if err == nil {
				t.Error("a store that has gone does not end the run")
			}
		})
	}
}

func TestWrongOptions(t *testing.T) {
	for _, tt := range []struct {
		o    Options
		want string
	}{
		{Options{Rate: -1}, "a rate of -1"},
		{Options{Policies: 1 << 20}, "policies"},
		{Options{Loops: 1000}, "loops"},
		{Options{Rounds: -1}, "rounds"},
		{Options{Hold: time.Hour}, "want a hold"},
		{Options{Modes: []string{"guess"}}, "want any of [leases exact plain memory]"},
		{Options{Addr: "127.0.0.1:1"}, "load the script"},
	} {
		if _, err := Run(t.Context(), tt.o); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: error %v, want %q in it", tt.o, err, tt.want)
		}
	}
}

func TestTable(t *testing.T) {
	points := []Point{
		{Mode: Leases, Round: 1, Offered: 50_000, Decided: 50_000, StoreUs: 4, Evals: 0.04},
		{Mode: Exact, Round: 1, Offered: 50_000, Decided: 40_000, NotHeld: "too slow"},
		{Mode: Leases, Round: 1, Offered: 25_000, Decided: 25_000, StoreUs: 11, Evals: 0.2},
		{Mode: Leases, Round: 2, Offered: 50_000, Decided: 49_000, StoreUs: 6, Evals: 0.08, NotHeld: "late"},
	}
	head, cells := Table(points)
	if len(cells) != 3 || len(cells[0]) != len(head) {
		t.Fatalf("cells %q", cells)
	}
	if got := strings.Join(cells[0][:6], "|"); got != "50000|leases|49500 [49000–50000]|in 1 of 2|5.00 [4.00–6.00]|0.0600 [0.0400–0.0800]" {
		t.Errorf("row %q", got)
	}
	if cells[1][3] != "NO" || cells[2][3] != "yes" {
		t.Errorf("cells %q", cells)
	}
	got := strings.Join(Verdicts(points), "\n")
	want := strings.Join([]string{
		"Leases at 50000/s: 5.00 µs of the store's CPU and 0.0600 EVALSHA per request, within the targets of 10 µs and 0.1.",
		"Leases at 25000/s: 11.00 µs of the store's CPU and 0.2000 EVALSHA per request.",
		"exact did not hold 50000/s in round 1: too slow.",
		"leases did not hold 50000/s in round 2: late.",
	}, "\n")
	if got != want {
		t.Errorf("verdicts\n%s\nwant\n%s", got, want)
	}
	points[0].StoreUs, points[3].StoreUs = 30, 30
	if lines := Verdicts(points); !strings.Contains(lines[0], "NOT within") {
		t.Errorf("verdict %q", lines[0])
	}
}

func TestQueue(t *testing.T) {
	var q queue
	var want []*request
	for i := range 10_000 {
		r := &request{policy: i}
		q.put(r)
		if want = append(want, r); i%3 > 0 {
			if got := q.take(); got != want[0] {
				t.Fatalf("took %d, want %d", got.policy, want[0].policy)
			}
			want = want[1:]
		}
	}
	if q.len() != len(want) || cap(q.items) > 4*len(want) {
		t.Errorf("%d of %d left, in room for %d", q.len(), len(want), cap(q.items))
	}
}

// TestReplies feeds replies in pieces, and a failure.
func TestReplies(t *testing.T) {
	l := newLoop(plan{}, func() int64 { return 1 }, 1)
	c := &plain{loop: l, in: make([]byte, 0, 1<<10)}
	feed := func(text string) error {
		c.in = append(c.in, text...)
		return c.understand(1)
	}
	granted, denied := l.request(), l.request()
	c.order.put(granted)
	c.order.put(nil)
	c.order.put(denied)
	l.open = 2
	for _, piece := range []string{":", "0\r", "\n:0\r\n:1\r", "\n"} {
		if err := feed(piece); err != nil {
			t.Fatal(err)
		}
	}
	if l.running.len() != 1 || l.running.first() != granted || l.open != 1 || len(l.free) != 1 || !c.rests(1) || len(c.in) != 0 {
		t.Errorf("running %d, open %d, free %d, left %q", l.running.len(), l.open, len(l.free), c.in)
	}
	c.order.put(granted)
	if err := feed("-NOSCRIPT no such script\r\n"); err == nil || !strings.Contains(err.Error(), "NOSCRIPT") {
		t.Errorf("error %v", err)
	}
	if err := (&plain{loop: l, in: []byte(":0\r\n")}).understand(1); err == nil {
		t.Error("a reply that nobody waits for")
	}
	c = &plain{loop: l, keys: []string{"key"}, head: []byte("HEAD\r\n")}
	c.call(0, 1, 2)
	if want := []byte("HEAD\r\n$3\r\nkey\r\n$16\r\n\x00\x00\x00\x00\x00\x00\xf0?\x00\x00\x00\x00\x00\x00\x00@\r\n"); !bytes.Equal(c.out, want) {
		t.Errorf("call %q", c.out)
	}
}
