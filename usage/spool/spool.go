package spool

import (
	"time"

	"relay/usage"
)

// Options of a spool.
type Options struct {
	Dir      string        // RELAY_DATA_DIR/spool
	Loops    int           // writers
	Sync     time.Duration // between fsyncs; 0 = fsync after every write
	Instance string        // RELAY_INSTANCE_ID, for people
	// Synced is called by the syncing goroutine after an fsync, when Sync is 0,
	// for each loop that has waiting events.
	Synced func(loop int)
}

// A Spool is this process's run: spool/<run-uuid>/<loop>, locked.
type Spool struct{}

// Open locks a new run and prepares its writers. Runs whose owner is gone are
// closed with `interrupted` rows for their open admissions.
func Open(o Options) (*Spool, error) { panic("BUG: not built") }

// Writer is the writer of one loop.
func (s *Spool) Writer(loop int) *Writer { panic("BUG: not built") }

// Close syncs and seals all. Writers are not used afterwards.
func (s *Spool) Close() error { panic("BUG: not built") }

// A Writer appends to one loop's spool. Owner: that loop's goroutine.
type Writer struct{}

// Admitted records that a billable attempt starts: the row that recovery
// writes as `interrupted` if nothing follows. It reports false when the spool
// cannot take it (disk full): the attempt must not be made.
func (w *Writer) Admitted(e *usage.Event) bool { panic("BUG: not built") }

// Row records how the exchange ended. It is called once per exchange, before
// the last response bytes are sent. It reports false when the event could not
// be written; it is then counted in Lost.
func (w *Writer) Row(e *usage.Event) bool { panic("BUG: not built") }

// Pending reports whether rows wait for an fsync that the caller must await
// before it answers: always false unless Options.Sync is 0. Synced tells when
// all rows written so far are safe.
func (w *Writer) Pending() bool { panic("BUG: not built") }
