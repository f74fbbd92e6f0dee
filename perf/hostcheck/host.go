package hostcheck

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// What a relay with tens of thousands of requests per second needs.
const (
	filesWanted     = 1 << 20 // two per request in flight, one per idle connection
	backlogWanted   = 4096
	portLowWanted   = 10240
	portHighWanted  = 65535
	conntrackWanted = 1 << 20
	fileBytesMax    = 64 << 10 // of a file of /proc or /sys that is read
)

// A host reads its files below a root.
type host struct{ root string }

// text is the content of a file without blanks around it; false when there is
// none that can be read.
func (h host) text(path string) (string, bool) {
	text, err := os.ReadFile(filepath.Join(h.root, path))
	if err != nil || len(text) > fileBytesMax {
		return "", false
	}
	return strings.TrimSpace(string(text)), true
}

func (h host) number(path string) (n int64, text string, ok bool) {
	text, ok = h.text(path)
	if !ok {
		return 0, "", false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, text, err == nil
}

// unbounded is the most of a setting that may be as high as it likes.
const unbounded = -1

// A sysctl is one kernel setting.
type sysctl struct {
	name     string
	least    int64
	most     int64 // unbounded = no bound above
	required bool
	optional bool // not there is fine
	why      string
}

// sysctls are looked at in this order; print writes the same values.
var sysctls = []sysctl{
	{"net.core.somaxconn", backlogWanted, unbounded, true, false, "connections that wait to be accepted, for instance when many callers come back at once; past it they are lost and tried again after a second"},
	{"net.ipv4.tcp_max_syn_backlog", backlogWanted, unbounded, false, false, "the same for connections whose handshake is under way"},
	{"net.netfilter.nf_conntrack_max", conntrackWanted, unbounded, true, true, "connection tracking is loaded: past its table the kernel drops packets of new connections"},
	{"net.ipv4.tcp_tw_reuse", 1, 2, false, false, "ports of ended connections to providers can be used again"},
	{"net.ipv4.tcp_slow_start_after_idle", 0, 0, false, false, "kept connections do not begin slowly again after each pause"},
	{"net.ipv4.tcp_migrate_req", 1, unbounded, false, true, "connections that wait for an old process go to the new one in an upgrade"},
}

// want is what a setting should be.
func (s sysctl) want() string {
	switch {
	case s.most == unbounded:
		return fmt.Sprintf("at least %d", s.least)
	case s.most == s.least:
		return fmt.Sprint(s.least)
	}
	return fmt.Sprintf("%d to %d", s.least, s.most)
}

func (s sysctl) holds(n int64) bool {
	return n >= s.least && (s.most == unbounded || n <= s.most)
}

// sysctl looks at one setting. It reports false for an optional one that is
// not there.
func (h host) sysctl(s sysctl) (Item, bool) {
	i := Item{Name: s.name, State: Good, Want: s.want(), Why: s.why}
	n, text, ok := h.number("proc/sys/" + strings.ReplaceAll(s.name, ".", "/"))
	i.Is = text
	switch {
	case !ok && text == "" && s.optional:
		return i, false
	case !ok:
		i.State = Unknown
	case s.holds(n):
	case s.required:
		i.State = Short
	default:
		i.State = Hint
	}
	return i, true
}

// files is the limit of open files of the process.
func (h host) files(p Process) Item {
	i := Item{Name: "open files (nofile)", State: Good, Is: fmt.Sprintf("soft %s, hard %s", limitText(p.FilesSoft), limitText(p.FilesHard)),
		Want: fmt.Sprintf("hard at least %d", filesWanted), Why: "a request in flight takes two, an idle connection one; relay serve raises the soft limit to the hard one itself"}
	if p.FilesHard < filesWanted {
		i.State = Short
	}
	return i
}

func limitText(n uint64) string {
	if n > math.MaxInt64 {
		return "unlimited"
	}
	return strconv.FormatUint(n, 10)
}

// openable is the ceiling of nofile.
func (h host) openable() Item {
	return h.ceiling("fs.nr_open", "no process can have a higher limit of open files")
}

// fileMax is the limit of all processes together.
func (h host) fileMax() Item {
	return h.ceiling("fs.file-max", "all processes together have no more open files")
}

func (h host) ceiling(name, why string) Item {
	i, _ := h.sysctl(sysctl{name: name, least: filesWanted, most: unbounded, required: true, why: why})
	if i.Is != "" && len(i.Is) >= len("9223372036854775807") { // 2^63 - 1 and above: no limit at all
		i.State = Good
	}
	return i
}

// ports is the range of local ports, which bounds the connections to one
// address and port of a provider.
func (h host) ports() Item {
	i := Item{Name: "net.ipv4.ip_local_port_range", State: Unknown, Want: fmt.Sprintf("%d %d", portLowWanted, portHighWanted),
		Why: "each connection to the same address of a provider takes a port of its own"}
	text, ok := h.text("proc/sys/net/ipv4/ip_local_port_range")
	fields := strings.Fields(text)
	i.Is = strings.Join(fields, " ")
	if !ok || len(fields) != 2 {
		return i
	}
	low, lowErr := strconv.Atoi(fields[0])
	high, highErr := strconv.Atoi(fields[1])
	if lowErr != nil || highErr != nil {
		return i
	}
	if i.State = Good; high-low < portHighWanted-portLowWanted {
		i.State = Short
	}
	return i
}

// cores holds the threads that run Go code against what the process may use.
func (h host) cores(p Process) Item {
	i := Item{Name: "GOMAXPROCS", State: Good, Is: strconv.Itoa(p.GOMAXPROCS), Want: strconv.Itoa(p.CPUs),
		Why: "there is one event loop for each; more than the cores give nothing but switches, fewer leave cores idle"}
	if quota, ok := h.quota(); ok {
		i.Is += fmt.Sprintf(" (CPU quota of the cgroup %.2f)", quota)
		if most := int(math.Ceil(quota)); most < p.CPUs {
			i.Want = strconv.Itoa(max(most, 1))
			i.Why = "the cgroup's quota is less than the cores: what is above it is throttled, all loops at once, for most of each 100 ms"
		}
	}
	want, _ := strconv.Atoi(i.Want)
	switch {
	case p.GOMAXPROCS > want:
		i.State = Short
	case p.GOMAXPROCS < want:
		i.State = Hint
	}
	return i
}

// quota is the cgroup's share of CPU in cores: cpu.max in version 2,
// cpu.cfs_quota_us in version 1, the least on the way to the root.
func (h host) quota() (cores float64, found bool) {
	lines, ok := h.text("proc/self/cgroup")
	if !ok {
		return 0, false
	}
	cores = math.Inf(1)
	for line := range strings.SplitSeq(lines, "\n") {
		parts := strings.SplitN(line, ":", 3) // hierarchy:controllers:path
		if len(parts) != 3 || parts[1] != "" && !strings.Contains(","+parts[1]+",", ",cpu,") {
			continue
		}
		for group := filepath.Clean("/" + parts[2]); ; group = filepath.Dir(group) {
			if n, ok := h.quotaOf(group, parts[1] == ""); ok && n < cores {
				cores, found = n, true
			}
			if group == "/" {
				break
			}
		}
	}
	return cores, found
}

func (h host) quotaOf(group string, unified bool) (float64, bool) {
	var quota, period string
	if unified {
		text, _ := h.text(filepath.Join("sys/fs/cgroup", group, "cpu.max"))
		quota, period, _ = strings.Cut(text, " ")
	} else {
		quota, _ = h.text(filepath.Join("sys/fs/cgroup/cpu", group, "cpu.cfs_quota_us"))
		period, _ = h.text(filepath.Join("sys/fs/cgroup/cpu", group, "cpu.cfs_period_us"))
	}
	q, quotaErr := strconv.ParseFloat(quota, 64)
	p, periodErr := strconv.ParseFloat(period, 64)
	if quotaErr != nil || periodErr != nil || q <= 0 || p <= 0 {
		return 0, false
	}
	return q / p, true
}
