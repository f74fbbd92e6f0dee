//go:build integration

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestWireRows makes one request of each kind and wants exactly one row of
// each, with the right outcome, tokens and cost.
func TestWireRows(t *testing.T) {
	g := startGateway(t)
	const counts = "in=1000,cached=400,out=50"
	for _, tt := range []struct {
		name, path, mock, key, body string
		status                      int
		outcome, source, cost       string
		input, cached, output       int64
	}{
		// 600 × 2 + 400 × 0.5 + 50 × 10 per million
		{"chat", chatPath, counts, keyWide, chatBody, 200, "completed", "reported", "0.0019", 600, 400, 50},
		{"chat-stream", chatPath, counts, keyWide, chatStreamBody, 200, "completed", "reported", "0.0019", 600, 400, 50},
		{"usage-in-finish", chatPath, counts + ",usage-in-finish", keyWide, chatStreamBody, 200, "completed", "reported", "0.0019", 600, 400, 50},
		{"usage-running", chatPath, counts + ",usage-running", keyWide, chatStreamBody, 200, "completed", "reported", "0.0019", 600, 400, 50},
		{"crlf", chatPath, counts + ",crlf,nospace", keyWide, chatStreamBody, 200, "completed", "reported", "0.0019", 600, 400, 50},
		// 1000 × 3 + 400 × 0.3 + 50 × 15
		{"message", messagePath, counts, keyWide, messageBody, 200, "completed", "reported", "0.00387", 1000, 400, 50},
		{"message-stream", messagePath, counts, keyWide, messageStream, 200, "completed", "reported", "0.00387", 1000, 400, 50},
		// 3 × 3 + 12304 × 3.75 + 550 × 15
		{"cache-write", messagePath, "in=3,write=12304,out=550", keyWide, messageBody, 200, "completed", "reported", "0.054399", 3, 0, 550},
		{"host-error", chatPath, "status=500", keyWide, chatBody, 500, "failed", "none", "0", 0, 0, 0},
		{"host-gone", chatPath, "reset", keyWide, chatBody, 502, "failed", "none", "0", 0, 0, 0},
	} {
		a := g.call("POST", tt.path+"?mock="+tt.mock, tt.key, tt.body, "X-Request-ID: "+tt.name)
		if a.StatusCode != tt.status {
			t.Errorf("%s: %d %s", tt.name, a.StatusCode, a.body)
		}
		rows := g.rowsBy(tt.name) // at once: the row is there before the answer's end
		if len(rows) != 1 {
			t.Errorf("%s: %d rows", tt.name, len(rows))
			continue
		}
		r := rows[0]
		if r.Outcome != tt.outcome || r.Status != tt.status || r.Source != tt.source || !sameUSD(r.CostUSD, tt.cost) ||
			r.Tokens.Input != tt.input || r.Tokens.CachedInput != tt.cached || r.Tokens.Output != tt.output {
			t.Errorf("%s: row is %+v", tt.name, r)
		}
	}
	a := g.call("POST", chatPath+"?mock=nousage,tokens=40", keyWide, chatStreamBody, "X-Request-ID: estimate")
	if r := g.rowsBy("estimate"); a.StatusCode != 200 || len(r) != 1 || r[0].Source != "estimated" || r[0].Tokens.Output < 10 {
		t.Errorf("without usage: %d, %+v", a.StatusCode, r)
	}
	a = g.call("POST", chatPath+"?mock=tokens=60,per=1,cut=40", keyWide, chatStreamBody, "X-Request-ID: cut")
	if r := g.rowsBy("cut"); len(r) != 1 || r[0].Outcome != "cut" || r[0].Tokens.Output < 10 {
		t.Errorf("a cut stream: %d, %+v", a.StatusCode, r)
	}
}

// sameUSD compares decimals that may differ in trailing zeros.
func sameUSD(a, b string) bool {
	trim := func(s string) string {
		if strings.Contains(s, ".") {
			s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
		}
		return s
	}
	return trim(a) == trim(b)
}

