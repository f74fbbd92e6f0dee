package report

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// A plot is one picture. Colors come from the page: each system has a class of
// its own everywhere, which a light and a dark page paint differently.
type plot struct {
	Title  string
	XLabel string
	YLabel string
	LogY   bool
	Equal  bool // a line of y = x is drawn
	Series []series
}

// A series is one line. System names its color.
type series struct {
	System string
	Label  string
	Points []mark
	Hollow []mark // single rounds that are excluded
}

// A mark is a median with its range.
type mark struct{ X, Y, Low, High float64 }

// Sizes of a picture, in its own units.
const (
	plotWidth   = 480.0
	plotHeight  = 300.0
	plotLeft    = 58.0
	plotWords   = 28.0
	plotTop     = 14.0
	plotBottom  = 46.0
	labelHeight = 15.0
	barHeight   = 26.0
	barRight    = 62.0
	letterWidth = 7.2 // of a label, about
	labelMax    = 200.0
	labelRunes  = 27 // of a label as wide as that
	tickCount   = 5
)

// A scale maps values to places.
type scale struct {
	low, high   float64
	from, to    float64
	logarithmic bool
}

func (s scale) at(v float64) float64 {
	low, high := s.low, s.high
	if s.logarithmic {
		v, low, high = math.Log10(max(v, low)), math.Log10(low), math.Log10(high)
	}
	if high == low {
		return s.from
	}
	return s.from + (v-low)/(high-low)*(s.to-s.from)
}

// ticks are round values within the scale.
func (s scale) ticks() []float64 {
	var out []float64
	if s.logarithmic {
		for p := math.Floor(math.Log10(s.low)); p <= math.Ceil(math.Log10(s.high)); p++ {
			for _, m := range []float64{1, 2, 5} {
				if v := m * math.Pow(10, p); v >= s.low*0.999 && v <= s.high*1.001 {
					out = append(out, v)
				}
			}
		}
		for len(out) > tickCount+3 { // every second one
			kept := out[:0]
			for i := 0; i < len(out); i += 2 {
				kept = append(kept, out[i])
			}
			out = kept
		}
		return out
	}
	step := niceStep((s.high - s.low) / tickCount)
	for i := math.Ceil(s.low / step); i*step <= s.high*1.0001; i++ {
		out = append(out, i*step)
	}
	return out
}

// niceStep is 1, 2 or 5 times a power of ten, at least as large.
func niceStep(raw float64) float64 {
	if raw <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, m := range []float64{1, 2, 5, 10} {
		if m*power >= raw*0.9999 {
			return m * power
		}
	}
	return 10 * power
}

// sound reports whether a mark can be drawn.
func (m mark) sound(logarithmic bool) bool {
	for _, v := range []float64{m.X, m.Y, m.Low, m.High} {
		if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
			return false
		}
	}
	return !logarithmic || m.Y > 0
}

// clean drops what cannot be drawn; it reports whether something is left.
func (p *plot) clean() bool {
	for i := range p.Series {
		p.Series[i].Points = slices.DeleteFunc(slices.Clone(p.Series[i].Points), func(m mark) bool { return !m.sound(p.LogY) })
		slices.SortFunc(p.Series[i].Points, func(a, b mark) int { return cmp.Compare(a.X, b.X) })
	}
	p.Series = slices.DeleteFunc(slices.Clone(p.Series), func(s series) bool { return len(s.Points) == 0 })
	return len(p.Series) > 0
}

// scales fit all marks. Axes without a logarithm begin at zero.
func (p *plot) scales() (x, y scale) {
	widest := 0.0
	for _, s := range p.Series {
		widest = max(widest, labelWidth(s.Label))
	}
	x = scale{to: plotWidth - widest - 18}
	y = scale{from: p.height() - plotBottom, to: plotTop, logarithmic: p.LogY, low: math.Inf(1)}
	for _, s := range p.Series {
		for _, m := range s.Points {
			x.high = max(x.high, m.X)
			y.high = max(y.high, m.Y, m.High)
			y.low = min(y.low, m.Y)
			if m.Low > 0 {
				y.low = min(y.low, m.Low)
			}
		}
	}
	x.high = max(x.high, 1)
	if !p.LogY {
		y.low = 0
		y.high = max(y.high*1.05, 1e-9)
		x.from = leftOf(y)
		return x, y
	}
	y.low = math.Pow(10, math.Floor(math.Log10(y.low)*2)/2)
	y.high = max(math.Pow(10, math.Ceil(math.Log10(y.high)*2)/2), y.low*10)
	x.from = leftOf(y)
	return x, y
}

