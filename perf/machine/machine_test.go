package machine

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

func TestUsageGrows(t *testing.T) {
	me := Tree{os.Getpid()}
	before, err := me.Usage()
	if err != nil {
		t.Fatal(err)
	}
	held := make([]byte, 64<<20)
	sum := 0
	for began := time.Now(); time.Since(began) < 150*time.Millisecond; {
		for i := range held {
			held[i]++
			sum += int(held[i])
		}
	}
	after, err := me.Usage()
	if err != nil {
		t.Fatal(err)
	}
	if cpu := after.CPU - before.CPU; cpu < 50*time.Millisecond {
		t.Errorf("CPU grew by %v while %d was summed", cpu, sum)
	}
	if after.RSS-before.RSS < 60<<20 {
		t.Errorf("RSS grew by %d, want 64 MiB", after.RSS-before.RSS)
	}
}

func TestChildrenCount(t *testing.T) {
	// "; :" keeps the shell from becoming the sleep
	cmd := exec.Command("sh", "-c", "sleep 60; :")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tree := Tree{cmd.Process.Pid}
	defer func() {
		procs, _ := tree.procs()
		for _, p := range procs {
			if child, err := os.FindProcess(p.PID); err == nil {
				child.Kill()
			}
		}
		cmd.Wait()
	}()
	for until := time.Now().Add(5 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		procs, err := tree.procs()
		if err != nil {
			t.Fatal(err)
		}
		if len(procs) == 2 {
			break
		}
		if time.Now().After(until) {
			t.Fatalf("%d processes, want the shell and its child", len(procs))
		}
	}
	u, err := tree.Usage()
	if err != nil || u.RSS <= 0 {
		t.Errorf("usage %+v, %v", u, err)
	}
	if group, err := tree.Members(tree.PID); err != nil || len(group) != 1 || group[0].PID == tree.PID {
		t.Errorf("members without the shell: %v, %v", group, err)
	}
	if n, err := tree.Descriptors(); err != nil || n < 6 {
		t.Errorf("%d descriptors, %v, want at least 3 of each process", n, err)
	}
}

func TestNoProcess(t *testing.T) {
	if _, err := (Tree{1 << 30}).Usage(); err == nil {
		t.Error("a process that is not there has a usage")
	}
}

func TestHost(t *testing.T) {
	f := Host()
	if f.CPUs < 1 || f.MemoryBytes == 0 || f.Kernel == "" || f.GoVersion == "" || f.Descriptors == 0 {
		t.Errorf("facts %+v", f)
	}
}
