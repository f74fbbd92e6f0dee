package report

import (
	"math"
	"slices"
)

func pointName(p *Point) [2]string { return [2]string{rate(p.Offered), join(p.System, p.Variant)} }

func streamName(p *StreamPoint) [2]string {
	return [2]string{human(float64(p.Streams)), join(p.System, p.Variant)}
}

func idleName(p *IdlePoint) [2]string {
	return [2]string{human(float64(p.Connections)), p.System}
}

// values are those of the rounds that count; negative ones are unknown.
func (r *row[T]) values(value func(*T) float64) Spread {
	var all []float64
	for _, p := range r.rounds {
		if v := value(p); v >= 0 && !math.IsInf(v, 0) {
			all = append(all, v)
		}
	}
	return Of(all...)
}

// lines make one series per system and variant out of rows.
func lines[T any](rows []row[T], who func(*T) (system, label string), x, y func(*T) float64) []series {
	var out []series
	for _, r := range rows {
		if len(r.rounds) == 0 {
			continue
		}
		v := r.values(y)
		if len(v.Values) == 0 {
			continue
		}
		system, label := who(r.rounds[0])
		i := slices.IndexFunc(out, func(s series) bool { return s.Label == label })
		if i < 0 {
			i = len(out)
			out = append(out, series{System: system, Label: label})
		}
		out[i].Points = append(out[i].Points, mark{x(r.rounds[0]), v.Median, v.Low, v.High})
		for _, p := range r.out {
			out[i].Hollow = append(out[i].Hollow, mark{x(p), y(p), y(p), y(p)})
		}
	}
	return out
}

// barsOf makes a bar per row.
func barsOf[T any](rows []row[T], name func(*T) (system, label string), y func(*T) float64) []bar {
	var out []bar
	for _, r := range rows {
		if len(r.rounds) == 0 {
			continue
		}
		v := r.values(y)
		if len(v.Values) == 0 {
			continue
		}
		system, label := name(r.rounds[0])
		out = append(out, bar{System: system, Label: label, Y: v.Median, Low: v.Low, High: v.High, Text: human(v.Median)})
	}
	return out
}

// steps counts the different values of x.
func steps(all []series) int {
	seen := make(map[float64]bool)
	for _, s := range all {
		for _, m := range s.Points {
			seen[m.X] = true
		}
	}
	return len(seen)
}

// figures are the pictures for which a scenario has points.
func (s *Scenario) figures() []figure {
	var out []figure
	for _, part := range s.byVariant() {
		for _, f := range slices.Concat(part.rateFigures(), part.storeFigures(), part.streamFigures(), part.summaryFigures()) {
			if part.Name != "" {
				f.Title += ", " + part.Name
			}
			out = append(out, f)
		}
	}
	out = append(out, s.idleFigures()...)
	return slices.DeleteFunc(out, func(f figure) bool { return f.SVG == "" })
}

// seriesMax is how many lines or bars one picture of several systems holds; what
// has more is drawn apart for each variant.
const seriesMax = 8

// byVariant takes a scenario apart when its pictures would be crowded: the name
// of each part is the variant, which its points then no longer bear.
func (s *Scenario) byVariant() []*Scenario {
	var systems, variants []string
	note := func(system, variant string) {
		if !slices.Contains(systems, system) {
			systems = append(systems, system)
		}
		if !slices.Contains(variants, variant) {
			variants = append(variants, variant)
		}
	}
	for _, p := range s.Points {
		note(p.System, p.Variant)
	}
	for _, p := range s.Streams {
		note(p.System, p.Variant)
	}
	if len(systems) < 2 || len(variants) < 2 || len(systems)*len(variants) <= seriesMax {
		return []*Scenario{{Points: s.Points, Streams: s.Streams, Summaries: s.Summaries}}
	}
	var parts []*Scenario
	for _, variant := range variants {
		part := &Scenario{Name: variant}
		if variant == "" {
			part.Name = "usual settings"
		}
		for _, p := range s.Points {
			if p.Variant == variant {
				p.Variant = ""
				part.Points = append(part.Points, p)
			}
		}
		for _, p := range s.Streams {
			if p.Variant == variant {
				p.Variant = ""
				part.Streams = append(part.Streams, p)
			}
		}
		for _, x := range s.Summaries {
			if x.Variant == variant {
				x.Variant = ""
				part.Summaries = append(part.Summaries, x)
			}
		}
		parts = append(parts, part)
	}
	return parts
}

