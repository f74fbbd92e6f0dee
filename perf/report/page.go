package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// A page is what the template shows.
type page struct {
	Run      *Run
	Taken    string
	Took     string
	Memory   string
	Verdicts []string
	Sections []section
	Settings []string
	Money    []string
}

// A section is one scenario.
type section struct {
	*Scenario
	Figures  []figure
	Tables   []table
	Excluded []string
}

// A figure is a picture with its caption.
type figure struct {
	Title, Note string
	SVG         template.HTML
}

// HTML writes one page that needs nothing else: no script, no font, no request.
// The pictures are drawn here and not by a plotting library, because their
// lines are labeled in place and take their colors from the page, which is
// light or dark as the reader likes.
func HTML(w io.Writer, run *Run) error {
	p := page{Run: run, Taken: run.Taken.Format("2006-01-02 15:04 UTC"), Verdicts: verdicts(run), Money: moneyLines(run)}
	if run.Ended.After(run.Taken) {
		p.Took = run.Ended.Sub(run.Taken).Round(time.Second).String()
	}
	if run.Host.MemoryBytes > 0 {
		p.Memory = fmt.Sprintf("%.1f GiB", float64(run.Host.MemoryBytes)/(1<<30))
	}
	for name, value := range run.Settings {
		if value != "" {
			p.Settings = append(p.Settings, name+"="+value)
		}
	}
	slices.Sort(p.Settings)
	for i := range run.Scenarios {
		s := &run.Scenarios[i]
		p.Sections = append(p.Sections, section{s, s.figures(), s.tables(), s.excluded()})
	}
	if err := pageTemplate.Execute(w, p); err != nil {
		return fmt.Errorf("report: write the page: %w", err)
	}
	return nil
}

// excluded lists what counts in no figure, with its reason.
func (s *Scenario) excluded() []string {
	var lines []string
	for _, p := range s.Points {
		if p.Excluded != "" {
			lines = append(lines, fmt.Sprintf("%s at %s/s, round %d: %s", join(p.System, p.Variant), human(p.Offered), p.Round, p.Excluded))
		}
	}
	for _, p := range s.Streams {
		if p.Excluded != "" {
			lines = append(lines, fmt.Sprintf("%s with %s streams, round %d: %s", join(p.System, p.Variant), human(float64(p.Streams)), p.Round, p.Excluded))
		}
	}
	for _, p := range s.Idle {
		if p.Excluded != "" {
			lines = append(lines, fmt.Sprintf("%s with %s idle connections, round %d: %s", p.System, human(float64(p.Connections)), p.Round, p.Excluded))
		}
	}
	return lines
}

// moneyLines tell for each system that keeps accounts whether they add up.
func moneyLines(run *Run) []string {
	var order []string
	sums := make(map[string]*Money)
	note := func(system string, m *Money) {
		if m == nil {
			return
		}
		if sums[system] == nil {
			sums[system] = &Money{}
			order = append(order, system)
		}
		s := sums[system]
		s.Answered, s.Lost, s.Rows = s.Answered+m.Answered, s.Lost+m.Lost, s.Rows+m.Rows
		if s.Problem == "" {
			s.Problem = m.Problem
		}
	}
	for _, s := range run.Scenarios {
		for _, p := range s.Points {
			note(p.System, p.Money)
		}
		for _, p := range s.Streams {
			note(p.System, p.Money)
		}
	}
	var lines []string
	for _, name := range order {
		m := sums[name]
		line := fmt.Sprintf("%s: %s good answers, %s rows", name, thousands(m.Answered), thousands(m.Rows))
		if m.Lost > 0 {
			line += fmt.Sprintf(", %s requests whose end was not seen", thousands(m.Lost))
		}
		if m.Problem != "" {
			line += " — does not add up: " + m.Problem
		} else {
			line += ": adds up"
		}
		lines = append(lines, line)
	}
	return lines
}

// verdicts are the answers in a sentence each.
func verdicts(run *Run) []string {
	var out []string
	for i := range run.Scenarios {
		s := &run.Scenarios[i]
		if line := s.cpuVerdict(); line != "" {
			out = append(out, line)
		}
		if line := s.streamVerdict(); line != "" {
			out = append(out, line)
		}
		if len(out) > 0 {
			break // the first scenario that compares says it
		}
	}
	return out
}

// cpuVerdict compares CPU per request at the highest rate at which Relay and
// another were measured.
func (s *Scenario) cpuVerdict() string {
	best := make(map[string]Spread)
	rate := 0.0
	for _, r := range group(s.Points, pointName, func(p *Point) string { return p.Excluded }) {
		if len(r.rounds) == 0 {
			continue
		}
		p := r.rounds[0]
		if p.Offered > rate && p.System == "relay" {
			rate = p.Offered
		}
	}
	var others []string
	for _, r := range group(s.Points, pointName, func(p *Point) string { return p.Excluded }) {
		if len(r.rounds) == 0 || r.rounds[0].Offered != rate {
			continue
		}
		name := r.rounds[0].System
		if _, seen := best[name]; seen {
			return "" // several variants: no single answer
		}
		best[name] = r.values(func(p *Point) float64 { return p.CPUPerRequestUs })
		if name != "relay" {
			others = append(others, name)
		}
	}
	own := best["relay"].Median
	if own <= 0 || len(others) == 0 {
		return ""
	}
	for i, name := range others {
		others[i] = fmt.Sprintf("%s %s µs (%.2f×)", name, human(best[name].Median), best[name].Median/own)
	}
	return fmt.Sprintf("At %s requests/s Relay took %s µs of CPU per request; %s. HAProxy and nginx only pass bytes on: no keys, limits or accounts.", human(rate), human(own), strings.Join(others, ", "))
}

// streamVerdict compares what an open stream costs at the most streams.
func (s *Scenario) streamVerdict() string {
	most := 0
	for _, p := range s.Streams {
		if p.System == "relay" && p.Excluded == "" && p.Variant == "" {
			most = max(most, p.Streams)
		}
	}
	var own Spread
	var others []string
	for _, r := range group(s.Streams, streamName, func(p *StreamPoint) string { return p.Excluded }) {
		if len(r.rounds) == 0 || r.rounds[0].Streams != most || r.rounds[0].Variant != "" {
			continue
		}
		kib := r.values(func(p *StreamPoint) float64 { return p.KiBPerStream })
		if r.rounds[0].System == "relay" {
			own = kib
		} else {
			others = append(others, fmt.Sprintf("%s %s", r.rounds[0].System, human(kib.Median)))
		}
	}
	if most == 0 || len(others) == 0 {
		return ""
	}
	return fmt.Sprintf("With %s open streams each took %s KiB of Relay's memory; %s.", human(float64(most)), human(own.Median), strings.Join(others, ", "))
}