// leftOf is the room for the ticks of the y axis and the words beside them.
func leftOf(y scale) float64 {
	left := plotLeft
	for _, v := range y.ticks() {
		left = max(left, labelWidth(human(v))+plotWords)
	}
	return left
}

// height grows with the names beside the lines, which must not leave the picture.
func (p *plot) height() float64 {
	return max(plotHeight, float64(len(p.Series)+1)*labelHeight+plotTop+plotBottom)
}

// spoken is what the picture says, for those who do not see it.
func (p *plot) spoken() string {
	var parts []string
	for _, s := range p.Series {
		last := s.Points[len(s.Points)-1]
		parts = append(parts, fmt.Sprintf("%s %s at %s", s.Label, human(last.Y), human(last.X)))
	}
	return fmt.Sprintf("%s, in %s: %s", p.Title, p.YLabel, strings.Join(parts, "; "))
}

// SVG draws the plot; "" when there is nothing to draw.
func (p plot) SVG() template.HTML {
	if !p.clean() {
		return ""
	}
	x, y := p.scales()
	d := &drawing{}
	d.open(p.height(), p.Title, p.spoken())
	for _, v := range y.ticks() {
		d.add(`<line class="grid" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`, x.from, x.to, y.at(v), y.at(v))
		d.text("tick end", x.from-6, y.at(v)+4, human(v))
	}
	for _, v := range x.ticks() {
		d.add(`<line class="grid" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`, x.at(v), x.at(v), y.from, y.from+4)
		d.text("tick middle", x.at(v), y.from+17, human(v))
	}
	d.text("axis middle", (x.from+x.to)/2, p.height()-8, p.XLabel)
	d.add(`<text class="axis middle" transform="translate(13 %.1f) rotate(-90)">%s</text>`, (y.from+y.to)/2, escape(p.YLabel))
	if p.Equal {
		top := min(x.high, y.high)
		d.add(`<line class="equal" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, x.at(0), y.at(0), x.at(top), y.at(top))
	}
	for _, s := range p.Series {
		d.hollow(s, x, y) // below the medians, which count
		d.line(s, x, y)
	}
	d.labels(p.Series, x, y)
	return d.close()
}

// labelWidth is how wide a label is, about.
func labelWidth(text string) float64 {
	return min(float64(len([]rune(text)))*letterWidth, labelMax)
}

// short cuts a name down to labelRunes.
func short(s string) string {
	if runes := []rune(printable(s)); len(runes) > labelRunes {
		return string(runes[:labelRunes-1]) + "…"
	}
	return s
}

// printable takes out what has no place in a line or in XML.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), r == 0xFFFE, r == 0xFFFF:
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

func escape(s string) string { return template.HTMLEscapeString(printable(s)) }

// A drawing is an SVG as it is written.
type drawing struct{ b strings.Builder }

func (d *drawing) open(height float64, title, spoken string) {
	title, spoken = escape(title), escape(spoken)
	d.add(`<svg viewBox="0 0 %.0f %.0f" role="img" aria-label="%s" xmlns="http://www.w3.org/2000/svg"><title>%s</title>`, plotWidth, height, spoken, title)
}

func (d *drawing) close() template.HTML {
	d.add(`</svg>`)
	return template.HTML(d.b.String())
}

func (d *drawing) add(format string, args ...any) { fmt.Fprintf(&d.b, format, args...) }

func (d *drawing) text(class string, x, y float64, text string) {
	d.add(`<text class="%s" x="%.1f" y="%.1f">%s</text>`, class, x, y, escape(text))
}

// line draws one series with its ranges.
func (d *drawing) line(s series, x, y scale) {
	class := systemClass(s.System)
	var path []string
	for _, m := range s.Points {
		path = append(path, fmt.Sprintf("%.1f,%.1f", x.at(m.X), y.at(m.Y)))
		if m.High > m.Low {
			d.add(`<line class="range %s" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`, class, x.at(m.X), x.at(m.X), y.at(m.Low), y.at(m.High))
		}
	}
	d.add(`<polyline class="line %s" points="%s"/>`, class, strings.Join(path, " "))
	for _, m := range s.Points {
		d.add(`<circle class="dot %s" cx="%.1f" cy="%.1f" r="3.5"><title>%s: %s at %s</title></circle>`, class, x.at(m.X), y.at(m.Y), escape(s.Label), human(m.Y), human(m.X))
	}
}

// hollow draws excluded rounds that lie within the picture.
func (d *drawing) hollow(s series, x, y scale) {
	for _, m := range s.Hollow {
		if m.sound(y.logarithmic) && m.X <= x.high && m.Y >= y.low && m.Y <= y.high {
			d.add(`<circle class="hollow %s" cx="%.1f" cy="%.1f" r="3.5"><title>%s, excluded</title></circle>`, systemClass(s.System), x.at(m.X), y.at(m.Y), escape(s.Label))
		}
	}
}

// labels writes the name of each line behind its last point, moved apart where
// they would meet.
func (d *drawing) labels(all []series, x, y scale) {
	type label struct {
		y, x, wanted float64
		s            series
	}
	var labels []label
	for _, s := range all {
		last := s.Points[len(s.Points)-1]
		labels = append(labels, label{y: y.at(last.Y), wanted: y.at(last.Y), x: x.at(last.X), s: s})
	}
	slices.SortStableFunc(labels, func(a, b label) int { return cmp.Compare(a.y, b.y) })
	for i := 1; i < len(labels); i++ {
		labels[i].y = max(labels[i].y, labels[i-1].y+labelHeight)
	}
	if n := len(labels); n > 0 && labels[n-1].y > y.from {
		labels[n-1].y = y.from
		for i := n - 2; i >= 0; i-- {
			labels[i].y = min(labels[i].y, labels[i+1].y-labelHeight)
		}
	}
	for _, l := range labels {
		d.add(`<line class="lead %s" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, systemClass(l.s.System), l.x+5, l.wanted, x.to+10, l.y)
		d.text("label "+systemClass(l.s.System), x.to+13, l.y+4, short(l.s.Label))
	}
}

