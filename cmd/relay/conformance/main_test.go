//go:build integration

package conformance

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// soon is the wait for anything that happens without a timer, generous since
// the machine may be busy; what is met is met at once.
var soon = 10 * time.Second

// Other waits, and how many cases run at a time.
const (
	quiet    = 150 * time.Millisecond // for something that must not happen
	goneTime = 3 * time.Second        // from a client's end to that of its upstream request
	parallel = "96"                   // cases at a time: most of them wait
)

// Limits that the relays are told, small so that cases are.
const (
	bodyMax         = 1 << 20
	bodyMaxBesieged = 16 << 20 // more than sockets hold
	relayKey        = "rk-conformance-key"
	hostKey         = "sk-conformance-host"
)

// The relays under test, and the upstreams that stand for every case.
var (
	judged   *process // serves the cases
	besieged *process // is attacked
	proxied  *process // expects a PROXY header
	echo     *echoHost
)

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", parallel); err != nil {
		panic(err)
	}
	if *checked {
		soon *= 3
	}
	folder, err := os.MkdirTemp("", "conformance-")
	if err != nil {
		panic(err)
	}
	code := run(m, folder)
	if code == 0 {
		_ = os.RemoveAll(folder)
	} else {
		fmt.Fprintln(os.Stderr, "logs of the relays are in", folder)
	}
	os.Exit(code)
}

// run starts the relays, lets the tests judge them, and then looks at what the
// tests have left behind.
func run(m *testing.M, folder string) (code int) {
	binary := filepath.Join(folder, "relay")
	if err := build(binary); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	echo = startEcho()
	openOrigins()
	catalog := filepath.Join(folder, "relay.yaml")
	if err := os.WriteFile(catalog, catalogText(), 0o600); err != nil {
		panic(err)
	}
	for _, p := range []struct {
		at       **process
		name     string
		settings []string
	}{
		{&judged, "judged", nil},
		{&besieged, "besieged", []string{fmt.Sprintf("RELAY_MAX_REQUEST_BYTES=%d", bodyMaxBesieged)}},
		{&proxied, "proxied", []string{"RELAY_PROXY_PROTOCOL=on", "RELAY_LOOPS=1"}},
	} {
		started, err := startProcess(binary, catalog, filepath.Join(folder, p.name), p.settings)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		*p.at = started
		defer started.stop()
	}
	before := [2]trace{judged.trace(), besieged.trace()}
	canaries := []*canary{startCanary(judged), startCanary(besieged)}
	code = m.Run()
	for i, p := range []*process{judged, besieged} {
		problems := append(canaries[i].stop(), p.aftermath(before[i])...)
		for _, text := range problems {
			fmt.Fprintf(os.Stderr, "--- FAIL: after all cases, %s: %s\n", p.name, text)
			code = 1
		}
	}
	for _, text := range echo.strays() {
		fmt.Fprintln(os.Stderr, "--- FAIL: a request of no case reached the upstream:", text)
		code = 1
	}
	return code
}

// checked builds the relay with the race detector and with checks of ownership
// instead of as it is shipped. It then takes several times the memory and the
// time, so these are not judged.
var checked = flag.Bool("checked", false, "build the relay with -race -tags check")

// build makes the binary as it is shipped. A tree that does not build for a
// moment is tried again.
func build(binary string) error {
	var out []byte
	var err error
	for range 3 {
		c := exec.Command("go", "build", "-trimpath", "-o", binary, "relay/cmd/relay")
		c.Env = append(os.Environ(), "CGO_ENABLED=0")
		if *checked {
			c = exec.Command("go", "build", "-race", "-tags", "check", "-o", binary, "relay/cmd/relay")
		}
		if out, err = c.CombinedOutput(); err == nil {
			return nil
		}
		time.Sleep(time.Second)
	}
	return fmt.Errorf("go build: %w\n%s", err, out)
}
