package hostcheck

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// good is a host that has all it needs, by file.
var good = map[string]string{
	"proc/sys/fs/nr_open":                                             "1048576\n",
	"proc/sys/fs/file-max":                                            "9223372036854775807\n",
	"proc/sys/net/core/somaxconn":                                     "4096\n",
	"proc/sys/net/ipv4/tcp_max_syn_backlog":                           "4096\n",
	"proc/sys/net/ipv4/tcp_tw_reuse":                                  "2\n",
	"proc/sys/net/ipv4/tcp_slow_start_after_idle":                     "0\n",
	"proc/sys/net/ipv4/tcp_migrate_req":                               "1\n",
	"proc/sys/net/ipv4/ip_local_port_range":                           "10240\t65535\n",
	"proc/self/cgroup":                                                "0::/system.slice/relay.service\n",
	"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor":            "performance\n",
	"sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
	"proc/612/comm":                                                   "irqbalance\n",
	"proc/1/comm":                                                     "systemd\n",
	"sys/fs/cgroup/system.slice/cpu.max":                              "max 100000\n",
	"sys/fs/cgroup/system.slice/relay.service/cpu.max":                "max 100000\n",
}

var process = Process{FilesSoft: 1024, FilesHard: 1 << 20, GOMAXPROCS: 8, CPUs: 8, GOMEMLIMIT: 14 << 30, MemoryBytes: 16 << 30}

