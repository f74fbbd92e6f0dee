package report

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"relay/perf/machine"
)

// madeUp is a run with plausible values that nobody has measured.
func madeUp(rates []float64, streams []int) *Run {
	base := map[string][4]float64{ // µs, overhead p99 ms, MiB, KiB per stream
		"relay": {100, 1.2, 28, 7.8}, "nethttp": {250, 3.1, 60, 68}, "fasthttp": {180, 2.2, 55, 48}, "haproxy": {66, 1.3, 18, 5.5}, "nginx": {62, 1.1, 30, 17},
	}
	r := &Run{Taken: time.Unix(1e9, 0).UTC(), Ended: time.Unix(1e9+280, 0).UTC(), Profile: "quick", Host: machine.Facts{CPUs: 2, CPUModel: "Made-up <processor> & co"},
		Systems: systems, Settings: map[string]string{"hold": "8s", "empty": ""}, Missing: []string{"envoy is left out"}}
	s := Scenario{Name: "overview", Asks: "What does a request cost?", CompletedBy: "the rest", Notes: []string{"A note."}}
	for round := 1; round <= 2; round++ {
		for _, name := range systems {
			v := base[name]
			for _, rate := range rates {
				p := Point{System: name, Round: round, Offered: rate, Sent: rate, Served: rate * 0.99, CPUPerRequestUs: v[0] * (1 + 500/rate) * (1 + float64(round)/50),
					OverheadP50Ms: v[1] / 5, OverheadP99Ms: v[1] * (1 + rate/4000), RSSBytes: int64(v[2] * (1 << 20)), Goroutines: -1, AllocsPerReq: -1, Cores: map[string]float64{Gateway: 0.2}}
				if name == "relay" {
					p.Money = &Money{Answered: 1000, Rows: 1000}
				}
				if name == "nginx" && round == 2 {
					p.Excluded = "the generator was late"
				}
				s.Points = append(s.Points, p)
			}
			for _, n := range streams {
				s.Streams = append(s.Streams, StreamPoint{System: name, Round: round, Streams: n, Completed: n, KiBPerStream: v[3], CoresPer1000: 0.2, AddedGapP99Ms: 3, RSSBytes: int64(float64(n) * v[3] * 1024)})
			}
		}
	}
	s.Summaries = []Summary{{System: "relay", Knee: 4000, Capacity: 6000, PerCore: 5000}, {System: "nethttp", Capacity: 3000, PerCore: 1500}}
	s.Idle = []IdlePoint{{System: "relay", Round: 1, Connections: 100, KiBPerConnection: 1.2}, {System: "relay", Round: 1, Connections: 9000, KiBPerConnection: 1.3}}
	r.Scenarios = []Scenario{s, {Number: 13, Name: "translation", Asks: "And that?"}}
	return r
}

func html(t *testing.T, r *Run) string {
	t.Helper()
	var b strings.Builder
	if err := HTML(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// pictures are the SVGs of a page; each must be well-formed and without a
// number that is none.
func pictures(t *testing.T, page string) []string {
	t.Helper()
	found := regexp.MustCompile(`(?s)<svg.*?</svg>`).FindAllString(page, -1)
	for _, svg := range found {
		d := xml.NewDecoder(strings.NewReader(svg))
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%v in %.300s", err, svg)
			}
		}
		if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") || strings.Contains(svg, "%!") {
			t.Fatalf("no number in %s", svg)
		}
	}
	return found
}

func TestPage(t *testing.T) {
	page := html(t, madeUp([]float64{500, 2000, 4000}, []int{500, 2000}))
	svgs := pictures(t, page)
	if len(svgs) != 13 {
		t.Errorf("%d pictures, want 13", len(svgs))
	}
	for _, svg := range svgs[:9] {
		for _, name := range systems {
			if !strings.Contains(svg, "s-"+name) || !strings.Contains(svg, ">"+name+"<") {
				t.Errorf("no %s with its color and name in %.200s", name, svg)
			}
		}
	}
	for _, want := range []string{
		"At 4,000 requests/s Relay took", "nethttp 290 µs (2.50×)", "With 2,000 open streams each took 7.8 KiB of Relay&#39;s memory",
		"relay: 6,000 good answers, 6,000 rows: adds up", "nginx at 500/s, round 2: the generator was late", "Made-up &lt;processor&gt; &amp; co",
		"hold=8s", "envoy is left out", "Not whole without the rest", "A note.", "knee/s",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q on the page", want)
		}
	}
	for _, not := range []string{"<script", "<link", "@import", "url(", "src=", "empty="} {
		if strings.Contains(page, not) {
			t.Errorf("%q is on the page", not)
		}
	}
	if outside := regexp.MustCompile(`https?://`).FindAllString(strings.ReplaceAll(page, "http://www.w3.org/2000/svg", ""), -1); outside != nil {
		t.Errorf("the page points outside: %q", outside)
	}
}

