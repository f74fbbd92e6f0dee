package main

import (
	"relay/cmd/relay/control"
	"relay/upstream"
	"relay/usage/spool"
)

// startControl starts the control plane unless it is switched off.
func (r *relay) startControl() {
	if r.sockets.control == nil {
		return
	}
	r.control = control.New(control.Sources{
		Loops:      r.posters(),
		Catalog:    r.file.Status,
		Reactor:    r.reactor.Stats,
		Draining:   r.draining.Load,
		Readings:   append(r.inflightReadings(), r.spoolReadings()...),
		Outcomes:   attemptOutcomes(),
		Version:    version,
		Commit:     commit,
		AdminToken: string(r.settings.AdminToken),
		Log:        r.log,
	})
	r.control.Start(r.sockets.control)
}

// attemptOutcomes are the label values of attempts, by upstream.Fault.
func attemptOutcomes() []string {
	names := make([]string, 0, upstream.FaultCount)
	for f := range upstream.Fault(upstream.FaultCount) {
		names = append(names, f.String())
	}
	return names
}

// inflightReadings tell of the in-flight cap.
func (r *relay) inflightReadings() []control.Reading {
	return []control.Reading{
		{Name: "inflight_requests", Help: "Requests in flight. How near is the cap?",
			Value: func() float64 { n, _ := r.inflight.Load(); return float64(n) }},
		{Name: "inflight_limit", Help: "The cap of requests in flight. What was derived or set?",
			Value: func() float64 { _, limit := r.inflight.Load(); return float64(limit) }},
		{Name: "lane_pending", Help: "Reservations that wait to be counted. Does the lane keep up?",
			Value: func() float64 { return float64(r.lane.box.Due()) }},
	}
}

// spoolReadings tell of the spool.
func (r *relay) spoolReadings() []control.Reading {
	read := func(of func(*spool.Stats) int64) func() float64 {
		return func() float64 {
			s := r.spool.Stats()
			return float64(of(&s))
		}
	}
	seconds := func(of func(*spool.Stats) int64) func() float64 {
		return func() float64 {
			s := r.spool.Stats()
			return float64(of(&s)) / 1e9
		}
	}
	return []control.Reading{
		{Name: "spool_bytes", Help: "Usage records on disk, of all runs. Is the spool near its bound?",
			Value: read(func(s *spool.Stats) int64 { return s.Bytes })},
		{Name: "spool_full_loops", Help: "Loops that cannot record new requests. Is the disk full?",
			Value: read(func(s *spool.Stats) int64 { return int64(s.FullLoops) })},
		{Name: "spool_rows_total", Help: "Rows written. Does it equal the requests?", Counter: true,
			Value: read(func(s *spool.Stats) int64 { return s.Rows })},
		{Name: "spool_admissions_total", Help: "Attempts recorded before they were made. How many can become interrupted rows?", Counter: true,
			Value: read(func(s *spool.Stats) int64 { return s.Admitted })},
		{Name: "spool_refused_total", Help: "Attempts not made because they could not be recorded. Was the disk full?", Counter: true,
			Value: read(func(s *spool.Stats) int64 { return s.Refused })},
		{Name: "spool_errors_total", Help: "Failures of the disk, by operation. Is the disk sound?", Counter: true, Label: "operation", Of: "write",
			Value: read(func(s *spool.Stats) int64 { return s.WriteErrors })},
		{Name: "spool_errors_total", Help: "Failures of the disk, by operation. Is the disk sound?", Counter: true, Label: "operation", Of: "sync",
			Value: read(func(s *spool.Stats) int64 { return s.SyncErrors })},
		{Name: "spool_errors_total", Help: "Failures of the disk, by operation. Is the disk sound?", Counter: true, Label: "operation", Of: "recover",
			Value: read(func(s *spool.Stats) int64 { return s.RecoveryFailures })},
		{Name: "spool_syncs_total", Help: "Fsyncs of the spool. How often is it synced?", Counter: true,
			Value: read(func(s *spool.Stats) int64 { return s.Syncs })},
		{Name: "spool_sync_seconds_total", Help: "Time spent in fsyncs. Divided by their number: how slow is the disk?", Counter: true,
			Value: seconds(func(s *spool.Stats) int64 { return s.SyncNs })},
		{Name: "spool_sync_seconds_max", Help: "The longest fsync. How bad was the disk at its worst?",
			Value: seconds(func(s *spool.Stats) int64 { return s.SyncMaxNs })},
		{Name: "spool_interrupted_rows_total", Help: "Rows written for requests of runs that died. Was a relay killed?", Counter: true,
			Value: read(func(s *spool.Stats) int64 { return s.InterruptedRows })},
		{Name: "records_lost_total", Help: lostHelp, Counter: true, Label: "kind", Of: "row",
			Value: read(func(s *spool.Stats) int64 { return s.Lost })},
		{Name: "records_lost_total", Help: lostHelp, Counter: true, Label: "kind", Of: "admission",
			Value: read(func(s *spool.Stats) int64 { return s.Unwritten })},
		{Name: "records_lost_total", Help: lostHelp, Counter: true, Label: "kind", Of: "deleted",
			Value: read(func(s *spool.Stats) int64 { return s.DeletedRows })},
		{Name: "records_lost_total", Help: lostHelp, Counter: true, Label: "kind", Of: "damaged",
			Value: read(func(s *spool.Stats) int64 { return s.DamagedParts })},
	}
}

const lostHelp = "Usage records lost: rows or admissions that could not be written, rows deleted unread to keep the spool bounded, damaged parts. Is money missing?"
