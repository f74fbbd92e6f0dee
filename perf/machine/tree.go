package machine

import (
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/procfs"
)

// A Tree is a process and its children at the time of the last Usage.
type Tree struct{ PID int }

// Usage is what a tree has used.
type Usage struct {
	CPU time.Duration // user and system, since the start of each process; the kernel counts in 10 ms
	RSS int64         // bytes; pages that processes share count in each
	At  time.Time
}

// Usage reads the tree. Children that ended are counted in none of the fields,
// so a tree whose members change cannot be measured by a difference.
func (t Tree) Usage() (Usage, error) {
	procs, err := t.procs()
	if err != nil {
		return Usage{}, err
	}
	return Group(procs).Usage()
}

// A Group is some processes that do not change. It costs less to read than a
// tree, whose members are looked for among all processes.
type Group []procfs.Proc

// Members are the process of the tree and its children but some.
func (t Tree) Members(but ...int) (Group, error) {
	procs, err := t.procs()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(procs, func(p procfs.Proc) bool { return slices.Contains(but, p.PID) }), nil
}

// Usage reads the group.
func (g Group) Usage() (Usage, error) {
	u := Usage{At: time.Now()}
	for _, p := range g {
		stat, err := p.Stat()
		if err != nil {
			return u, fmt.Errorf("machine: process %d: %w", p.PID, err)
		}
		u.CPU += time.Duration(stat.CPUTime() * float64(time.Second))
		u.RSS += int64(stat.ResidentMemory())
	}
	return u, nil
}

// Descriptors is the number of open files of the tree.
func (t Tree) Descriptors() (int, error) {
	procs, err := t.procs()
	if err != nil {
		return 0, err
	}
	n := 0
	for _, p := range procs {
		k, err := p.FileDescriptorsLen()
		if err != nil {
			return 0, fmt.Errorf("machine: process %d: %w", p.PID, err)
		}
		n += k
	}
	return n, nil
}

func (t Tree) procs() ([]procfs.Proc, error) {
	root, err := procfs.NewProc(t.PID)
	if err != nil {
		return nil, fmt.Errorf("machine: process %d: %w", t.PID, err)
	}
	all, err := procfs.AllProcs()
	if err != nil {
		return nil, fmt.Errorf("machine: list processes: %w", err)
	}
	found := []procfs.Proc{root}
	for _, p := range all {
		if stat, err := p.Stat(); err == nil && stat.PPID == t.PID { // processes come and go while the list is read
			found = append(found, p)
		}
	}
	return found, nil
}
