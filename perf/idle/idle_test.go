package idle

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"relay/perf/mockhost"
	"relay/perf/target"
)

// TestMain makes the test binary be a mock provider in the process that
// target.Mock starts.
func TestMain(m *testing.M) {
	if len(os.Args) < 2 || os.Args[1] != "mock" {
		os.Exit(m.Run())
	}
	flags := flag.NewFlagSet("mock", flag.ExitOnError)
	addr, scenario := flags.String("addr", "", ""), flags.String("scenario", "", "")
	flags.Parse(os.Args[2:])
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	mock, err := mockhost.Start(mockhost.Options{Addr: *addr, Scenario: *scenario})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("listening mock=%s\n", mock.Addr())
	<-ctx.Done()
	mock.Close()
}

func startMock(t *testing.T, scenario string) target.Setup {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	mock, err := target.Mock(t.Context(), program, scenario)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mock.Close() })
	return target.Setup{Program: program, Mock: mock}
}

// TestRun: what is held is what was asked for, or it shows.
func TestRun(t *testing.T) {
	for _, tt := range []struct {
		name, scenario string
		silent         bool
		opened, open   int
		problem        string
	}{
		{"answered", "instant", false, 60, 60, ""},
		{"silent", "instant", true, 60, 60, ""},
		{"closed by the target", "instant,idle-close=100ms", false, 60, 0, ""},
		{"refused", "instant,status=503", false, 0, 0, "most requests failed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			setup := startMock(t, tt.scenario)
			r, err := Run(t.Context(), Options{Setup: setup, Target: target.NameDirect, Connections: 60, Hold: 300 * time.Millisecond, Silent: tt.silent})
			if tt.problem != "" {
				if err == nil || !strings.Contains(err.Error(), tt.problem) {
					t.Errorf("%v, want %q", err, tt.problem)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if r.Opened != tt.opened || r.StillOpen != tt.open || len(r.OpenFailed) != 0 || r.RSSBefore == 0 || r.RSSHeld == 0 || r.Probe.Count == 0 {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for _, tt := range []struct {
		o    Options
		want string
	}{
		{Options{Hold: time.Second}, "0 connections"},
		{Options{Hold: time.Second, Connections: 10_000_000}, "raise the limit"},
		{Options{Connections: 5}, "a hold of 0s"},
		{Options{Connections: 5, Hold: time.Second, Target: "envoy"}, "envoy"},
	} {
		if _, err := Run(t.Context(), tt.o); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %q", tt.o, err, tt.want)
		}
	}
}