// A bars is one picture of horizontal bars.
type bars struct {
	Title string
	Unit  string
	Bars  []bar
}

// A bar is one value with its range.
type bar struct {
	System, Label string
	Y, Low, High  float64
	Text          string // what stands behind it
}

// SVG draws the bars; "" when there are none.
func (b bars) SVG() template.HTML {
	all := slices.DeleteFunc(slices.Clone(b.Bars), func(x bar) bool { return !mark{0, x.Y, x.Low, x.High}.sound(false) })
	if len(all) == 0 {
		return ""
	}
	left := 0.0
	x := scale{}
	for _, a := range all {
		x.high = max(x.high, a.Y, a.High)
		left = max(left, labelWidth(a.Label))
	}
	left += 10
	x.from, x.to = left, plotWidth-barRight
	x.high = max(x.high, 1e-9)
	d := &drawing{}
	var spoken []string
	for _, a := range all {
		spoken = append(spoken, a.Label+" "+a.Text)
	}
	d.open(float64(len(all))*barHeight+34, b.Title, fmt.Sprintf("%s, in %s: %s", b.Title, b.Unit, strings.Join(spoken, "; ")))
	for i, a := range all {
		y, class := float64(i)*barHeight+4, systemClass(a.System)
		d.text("name end", left-8, y+15, short(a.Label))
		d.add(`<rect class="bar %s" x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="2"/>`, class, left, y, max(x.at(a.Y)-left, 1), barHeight-7)
		if a.High > a.Low {
			d.add(`<line class="spread" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`, x.at(a.Low), x.at(a.High), y+(barHeight-7)/2, y+(barHeight-7)/2)
		}
		d.text("value", max(x.at(a.Y), x.at(a.High))+6, y+15, a.Text)
	}
	d.text("axis", left, float64(len(all))*barHeight+24, b.Unit)
	return d.close()
}

// systems have a color each; others share one.
var systems = []string{"relay", "nethttp", "fasthttp", "haproxy", "nginx"}

func systemClass(name string) string {
	if slices.Contains(systems, name) {
		return "s-" + name
	}
	return "s-other"
}

// human writes a number as people do: three digits that matter, thousands apart.
func human(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "–"
	case a >= 1e15:
		return strconv.FormatFloat(v, 'g', 3, 64)
	case a >= 100:
		return thousands(int64(math.Round(v)))
	}
	text := strconv.FormatFloat(v, 'f', decimalsOf(v), 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

func decimalsOf(v float64) int {
	switch a := math.Abs(v); {
	case a >= 10:
		return 1
	case a >= 1:
		return 2
	}
	return 3
}

func thousands(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
