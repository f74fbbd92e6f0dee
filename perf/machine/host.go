package machine

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/prometheus/procfs"
)

// Facts say where and with what a result was taken.
type Facts struct {
	CPUModel    string
	CPUs        int
	MemoryBytes uint64
	Kernel      string
	GoVersion   string
	Commit      string // "" when the build does not know; "+" behind it: with changes
	Descriptors uint64 // limit per process
}

// Host gathers facts; what cannot be read is left empty.
func Host() Facts {
	f := Facts{CPUs: runtime.NumCPU(), GoVersion: runtime.Version()}
	if fs, err := procfs.NewDefaultFS(); err == nil {
		if cpus, err := fs.CPUInfo(); err == nil && len(cpus) > 0 {
			f.CPUModel = cpus[0].ModelName
		}
		if memory, err := fs.Meminfo(); err == nil && memory.MemTotalBytes != nil {
			f.MemoryBytes = *memory.MemTotalBytes
		}
	}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		f.Kernel = strings.TrimSpace(string(release))
	}
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) == nil {
		f.Descriptors = limit.Cur
	}
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, s := range build.Settings {
			switch {
			case s.Key == "vcs.revision":
				f.Commit = s.Value + f.Commit
			case s.Key == "vcs.modified" && s.Value == "true":
				f.Commit += "+"
			}
		}
	}
	return f
}

// RaiseDescriptors lifts the soft limit of open files to the hard one, for
// this process and those it starts, and returns it.
func RaiseDescriptors() (uint64, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("machine: limit of open files: %w", err)
	}
	limit.Cur = limit.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("machine: raise the limit of open files to %d: %w", limit.Max, err)
	}
	return limit.Cur, nil
}
