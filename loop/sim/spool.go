package sim

import (
	"relay/loop"
	"relay/usage"
)

// spool counts usage rows and is full or slow at times.
type spool struct {
	world  *World
	rows   map[[16]byte]int
	synced int64
	total  int
}

// Admitted implements loop.Spool.
func (s *spool) Admitted(e *usage.Event) bool { return !s.world.chance(s.world.trouble.spoolFull) }

// Row implements loop.Spool.
func (s *spool) Row(e *usage.Event) bool {
	s.rows[e.RequestID]++
	s.total++
	if n := s.rows[e.RequestID]; n > 1 {
		s.world.fault("%d usage rows for one request", n)
	}
	if s.world.trouble.syncEvery > 0 {
		to := int64(s.total)
		s.world.after(s.world.delay(), func() {
			s.synced = max(s.synced, to)
			s.world.loop.Post(loop.Synced{})
		})
	}
	return true
}

// Pending implements loop.Spool.
func (s *spool) Pending() bool { return s.world.trouble.syncEvery > 0 && s.synced < int64(s.total) }

// Position implements loop.Spool.
func (s *spool) Position() int64 { return int64(s.total) }

// SyncedTo implements loop.Spool.
func (s *spool) SyncedTo() int64 { return s.synced }