func TestWireRowOfClientGone(t *testing.T) {
	g := startGateway(t)
	s := g.stream(chatPath+"?mock=in=1000,tokens=2000,per=4,tps=100", keyWide, chatStreamBody)
	for range 10 {
		s.event()
	}
	s.abort()
	if !eventually(3*time.Second, func() bool { return len(g.rows()) == 1 }) {
		t.Fatalf("rows are %+v", g.rows())
	}
	if r := g.rows()[0]; r.Outcome != "cancelled" || !r.HungUp || r.Tokens.Output == 0 || r.Tokens.Input == 0 || sameUSD(r.CostUSD, "0") {
		t.Errorf("row is %+v", r)
	}
}

// TestWireRowsSurviveKill kills the process in the middle of work: what was
// answered has its row, what had begun gets one that says interrupted, and
// nothing has two.
func TestWireRowsSurviveKill(t *testing.T) {
	for _, sync := range []string{"20", "0"} {
		t.Run("RELAY_SPOOL_SYNC="+sync, func(t *testing.T) {
			g := startGateway(t, "RELAY_SPOOL_SYNC="+sync)
			var streams []*openStream
			for range 3 {
				s := g.stream(chatPath+"?mock=tick=50ms,events=2000", keyWide, chatStreamBody)
				s.event()
				streams = append(streams, s)
			}
			var wait waitGroup
			for i := range 40 {
				wait.Go(func() { g.call("POST", chatPath, keyWide, chatBody, fmt.Sprintf("X-Request-ID: n-%d", i)) })
			}
			wait.Wait()
			g.signal(syscall.SIGKILL)
			g.wait(5 * time.Second)
			for _, s := range streams {
				s.body.Close()
			}
			g.start() // the next run closes the dead one
			var rows []row
			if !eventually(5*time.Second, func() bool { rows = g.rows(); return len(rows) == 43 }) {
				t.Fatalf("%d rows, want 43", len(rows))
			}
			seen := map[string]int{}
			interrupted := 0
			for _, r := range rows {
				seen[r.RequestID]++
				if r.Outcome == "interrupted" {
					interrupted++
				}
			}
			if interrupted != 3 || len(seen) != 43 {
				t.Errorf("%d interrupted rows, %d different requests", interrupted, len(seen))
			}
			for i := range 40 {
				if n := len(g.rowsBy(fmt.Sprintf("n-%d", i))); n != 1 {
					t.Fatalf("request n-%d has %d rows", i, n)
				}
			}
			if n := g.metrics()["relay_spool_interrupted_rows_total"]; n != 3 {
				t.Errorf("%v interrupted rows are counted", n)
			}
		})
	}
}

// waitGroup is sync.WaitGroup where the name sync is taken.
type waitGroup = sync.WaitGroup

func TestWireUsageTail(t *testing.T) {
	g := startGateway(t)
	g.call("POST", chatPath+"?mock=in=1000,out=50", keyWide, chatBody)
	out, code := g.runs([]string{"RELAY_DATA_DIR=" + g.data}, "usage", "tail")
	for _, want := range []string{" 200 completed ", "gpt-mock", "key=wide", "account=team", "host=o/k1", "in=1000", "out=50", "source=reported", "0.0025"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in %q", want, out)
		}
	}
	if code != 0 || strings.Count(out, "\n") != 1 {
		t.Errorf("exit code %d, %q", code, out)
	}
	follow := exec.Command(binary, "usage", "tail", "--follow", "--json", "--data-dir", g.data)
	lines, err := follow.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := follow.Start(); err != nil {
		t.Fatal(err)
	}
	scanner := bufio.NewScanner(lines)
	for _, id := range []string{"", "followed-1", "followed-2"} {
		if id != "" {
			g.call("POST", chatPath, keyWide, chatBody, "X-Request-ID: "+id)
		}
		var r row
		if !scanner.Scan() || json.Unmarshal(scanner.Bytes(), &r) != nil || id != "" && r.CallerID != id {
			t.Errorf("followed row of %q: %s", id, scanner.Text())
		}
	}
	if err := follow.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := follow.Wait(); err != nil {
		t.Errorf("usage tail --follow: %v", err)
	}
	out, code = g.runs(nil, "usage", "tail", "--data-dir", g.folder+"/none")
	if code != 1 || !strings.Contains(out, "RELAY_DATA_DIR") {
		t.Errorf("without a spool: %d %q", code, out)
	}
}
