package report

import (
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A system that refuses most of its load, or stopped at a lower step, is not
// compared where it failed.
func TestVerdictRate(t *testing.T) {
	r := madeUp([]float64{500, 2000, 4000}, nil)
	s := &r.Scenarios[0]
	var kept []Point
	for _, p := range s.Points {
		if p.System == "nethttp" && p.Offered == 4000 {
			p.ErrorShare = 0.7
		}
		if p.System == "fasthttp" && p.Offered == 4000 {
			continue
		}
		kept = append(kept, p)
	}
	s.Points = kept
	if got := strings.Join(verdicts(r), "\n"); !strings.Contains(got, "At 2,000 requests/s Relay took") || !strings.Contains(got, "nethttp 322 µs (2.50×)") {
		t.Errorf("the steps that all held are not compared: %s", got)
	}
	for i := range s.Points {
		if p := &s.Points[i]; p.System == "nethttp" {
			p.ErrorShare = 0.7
		}
	}
	if got := strings.Join(verdicts(r), "\n"); strings.Contains(got, "nethttp 322") || !strings.Contains(got, "Not measured there, or with too many errors: nethttp.") {
		t.Errorf("a system that held nothing: %s", got)
	}
	for i := range s.Points {
		s.Points[i].Excluded = "late"
	}
	if got := strings.Join(verdicts(r), "\n"); strings.Contains(got, "CPU per request") {
		t.Errorf("excluded points are compared: %s", got)
	}
}

func TestRatios(t *testing.T) {
	r := madeUp([]float64{500, 2000}, []int{100})
	got := r.Scenarios[0].ratiosTable()
	if len(got.Rows) == 0 || strings.Join(got.Head, " ") != "Relay ÷ nethttp fasthttp haproxy nginx" || strings.Join(got.Rows[0], " ") != "CPU per request at 2,000/s 0.40× 0.56× 1.52× 1.63×" {
		t.Errorf("got %q", got)
	}
}

func TestMarkdownTellsAll(t *testing.T) {
	r := madeUp([]float64{500, 2000}, nil)
	for i := range r.Scenarios[0].Points {
		if p := &r.Scenarios[0].Points[i]; p.Money != nil && p.Round == 2 {
			p.Money.Problem = "one row is missing"
		}
	}
	var b strings.Builder
	if err := Markdown(&b, r); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"* relay at 500/s, round 2: the accounts do not add up: one row is missing", "* relay: 4,000 good answers, 4,000 rows: does NOT add up",
		"* nginx at 2,000/s, round 2: the generator was late", "| Relay ÷ | nethttp |", "* envoy is left out", "* setting: hold=8s", "* cores: 2",
		"* again: bin/relay-perf ladder", "* At 2,000 requests/s Relay took",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if page := html(t, r); !strings.Contains(page, `<div class="verdict bad"><p>relay at 500/s, round 2: the accounts`) {
		t.Error("the page hides that the accounts do not add up")
	}
}

// Strings of a result file have no meaning for the page or the tables.
func TestHostileStrings(t *testing.T) {
	const evil = "a | b\n# c\x01\x00 <script>x</script> ![p](http://x.invalid/) `d`\xff"
	r := madeUp([]float64{500, 2000}, nil)
	for i := range r.Scenarios[0].Points {
		r.Scenarios[0].Points[i].System += evil
	}
	r.Settings["s"], r.Host.CPUModel, r.Missing, r.Scenarios[0].Notes, r.Scenarios[0].Asks = evil, evil, []string{evil}, []string{evil}, evil
	page := html(t, r)
	for _, svg := range pictures(t, page) {
		d := xml.NewDecoder(strings.NewReader(svg))
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
	}
	if strings.Contains(page, "<script") {
		t.Error("a script is on the page")
	}
	var b strings.Builder
	if err := Markdown(&b, r); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	if strings.Contains(text, "<script") || strings.Contains(text, "\n# c") || strings.Contains(text, "](") || strings.Contains(text, "\x01") {
		t.Errorf("a string means something:\n%s", text)
	}
	bars := regexp.MustCompile(`(^|[^\\])\|`)
	width := 0
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "| ") {
			width = 0
			continue
		}
		n := len(bars.FindAllString(line, -1))
		if width != 0 && n != width {
			t.Errorf("a row of %d bars in a table of %d: %s", n, width, line)
		}
		width = n
	}
}

// Many systems and variants leave every name within its picture.
func TestCrowd(t *testing.T) {
	r := madeUp([]float64{500, 1000, 2000, 4000}, nil)
	s := &r.Scenarios[0]
	plain, sums := s.Points, s.Summaries
	s.Points, s.Summaries = nil, nil
	for _, variant := range []string{"", "GOGC=400", "leases off", "RELAY_MAX_INFLIGHT=20000 and more words than fit"} {
		for _, p := range plain {
			p.Variant = variant
			s.Points = append(s.Points, p)
		}
		for _, x := range sums {
			x.Variant = variant
			s.Summaries = append(s.Summaries, x)
		}
	}
	page := html(t, r)
	texts := regexp.MustCompile(`<text class="label[^"]*" x="([\d.-]+)" y="([\d.-]+)">([^<]*)<`).FindAllStringSubmatch(page, -1)
	if len(texts) == 0 || !strings.Contains(page, "CPU per request, GOGC=400") || !strings.Contains(page, "CPU per request, usual settings") {
		t.Fatalf("%d names, pictures not apart by variant", len(texts))
	}
	for _, m := range texts {
		x, errX := strconv.ParseFloat(m[1], 64)
		y, errY := strconv.ParseFloat(m[2], 64)
		if errX != nil || errY != nil || y < 8 || x+letterWidth*float64(len([]rune(m[3]))) > plotWidth+1 {
			t.Errorf("%q at %v, %v is outside", m[3], x, y)
		}
	}
}

func TestHollow(t *testing.T) {
	page := html(t, madeUp([]float64{500, 2000}, nil))
	if !strings.Contains(page, `class="hollow s-nginx"`) || strings.Contains(page, `class="hollow s-relay"`) {
		t.Error("excluded rounds are not hollow")
	}
}

func TestPoolNotes(t *testing.T) {
	one, two := madeUp([]float64{500}, nil), madeUp([]float64{500}, nil)
	two.Taken, two.Host.Commit = two.Taken.Add(time.Hour), "other"
	got, err := Pool(one, two)
	if err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(got.Scenarios[0].Notes, "\n"); !strings.Contains(text, noteSums) || !strings.Contains(text, noteHosts) {
		t.Errorf("notes are %q", text)
	}
}
