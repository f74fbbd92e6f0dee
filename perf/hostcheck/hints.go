package hostcheck

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// memory holds GOMEMLIMIT against the machine.
func (h host) memory(p Process) Item {
	i := Item{Name: "GOMEMLIMIT", State: Good, Is: "unset", Want: "about 90 % of what the relay may use",
		Why: "the limits of requests, connections and bodies are derived from it; unset, from the cgroup's limit or the machine's memory"}
	switch {
	case p.GOMEMLIMIT == 0:
		i.State = Hint
	case p.MemoryBytes > 0 && p.GOMEMLIMIT > p.MemoryBytes:
		i.State = Short
		i.Is = fmt.Sprintf("%d MiB of a machine with %d MiB", p.GOMEMLIMIT>>20, p.MemoryBytes>>20)
	default:
		i.Is = fmt.Sprintf("%d MiB", p.GOMEMLIMIT>>20)
	}
	return i
}

// governor is how the first core's clock is ruled.
func (h host) governor() Item {
	i := Item{Name: "CPU governor", State: Good, Want: "performance", Why: "cores that slow down between requests answer the next one late"}
	text, ok := h.text("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
	switch i.Is = text; {
	case !ok:
		i.State, i.Is = Unknown, "not told (usual on virtual machines)"
	case text != "performance":
		i.State = Hint
	}
	return i
}

// balancer says whether interrupts of the network are spread over the cores.
func (h host) balancer() Item {
	i := Item{Name: "irqbalance", State: Hint, Is: "not running", Want: "running, or the queues of the network card bound to cores by hand",
		Why: "else one core takes all interrupts and its loop is late"}
	entries, err := os.ReadDir(filepath.Join(h.root, "proc"))
	if err != nil {
		i.State, i.Is = Unknown, ""
		return i
	}
	for _, e := range entries {
		if strings.Trim(e.Name(), "0123456789") != "" {
			continue
		}
		if comm, ok := h.text(filepath.Join("proc", e.Name(), "comm")); ok && comm == "irqbalance" {
			i.State, i.Is = Good, "running"
			return i
		}
	}
	return i
}

// clock is where the kernel takes the time from. Some sources need a system
// call or worse for each look, and a loop looks once per callback.
func (h host) clock() Item {
	i := Item{Name: "clock source", State: Good, Want: "tsc, kvm-clock or arch_sys_counter", Why: "others cost a system call or more at each look at the clock"}
	text, ok := h.text("sys/devices/system/clocksource/clocksource0/current_clocksource")
	switch i.Is = text; {
	case !ok:
		i.State = Unknown
	case text != "tsc" && text != "kvm-clock" && text != "arch_sys_counter":
		i.State = Hint
	}
	return i
}
