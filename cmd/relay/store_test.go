package main

import (
	"bytes"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"relay/loop"
	"relay/store/catalog"
	"relay/store/redis"
	"relay/store/state"
)

// TestStoreStanding walks through an outage: what is told of the store after
// each look.
func TestStoreStanding(t *testing.T) {
	start := time.Unix(1700000000, 0)
	gone := errors.New("gone")
	for _, tt := range []struct {
		name    string
		reached bool
		looks   string // one each storeLook: . = sound, x = failed
		lost    bool
		since   int // look at which it was lost
		refuses bool
	}{
		{"sound", true, "....", false, 0, false},
		{"just lost", true, "..x", true, 2, false},
		{"lost for its grace", true, "x" + strings.Repeat("x", 20), true, 0, true},
		{"nearly", true, "x" + strings.Repeat("x", 19), true, 0, false},
		{"lost from the start", false, "x", true, 0, true},
		{"not calm yet", true, ".x" + strings.Repeat(".", 20), true, 1, true},
		{"calm", true, ".x" + strings.Repeat(".", 21), false, 0, false},
		{"fails while it calms down", true, "x" + strings.Repeat(strings.Repeat(".", 20)+"x", 3) + strings.Repeat(".", 20), true, 0, true},
		{"lost again", true, "x" + strings.Repeat(".", 21) + "x", true, 22, false},
		{"a start is no start for ever", false, "x" + strings.Repeat(".", 21) + "x", true, 22, false},
	} {
		s := &standing{reached: tt.reached}
		now := start
		for i, look := range tt.looks {
			var err error
			if look == 'x' {
				err = gone
			}
			now = start.Add(time.Duration(i) * storeLook)
			s = s.next(now, err)
		}
		if lost := !s.lostAt.IsZero(); lost != tt.lost || s.refuses(now) != tt.refuses {
			t.Errorf("%s: lost %v, refuses %v; want %v, %v", tt.name, lost, s.refuses(now), tt.lost, tt.refuses)
		} else if want := start.Add(time.Duration(tt.since) * storeLook); lost && (!s.lostAt.Equal(want) || s.err != gone) {
			t.Errorf("%s: lost at %v because of %v, want %v", tt.name, s.lostAt, s.err, want)
		}
	}
}

// TestStoreTold wants one line when the store is lost and one when it is back,
// and one more for a fault that does not pass by itself.
func TestStoreTold(t *testing.T) {
	gone := errors.New("connection refused")
	other := &redis.MismatchError{Stored: "1 4", Wanted: "1 1"}
	for _, tt := range []struct {
		name  string
		local bool
		looks []error
		want  []string
	}{
		{"sound", false, []error{nil, nil}, nil},
		{"refuses", false, []error{nil, gone, gone, errors.New("timeout"), gone}, []string{
			`level=ERROR msg="the store is lost: requests with limits are refused" error="connection refused"`}},
		{"counts by itself", true, []error{gone, gone}, []string{
			`level=ERROR msg="the store is lost: this relay counts its share of the limits by itself" error="connection refused"`}},
		{"others take it over", false, []error{gone, other, other}, []string{
			`level=ERROR msg="the store is lost: requests with limits are refused" error="connection refused"`,
			`level=ERROR msg="the store is lost: requests with limits are refused" error="` + strings.ReplaceAll(other.Error(), `"`, `\"`) + `"`}},
		{"back", false, append([]error{gone, gone, gone}, make([]error, 30)...), []string{
			`level=ERROR msg="the store is lost: requests with limits are refused" error="connection refused"`,
			`level=INFO msg="the store is back" lost_for=300ms`}},
	} {
		var told bytes.Buffer
		h := &sharedStore{local: tt.local, log: slog.New(slog.NewTextHandler(&told, nil))}
		h.standing.Store(&standing{reached: true})
		for i, err := range tt.looks {
			h.see(time.Unix(1700000000, 0).Add(time.Duration(i)*storeLook), err)
		}
		var lines []string
		for line := range strings.Lines(told.String()) {
			_, line, _ = strings.Cut(strings.TrimSpace(line), " ") // the time
			lines = append(lines, line)
		}
		if !slices.Equal(lines, tt.want) {
			t.Errorf("%s: told\n%s\nwant\n%s", tt.name, strings.Join(lines, "\n"), strings.Join(tt.want, "\n"))
		}
	}
}

// TestLanes: an Op goes to the lane of its group, a full lane takes no more,
// and what waits at the end is answered.
func TestLanes(t *testing.T) {
	a, b := &countingStore{}, &countingStore{}
	l := newLanes([]state.Store{a, b}, 2, func(group uint64) int { return int(group % 2) })
	for i, want := range []bool{true, true, false} {
		if got := l.submit(&state.Op{Group: &catalog.Group{ID: 2}}); got != want {
			t.Errorf("Op %d: taken %v", i, got)
		}
	}
	if !l.submit(&state.Op{Group: &catalog.Group{ID: 1}}) || l.pending() != 3 {
		t.Errorf("%d Ops wait, want 3", l.pending())
	}
	posts := make(chan int, 10)
	l.start(func(index int, _ loop.Message) bool { posts <- index; return true })
	l.stop()
	if a.ops != 2 || b.ops != 1 || len(posts) != 3 || l.pending() != 0 {
		t.Errorf("lanes had %d and %d Ops, %d answers, %d still wait", a.ops, b.ops, len(posts), l.pending())
	}
}

// A countingStore counts Ops.
type countingStore struct{ ops int }

func (s *countingStore) Apply(_ int64, batch []*state.Op) { s.ops += len(batch) }
