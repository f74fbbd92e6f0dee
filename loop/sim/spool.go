package sim

import (
	"relay/loop"
	"relay/usage"
)

// spool counts usage rows and is full or slow at times.
type spool struct {
	world    *World
	rows     map[[16]byte]int
	admitted map[[16]byte]bool
	unsynced bool
	total    int
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
	if s.world.chance(s.world.trouble.syncEvery) && !s.unsynced {
		s.unsynced = true
		s.world.after(s.world.delay(), func() {
			s.unsynced = false
			s.world.loop.Post(loop.Synced{})
		})
	}
	return true
}

// Pending implements loop.Spool.
func (s *spool) Pending() bool { return s.unsynced }