func TestPageOfLittle(t *testing.T) {
	pictures(t, html(t, &Run{}))
	pictures(t, html(t, madeUp([]float64{500}, []int{100})))
	if page := html(t, &Run{Failed: "relay ended <b>under load</b>"}); !strings.Contains(page, "relay ended &lt;b&gt;under load") {
		t.Error("a failed run does not say so")
	}
}

// Values that cannot be drawn break nothing.
func TestPageOfOddValues(t *testing.T) {
	for _, v := range []float64{0, -1, 1e-12, 1e300, math.NaN(), math.Inf(1)} {
		r := madeUp([]float64{500, 2000}, []int{100, 200})
		for i := range r.Scenarios[0].Points {
			p := &r.Scenarios[0].Points[i]
			p.CPUPerRequestUs, p.OverheadP99Ms = v, v
			if i%3 == 0 {
				p.Served = v
			}
		}
		for i := range r.Scenarios[0].Streams {
			r.Scenarios[0].Streams[i].KiBPerStream = v
		}
		pictures(t, html(t, r))
	}
	r := madeUp([]float64{500, 2000}, nil)
	for i := range r.Scenarios[0].Points {
		r.Scenarios[0].Points[i].System = `<script>"&'`
	}
	page := html(t, r)
	pictures(t, page)
	if strings.Contains(page, "<script>") {
		t.Error("a name is not escaped")
	}
}

func TestMarkdown(t *testing.T) {
	var b strings.Builder
	if err := Markdown(&b, madeUp([]float64{500}, []int{100})); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| 500 | relay | 2 | 495", "| 500 | nginx | 1 (1 excluded) |", "| 100 | nethttp | 2 |", "* A note."} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

func TestPool(t *testing.T) {
	one, two := madeUp([]float64{500}, []int{100}), madeUp([]float64{500, 900}, nil)
	two.Taken = two.Taken.Add(time.Hour)
	two.Missing = append(two.Missing, "another")
	got, err := Pool(two, one)
	if err != nil {
		t.Fatal(err)
	}
	s := got.Scenarios[0]
	if len(got.Scenarios) != 2 || len(s.Points) != 30 || s.Points[29].Round != 4 || len(got.Missing) != 2 || !got.Taken.Equal(one.Taken) {
		t.Errorf("%d scenarios, %d points, last round %d, %q", len(got.Scenarios), len(s.Points), s.Points[29].Round, got.Missing)
	}
	two.Profile = "local"
	if _, err := Pool(one, two); err == nil || !strings.Contains(err.Error(), "do not go together") {
		t.Errorf("two profiles: %v", err)
	}
	if _, err := Pool(); err == nil {
		t.Error("nothing was pooled")
	}
}

func TestHuman(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.1234: "0.123", 7.849: "7.85", 7.8: "7.8", 98.24: "98.2", 1234567: "1,234,567", -2500: "-2,500", 100: "100"} {
		if got := human(v); got != want {
			t.Errorf("%v is %q, want %q", v, got, want)
		}
	}
}

func TestTicks(t *testing.T) {
	for _, tt := range []struct {
		s    scale
		want int
	}{{scale{low: 0, high: 2000}, 5}, {scale{low: 0, high: 1}, 6}, {scale{low: 0.1, high: 10, logarithmic: true}, 7}} {
		got := tt.s.ticks()
		if len(got) != tt.want {
			t.Errorf("%+v has ticks %v", tt.s, got)
		}
	}
}
