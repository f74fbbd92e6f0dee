package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"relay/perf/hostcheck"
)

func runHost(t *testing.T, args ...string) (code int, out, complaint string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = run(append([]string{"host"}, args...), streams{out: &stdout, err: &stderr})
	return code, stdout.String(), stderr.String()
}

func TestHostCheck(t *testing.T) {
	code, out, complaint := runHost(t, "check", "--json")
	var items []hostcheck.Item
	if err := json.Unmarshal([]byte(out), &items); err != nil || len(items) < 10 || complaint != "" {
		t.Fatalf("%v: %s%s", err, out, complaint)
	}
	want := exitOK
	if hostcheck.IsShort(items) {
		want = exitFailure
	}
	if code != want {
		t.Errorf("exit %d, want %d", code, want)
	}
	if again, text, _ := runHost(t, "check"); again != code || !strings.Contains(text, "open files (nofile)") || !strings.Contains(text, " short, ") {
		t.Errorf("exit %d: %s", again, text)
	}
}

func TestHostPrint(t *testing.T) {
	if code, out, _ := runHost(t, "print"); code != exitOK || !strings.Contains(out, "relay host print haproxy") {
		t.Errorf("exit %d: %s", code, out)
	}
	if code, out, _ := runHost(t, "print", "systemd"); code != exitOK || !strings.Contains(out, "\nExecStart=/usr/local/bin/relay serve\n") {
		t.Errorf("exit %d: %s", code, out)
	}
	if code, _, complaint := runHost(t, "print", "upstart"); code != exitFailure || !strings.Contains(complaint, "want one of sysctl, limits, systemd, haproxy") {
		t.Errorf("exit %d: %s", code, complaint)
	}
}
