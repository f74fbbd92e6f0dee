package main

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"golang.org/x/sys/unix"
)

// Limits of tidying up.
const (
	tidyLook       = 5 * time.Second  // between looks
	tidyEvery      = 10 * time.Second // least time between collections
	tidyCPUPercent = 25               // of all Ps; a process that works more is left alone
	tidyBytesMin   = 4 << 20          // less garbage is not worth a collection
)

// tidy collects garbage and gives memory back to the system while there is
// little to do. The collector alone would not: a high GOGC lets the garbage of
// a burst of connections lie until several times the live heap has been
// allocated again, which loops that allocate nothing may never do. It runs
// until ctx ends.
func tidy(ctx context.Context) {
	ticker := time.NewTicker(tidyLook)
	defer ticker.Stop()
	lastCPU, last, collected := cpuTime(), time.Now(), time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		cpu, now := cpuTime(), time.Now()
		busy := (cpu-lastCPU)*100 > now.Sub(last)*time.Duration(runtime.GOMAXPROCS(0))*tidyCPUPercent
		lastCPU, last = cpu, now
		if busy || now.Sub(collected) < tidyEvery || !littered() {
			continue
		}
		collected = now
		debug.FreeOSMemory()
	}
}

// littered reports whether a collection is worth its work: there is garbage of
// half the size of what lives, so its cost is that of a GOGC of 50 at most.
// Memory that an earlier collection freed and did not give back counts too:
// what died right behind one is only found by the next, minutes later.
func littered() bool {
	samples := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/gc/heap/live:bytes"},
	}
	metrics.Read(samples)
	objects, free, live := samples[0].Value.Uint64(), samples[1].Value.Uint64(), samples[2].Value.Uint64()
	return objects+free > live+max(live/2, tidyBytesMin)
}

// cpuTime is what the process has used so far.
func cpuTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0 // getrusage(2) cannot fail with a good pointer
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
