package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
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
	Trouble  []string // of the accounts
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
	p := page{Run: run, Taken: run.Taken.Format("2006-01-02 15:04 UTC"), Verdicts: verdicts(run), Settings: settingLines(run)}
	p.Money, p.Trouble = moneyLines(run)
	if run.Ended.After(run.Taken) {
		p.Took = run.Ended.Sub(run.Taken).Round(time.Second).String()
	}
	if run.Host.MemoryBytes > 0 {
		p.Memory = fmt.Sprintf("%.1f GiB", float64(run.Host.MemoryBytes)/(1<<30))
	}
	for i := range run.Scenarios {
		s := &run.Scenarios[i]
		p.Sections = append(p.Sections, section{s, s.figures(), s.tables(), s.excluded()})
	}
	if err := pageTemplate.Execute(w, p); err != nil {
		return fmt.Errorf("report: write the page: %w", err)
	}
	return nil
}

// settingLines are what the run was told, by name.
func settingLines(run *Run) []string {
	var lines []string
	for name, value := range run.Settings {
		if value != "" {
			lines = append(lines, name+"="+value)
		}
	}
	slices.Sort(lines)
	return lines
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

// moneyLines tell for each system that keeps accounts whether they add up, and
// apart what does not.
func moneyLines(run *Run) (lines, trouble []string) {
	var order []string
	sums := make(map[string]*Money)
	note := func(system, where string, m *Money) {
		if m == nil {
			return
		}
		if sums[system] == nil {
			sums[system] = &Money{}
			order = append(order, system)
		}
		s := sums[system]
		s.Answered, s.Lost, s.Rows = s.Answered+m.Answered, s.Lost+m.Lost, s.Rows+m.Rows
		if m.Problem != "" {
			s.Problem = m.Problem
			trouble = append(trouble, fmt.Sprintf("%s %s: the accounts do not add up: %s", system, where, m.Problem))
		}
	}
	for _, s := range run.Scenarios {
		for _, p := range s.Points {
			note(join(p.System, p.Variant), fmt.Sprintf("at %s/s, round %d", human(p.Offered), p.Round), p.Money)
		}
		for _, p := range s.Streams {
			note(join(p.System, p.Variant), fmt.Sprintf("with %s streams, round %d", human(float64(p.Streams)), p.Round), p.Money)
		}
	}
	for _, name := range order {
		m := sums[name]
		line := fmt.Sprintf("%s: %s good answers, %s rows", name, thousands(m.Answered), thousands(m.Rows))
		if m.Lost > 0 {
			line += fmt.Sprintf(", %s requests whose end was not seen", thousands(m.Lost))
		}
		if m.Problem != "" {
			line += ": does NOT add up"
		} else {
			line += ": adds up"
		}
		lines = append(lines, line)
	}
	return lines, trouble
}
