package baseline

import (
	"strconv"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// metrics are counted by all goroutines.
type metrics struct {
	requests [statusEnd]atomic.Uint64 // by status; 0 = the caller had gone
	rowsLost atomic.Uint64
	seconds  prometheus.Histogram
	overhead prometheus.Histogram
}

// secondsBounds are the bounds of Relay's own histograms.
var secondsBounds = []float64{
	1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600,
}

func (m *metrics) init() {
	m.seconds = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "relay_request_seconds", Help: "From the head read to the row written.", Buckets: secondsBounds,
	})
	m.overhead = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "relay_overhead_seconds", Help: "Own time: total minus the upstream's share.", Buckets: secondsBounds,
	})
}

// A collector reads a core's counts when it is asked.
type collector struct{ core *core }

var (
	requestsDesc = prometheus.NewDesc("relay_requests_total", "Answers, by status.", []string{"status"}, nil)
	inflightDesc = prometheus.NewDesc("relay_inflight_requests", "Requests in flight.", nil, nil)
	limitDesc    = prometheus.NewDesc("relay_inflight_limit", "Cap of requests in flight.", nil, nil)
	eventsDesc   = prometheus.NewDesc("relay_usage_events_total", "Usage rows written.", nil, nil)
	lostDesc     = prometheus.NewDesc("relay_records_lost_total", "Usage rows that could not be written.", nil, nil)
)

// Describe says nothing: the series depend on what happens.
func (c collector) Describe(chan<- *prometheus.Desc) {}

// Collect reads the counts.
func (c collector) Collect(out chan<- prometheus.Metric) {
	m := &c.core.metrics
	for status := range m.requests {
		if n := m.requests[status].Load(); n > 0 {
			out <- prometheus.MustNewConstMetric(requestsDesc, prometheus.CounterValue, float64(n), strconv.Itoa(status))
		}
	}
	n, limit := c.core.inflight.Load()
	rows := c.core.spool.Stats()
	for _, x := range []struct {
		desc  *prometheus.Desc
		kind  prometheus.ValueType
		value float64
	}{
		{inflightDesc, prometheus.GaugeValue, float64(n)},
		{limitDesc, prometheus.GaugeValue, float64(limit)},
		{eventsDesc, prometheus.CounterValue, float64(rows.Rows)},
		{lostDesc, prometheus.CounterValue, float64(m.rowsLost.Load())},
	} {
		out <- prometheus.MustNewConstMetric(x.desc, x.kind, x.value)
	}
	m.seconds.Collect(out)
	m.overhead.Collect(out)
}

// registry holds what /metrics tells.
func (c *core) registry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collector{c})
	return r
}