func (s *Scenario) rateFigures() []figure {
	rows := group(s.Points, pointName, func(p *Point) string { return p.Excluded })
	who := func(p *Point) (string, string) { return p.System, join(p.System, p.Variant) }
	offered := func(p *Point) float64 { return p.Offered }
	of := func(y func(*Point) float64) []series { return lines(rows, who, offered, y) }
	cpu := of(func(p *Point) float64 { return p.CPUPerRequestUs })
	if len(cpu) == 0 {
		return nil
	}
	const x = "offered requests per second"
	if steps(cpu) == 1 {
		return []figure{
			{"CPU per request", "user and system time of the gateway", bars{"CPU per request", "µs", barsOf(rows, who, func(p *Point) float64 { return p.CPUPerRequestUs })}.SVG()},
			{"Overhead at p99", "what the gateway adds to a request, of the worse request type", bars{"Overhead p99", "ms", barsOf(rows, who, func(p *Point) float64 { return p.OverheadP99Ms })}.SVG()},
			{"Working set", "most in the last half of the hold", bars{"Working set", "MiB", barsOf(rows, who, func(p *Point) float64 { return float64(p.RSSBytes) / (1 << 20) })}.SVG()},
		}
	}
	figures := []figure{
		{"CPU per request", "user and system time of the gateway; it falls as wake-ups are shared", plot{Title: "CPU per request by offered rate", XLabel: x, YLabel: "µs per request", Series: cpu}.SVG()},
		{"Overhead at p99", "what the gateway adds to a request, of the worse request type", plot{Title: "Overhead p99 by offered rate", XLabel: x, YLabel: "ms, logarithmic", LogY: true, Series: of(func(p *Point) float64 { return p.OverheadP99Ms })}.SVG()},
		{"Overhead at p50", "the same at the median", plot{Title: "Overhead p50 by offered rate", XLabel: x, YLabel: "ms, logarithmic", LogY: true, Series: of(func(p *Point) float64 { return p.OverheadP50Ms })}.SVG()},
		{"Working set", "most in the last half of the hold", plot{Title: "Working set by offered rate", XLabel: x, YLabel: "MiB", Series: of(func(p *Point) float64 { return float64(p.RSSBytes) / (1 << 20) })}.SVG()},
	}
	if steps(cpu) > 2 {
		served := plot{Title: "Served by offered rate", XLabel: x, YLabel: "served per second", Equal: true, Series: of(func(p *Point) float64 { return p.Served })}
		figures = append([]figure{{"Served and offered", "the thin line is everything that was offered", served.SVG()}}, figures...)
	}
	return figures
}

// storeFigures show what the counting of limits took, where somebody looked.
func (s *Scenario) storeFigures() []figure {
	points := slices.DeleteFunc(slices.Clone(s.Points), func(p Point) bool { return p.Store == nil })
	rows := group(points, pointName, func(p *Point) string { return p.Excluded })
	who := func(p *Point) (string, string) { return p.System, join(p.System, p.Variant) }
	offered := func(p *Point) float64 { return p.Offered }
	const x, note = "offered requests per second", "user and system time of the store"
	cpu := func(p *Point) float64 { return p.Store.CPUPerRequestUs }
	wait := func(p *Point) float64 { return p.Store.AdmissionP99Ms }
	all := lines(rows, who, offered, cpu)
	if steps(all) < 2 {
		return []figure{
			{"CPU of the store per request", note, bars{"CPU of the store", "µs", barsOf(rows, who, cpu)}.SVG()},
			{"Admission at p99", "from the last byte of a request to its hand-over to a host", bars{"Admission p99", "ms", barsOf(rows, who, wait)}.SVG()},
		}
	}
	return []figure{
		{"CPU of the store per request", note, plot{Title: "CPU of the store by offered rate", XLabel: x, YLabel: "µs per request", Series: all}.SVG()},
		{"Admission at p99", "from the last byte of a request to its hand-over to a host", plot{Title: "Admission p99 by offered rate", XLabel: x, YLabel: "ms, logarithmic", LogY: true, Series: lines(rows, who, offered, wait)}.SVG()},
	}
}

