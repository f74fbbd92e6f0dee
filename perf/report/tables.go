package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// Markdown writes a run as tables: medians and ranges over the rounds that
// count, then what does not count, and what the run was taken with.
func Markdown(w io.Writer, run *Run) error {
	p := &printer{w: w}
	if run.Failed != "" {
		p.text("\nThe run ended early: %s\n", inline(run.Failed))
	}
	money, trouble := moneyLines(run)
	p.list(trouble)
	p.list(verdicts(run))
	for i := range run.Scenarios {
		s := &run.Scenarios[i]
		p.text("\n## %d %s\n\n%s\n", s.Number, inline(s.Name), inline(s.Asks))
		if s.CompletedBy != "" {
			p.text("\nNot whole without %s.\n", inline(s.CompletedBy))
		}
		for _, t := range s.tables() {
			p.table(t.Head, t.Rows)
		}
		if out := s.excluded(); len(out) > 0 {
			p.text("\nCounts in no figure:\n")
			p.list(out)
		}
		p.list(s.Notes)
	}
	if len(money) > 0 {
		p.text("\n## Money\n")
		p.list(money)
	}
	if len(run.Missing) > 0 {
		p.text("\n## Left out\n")
		p.list(run.Missing)
	}
	p.taken(run)
	return p.err
}

// taken tells where and with what the run was taken, and how to repeat it.
func (p *printer) taken(run *Run) {
	h := run.Host
	var lines []string
	for _, fact := range []struct{ name, value string }{
		{"processor", h.CPUModel}, {"cores", count(uint64(h.CPUs))}, {"memory MiB", count(h.MemoryBytes >> 20)}, {"kernel", h.Kernel},
		{"Go", h.GoVersion}, {"commit", h.Commit}, {"descriptors", count(h.Descriptors)},
	} {
		if fact.value != "" {
			lines = append(lines, fact.name+": "+fact.value)
		}
	}
	for _, s := range settingLines(run) {
		lines = append(lines, "setting: "+s)
	}
	if run.Profile != "" {
		lines = append(lines, "again: bin/relay-perf ladder --relay bin/relay --profile "+run.Profile+", then bin/relay-perf report perf/out/latest.json")
	}
	if len(lines) > 0 {
		p.text("\n## How it was taken\n")
		p.list(lines)
	}
}

