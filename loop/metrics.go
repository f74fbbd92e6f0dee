package loop

import (
	"relay/store/catalog"
	"relay/upstream"
	"relay/upstream/wire"
)

// HistogramBounds are the upper bounds of the histogram buckets, in
// nanoseconds: from 100 µs to 10 minutes.
var HistogramBounds = [...]int64{
	1e5, 2e5, 5e5, 1e6, 2e6, 5e6, 1e7, 2e7, 5e7, 1e8, 2e8, 5e8,
	1e9, 2e9, 5e9, 1e10, 3e10, 6e10, 12e10, 3e11, 6e11,
}

// A Histogram counts durations. Counts[i] holds those at most
// HistogramBounds[i]; the last one holds the rest. Not cumulative.
type Histogram struct {
	Counts [len(HistogramBounds) + 1]uint64
	SumNs  int64
}

func (h *Histogram) observe(ns int64) {
	if ns < 0 {
		ns = 0
	}
	i := 0
	for i < len(HistogramBounds) && ns > HistogramBounds[i] {
		i++
	}
	h.Counts[i]++
	h.SumNs += ns
}

// Add puts the counts of o into h.
func (h *Histogram) Add(o *Histogram) {
	for i, n := range o.Counts {
		h.Counts[i] += n
	}
	h.SumNs += o.SumNs
}

// A Shed is why a request was refused as overloaded.
type Shed uint8

// The reasons.
const (
	ShedInflight Shed = iota // the in-flight cap
	ShedMemory               // the loop's byte budget
	ShedMailbox              // a mailbox was full
	ShedSpool                // the spool cannot take records
	shedCount
)

// Sheds are the label values of requests_shed_total, by Shed.
var Sheds = [shedCount]string{"inflight", "memory", "mailbox", "spool"}

// Who made an answer: the label values of requests_total's source.
const (
	fromRelay    = 0
	fromUpstream = 1
)

// Sources are the label values of requests_total's source, by index of
// Metrics.Requests.
var Sources = [2]string{"relay", "upstream"}

// Metrics are a loop's counters. They only grow, but for the gauges at the
// end. Owner: the loop; others get a copy by Scrape.
type Metrics struct {
	Requests [2][600]uint64 // by source and status; status 0 = the caller had gone

	RequestTime    Histogram // head read to last byte written
	OverheadTime   Histogram // own time: total minus the upstream's share
	AdmissionTime  Histogram // last request byte to the hand-over to an upstream
	FirstTokenTime Histogram // last request byte to the first output at the client

	Shed       [shedCount]uint64
	Denials    [6]uint64                   // limit denials, by catalog.Meter
	Attempts   [upstream.FaultCount]uint64 // by upstream.Fault, 0 = success
	Errors     [wire.ErrorCount]uint64     // told by Relay, by wire.Error
	KeysDown   uint64                      // answers 401/402/403 to our own credential
	StoreOps   uint64                      // group operations handed to lanes
	HungUp     uint64                      // callers who left before the end
	Reused     uint64                      // attempts on a kept connection
	Dialed     uint64                      // attempts on a new connection
	Accepted   uint64                      // client connections
	Events     uint64                      // usage rows handed to the spool
	EventsLost uint64                      // usage rows that the spool could not take
	Panics     uint64                      // callbacks that panicked
	BytesIn    uint64                      // from clients
	BytesOut   uint64                      // of bodies, to clients

	Clients       int64 // open client connections
	Upstreams     int64 // open upstream connections, busy and idle
	IdleUpstreams int64
	Exchanges     int64 // running, those without a client included
	Streams       int64 // running and streaming
	BudgetUsed    int64 // bytes charged to the loop's byte budget
	Timers        int64
	Leases        int64 // counter groups that the loop has something of
}

// Meters are the label values of limit_denials_total, by catalog.Meter.
var Meters = [6]string{
	catalog.Requests.String(), catalog.Tokens.String(), catalog.InputTokens.String(),
	catalog.OutputTokens.String(), catalog.Cost.String(), catalog.Concurrency.String(),
}

// ErrorLabel is the label of Metrics.Errors[i].
func ErrorLabel(i int) string { return wire.Error(i).String() }

// A Scrape asks a loop for a copy of its metrics. Reply runs on the loop's
// goroutine and must not block; a loop that is stuck does not answer.
type Scrape struct {
	Metrics Metrics
	Drained bool // the drain is over: no client is connected, and the lanes have all that is theirs
	Reply   func(*Scrape)
}

// Deliver copies the metrics.
func (s *Scrape) Deliver(l *Loop) {
	s.Metrics = l.metrics
	s.Metrics.BudgetUsed = l.buffers.used
	s.Metrics.Timers = l.wheel.armed
	s.Metrics.Leases = int64(l.leases.Len())
	s.Drained = l.draining && l.metrics.Clients == 0 && l.metrics.Exchanges == 0 && l.leases.Len() == 0
	s.Reply(s)
}
