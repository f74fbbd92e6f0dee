package report

import (
	"fmt"
	"slices"
	"strings"
)

// own is the system that the others are compared with.
const own = "relay"

// A footing is where systems can be compared: a rate, or a number of streams or
// connections, and the systems that stood there, Relay first.
type footing struct {
	at      float64
	systems []string
	fallen  []string // that were measured, but did not stand there
}

// foot finds the highest place at which Relay and most others stood. stands
// tells the systems that do at each place.
func foot(stands map[float64][]string, all []string) footing {
	var best footing
	for at, systems := range stands {
		if !slices.Contains(systems, own) || len(systems) < 2 {
			continue
		}
		if len(systems) > len(best.systems) || len(systems) == len(best.systems) && at > best.at {
			best = footing{at: at, systems: systems}
		}
	}
	if len(best.systems) == 0 {
		return best
	}
	for _, name := range all {
		if !slices.Contains(best.systems, name) {
			best.fallen = append(best.fallen, name)
		}
	}
	best.systems = append([]string{own}, slices.DeleteFunc(slices.Clone(best.systems), func(s string) bool { return s == own })...)
	return best
}

// rateFooting compares with usual settings only, and only steps whose share of
// errors counts: a system that refuses most of its load spends little on it.
func (s *Scenario) rateFooting() footing {
	stands := make(map[float64][]string)
	var all []string
	for _, r := range group(s.Points, pointName, func(p *Point) string { return p.Excluded }) {
		if len(r.rounds) == 0 || r.rounds[0].Variant != "" {
			continue
		}
		p := r.rounds[0]
		if !slices.Contains(all, p.System) {
			all = append(all, p.System)
		}
		errors := r.values(func(p *Point) float64 { return p.ErrorShare })
		if len(errors.Values) > 0 && errors.Median <= ErrorShareMax && p.Served > 0 {
			stands[p.Offered] = append(stands[p.Offered], p.System)
		}
	}
	return foot(stands, all)
}

// streamFooting is the same for open streams.
func (s *Scenario) streamFooting() footing {
	stands := make(map[float64][]string)
	for _, r := range group(s.Streams, streamName, func(p *StreamPoint) string { return p.Excluded }) {
		if len(r.rounds) > 0 && r.rounds[0].Variant == "" {
			n := float64(r.rounds[0].Streams)
			stands[n] = append(stands[n], r.rounds[0].System)
		}
	}
	return foot(stands, nil)
}

// idleFooting is the same for idle connections.
func (s *Scenario) idleFooting() footing {
	stands := make(map[float64][]string)
	for _, r := range group(s.Idle, idleName, func(p *IdlePoint) string { return p.Excluded }) {
		if len(r.rounds) > 0 {
			n := float64(r.rounds[0].Connections)
			stands[n] = append(stands[n], r.rounds[0].System)
		}
	}
	return foot(stands, nil)
}

// pointsOf gives the median of a value of a system where the footing is.
func (s *Scenario) pointsOf(f footing, value func(*Point) float64) func(system string) float64 {
	return func(system string) float64 {
		for _, r := range group(s.Points, pointName, func(p *Point) string { return p.Excluded }) {
			if len(r.rounds) > 0 && r.rounds[0].System == system && r.rounds[0].Variant == "" && r.rounds[0].Offered == f.at {
				return r.values(value).Median
			}
		}
		return 0
	}
}

func (s *Scenario) streamsOf(f footing, value func(*StreamPoint) float64) func(system string) float64 {
	return func(system string) float64 {
		for _, r := range group(s.Streams, streamName, func(p *StreamPoint) string { return p.Excluded }) {
			if len(r.rounds) > 0 && r.rounds[0].System == system && r.rounds[0].Variant == "" && float64(r.rounds[0].Streams) == f.at {
				return r.values(value).Median
			}
		}
		return 0
	}
}

func (s *Scenario) idleOf(f footing, value func(*IdlePoint) float64) func(system string) float64 {
	return func(system string) float64 {
		for _, r := range group(s.Idle, idleName, func(p *IdlePoint) string { return p.Excluded }) {
			if len(r.rounds) > 0 && r.rounds[0].System == system && float64(r.rounds[0].Connections) == f.at {
				return r.values(value).Median
			}
		}
		return 0
	}
}

// summariesOf gives a value of the summary of a system's usual settings.
func (s *Scenario) summariesOf(value func(*Summary) float64) func(system string) float64 {
	return func(system string) float64 {
		for i := range s.Summaries {
			if s.Summaries[i].System == system && s.Summaries[i].Variant == "" {
				return value(&s.Summaries[i])
			}
		}
		return 0
	}
}

// beside tells the others' values with how many times Relay's each is.
func beside(systems []string, unit string, of func(system string) float64) string {
	mine := of(own)
	var others []string
	for _, name := range systems {
		if v := of(name); name != own && v > 0 && mine > 0 {
			others = append(others, fmt.Sprintf("%s %s%s (%.2f×)", name, human(v), unit, v/mine))
		}
	}
	return strings.Join(others, ", ")
}

// verdicts are the answers in a sentence each. The first scenario that can tell
// a thing tells it.
func verdicts(run *Run) []string {
	var out []string
	for _, tell := range []func(*Scenario) []string{(*Scenario).rateVerdict, (*Scenario).capacityVerdict, (*Scenario).storeVerdict, (*Scenario).streamVerdict, (*Scenario).idleVerdict} {
		for i := range run.Scenarios {
			if lines := tell(&run.Scenarios[i]); len(lines) > 0 {
				out = append(out, lines...)
				break
			}
		}
	}
	return out
}

