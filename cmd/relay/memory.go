package main

import (
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// gcPercent is GOGC when the environment does not set it. Live memory is small
// beside what a busy relay allocates, so fewer collections are worth the room.
const gcPercent = 400

// softLimitPercent of the memory limit is where the collector begins to work
// harder than GOGC says, when GOMEMLIMIT does not tell. The rest is for what
// is not Go's: the kernel's socket buffers count in a cgroup.
const softLimitPercent = 90

// A memoryLimit is how much memory the process may use, and who says so.
type memoryLimit struct {
	bytes  int64
	source string // "GOMEMLIMIT", "cgroup" or "machine"
}

// tuneCollector sets what the environment does not: GOGC, and a soft limit,
// without which a high GOGC lets garbage fill the memory.
func tuneCollector(l memoryLimit) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if l.source != "GOMEMLIMIT" {
		debug.SetMemoryLimit(l.bytes / 100 * softLimitPercent)
	}
}

// findMemoryLimit takes GOMEMLIMIT, else the cgroup's limit, else the
// machine's memory. root is "/" but in tests.
func findMemoryLimit(root string) memoryLimit {
	machine := machineMemory()
	if n := debug.SetMemoryLimit(-1); n != math.MaxInt64 {
		return memoryLimit{n, "GOMEMLIMIT"}
	}
	if n, ok := cgroupMemory(root); ok && n < machine {
		return memoryLimit{n, "cgroup"}
	}
	return memoryLimit{machine, "machine"}
}

// machineMemory is the memory of the machine in bytes.
func machineMemory() int64 {
	var s unix.Sysinfo_t
	if err := unix.Sysinfo(&s); err != nil {
		return math.MaxInt64 / 2 // sysinfo(2) cannot fail with a good pointer
	}
	return int64(s.Totalram) * int64(s.Unit)
}

// cgroupMemory is the smallest memory limit on the way from this process's
// cgroup to the root: memory.max in version 2, memory.limit_in_bytes in
// version 1.
func cgroupMemory(root string) (bytes int64, ok bool) {
	lines, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return 0, false
	}
	bytes = math.MaxInt64
	for _, line := range strings.Split(strings.TrimSpace(string(lines)), "\n") {
		parts := strings.SplitN(line, ":", 3) // hierarchy:controllers:path
		if len(parts) != 3 {
			continue
		}
		folder, file := "sys/fs/cgroup", "memory.max"
		if parts[1] != "" {
			if !hasWord(parts[1], "memory") {
				continue
			}
			folder, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		}
		for group := filepath.Clean("/" + parts[2]); ; group = filepath.Dir(group) {
			if n, found := readLimit(filepath.Join(root, folder, group, file)); found && n < bytes {
				bytes, ok = n, true
			}
			if group == "/" {
				break
			}
		}
	}
	return bytes, ok
}

func hasWord(list, word string) bool {
	for _, w := range strings.Split(list, ",") {
		if w == word {
			return true
		}
	}
	return false
}

// readLimit reads a limit file. "max", and what is too large to be meant, is
// no limit.
func readLimit(path string) (int64, bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || n <= 0 || n > math.MaxInt64/2 {
		return 0, false
	}
	return n, true
}
