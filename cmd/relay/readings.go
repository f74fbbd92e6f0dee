package main

import (
	"slices"

	"relay/cmd/relay/control"
	"relay/store/redis"
	"relay/store/state"
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
		Store:      r.storeState,
		Readings:   slices.Concat(r.inflightReadings(), r.storeReadings(), r.spoolReadings()),
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
		{Name: "lane_pending", Help: "Group operations that wait to be counted. Do the lanes keep up?",
			Value: func() float64 { return float64(r.lanes.pending()) }},
	}
}

// storeState is what readiness has to know of the store.
func (r *relay) storeState() control.Store {
	if r.shared == nil {
		return control.Store{Backend: "memory"}
	}
	return r.shared.state()
}

// storeReadings tell of the shared store.
func (r *relay) storeReadings() []control.Reading {
	if r.shared == nil {
		return nil
	}
	h := r.shared
	flag := func(is bool) float64 {
		if is {
			return 1
		}
		return 0
	}
	lost := func() bool { return !h.standing.Load().lostAt.IsZero() }
	stat := func(of func(*redis.Stats) float64) func() float64 {
		return func() float64 {
			s := h.store.Stats()
			return of(&s)
		}
	}
	total := func(of func(*state.Outage) int64) func() float64 {
		return func() float64 {
			n := int64(0)
			for _, f := range h.fallback {
				n += of(f)
			}
			return float64(n)
		}
	}
	return []control.Reading{
		{Name: "store_up", Help: "1 while the shared store can be asked. Are limits counted together with the other relays?",
			Value: func() float64 { return flag(!lost()) }},
		{Name: "store_local", Help: "1 while the store is lost and this relay counts its share of the limits by itself. Are limits held less exactly?",
			Value: func() float64 { return flag(lost() && h.local) }},
		{Name: "store_relays", Help: "Relays that use the store, as far as this one knows. Do all relays share it?",
			Value: func() float64 { return float64(h.store.Live()) }},
		{Name: "store_ticks_total", Help: "Batches that the store was asked. How often is it asked?", Counter: true,
			Value: stat(func(s *redis.Stats) float64 { return float64(s.Applies) })},
		{Name: "store_tick_seconds_total", Help: "Time spent in them. Divided by their number: how slow is the store?", Counter: true,
			Value: stat(func(s *redis.Stats) float64 { return s.ApplyTotal.Seconds() })},
		{Name: "store_tick_seconds_last", Help: "The last batch, of the lane for which it took longest. How slow is the store right now?",
			Value: stat(func(s *redis.Stats) float64 { return s.ApplyLast.Seconds() })},
		{Name: "store_calls_total", Help: "Calls of a script. How much does the store do?", Counter: true,
			Value: stat(func(s *redis.Stats) float64 { return float64(s.Calls) })},
		{Name: "store_failures_total", Help: "Calls of a script without an answer, or that the store did not know. Is the way to the store sound?", Counter: true,
			Value: stat(func(s *redis.Stats) float64 { return float64(s.Failed) })},
		{Name: "store_local_ops_total", Help: "Group operations answered by this relay alone. How much was counted without the others?", Counter: true,
			Value: total((*state.Outage).Answered)},
		{Name: "store_lost_ops_total", Help: "Group operations without an answer, whose requests were refused. What did a lost store cost?", Counter: true,
			Value: total((*state.Outage).Lost)},
		{Name: "store_forgotten_total", Help: "Groups of which charges or returns were given up, for the store was gone too long or failed. Are limits counted wrong?", Counter: true,
			Value: func() float64 { return float64(h.store.Forgotten()) }},
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
