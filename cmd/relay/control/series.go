package control

import (
	"github.com/prometheus/client_golang/prometheus"

	"relay/loop"
	"relay/upstream/wire"
)

// timings are the histograms of a loop.
func timings() []timing {
	return []timing{
		{desc("request_seconds", "From the request head to the last byte of the answer. How long do callers wait in all?"),
			func(m *loop.Metrics) *loop.Histogram { return &m.RequestTime }},
		{desc("overhead_seconds", "Own time: the request's time minus the upstream's share. What does the gateway cost a caller?"),
			func(m *loop.Metrics) *loop.Histogram { return &m.OverheadTime }},
		{desc("admission_seconds", "From the last request byte to the hand-over to an upstream. Do requests wait for limits or for room?"),
			func(m *loop.Metrics) *loop.Histogram { return &m.AdmissionTime }},
		{desc("first_token_seconds", "From the last request byte to the first output at the caller. How responsive are the models?"),
			func(m *loop.Metrics) *loop.Histogram { return &m.FirstTokenTime }},
	}
}

// sums are the counters and gauges of a loop. outcomes name the outcomes of
// attempts by index.
func sums(outcomes []string) []sum {
	list := single()
	family := func(name, help, label string, values []string, of func(*loop.Metrics, int) uint64) {
		d := desc(name, help, label)
		for i, v := range values {
			if v != "" {
				list = append(list, sum{d, prometheus.CounterValue, []string{v},
					func(m *loop.Metrics) float64 { return float64(of(m, i)) }})
			}
		}
	}
	family("requests_shed_total", "Requests refused as overloaded, by what was full. Is the relay past its capacity, and of what?",
		"reason", loop.Sheds[:], func(m *loop.Metrics, i int) uint64 { return m.Shed[i] })
	family("limit_denials_total", "Requests refused by a limit of the catalog, by meter. Do callers run into their limits?",
		"meter", loop.Meters[:], func(m *loop.Metrics, i int) uint64 { return m.Denials[i] })
	family("attempts_total", "Attempts at upstreams by outcome. Which kind of fault do the providers have?",
		"outcome", outcomes, func(m *loop.Metrics, i int) uint64 { return m.Attempts[i] })
	errors := []string{wire.NoError: ""}
	for e := wire.BadRequest; int(e) < wire.ErrorCount; e++ {
		errors = append(errors, loop.ErrorLabel(int(e)))
	}
	family("errors_total", "Errors that the relay itself told callers, by kind. What do callers do wrong, or what is wrong here?",
		"error", errors, func(m *loop.Metrics, i int) uint64 { return m.Errors[i] })
	return list
}

// single are the series with labels that are known here.
func single() []sum {
	const counter, gauge = prometheus.CounterValue, prometheus.GaugeValue
	connections := desc("connections_total", "Connections taken from clients, and upstream connections used by attempts, new or kept. Are connections reused?", "side", "reused")
	open := desc("open_connections", "Open connections. Who is connected, and how near is the limit?", "side")
	bytes := desc("client_bytes_total", "Bytes from and to clients. How much data passes?", "direction")
	return []sum{
		{connections, counter, []string{"client", "false"}, func(m *loop.Metrics) float64 { return float64(m.Accepted) }},
		{connections, counter, []string{"upstream", "false"}, func(m *loop.Metrics) float64 { return float64(m.Dialed) }},
		{connections, counter, []string{"upstream", "true"}, func(m *loop.Metrics) float64 { return float64(m.Reused) }},
		{open, gauge, []string{"client"}, func(m *loop.Metrics) float64 { return float64(m.Clients) }},
		{open, gauge, []string{"upstream"}, func(m *loop.Metrics) float64 { return float64(m.Upstreams) }},
		{desc("idle_connections", "Kept upstream connections without a request. Does the pool fit the load?"), gauge, nil,
			func(m *loop.Metrics) float64 { return float64(m.IdleUpstreams) }},
		{bytes, counter, []string{"in"}, func(m *loop.Metrics) float64 { return float64(m.BytesIn) }},
		{bytes, counter, []string{"out"}, func(m *loop.Metrics) float64 { return float64(m.BytesOut) }},
		{desc("exchanges", "Requests being worked on, those whose caller has gone included. What is running?"), gauge, nil,
			func(m *loop.Metrics) float64 { return float64(m.Exchanges) }},
		{desc("streams", "Streamed answers being passed on. What does a restart have to wait for?"), gauge, nil,
			func(m *loop.Metrics) float64 { return float64(m.Streams) }},
		{desc("held_bytes", "Bytes of bodies and answers held by the loops, charged to their budgets. Is memory near its budget?"), gauge, nil,
			func(m *loop.Metrics) float64 { return float64(m.BudgetUsed) }},
		{desc("leases", "Counter groups that the loops hold something of: units, slots, or requests that wait. How many limits are in use?"), gauge, nil,
			func(m *loop.Metrics) float64 { return float64(m.Leases) }},
		{desc("store_ops_total", "Group operations that the loops gave to lanes. How often are limits counted outside the loops?"), counter, nil,
			func(m *loop.Metrics) float64 { return float64(m.StoreOps) }},
		{desc("timers", "Armed timers. Does something leak?"), gauge, nil,
			func(m *loop.Metrics) float64 { return float64(m.Timers) }},
		{desc("provider_keys_down_total", "Answers by which a provider refused our own credential. Is a host key dead?", "reason"), counter, []string{"auth"},
			func(m *loop.Metrics) float64 { return float64(m.KeysDown) }},
		{desc("hangups_total", "Callers who left before the end of their answer. Do clients time out?"), counter, nil,
			func(m *loop.Metrics) float64 { return float64(m.HungUp) }},
		{desc("usage_events_total", "Usage rows handed to the spool. Is every request recorded?"), counter, nil,
			func(m *loop.Metrics) float64 { return float64(m.Events) }},
		{desc("callback_panics_total", "Bugs caught at a loop's boundary, each of which closed one connection; must stay 0. Is there something to report?"), counter, nil,
			func(m *loop.Metrics) float64 { return float64(m.Panics) }},
	}
}
