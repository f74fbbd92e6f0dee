package redis_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"relay/store/catalog"
	"relay/store/redis"
	"relay/store/redis/redistest"
	"relay/store/state"
)

// benchGroup is a usual policy: requests, tokens and slots.
func benchGroup(id uint64) *catalog.Group {
	return group(id,
		catalog.Limit{Meter: catalog.Requests, Strategy: catalog.TokenBucket, Amount: 1e9, Window: time.Minute},
		catalog.Limit{Meter: catalog.Tokens, Strategy: catalog.SlidingWindow, Amount: 1e12, Window: time.Minute},
		slots(1e6))
}

// used is the CPU that a server has used, and the calls of scripts.
func used(b *testing.B, s *redistest.Server) (cpu time.Duration, calls int64) {
	b.Helper()
	for line := range strings.Lines(s.Do("INFO", "everything").(string)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch name {
		case "used_cpu_user", "used_cpu_sys":
			sec, err := strconv.ParseFloat(value, 64)
			if err != nil {
				b.Fatal(err)
			}
			cpu += time.Duration(sec * 1e9)
		case "cmdstat_evalsha":
			_, n, _ := strings.Cut(value, "calls=")
			n, _, _ = strings.Cut(n, ",")
			calls, _ = strconv.ParseInt(n, 10, 64)
		}
	}
	return cpu, calls
}

// BenchmarkApply tells what an Op costs the store (store-us/op), by the number
// of groups of a batch and of Ops per group, with what settles on every other
// Op.
func BenchmarkApply(b *testing.B) {
	server := redistest.Start(b)
	for _, specials := range []int{0, -1} {
		for _, shape := range [][2]int{{1, 1}, {1, 8}, {4, 1}, {16, 1}, {64, 1}, {256, 1}, {64, 4}, {64, 16}} {
			name := fmt.Sprintf("groups=%d/loops=%d", shape[0], shape[1])
			if specials < 0 {
				name = "generic/" + name
			}
			b.Run(name, func(b *testing.B) {
				server.Do("FLUSHALL")
				s := open(b, redis.Options{Loops: shape[1]}.WithSpecials(specials), server)
				var ops []*state.Op
				for id := range shape[0] {
					for range shape[1] {
						ops = append(ops, &state.Op{Group: benchGroup(uint64(id + 1))})
					}
				}
				lane := s.Lane(0)
				lane.Apply(0, ops)
				cpu, calls := used(b, server)
				b.ReportAllocs()
				n := 0
				for b.Loop() {
					for i, o := range ops {
						o.Clear()
						o.Want, o.Need = [state.RulesMax]int64{1, 500, 1}, [state.RulesMax]int64{1, 500, 1}
						o.Slots = min(o.Lent(), 5)
						if (i+n)%2 == 0 {
							o.Return[1] = state.Return{Units: 100, GrantNs: o.NowNs}
						}
					}
					lane.Apply(0, ops)
					n++
				}
				cpu2, calls2 := used(b, server)
				total := float64(n * len(ops))
				for _, o := range ops {
					if o.Lost || o.Got[0] != 1 {
						b.Fatalf("lost %v, got %d: %v", o.Lost, o.Got[0], s.Err())
					}
				}
				b.ReportMetric(float64((cpu2-cpu).Microseconds())/total, "store-us/op")
				b.ReportMetric(float64(calls2-calls)/total, "evals/op")
				b.ReportMetric(float64(b.Elapsed().Microseconds())/total, "us/op")
			})
		}
	}
}