func (s *Scenario) rateVerdict() []string {
	f := s.rateFooting()
	cpu := s.pointsOf(f, func(p *Point) float64 { return p.CPUPerRequestUs })
	others := beside(f.systems, " µs", cpu)
	if others == "" {
		return nil
	}
	line := fmt.Sprintf("At %s requests/s Relay took %s µs of CPU per request; %s.", human(f.at), human(cpu(own)), others)
	if len(f.fallen) > 0 {
		line += fmt.Sprintf(" Not measured there, or with too many errors: %s.", strings.Join(f.fallen, ", "))
	}
	var floor []string
	for _, name := range []string{"haproxy", "nginx"} {
		if slices.Contains(f.systems, name) {
			floor = append(floor, name)
		}
	}
	if len(floor) > 0 {
		line += fmt.Sprintf(" Only passing bytes on, without keys, limits or accounts: %s.", strings.Join(floor, ", "))
	}
	lines := []string{line}
	p99 := s.pointsOf(f, func(p *Point) float64 { return p.OverheadP99Ms })
	if others := beside(f.systems, " ms", p99); others != "" {
		lines = append(lines, fmt.Sprintf("Relay's p99 overhead there was %s ms; %s.", human(p99(own)), others))
	}
	return lines
}

func (s *Scenario) capacityVerdict() []string {
	capacity := s.summariesOf(func(x *Summary) float64 { return x.Capacity })
	var systems []string
	for _, x := range s.Summaries {
		if x.Variant == "" {
			systems = append(systems, x.System)
		}
	}
	if others := beside(systems, "", capacity); others != "" {
		return []string{fmt.Sprintf("With at most 0.1 %% errors Relay served up to %s requests/s; %s.", human(capacity(own)), others)}
	}
	return nil
}

func (s *Scenario) streamVerdict() []string {
	f := s.streamFooting()
	kib := s.streamsOf(f, func(p *StreamPoint) float64 { return p.KiBPerStream })
	others := beside(f.systems, "", kib)
	if others == "" {
		return nil
	}
	lines := []string{fmt.Sprintf("With %s open streams each took %s KiB of Relay's memory; %s.", human(f.at), human(kib(own)), others)}
	gap := s.streamsOf(f, func(p *StreamPoint) float64 { return p.AddedGapP99Ms })
	if others := beside(f.systems, " ms", gap); others != "" {
		lines = append(lines, fmt.Sprintf("At p99 Relay added %s ms between their events; %s.", human(gap(own)), others))
	}
	return lines
}

func (s *Scenario) idleVerdict() []string {
	f := s.idleFooting()
	kib := s.idleOf(f, func(p *IdlePoint) float64 { return p.KiBPerConnection })
	if others := beside(f.systems, "", kib); others != "" {
		return []string{fmt.Sprintf("With %s idle connections each took %s KiB of Relay's memory; %s.", human(f.at), human(kib(own)), others)}
	}
	return nil
}

// ratiosTable tells Relay's value over that of each other system.
func (s *Scenario) ratiosTable() table {
	rates, streams, idle := s.rateFooting(), s.streamFooting(), s.idleFooting()
	var others []string
	for _, f := range []footing{rates, streams, idle} {
		for _, name := range f.systems {
			if name != own && !slices.Contains(others, name) {
				others = append(others, name)
			}
		}
	}
	t := table{Head: []string{"Relay ÷"}}
	t.Head = append(t.Head, others...)
	for _, line := range []struct {
		name string
		of   func(system string) float64
	}{
		{fmt.Sprintf("CPU per request at %s/s", human(rates.at)), s.pointsOf(rates, func(p *Point) float64 { return p.CPUPerRequestUs })},
		{fmt.Sprintf("overhead p50 at %s/s", human(rates.at)), s.pointsOf(rates, func(p *Point) float64 { return p.OverheadP50Ms })},
		{fmt.Sprintf("overhead p99 at %s/s", human(rates.at)), s.pointsOf(rates, func(p *Point) float64 { return p.OverheadP99Ms })},
		{fmt.Sprintf("working set at %s/s", human(rates.at)), s.pointsOf(rates, func(p *Point) float64 { return float64(p.RSSBytes) })},
		{"latency knee", s.summariesOf(func(x *Summary) float64 { return x.Knee })},
		{"error capacity", s.summariesOf(func(x *Summary) float64 { return x.Capacity })},
		{"capacity per core", s.summariesOf(func(x *Summary) float64 { return x.PerCore })},
		{fmt.Sprintf("memory per stream of %s", human(streams.at)), s.streamsOf(streams, func(p *StreamPoint) float64 { return p.KiBPerStream })},
		{fmt.Sprintf("CPU per stream of %s", human(streams.at)), s.streamsOf(streams, func(p *StreamPoint) float64 { return p.CoresPer1000 })},
		{fmt.Sprintf("added gap p99 of %s streams", human(streams.at)), s.streamsOf(streams, func(p *StreamPoint) float64 { return p.AddedGapP99Ms })},
		{fmt.Sprintf("memory per idle connection of %s", human(idle.at)), s.idleOf(idle, func(p *IdlePoint) float64 { return p.KiBPerConnection })},
	} {
		cells, known := []string{line.name}, false
		for _, name := range others {
			mine, theirs := line.of(own), line.of(name)
			if mine <= 0 || theirs <= 0 {
				cells = append(cells, "–")
				continue
			}
			known = true
			cells = append(cells, fmt.Sprintf("%.2f×", mine/theirs))
		}
		if known {
			t.Rows = append(t.Rows, cells)
		}
	}
	return t
}
