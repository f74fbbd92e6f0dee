package redis_test

import (
	"testing"

	"relay/store/redis"
	"relay/store/redis/redistest"
	"relay/store/state"
	"relay/store/state/statetest"
)

// spread gives every Op to the lane of its group.
type spread struct {
	t     *testing.T
	store *redis.Store
}

func (s spread) Apply(nowNs int64, batch []*state.Op) {
	lanes := make([][]*state.Op, s.store.Lanes())
	for _, o := range batch {
		i := s.store.LaneOf(o.Group.ID)
		lanes[i] = append(lanes[i], o)
	}
	for i, ops := range lanes {
		if len(ops) > 0 {
			s.store.Lane(i).Apply(nowNs, ops)
		}
	}
	if err := s.store.Err(); err != nil {
		s.t.Error(err)
	}
}

// conform runs the suite against running servers, with scripts per shape and
// with the generic one.
func conform(t *testing.T, servers []*redistest.Server, o redis.Options) {
	for _, s := range servers {
		o.Addrs = append(o.Addrs, s.Addr())
	}
	for name, specials := range map[string]int{"special": 0, "generic": -1} {
		t.Run(name, func(t *testing.T) {
			clock := statetest.NewFakeClock()
			var last *redis.Store
			statetest.Run(t, statetest.Subject{
				New: func(t *testing.T) state.Store {
					if last != nil {
						last.Close()
					}
					for _, s := range servers {
						s.Do("FLUSHALL")
					}
					o := o.WithClock(clock.NowNs).WithSpecials(specials)
					o.Loops = statetest.Loops
					var err error
					if last, err = redis.Open(o); err != nil {
						t.Fatal(err)
					}
					return spread{t, last}
				},
				Clock:        clock,
				ResolutionNs: 1000,
				Coarse:       true,
			})
			last.Close()
		})
	}
}

func TestConformance(t *testing.T) {
	conform(t, []*redistest.Server{redistest.Start(t)}, redis.Options{})
}

func TestConformanceCluster(t *testing.T) {
	conform(t, redistest.StartCluster(t, 3), redis.Options{Tags: 16, Lanes: 2})
}

// TestConformanceOthers holds other servers to it, those that are installed. make
// says which are not: go test keeps quiet about what a test that passes prints.
func TestConformanceOthers(t *testing.T) {
	for _, program := range []string{"valkey-server", "dragonfly"} {
		if !redistest.Installed(program) {
			t.Logf("%s is not installed: the store is not tested on it", program)
			continue
		}
		t.Run(program, func(t *testing.T) {
			conform(t, []*redistest.Server{redistest.StartProgram(t, program)}, redis.Options{Tags: 4})
		})
	}
}