// hostOf is a root with the files of a host, some changed; "-" takes one away.
func hostOf(t *testing.T, changed map[string]string) string {
	t.Helper()
	root := t.TempDir()
	files := make(map[string]string)
	for path, text := range good {
		files[path] = text
	}
	for path, text := range changed {
		files[path] = text
	}
	for path, text := range files {
		if text == "-" {
			continue
		}
		full := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestGoodHost(t *testing.T) {
	items := Check(hostOf(t, nil), process)
	for _, i := range items {
		if i.State != Good || i.Is == "" || i.Want == "" || i.Why == "" {
			t.Errorf("%+v", i)
		}
	}
	if IsShort(items) || len(items) != 14 {
		t.Errorf("%d items, short: %t", len(items), IsShort(items))
	}
}

func TestHosts(t *testing.T) {
	for _, tt := range []struct {
		name    string
		changed map[string]string
		process func(*Process)
		item    string
		state   State
		is      string
	}{
		{"few files", nil, func(p *Process) { p.FilesHard = 20000 }, "open files (nofile)", Short, "hard 20000"},
		{"unlimited files", nil, func(p *Process) { p.FilesHard = 1<<64 - 1 }, "open files (nofile)", Good, "unlimited"},
		{"low ceiling", map[string]string{"proc/sys/fs/nr_open": "65536"}, nil, "fs.nr_open", Short, "65536"},
		{"few files together", map[string]string{"proc/sys/fs/file-max": "100000"}, nil, "fs.file-max", Short, "100000"},
		{"small backlog", map[string]string{"proc/sys/net/core/somaxconn": "128"}, nil, "net.core.somaxconn", Short, "128"},
		{"small SYN backlog", map[string]string{"proc/sys/net/ipv4/tcp_max_syn_backlog": "512"}, nil, "net.ipv4.tcp_max_syn_backlog", Hint, "512"},
		{"no file", map[string]string{"proc/sys/net/core/somaxconn": "-"}, nil, "net.core.somaxconn", Unknown, ""},
		{"junk", map[string]string{"proc/sys/net/core/somaxconn": "many\n"}, nil, "net.core.somaxconn", Unknown, "many"},
		{"slow start", map[string]string{"proc/sys/net/ipv4/tcp_slow_start_after_idle": "1"}, nil, "net.ipv4.tcp_slow_start_after_idle", Hint, "1"},
		{"no reuse", map[string]string{"proc/sys/net/ipv4/tcp_tw_reuse": "0"}, nil, "net.ipv4.tcp_tw_reuse", Hint, "0"},
		{"conntrack", map[string]string{"proc/sys/net/netfilter/nf_conntrack_max": "65536"}, nil, "net.netfilter.nf_conntrack_max", Short, "65536"},
		{"enough conntrack", map[string]string{"proc/sys/net/netfilter/nf_conntrack_max": "1048576"}, nil, "net.netfilter.nf_conntrack_max", Good, "1048576"},
		{"few ports", map[string]string{"proc/sys/net/ipv4/ip_local_port_range": "32768\t60999"}, nil, "net.ipv4.ip_local_port_range", Short, "32768 60999"},
		{"more ports", map[string]string{"proc/sys/net/ipv4/ip_local_port_range": "1024\t65535"}, nil, "net.ipv4.ip_local_port_range", Good, "1024"},
		{"odd ports", map[string]string{"proc/sys/net/ipv4/ip_local_port_range": "1024"}, nil, "net.ipv4.ip_local_port_range", Unknown, "1024"},
		{"idle cores", nil, func(p *Process) { p.GOMAXPROCS = 2 }, "GOMAXPROCS", Hint, "2"},
		{"more threads than cores", nil, func(p *Process) { p.GOMAXPROCS = 9 }, "GOMAXPROCS", Short, "9"},
		{"quota", map[string]string{"sys/fs/cgroup/system.slice/cpu.max": "250000 100000"}, nil, "GOMAXPROCS", Short, "8 (CPU quota of the cgroup 2.50)"},
		{"quota that fits", map[string]string{"sys/fs/cgroup/system.slice/cpu.max": "250000 100000"}, func(p *Process) { p.GOMAXPROCS = 3 }, "GOMAXPROCS", Good, "2.50"},
		{"quota of version 1", map[string]string{"proc/self/cgroup": "4:cpu,cpuacct:/box\n3:memory:/box\n",
			"sys/fs/cgroup/cpu/box/cpu.cfs_quota_us": "100000", "sys/fs/cgroup/cpu/box/cpu.cfs_period_us": "100000"}, nil, "GOMAXPROCS", Short, "1.00"},
		{"no quota of version 1", map[string]string{"proc/self/cgroup": "4:cpu,cpuacct:/box\n",
			"sys/fs/cgroup/cpu/box/cpu.cfs_quota_us": "-1", "sys/fs/cgroup/cpu/box/cpu.cfs_period_us": "100000"}, nil, "GOMAXPROCS", Good, "8"},
		{"junk quota", map[string]string{"sys/fs/cgroup/system.slice/cpu.max": "x y z"}, nil, "GOMAXPROCS", Good, "8"},
		{"no memory limit", nil, func(p *Process) { p.GOMEMLIMIT = 0 }, "GOMEMLIMIT", Hint, "unset"},
		{"more memory than there is", nil, func(p *Process) { p.GOMEMLIMIT = 32 << 30 }, "GOMEMLIMIT", Short, "32768 MiB"},
		{"governor", map[string]string{"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave"}, nil, "CPU governor", Hint, "powersave"},
		{"no governor", map[string]string{"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "-"}, nil, "CPU governor", Unknown, "virtual"},
		{"no irqbalance", map[string]string{"proc/612/comm": "sshd"}, nil, "irqbalance", Hint, "not running"},
		{"slow clock", map[string]string{"sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet"}, nil, "clock source", Hint, "hpet"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := process
			if tt.process != nil {
				tt.process(&p)
			}
			items := Check(hostOf(t, tt.changed), p)
			for _, i := range items {
				if i.Name == tt.item {
					if i.State != tt.state || !strings.Contains(i.Is, tt.is) {
						t.Errorf("%+v, want %s and %q", i, tt.state, tt.is)
					}
					if IsShort(items) != (tt.state == Short) {
						t.Errorf("short: %t", IsShort(items))
					}
					return
				}
			}
			t.Errorf("no item %s in %+v", tt.item, items)
		})
	}
}

// A host without any file is told as unknown and breaks nothing.
func TestEmptyHost(t *testing.T) {
	for _, i := range Check(t.TempDir(), process) {
		if i.State == Short {
			t.Errorf("%+v: nothing is known", i)
		}
	}
}

func TestPages(t *testing.T) {
	for _, p := range Pages() {
		if p.Doc == "" || len(p.Text) < 100 || strings.Contains(p.Text, "%!") || !strings.HasSuffix(p.Text, "\n") {
			t.Errorf("%s: %q", p.Name, p.Text)
		}
	}
	if text := Pages()[0].Text; !strings.Contains(text, "\nnet.core.somaxconn = 4096\n") || !strings.Contains(text, "\nnet.ipv4.tcp_slow_start_after_idle = 0\n") {
		t.Errorf("sysctl:\n%s", text)
	}
}

// TestHAProxyTakesPage has HAProxy check the configuration that is printed.
func TestHAProxyTakesPage(t *testing.T) {
	verify(t, "haproxy", "haproxy.cfg", Pages()[3].Text, "-c", "-f")
}

// TestSystemdTakesPage has systemd check the unit that is printed, where it is
// installed.
func TestSystemdTakesPage(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Log("systemd-analyze is not installed: the unit is not checked")
		return
	}
	unit := strings.ReplaceAll(Pages()[2].Text, "/usr/local/bin/relay", "/bin/true")
	verify(t, "systemd-analyze", "relay.service", unit, "verify", "--man=no")
}

// verify has a program check a file.
func verify(t *testing.T, program, name, text string, args ...string) {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatalf("%s is not installed: make needs", program)
	}
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(path, append(args, file)...).CombinedOutput(); err != nil {
		t.Errorf("%s %s: %v: %s", program, strings.Join(args, " "), err, out)
	}
}
