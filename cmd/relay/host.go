package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"runtime/debug"
	"strings"

	"golang.org/x/sys/unix"

	"relay/perf/hostcheck"
)

// hostCommands are about the host.
type hostCommands struct {
	Check hostCheckCommand `cmd:"" help:"Hold this host against what a relay at work needs; exit 1 when something is short."`
	Print hostPrintCommand `cmd:"" help:"Print a file that prepares a host: sysctl, limits, systemd or haproxy."`
}

type hostCheckCommand struct {
	JSON bool `help:"Print JSON."`
}

// errShort ends the command; what is short has been told.
var errShort = fmt.Errorf("the host is short of something: %w", errTold)

// Run looks and tells.
func (c *hostCheckCommand) Run(s streams) error {
	items := hostcheck.Check("/", thisProcess())
	var err error
	if c.JSON {
		out := json.NewEncoder(s.out)
		out.SetIndent("", "  ")
		err = out.Encode(items)
	} else {
		err = printItems(s.out, items)
	}
	if err != nil {
		return err
	}
	if hostcheck.IsShort(items) {
		return errShort
	}
	return nil
}

// thisProcess is what a relay started here would have.
func thisProcess() hostcheck.Process {
	p := hostcheck.Process{GOMAXPROCS: runtime.GOMAXPROCS(0), CPUs: runtime.NumCPU(), MemoryBytes: machineMemory()}
	var files unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &files) == nil {
		p.FilesSoft, p.FilesHard = files.Cur, files.Max
	}
	if n := debug.SetMemoryLimit(-1); n != math.MaxInt64 {
		p.GOMEMLIMIT = n
	}
	return p
}

func printItems(w io.Writer, items []hostcheck.Item) error {
	short, hints := 0, 0
	for _, i := range items {
		if _, err := fmt.Fprintf(w, "%-8s%-36s%s\n", i.State, i.Name, i.Is); err != nil {
			return err
		}
		switch i.State {
		case hostcheck.Good:
			continue
		case hostcheck.Short:
			short++
		case hostcheck.Hint:
			hints++
		}
		if _, err := fmt.Fprintf(w, "        should be: %s\n        why: %s\n", i.Want, i.Why); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "\n%d short, %d %s. relay host print sysctl|systemd prints files that set most of it.\n", short, hints, plural(hints, "hint"))
	return err
}

func plural(n int, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}

type hostPrintCommand struct {
	Page string `arg:"" optional:"" help:"sysctl, limits, systemd or haproxy; without it a list of them."`
}

// Run prints a page, or what there is.
func (c *hostPrintCommand) Run(s streams) error {
	var names []string
	for _, p := range hostcheck.Pages() {
		if p.Name == c.Page {
			_, err := io.WriteString(s.out, p.Text)
			return err
		}
		names = append(names, p.Name)
	}
	if c.Page != "" {
		return errors.New("no page " + c.Page + ": want one of " + strings.Join(names, ", "))
	}
	for _, p := range hostcheck.Pages() {
		if _, err := fmt.Fprintf(s.out, "relay host print %-8s %s\n", p.Name, p.Doc); err != nil {
			return err
		}
	}
	return nil
}