// count is a number that may be unknown.
func count(n uint64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// inline makes one line of a string that came from elsewhere, without meaning
// for Markdown or HTML.
func inline(s string) string {
	return escapeMarkdown.Replace(printable(s))
}

var escapeMarkdown = strings.NewReplacer(`\`, `\\`, "|", `\|`, "<", "&lt;", "&", "&amp;", "`", "\\`", "*", `\*`, "_", `\_`, "](", `]\(`)

// A printer writes until something fails.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) text(format string, args ...any) {
	if p.err != nil {
		return
	}
	if _, err := fmt.Fprintf(p.w, format, args...); err != nil {
		p.err = fmt.Errorf("report: write the tables: %w", err)
	}
}

func (p *printer) table(head []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	p.text("\n")
	plain := func(cells []string) []string {
		out := make([]string, len(cells))
		for i, cell := range cells {
			out[i] = inline(cell)
		}
		return out
	}
	body := make([][]string, len(rows))
	for i, row := range rows {
		body[i] = plain(row)
	}
	if p.err == nil {
		p.err = Table(p.w, plain(head), body)
	}
}

func (p *printer) list(lines []string) {
	if len(lines) > 0 {
		p.text("\n")
	}
	for _, line := range lines {
		p.text("* %s\n", inline(line))
	}
}

// A table is the same in Markdown and on the page.
type table struct {
	Head []string
	Rows [][]string
}

// tables of a scenario; those without rows are left out.
func (s *Scenario) tables() []table {
	all := []table{s.ratiosTable(), pointsTable(s.Points), storesTable(s.Points), streamsTable(s.Streams), idleTable(s.Idle), summariesTable(s.Summaries)}
	return slices.DeleteFunc(all, func(t table) bool { return len(t.Rows) == 0 })
}

// A row is several rounds of the same measurement.
type row[T any] struct {
	name   [2]string
	rounds []*T // that count
	out    []*T // that are excluded
}

// group gathers the rounds of each measurement, in the order of the first.
func group[T any](all []T, name func(*T) [2]string, excluded func(*T) string) []row[T] {
	var rows []row[T]
	at := make(map[[2]string]int)
	for i := range all {
		n := name(&all[i])
		k, seen := at[n]
		if !seen {
			k = len(rows)
			at[n] = k
			rows = append(rows, row[T]{name: n})
		}
		if excluded(&all[i]) != "" {
			rows[k].out = append(rows[k].out, &all[i])
			continue
		}
		rows[k].rounds = append(rows[k].rounds, &all[i])
	}
	return rows
}

// spread is the median and range of a value over the rounds; a negative value
// is unknown.
func (r *row[T]) spread(decimals int, value func(*T) float64) string {
	var values []float64
	for _, p := range r.rounds {
		if v := value(p); v >= 0 && !math.IsInf(v, 0) {
			values = append(values, v)
		}
	}
	if len(values) == 1 {
		return fmt.Sprintf("%.*f", decimals, values[0])
	}
	return Of(values...).Text(decimals)
}

// count tells the rounds that count and those that do not.
func (r *row[T]) count() string {
	text := fmt.Sprint(len(r.rounds))
	if len(r.out) > 0 {
		text += fmt.Sprintf(" (%d excluded)", len(r.out))
	}
	return text
}

func pointsTable(points []Point) table {
	rows := group(points,
		func(x *Point) [2]string { return [2]string{rate(x.Offered), join(x.System, x.Variant)} },
		func(x *Point) string { return x.Excluded })
	var cells [][]string
	for _, r := range rows {
		cells = append(cells, []string{
			r.name[0], r.name[1], r.count(),
			r.spread(0, func(x *Point) float64 { return x.Served }),
			r.spread(3, func(x *Point) float64 { return 100 * x.ErrorShare }),
			r.spread(2, func(x *Point) float64 { return x.OverheadP50Ms }),
			r.spread(2, func(x *Point) float64 { return x.OverheadP99Ms }),
			r.spread(1, func(x *Point) float64 { return x.CPUPerRequestUs }),
			r.spread(2, func(x *Point) float64 { return x.Cores[Gateway] }),
			r.spread(1, func(x *Point) float64 { return float64(x.RSSBytes) / (1 << 20) }),
			r.spread(0, func(x *Point) float64 { return float64(x.Goroutines) }),
			r.spread(1, func(x *Point) float64 { return x.AllocsPerReq }),
			r.spread(3, func(x *Point) float64 { return x.DialsPerReq }),
		})
	}
	return table{[]string{
		"offered/s", "system", "rounds", "served/s", "errors %", "overhead p50 ms", "overhead p99 ms", "CPU µs per request", "cores", "working set MiB",
		"goroutines", "allocations per request", "dials per request",
	}, cells}
}

// storesTable tells what the counting of limits took, of the points for which
// somebody looked.
func storesTable(points []Point) table {
	points = slices.DeleteFunc(slices.Clone(points), func(p Point) bool { return p.Store == nil })
	var cells [][]string
	for _, r := range group(points, pointName, func(x *Point) string { return x.Excluded }) {
		cells = append(cells, []string{
			r.name[0], r.name[1], r.count(),
			r.spread(1, func(x *Point) float64 { return x.CPUPerRequestUs }),
			r.spread(2, func(x *Point) float64 { return x.Store.CPUPerRequestUs }),
			r.spread(4, func(x *Point) float64 { return x.Store.EvalsPerReq }),
			r.spread(3, func(x *Point) float64 { return x.Store.CommandsPerReq }),
			r.spread(3, func(x *Point) float64 { return x.Store.AdmissionP50Ms }),
			r.spread(3, func(x *Point) float64 { return x.Store.AdmissionP99Ms }),
		})
	}
	return table{[]string{
		"offered/s", "system", "rounds", "CPU µs per request", "store CPU µs per request", "EVALSHA per request", "commands per request",
		"admission p50 ms", "admission p99 ms",
	}, cells}
}

func streamsTable(points []StreamPoint) table {
	rows := group(points,
		func(x *StreamPoint) [2]string {
			return [2]string{fmt.Sprint(x.Streams), join(x.System, x.Variant)}
		},
		func(x *StreamPoint) string { return x.Excluded })
	var cells [][]string
	for _, r := range rows {
		cells = append(cells, []string{
			r.name[0], r.name[1], r.count(),
			r.spread(0, func(x *StreamPoint) float64 { return float64(x.Completed) }),
			r.spread(1, func(x *StreamPoint) float64 { return x.KiBPerStream }),
			r.spread(3, func(x *StreamPoint) float64 { return x.CoresPer1000 }),
			r.spread(2, func(x *StreamPoint) float64 { return x.AddedGapP99Ms }),
			r.spread(0, func(x *StreamPoint) float64 { return float64(x.Goroutines) }),
		})
	}
	return table{[]string{"streams", "system", "rounds", "whole", "KiB per stream", "cores per 1,000", "added gap p99 ms", "goroutines"}, cells}
}

func idleTable(points []IdlePoint) table {
	rows := group(points,
		func(x *IdlePoint) [2]string { return [2]string{fmt.Sprint(x.Connections), x.System} },
		func(x *IdlePoint) string { return x.Excluded })
	var cells [][]string
	for _, r := range rows {
		cells = append(cells, []string{
			r.name[0], r.name[1], r.count(),
			r.spread(2, func(x *IdlePoint) float64 { return x.KiBPerConnection }),
			r.spread(0, func(x *IdlePoint) float64 { return float64(x.ConnectionsFailed) }),
			r.spread(2, func(x *IdlePoint) float64 { return x.ProbeP99Ms }),
		})
	}
	return table{[]string{"idle connections", "system", "rounds", "KiB each", "failed", "new caller p99 ms"}, cells}
}

func summariesTable(all []Summary) table {
	var cells [][]string
	for _, s := range all {
		cells = append(cells, []string{
			join(s.System, s.Variant), rate(s.Knee), rate(s.Capacity), fmt.Sprintf("%.1f", s.CapacityP99Ms),
			rate(s.Highest), fmt.Sprintf("%.3f", 100*s.HighestErrorShare), rate(s.PerCore),
		})
	}
	return table{[]string{"system", "knee/s", "capacity/s", "its overhead p99 ms", "highest served/s", "its errors %", "per core/s"}, cells}
}

func rate(perSecond float64) string {
	if perSecond == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f", perSecond)
}

// join is a system with its variant.
func join(system, variant string) string { return strings.TrimSpace(system + " " + variant) }