func (s *Scenario) streamFigures() []figure {
	rows := group(s.Streams, streamName, func(p *StreamPoint) string { return p.Excluded })
	who := func(p *StreamPoint) (string, string) { return p.System, join(p.System, p.Variant) }
	count := func(p *StreamPoint) float64 { return float64(p.Streams) }
	kib := func(p *StreamPoint) float64 { return p.KiBPerStream }
	cores := func(p *StreamPoint) float64 { return p.CoresPer1000 }
	rss := lines(rows, who, count, func(p *StreamPoint) float64 { return float64(p.RSSBytes) / (1 << 20) })
	if steps(rss) < 2 {
		return []figure{
			{"Memory per open stream", "over the base of the process", bars{"Memory per open stream", "KiB", barsOf(rows, who, kib)}.SVG()},
			{"CPU of 1,000 open streams", "10 events per second each", bars{"CPU of 1,000 open streams", "cores", barsOf(rows, who, cores)}.SVG()},
			{"Added gap at p99", "how much later an event comes than its distance to the one before says", bars{"Added gap p99", "ms", barsOf(rows, who, func(p *StreamPoint) float64 { return p.AddedGapP99Ms })}.SVG()},
		}
	}
	const x = "open streams"
	return []figure{
		{"Working set", "of the whole process", plot{Title: "Working set by open streams", XLabel: x, YLabel: "MiB", Series: rss}.SVG()},
		{"Memory per open stream", "over the base of the process", plot{Title: "Memory per open stream", XLabel: x, YLabel: "KiB, logarithmic", LogY: true, Series: lines(rows, who, count, kib)}.SVG()},
		{"CPU of 1,000 open streams", "10 events per second each", plot{Title: "CPU of 1,000 open streams", XLabel: x, YLabel: "cores", Series: lines(rows, who, count, cores)}.SVG()},
		{"Added gap at p99", "how much later an event comes than its distance to the one before says", plot{Title: "Added gap p99", XLabel: x, YLabel: "ms, logarithmic", LogY: true, Series: lines(rows, who, count, func(p *StreamPoint) float64 { return p.AddedGapP99Ms })}.SVG()},
	}
}

func (s *Scenario) summaryFigures() []figure {
	var knee, capacity, perCore []bar
	for _, x := range s.Summaries {
		label := join(x.System, x.Variant)
		one := func(v float64) bar { return bar{x.System, label, v, v, v, human(v)} }
		knee, capacity, perCore = append(knee, one(x.Knee)), append(capacity, one(x.Capacity)), append(perCore, one(x.PerCore))
	}
	return []figure{
		{"Latency knee", "highest rate with a p99 overhead of at most 15 ms and 0.1 % errors, as all lower ones", bars{"Latency knee", "requests per second; 0 = below the first step", knee}.SVG()},
		{"Error capacity", "highest rate with at most 0.1 % errors", bars{"Error capacity", "requests per second", capacity}.SVG()},
		{"Capacity per core", "error capacity over the cores that the gateway used there", bars{"Capacity per core", "requests per second and core", perCore}.SVG()},
	}
}

func (s *Scenario) idleFigures() []figure {
	rows := group(s.Idle, idleName, func(p *IdlePoint) string { return p.Excluded })
	who := func(p *IdlePoint) (string, string) { return p.System, p.System }
	kib := func(p *IdlePoint) float64 { return p.KiBPerConnection }
	all := lines(rows, who, func(p *IdlePoint) float64 { return float64(p.Connections) }, kib)
	if steps(all) < 2 {
		return []figure{{"Memory per idle connection", "over the base of the process", bars{"Memory per idle connection", "KiB", barsOf(rows, who, kib)}.SVG()}}
	}
	return []figure{{"Memory per idle connection", "over the base of the process", plot{Title: "Memory per idle connection", XLabel: "idle connections", YLabel: "KiB, logarithmic", LogY: true, Series: all}.SVG()}}
}
