package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDeriveLimits(t *testing.T) {
	const gib = 1 << 30
	settings := func(change func(*Settings)) *Settings {
		s := &Settings{Loops: 4, MaxRequestBytes: 32 << 20}
		change(s)
		return s
	}
	for _, tt := range []struct {
		name   string
		change func(*Settings)
		memory int64
		files  uint64
		want   func(limits) bool
	}{
		{"memory is shared by the loops", func(*Settings) {}, 10 * gib, 1 << 20, func(l limits) bool {
			return l.loops == 4 && l.budgetBytes == 10*gib/100*40/4 && l.requestBytes == 32<<20
		}},
		{"connections by memory", func(*Settings) {}, gib, 1 << 20, func(l limits) bool {
			return l.conns == gib/100*40/(16<<10)
		}},
		{"connections by descriptors", func(*Settings) {}, 64 * gib, 20000, func(l limits) bool {
			return l.conns == (20000-64)*80/100
		}},
		{"connections by setting", func(s *Settings) { s.MaxConns = 77 }, gib, 20000, func(l limits) bool {
			return l.conns == 77
		}},
		{"in flight by setting, idle follows", func(s *Settings) { s.MaxInflight = 4001 }, gib, 20000, func(l limits) bool {
			return l.inflight == 4001 && l.idlePerHost == 1001
		}},
		{"idle by setting", func(s *Settings) { s.UpstreamMaxIdlePerHost = 2 }, gib, 20000, func(l limits) bool {
			return l.idlePerHost == 1
		}},
		{"a body never exceeds a loop's budget", func(*Settings) {}, 100 << 20, 20000, func(l limits) bool {
			return l.requestBytes == l.budgetBytes && l.budgetBytes == 100<<20/100*40/4
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, err := deriveLimits(settings(tt.change), memoryLimit{tt.memory, "test"}, tt.files)
			if err != nil || !tt.want(l) {
				t.Errorf("%+v, %v", l, err)
			}
		})
	}
}

func TestDeriveLimitsRefuses(t *testing.T) {
	s := &Settings{Loops: 1, MaxRequestBytes: 1 << 20, MaxConns: 1000}
	_, err := deriveLimits(s, memoryLimit{1 << 30, "test"}, 1000)
	want := `RELAY_MAX_CONNS (--max-conns) is "1000": allowed is at most 748 here (80 % of the limit of open files, 1000)`
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	s.MaxConns = 0
	if _, err := deriveLimits(s, memoryLimit{1 << 30, "test"}, 40); err == nil || !strings.Contains(err.Error(), "limit of open files") {
		t.Errorf("with 40 descriptors: %v", err)
	}
}

func TestCgroupMemory(t *testing.T) {
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  int64 // 0 = none
	}{
		{"version 2, the smallest on the way up", map[string]string{
			"proc/self/cgroup":                   "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max":       "max\n",
			"sys/fs/cgroup/a/memory.max":         "1073741824\n",
			"sys/fs/cgroup/memory.max":           "2147483648\n",
			"sys/fs/cgroup/unrelated/memory.max": "1\n",
		}, 1 << 30},
		{"version 2 in a container", map[string]string{
			"proc/self/cgroup":         "0::/\n",
			"sys/fs/cgroup/memory.max": "536870912\n",
		}, 512 << 20},
		{"version 1", map[string]string{
			"proc/self/cgroup": "5:cpu:/x\n4:memory,other:/docker/1\n",
			"sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes": "268435456\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":          "9223372036854771712\n",
		}, 256 << 20},
		{"no limit", map[string]string{
			"proc/self/cgroup":         "0::/\n",
			"sys/fs/cgroup/memory.max": "max\n",
		}, 0},
		{"no cgroups", nil, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := t.TempDir()
			for name, text := range tt.files {
				name = filepath.Join(root, name)
				if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			got, ok := cgroupMemory(root)
			if ok != (tt.want != 0) || ok && got != tt.want {
				t.Errorf("%d, %v; want %d", got, ok, tt.want)
			}
		})
	}
}

func TestSizeText(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 1: "1", 1023: "1023", 1024: "1KiB", 32 << 20: "32MiB", 3 << 30: "3GiB", 1<<20 + 1: "1048577"} {
		if got := sizeText(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}
