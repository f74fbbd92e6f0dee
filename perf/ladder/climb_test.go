package ladder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"relay/perf/report"
	"relay/perf/target"
)

// A script is what a made-up system does at each rate.
type script struct {
	late    float64 // the generator is late at this rate
	dies    float64 // the system is gone at this rate
	refuses float64 // half is refused from this rate on
	money   *report.Money
	absent  bool
}

// A scene runs scripts and writes down what was done.
type scene struct {
	scripts map[string]script
	done    []string
}

type actor struct {
	scene  *scene
	name   string
	script script
}

func (s *scene) begin(_ context.Context, l *lane) (running, error) {
	if s.scripts[l.system].absent {
		return nil, &target.Missing{Program: l.system}
	}
	s.note("start", l.system)
	return &actor{s, l.system, s.scripts[l.system]}, nil
}

func (s *scene) note(what ...any) { s.done = append(s.done, strings.TrimSpace(fmt.Sprintln(what...))) }

func (a *actor) step(_ context.Context, rate float64) (report.Point, error) {
	a.scene.note(a.name, rate)
	p := report.Point{Sent: rate, Served: rate}
	switch {
	case rate == a.script.dies:
		return p, errors.New("ended under load: panic: out of cheese")
	case rate == a.script.late:
		p.Excluded = "the generator was late"
	case a.script.refuses > 0 && rate >= a.script.refuses:
		p.Served, p.ErrorShare = rate/2, 0.5
	}
	return p, nil
}

func (a *actor) books() (*report.Money, error) {
	a.scene.note("books", a.name)
	return a.script.money, nil
}

func (a *actor) stop() { a.scene.note("stop", a.name) }

func (s *scene) run(t *testing.T, c climb) (points []report.Point, broken []string, err error) {
	t.Helper()
	c.begin, c.progress = s.begin, io.Discard
	c.isLeft = func(_ string, err error) bool {
		var absent *target.Missing
		return errors.As(err, &absent)
	}
	c.broken = func(system, problem string) { broken = append(broken, system+": "+problem) }
	points, err = c.run(t.Context())
	return points, broken, err
}

func TestClimbInterleaves(t *testing.T) {
	s := &scene{scripts: map[string]script{"gone": {absent: true}}}
	points, _, err := s.run(t, climb{lanes: lanes([]string{"a", "gone", "b"}), steps: steps(10, 20), rounds: 2})
	if err != nil {
		t.Fatal(err)
	}
	round := []string{"start a", "start b", "a 10", "b 10", "a 20", "b 20", "books a", "stop a", "books b", "stop b", "stop a", "stop b"}
	if want := slices.Concat(round, round); !slices.Equal(s.done, want) {
		t.Errorf("done %q\nwant %q", s.done, want)
	}
	if len(points) != 8 || points[3].System != "b" || points[3].Offered != 20 || points[4].Round != 2 {
		t.Errorf("points %+v", points)
	}
}

func TestClimbEnds(t *testing.T) {
	s := &scene{scripts: map[string]script{"a": {refuses: 20}, "b": {late: 20}}}
	points, _, err := s.run(t, climb{lanes: lanes([]string{"a", "b"}), steps: steps(10, 20, 30, 40), rounds: 1, toEnd: true})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"start a", "start b", "a 10", "b 10", "a 20", "b 20", "b 30", "b 40"}
	if len(s.done) < len(want) || !slices.Equal(s.done[:len(want)], want) {
		t.Errorf("done %q, want %q: a has refused at 20, b was late once", s.done, want)
	}
	sums := summarize(points)
	if sums[0].Capacity != 10 || sums[1].Capacity != 40 {
		t.Errorf("sums %+v", sums)
	}
	for _, p := range points {
		if late := p.System == "b" && p.Offered == 20; late != (p.Excluded != "") {
			t.Errorf("%s at %v: excluded %q", p.System, p.Offered, p.Excluded)
		}
	}
}

func TestClimbDeath(t *testing.T) {
	s := &scene{scripts: map[string]script{"b": {dies: 20, money: &report.Money{}}}}
	points, _, err := s.run(t, climb{lanes: lanes([]string{"a", "b", "c"}), steps: steps(10, 20), rounds: 3})
	if err == nil || !strings.Contains(err.Error(), "round 1: b: ended under load: panic: out of cheese") {
		t.Fatalf("error %v, want the death of b with its last words", err)
	}
	if len(points) != 4 {
		t.Errorf("%d points, want those until the death", len(points))
	}
	for _, p := range points {
		if p.Excluded == "" {
			t.Errorf("%s at %v counts, though nobody has looked at its money", p.System, p.Offered)
		}
	}
	for _, name := range []string{"a", "b", "c"} {
		if !slices.Contains(s.done, "stop "+name) {
			t.Errorf("%s was not stopped: %q", name, s.done)
		}
	}
}

func TestClimbMoney(t *testing.T) {
	s := &scene{scripts: map[string]script{
		"a": {money: &report.Money{Answered: 30, Rows: 30}},
		"b": {money: &report.Money{Answered: 30, Rows: 29, Problem: "1 is missing"}},
	}}
	points, broken, err := s.run(t, climb{lanes: lanes([]string{"a", "b", "proxy"}), steps: steps(10, 20), rounds: 1})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(broken, []string{"b: 1 is missing"}) {
		t.Errorf("broken %q", broken)
	}
	for _, p := range points {
		if wrong := p.System == "b"; wrong != (p.Excluded != "") {
			t.Errorf("%s at %v: excluded %q", p.System, p.Offered, p.Excluded)
		}
		if keeps := p.System != "proxy"; keeps != (p.Money != nil) {
			t.Errorf("%s at %v: money %+v", p.System, p.Offered, p.Money)
		}
	}
	if sums := summarize(points); sums[1].Highest != 0 {
		t.Errorf("the sum of b is %+v, want nothing", sums[1])
	}
}

func TestClimbOwnSteps(t *testing.T) {
	s := &scene{}
	points, _, err := s.run(t, climb{rounds: 1, lanes: []lane{
		{system: "a", steps: []step{{10, "low"}}}, {system: "b", variant: "x", steps: []step{{5, "low"}, {50, "high"}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"start a", "start b", "a 10", "b 5", "b 50"}; !slices.Equal(s.done[:5], want) {
		t.Errorf("done %q, want %q", s.done, want)
	}
	if points[2].Variant != "x, high" {
		t.Errorf("variant %q", points[2].Variant)
	}
}
