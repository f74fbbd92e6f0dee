package reader

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"relay/perf/mockhost"
	"relay/perf/openloop"
	"relay/perf/pattern"
)

// TestPaced reads a pour at a rate and stops once on the way.
func TestPaced(t *testing.T) {
	mock, err := mockhost.Start(mockhost.Options{Scenario: "instant,pour=4000000"})
	if err != nil {
		t.Fatal(err)
	}
	defer mock.Close()
	for _, never := range []bool{false, true} {
		nc, err := net.Dial("tcp", mock.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		mix := openloop.Mix{Host: "h", ChatModel: "m", Stream: true}
		if _, err := nc.Write(mix.Request(openloop.Chat, "", 300)); err != nil {
			t.Fatal(err)
		}
		stops := 0
		p := &paced{nc: nc, o: &Options{ReadRate: 10_000_000, StopAfter: 2_000_000}, began: time.Now(), onStop: func() error {
			stops++
			if never {
				return errStopped
			}
			return nil
		}}
		s, err := pattern.Open(p, pattern.LineBytesPour)
		if err != nil {
			t.Fatal(err)
		}
		for err == nil {
			_, err = s.Next()
		}
		took := time.Since(p.began)
		switch {
		case never && (!errors.Is(err, errStopped) || p.bytes < 2_000_000 || p.bytes > 2_100_000):
			t.Errorf("a reader that stops for good: %v behind %d bytes", err, p.bytes)
		case !never && (err != io.EOF || !s.Done || s.Bytes < 4_000_000):
			t.Errorf("a slow reader: %v, %d bytes", err, s.Bytes)
		case !never && took < 350*time.Millisecond:
			t.Errorf("more than 4 MB at 10 MB/s took %v", took)
		case stops != 1:
			t.Errorf("%d stops, want 1", stops)
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for _, o := range []Options{{}, {PourBytes: 1, ReadRate: 1, StopAfter: 1}, {PourBytes: 5, StopAfter: 1}} {
		if _, err := Run(t.Context(), o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}
