package spool

import (
	"sync/atomic"
	"time"
)

// counters are those of one writer. The loop and the syncing goroutine add,
// anybody reads.
type counters struct {
	rows, admitted  atomic.Int64 //loop:allow read by Stats
	lost            atomic.Int64 //loop:allow read by Stats
	refused         atomic.Int64 //loop:allow read by Stats
	unwritten       atomic.Int64 //loop:allow read by Stats
	writeErrors     atomic.Int64 //loop:allow both goroutines add
	atRisk          atomic.Int64 // bytes
	syncs, syncErrs atomic.Int64
	syncNs, syncMax atomic.Int64
	floor           atomic.Uint64 // lowest segment that is still open
}

// synced counts one fsync.
func (c *counters) synced(took time.Duration, err error) {
	c.syncs.Add(1)
	if err != nil {
		c.syncErrs.Add(1)
	}
	c.syncNs.Add(int64(took))
	c.syncMax.Store(max(c.syncMax.Load(), int64(took))) // one goroutine stores
}

// Stats are counts since Open, over all loops.
type Stats struct {
	Bytes     int64 // of all runs on disk, a few seconds ago
	FullLoops int   // that admit nothing at the moment

	Admitted  int64 // admissions written
	Rows      int64 // rows written
	Lost      int64 // rows that could not be written
	Refused   int64 // admissions refused because there was no room
	Unwritten int64 // admissions let through without a record, with Options.Full = Serve

	WriteErrors int64
	AtRiskBytes int64 // whose sync failed and which could not be written again
	Syncs       int64
	SyncErrors  int64
	SyncNs      int64 // all of them together
	SyncMaxNs   int64 // the longest

	DeletedSegments, DeletedBytes int64
	DeletedRows                   int64 // rows in them: no sink has seen them

	ClosedRuns       int64 // runs closed for owners that were gone
	InterruptedRows  int64 // rows written for their open admissions
	DamagedParts     int64 // parts of their streams that cannot be read, and quarantined segments
	RecoveryFailures int64 // runs that could not be closed; tried again
}

// Stats may be called from any goroutine.
func (s *Spool) Stats() Stats {
	st := s.keeper.stats()
	for _, w := range s.writers {
		c := w.counters
		if w.dry.Load() {
			st.FullLoops++
		}
		st.Admitted += c.admitted.Load()
		st.Rows += c.rows.Load()
		st.Lost += c.lost.Load()
		st.Refused += c.refused.Load()
		st.Unwritten += c.unwritten.Load()
		st.WriteErrors += c.writeErrors.Load()
		st.AtRiskBytes += c.atRisk.Load()
		st.Syncs += c.syncs.Load()
		st.SyncErrors += c.syncErrs.Load()
		st.SyncNs += c.syncNs.Load()
		st.SyncMaxNs = max(st.SyncMaxNs, c.syncMax.Load())
	}
	return st
}
