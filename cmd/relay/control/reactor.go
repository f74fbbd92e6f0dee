package control

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"relay/loop/reactor"
)

// A reactorSeries is one number of the event loops as a whole.
type reactorSeries struct {
	desc   *prometheus.Desc
	kind   prometheus.ValueType
	labels []string
	of     func(*reactor.Stats) float64
}

// reactorMetrics are the metrics of the event loops. They need no answer of a
// loop, so they also tell of one that is stuck.
type reactorMetrics struct {
	series []reactorSeries
	lag    *prometheus.Desc
	late   *prometheus.Desc
}

func newReactorMetrics() *reactorMetrics {
	const counter, gauge = prometheus.CounterValue, prometheus.GaugeValue
	m := &reactorMetrics{
		lag:  desc("loop_lag_seconds", "How late ticks ran on the loops. Is a loop too busy?"),
		late: desc("loop_late_seconds", "Age of a tick that a loop has not run yet. Is a loop stuck right now?", "loop"),
	}
	one := func(name, help string, kind prometheus.ValueType, of func(*reactor.Stats) float64) {
		m.series = append(m.series, reactorSeries{desc(name, help), kind, nil, of})
	}
	one("connections_waiting", "Accepted connections that wait for room. Is the connection limit reached?", gauge,
		func(s *reactor.Stats) float64 { return float64(s.Waiting) })
	one("connections_queued_total", "Connections that had to wait for room. How often is the connection limit reached?", counter,
		func(s *reactor.Stats) float64 { return float64(s.Queued) })
	one("connections_refused_total", "Connections refused because there was no room. Do clients fail to connect?", counter,
		func(s *reactor.Stats) float64 { return float64(s.Refused) })
	one("handshakes", "Inbound handshakes that run. Is TLS the bottleneck?", gauge,
		func(s *reactor.Stats) float64 { return float64(s.Handshakes) })
	one("dialing", "Upstream connections being opened. Does a provider not accept connections?", gauge,
		func(s *reactor.Stats) float64 { return float64(s.Dialing) })
	one("read_pauses_total", "Times that reading from a connection was paused because the other side did not take what was read. Are there slow readers?", counter,
		func(s *reactor.Stats) float64 {
			n := uint64(0)
			for _, l := range s.Loops {
				n += l.Pauses
			}
			return float64(n)
		})
	m.families()
	return m
}

// families adds the counters with a label.
func (m *reactorMetrics) families() {
	family := func(name, help, label string, members map[string]func(*reactor.Stats) uint64) {
		d := desc(name, help, label)
		for value, of := range members {
			m.series = append(m.series, reactorSeries{d, prometheus.CounterValue, []string{value},
				func(s *reactor.Stats) float64 { return float64(of(s)) }})
		}
	}
	family("accept_failures_total", "Connections that could not be taken, by what failed. Have descriptors run out?", "reason",
		map[string]func(*reactor.Stats) uint64{
			"descriptors": func(s *reactor.Stats) uint64 { return s.AcceptExhausted },
			"accept":      func(s *reactor.Stats) uint64 { return s.AcceptFailed },
			"untrusted":   func(s *reactor.Stats) uint64 { return s.Untrusted },
			"enroll":      func(s *reactor.Stats) uint64 { return s.EnrollFailed },
			"loop_full":   func(s *reactor.Stats) uint64 { return s.EnrollFull },
		})
	family("handshakes_total", "Inbound handshakes by outcome. Do clients fail at TLS or at the PROXY header?", "outcome",
		map[string]func(*reactor.Stats) uint64{
			"ok":      func(s *reactor.Stats) uint64 { return s.HandshakesDone },
			"failed":  func(s *reactor.Stats) uint64 { return s.HandshakesFailed },
			"evicted": func(s *reactor.Stats) uint64 { return s.HandshakesEvicted },
		})
	dials := map[string]func(*reactor.Stats) uint64{}
	for i, outcome := range dialOutcomes {
		dials[outcome] = func(s *reactor.Stats) uint64 { return s.Dials[i] }
	}
	family("dials_total", "Upstream connections opened, by outcome. Why can a provider not be reached?", "outcome", dials)
}

// dialOutcomes are label values by loop.DialFault.
var dialOutcomes = [len(reactor.Stats{}.Dials)]string{"ok", "refused", "timeout", "tls", "full", "exhausted"}

func (m *reactorMetrics) collect(out chan<- prometheus.Metric, s *reactor.Stats) {
	for _, x := range m.series {
		out <- prometheus.MustNewConstMetric(x.desc, x.kind, x.of(s), x.labels...)
	}
	buckets := make(map[float64]uint64, len(reactor.LagBounds))
	count, sum := uint64(0), 0.0
	for i, bound := range reactor.LagBounds {
		for _, l := range s.Loops {
			count += l.Lag.Counts[i]
		}
		buckets[bound.Seconds()] = count
	}
	for i, l := range s.Loops {
		count += l.Lag.Counts[len(reactor.LagBounds)]
		sum += l.Lag.Sum.Seconds()
		out <- prometheus.MustNewConstMetric(m.late, prometheus.GaugeValue, l.LagNow.Seconds(), strconv.Itoa(i))
	}
	out <- prometheus.MustNewConstHistogram(m.lag, count, sum, buckets)
}
