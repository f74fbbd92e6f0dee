//go:build integration

package shared

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

var (
	checked  = flag.Bool("checked", false, "build the relay with -race -tags check")
	loadTime = flag.Duration("load", 12*time.Second, "how long TestFourRelays loads the relays")
)

// binary is the relay under test, built once.
var binary string

// soon is the wait for anything that happens without a timer, generous since
// the machine may be busy; what is met is met at once.
const soon = 15 * time.Second

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil { // most tests wait
		panic(err)
	}
	folder, err := os.MkdirTemp("", "relay-shared-")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(folder, "relay")
	code := 1
	if err := build(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		code = m.Run()
	}
	_ = os.RemoveAll(folder)
	os.Exit(code)
}

// build makes the binary as it is shipped, or with its own checks.
func build() error {
	c := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", binary, "relay/cmd/relay")
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if *checked {
		c = exec.Command("go", "build", "-race", "-tags", "check", "-buildvcs=false", "-o", binary, "relay/cmd/relay")
	}
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

// eventually reports whether a condition becomes true in time, and how long it
// took.
func eventually(most time.Duration, condition func() bool) (took time.Duration, ok bool) {
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		if condition() {
			return time.Since(began), true
		}
		if time.Since(began) > most {
			return time.Since(began), false
		}
	}
}

// exitCode is that of a process that was waited for.
func exitCode(err error) int {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return 0
}
