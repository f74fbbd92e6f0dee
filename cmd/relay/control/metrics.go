package control

import (
	"runtime"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"relay/loop"
	"relay/store/source"
)

// A Reading is a number that another part of the process reports. Value may be
// called from any goroutine.
type Reading struct {
	Name    string // without namespace
	Help    string // the question that it answers
	Counter bool   // it only grows
	Label   string // "" = none
	Of      string // value of the label
	Value   func() float64
}

// desc makes the description of a metric in our namespace.
func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("relay_"+name, help, labels, nil)
}

// A sum is one number over all loops.
type sum struct {
	desc   *prometheus.Desc
	kind   prometheus.ValueType
	labels []string
	of     func(*loop.Metrics) float64
}

// A timing is one histogram over all loops.
type timing struct {
	desc *prometheus.Desc
	of   func(*loop.Metrics) *loop.Histogram
}

// collector turns the answers of the loops into metrics. It keeps nothing but
// the last counters of each loop.
type collector struct {
	sources  *Sources
	memory   memory
	sums     []sum
	timings  []timing
	requests *prometheus.Desc
	answers  *prometheus.Desc
	catalog  catalogDescs
	reactor  *reactorMetrics
	readings []*prometheus.Desc
}

type catalogDescs struct {
	generation, loaded, failures, ok *prometheus.Desc
}

// newCollector makes the collector of a process.
func newCollector(s *Sources) *collector {
	c := &collector{
		sources: s,
		sums:    sums(s.Outcomes),
		timings: timings(),
		reactor: newReactorMetrics(),
		requests: desc("requests_total",
			"Requests by who made the answer (relay or upstream) and its status; 0 = the caller had gone. How much traffic is there, and how much of it fails where?", "source", "status"),
		answers: desc("loop_answering",
			"1 if the loop answered this scrape in time. Is a loop stuck?", "loop"),
		catalog: catalogDescs{
			generation: desc("catalog_generation", "Generation of the live catalog, counted from 1 at start. Has every relay taken the change?"),
			loaded:     desc("catalog_loaded_timestamp_seconds", "When the live catalog was loaded, unix time. How old is it?"),
			failures:   desc("catalog_reload_failures_total", "Reloads that were refused. Does somebody write bad catalogs?"),
			ok:         desc("catalog_last_reload_ok", "1 if the last reload was accepted. Is the file on disk what is live?"),
		},
	}
	descs := map[string]*prometheus.Desc{}
	for _, r := range s.Readings {
		d := descs[r.Name]
		if d == nil {
			var labels []string
			if r.Label != "" {
				labels = []string{r.Label}
			}
			d = desc(r.Name, r.Help, labels...)
			descs[r.Name] = d
		}
		c.readings = append(c.readings, d)
	}
	return c
}

// Describe sends nothing: the set of statuses is not known beforehand.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

// Collect asks the loops and sends what they said.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	answers := Ask(c.sources.Loops, ScrapeTimeout)
	total := &loop.Metrics{}
	for i, a := range answers {
		answering := 0.0
		if a.OK {
			answering = 1
		}
		out <- prometheus.MustNewConstMetric(c.answers, prometheus.GaugeValue, answering, strconv.Itoa(i))
	}
	known := c.memory.fill(answers)
	for source := range total.Requests {
		for status := range total.Requests[source] {
			n := uint64(0)
			for _, m := range known {
				if m != nil {
					n += m.Requests[source][status]
				}
			}
			if n != 0 {
				out <- prometheus.MustNewConstMetric(c.requests, prometheus.CounterValue, float64(n),
					loop.Sources[source], strconv.Itoa(status))
			}
		}
	}
	for _, s := range c.sums {
		n := 0.0
		for _, m := range known {
			if m != nil {
				n += s.of(m)
			}
		}
		out <- prometheus.MustNewConstMetric(s.desc, s.kind, n, s.labels...)
	}
	for _, t := range c.timings {
		out <- t.metric(known)
	}
	c.collectCatalog(out, c.sources.Catalog())
	stats := c.sources.Reactor()
	c.reactor.collect(out, &stats)
	for i, r := range c.sources.Readings {
		c.collectReading(out, c.readings[i], &r)
	}
}

func (c *collector) collectReading(out chan<- prometheus.Metric, d *prometheus.Desc, r *Reading) {
	kind := prometheus.GaugeValue
	if r.Counter {
		kind = prometheus.CounterValue
	}
	var labels []string
	if r.Label != "" {
		labels = []string{r.Of}
	}
	out <- prometheus.MustNewConstMetric(d, kind, r.Value(), labels...)
}

func (c *collector) collectCatalog(out chan<- prometheus.Metric, s source.Status) {
	ok := 1.0
	if s.LastError != "" {
		ok = 0
	}
	loaded := 0.0
	if !s.LoadedAt.IsZero() {
		loaded = float64(s.LoadedAt.UnixMilli()) / 1e3
	}
	gauge := func(d *prometheus.Desc, v float64) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v)
	}
	gauge(c.catalog.generation, float64(s.Generation))
	gauge(c.catalog.loaded, loaded)
	gauge(c.catalog.ok, ok)
	out <- prometheus.MustNewConstMetric(c.catalog.failures, prometheus.CounterValue, float64(s.Refused))
}

// metric adds the histograms of all loops up. The buckets of Prometheus are
// cumulative, in seconds; ours are neither.
func (t *timing) metric(known []*loop.Metrics) prometheus.Metric {
	var h loop.Histogram
	for _, m := range known {
		if m != nil {
			h.Add(t.of(m))
		}
	}
	buckets := make(map[float64]uint64, len(loop.HistogramBounds))
	count := uint64(0)
	for i, bound := range loop.HistogramBounds {
		count += h.Counts[i]
		buckets[float64(bound)/float64(time.Second)] = count
	}
	count += h.Counts[len(loop.HistogramBounds)]
	return prometheus.MustNewConstHistogram(t.desc, count, float64(h.SumNs)/float64(time.Second), buckets)
}

// buildMetric tells which build runs.
func buildMetric(version, commit string) prometheus.Collector {
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "relay_build_info",
		Help: "1, with version, commit and Go version as labels. Which build runs where?",
		ConstLabels: prometheus.Labels{
			"version": version, "commit": commit, "goversion": runtime.Version(),
		},
	})
	g.Set(1)
	return g
}
