//go:build integration

package conformance

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The sieges run one after the other against the besieged relay, so that what
// each costs can be told. Its canary runs all the time.
func TestSiege(t *testing.T) {
	t.Parallel()
	for _, s := range []struct {
		name  string
		run   func(t *testing.T)
		grown int64 // memory that may be in use at the height of it
	}{
		{"idle clients", siegeIdle, 400 << 20},
		{"heads that do not end", siegeHeads, 400 << 20},
		{"pipelines whose answers are not read", siegePipelines, 512 << 20},
		{"bodies that do not end", siegeBodies, 600 << 20},
		{"clients that reset", siegeResets, 200 << 20},
		{"garbage", siegeGarbage, 200 << 20},
		{"connections without a byte", siegeSilent, 200 << 20},
		{"refused requests", siegeRefused, 200 << 20},
	} {
		t.Run(s.name, func(t *testing.T) {
			before := besieged.trace()
			panics := besieged.metrics()["relay_callback_panics_total"]
			began := time.Now()
			s.run(t)
			after := besieged.trace()
			t.Logf("%v, %d MiB to %d MiB, goroutines %d to %d", time.Since(began).Round(time.Millisecond),
				before.resident>>20, after.resident>>20, before.goroutines, after.goroutines)
			if after.resident-before.resident > s.grown && !*checked {
				t.Errorf("memory went from %d MiB to %d MiB", before.resident>>20, after.resident>>20)
			}
			if after.goroutines-before.goroutines > dialsRunning {
				t.Errorf("goroutines went from %d to %d", before.goroutines, after.goroutines)
			}
			if n := besieged.metrics()["relay_callback_panics_total"]; n != panics {
				t.Error("a callback panicked")
			}
			if err := askOnce(besieged.inference, "siege"); err != nil {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

// dialsRunning bounds the goroutines that dial upstreams at the height of a
// siege; afterwards none is left.
const dialsRunning = 640

// crowd opens many connections at a bounded rate and does something with each.
// They are closed at the end of the test, those that the relay has closed too.
func crowd(t *testing.T, many int, each func(i int, c *client)) {
	t.Helper()
	var all sync.Map
	var done sync.WaitGroup
	var failed atomic.Int64
	const lanes = 16
	for lane := range lanes {
		done.Go(func() {
			for i := lane; i < many; i += lanes {
				c, err := connect(besieged.inference)
				if err != nil {
					failed.Add(1)
					continue
				}
				all.Store(i, c)
				each(i, c)
			}
		})
	}
	done.Wait()
	t.Cleanup(func() {
		all.Range(func(_, c any) bool {
			_ = c.(*client).Close()
			return true
		})
	})
	if n := failed.Load(); n > 0 {
		t.Errorf("%d of %d connections failed", n, many)
	}
}

// siegeIdle: 10,000 clients that have asked once and stay cost no upstream
// connection, and others do not feel them.
func siegeIdle(t *testing.T) {
	const many = 10_000
	upstreams := besieged.metrics()[`relay_open_connections{side="upstream"}`]
	crowd(t, many, func(i int, c *client) {
		if i%20 != 0 {
			return
		}
		c.send(list + "\r\n")
		if a, err := c.read(soon, false); err != nil || a.status != 200 {
			t.Errorf("client %d: %v", i, err)
		}
	})
	m := besieged.metrics()
	for end := time.Now().Add(soon); m[`relay_open_connections{side="client"}`] < many && time.Now().Before(end); {
		m = besieged.metrics() // the last ones are on their way to their loops
	}
	if n := m[`relay_open_connections{side="client"}`]; n < many {
		t.Errorf("only %.0f clients are connected, %.0f were closed since too many waited for their loop",
			n, m[`relay_accept_failures_total{reason="loop_full"}`])
	}
	if n := m[`relay_open_connections{side="upstream"}`]; n > upstreams+2 { // the canary's
		t.Errorf("%.0f upstream connections, %.0f before", n, upstreams)
	}
	var worst time.Duration
	for range 50 {
		began := time.Now()
		if err := askOnce(besieged.inference, "siege"); err != nil {
			t.Fatal(err)
		}
		worst = max(worst, time.Since(began))
	}
	if worst > time.Second {
		t.Errorf("a request took %v", worst)
	}
}

// siegeHeads: heads of 60 KiB that do not end.
func siegeHeads(t *testing.T) {
	text := "POST /v1/chat/completions HTTP/1.1\r\n" + strings.Repeat(fieldOf(4000), 15)
	crowd(t, 4000, func(_ int, c *client) { c.send(text) })
}

// siegePipelines: requests that the relay answers by itself, for ever, and
// nobody reads the answers.
func siegePipelines(t *testing.T) {
	text := strings.Repeat("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 4000)
	crowd(t, 64, func(_ int, c *client) {
		_ = c.SetWriteDeadline(time.Now().Add(2 * time.Second))
		for range 80 {
			if _, err := io.WriteString(c, text); err != nil {
				return
			}
		}
	})
}

// siegeBodies: bodies of 1 MiB each that lack their last byte.
func siegeBodies(t *testing.T) {
	text := strings.Replace(body, "hello", strings.Repeat("x", 1<<20), 1)
	head := strings.ReplaceAll(start, "CASE", "siege") + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(text))
	crowd(t, 256, func(_ int, c *client) { c.send(head + text[:len(text)-1]) })
}

// siegeResets: clients that ask and reset.
func siegeResets(t *testing.T) {
	crowd(t, 3000, func(_ int, c *client) {
		c.send(whole("siege", "echo"))
		reset(c.Conn)
	})
}

// siegeGarbage: bytes that are no request, a lot of them.
func siegeGarbage(t *testing.T) {
	text := strings.Repeat("\x16\x03\x01\xff\n\r\x00GET", 20_000)
	crowd(t, 1000, func(_ int, c *client) {
		_ = c.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = io.WriteString(c, text)
	})
}

// siegeSilent: connections that are opened and closed.
func siegeSilent(t *testing.T) {
	crowd(t, 5000, func(i int, c *client) {
		if i%2 == 0 {
			_ = c.Conn.(*net.TCPConn).CloseWrite()
		} else {
			_ = c.Close()
		}
	})
}

// siegeRefused: requests without a key, one connection each.
func siegeRefused(t *testing.T) {
	text := line + hostLine + bodyLine + "\r\n" + body
	crowd(t, 3000, func(i int, c *client) {
		c.send(text)
		if a, err := c.read(soon, false); err != nil || a.status != 401 {
			t.Errorf("client %d: %v %d", i, err, a.status)
		}
		_ = c.Close()
	})
}

// A relay with little memory keeps to it: heads that do not end take no more
// than its budget, and afterwards it serves.
func TestSiegeTight(t *testing.T) {
	t.Parallel()
	const limit = 128 << 20
	p, err := startProcess(judged.command.Path, judged.catalog, t.TempDir(), []string{fmt.Sprintf("GOMEMLIMIT=%d", limit), "RELAY_LOOPS=1"})
	if err != nil {
		t.Fatal(err)
	}
	defer p.stop()
	before := p.residentBytes()
	text := line + strings.Repeat(fieldOf(4000), 15)
	var clients []*client
	for range 3000 {
		c, err := connect(p.inference)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		clients = append(clients, c)
		c.send(text)
	}
	time.Sleep(quiet)
	if grown := p.residentBytes() - before; grown > limit && !*checked {
		t.Errorf("memory grew by %d MiB with %.0f KiB held", grown>>20, p.metrics()["relay_held_bytes"]/1024)
	}
	for _, c := range clients {
		_ = c.Close()
	}
	for end := time.Now().Add(soon); ; time.Sleep(quiet) {
		if err = askOnce(p.inference, "siege"); err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("afterwards: %v", err)
		}
	}
}
