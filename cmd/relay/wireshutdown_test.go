//go:build integration

package main

import (
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestWireShutdownLetsStreamsEnd(t *testing.T) {
	g := startGateway(t)
	s := g.stream(chatPath+"?mock=tick=50ms,events=40", keyWide, chatStreamBody)
	s.event()
	idle := g.dial()
	idle.send(post(chatPath, keyWide, chatBody))
	idle.answer(http.MethodPost)
	g.signal(syscall.SIGTERM)
	if !eventually(2*time.Second, func() bool { return strings.Contains(g.page("/readyz"), `"draining": true`) }) {
		t.Error("/readyz does not tell of the shutdown")
	}
	if answer, err := http.Get("http://" + g.control + "/readyz"); err == nil {
		if answer.Body.Close(); answer.StatusCode != 503 {
			t.Errorf("/readyz is %d", answer.StatusCode)
		}
	}
	if !eventually(2*time.Second, func() bool {
		c, err := net.Dial("tcp", g.inference)
		if err == nil {
			c.Close()
		}
		return err != nil
	}) {
		t.Error("new connections are still taken")
	}
	idle.conn.SetReadDeadline(time.Now().Add(3 * time.Second))
	if _, err := idle.in.ReadByte(); err != io.EOF {
		t.Errorf("an idle client is not closed: %v", err)
	}
	events, cut := s.rest()
	if cut != nil || len(events) == 0 || events[len(events)-1] != "[DONE]" {
		t.Errorf("the stream ended early: %v, %d events", cut, len(events))
	}
	if code := g.wait(5 * time.Second); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if rows := g.rows(); len(rows) != 2 || rows[0].Outcome != "completed" || rows[1].Outcome != "completed" {
		t.Errorf("rows are %+v", rows)
	}
}

func TestWireShutdownDeadline(t *testing.T) {
	g := startGateway(t, "RELAY_SHUTDOWN_DEADLINE_S=1")
	chat := g.stream(chatPath+"?mock=tick=50ms,events=2000", keyWide, chatStreamBody)
	message := g.stream(messagePath+"?mock=tick=50ms,events=2000", keyWide, messageStream)
	waiting := g.dial()
	waiting.send(post(chatPath+"?mock=silent", keyWide, chatBody))
	chat.event()
	message.event()
	if !eventually(patience, func() bool { return g.metrics()["relay_exchanges"] == 3 }) {
		t.Fatal("the requests do not run")
	}
	started := time.Now()
	g.signal(syscall.SIGTERM)
	events, _ := chat.rest()
	if len(events) == 0 || !strings.Contains(events[len(events)-1], `"error"`) || strings.Contains(strings.Join(events, ""), "[DONE]") {
		t.Errorf("the stream ends in %q", events[max(0, len(events)-1):])
	}
	events, _ = message.rest()
	if len(events) == 0 || !strings.Contains(events[len(events)-1], `"type":"error"`) || strings.Contains(strings.Join(events, ""), "message_stop") {
		t.Errorf("the message stream ends in %q", events[max(0, len(events)-1):])
	}
	wantError(t, "waiting request", waiting.answer(http.MethodPost), chatPath, 503)
	if code := g.wait(5 * time.Second); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if took := time.Since(started); took < 900*time.Millisecond || took > 4*time.Second {
		t.Errorf("it took %v", took)
	}
	if rows := g.rows(); len(rows) != 3 {
		t.Errorf("rows are %+v", rows)
	}
}

func TestWireSecondSignal(t *testing.T) {
	g := startGateway(t, "RELAY_SHUTDOWN_DEADLINE_S=60")
	s := g.stream(chatPath+"?mock=tick=50ms,events=2000", keyWide, chatStreamBody)
	s.event()
	g.signal(syscall.SIGINT)
	if !eventually(2*time.Second, func() bool { return strings.Contains(g.log.text(), "shutdown begins") }) {
		t.Fatal("the shutdown does not begin")
	}
	started := time.Now()
	g.signal(syscall.SIGTERM)
	if code := g.wait(2 * time.Second); code != 1 || time.Since(started) > time.Second {
		t.Errorf("exit code %d after %v", code, time.Since(started))
	}
}

// TestWireShutdownUnderLoad ends a relay while requests come: every one that
// was answered has its row.
func TestWireShutdownUnderLoad(t *testing.T) {
	g := startGateway(t)
	done := make(chan int)
	for range 8 {
		go func() {
			whole := 0
			client := &http.Client{Timeout: patience}
			for {
				r, _ := http.NewRequest("POST", "http://"+g.inference+chatPath+"?mock=first=5ms", strings.NewReader(chatBody))
				r.Header.Set("Authorization", "Bearer "+keyWide)
				a, err := client.Do(r)
				if err != nil {
					break
				}
				_, err = io.Copy(io.Discard, a.Body)
				a.Body.Close()
				if err != nil || a.StatusCode != 200 {
					break
				}
				whole++
			}
			done <- whole
		}()
	}
	time.Sleep(time.Second)
	g.signal(syscall.SIGTERM)
	whole := 0
	for range 8 {
		whole += <-done
	}
	if code := g.wait(20 * time.Second); code != 0 {
		t.Errorf("exit code %d", code)
	}
	completed := 0
	for _, r := range g.rows() {
		if r.Status == 200 {
			completed++
		}
	}
	if whole == 0 || completed < whole {
		t.Errorf("%d answers, %d rows", whole, completed)
	}
}
