package pattern

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"relay/perf/mockhost"
	"relay/perf/openloop"
)

// open streams from a mock.
func open(t *testing.T, kind openloop.Kind, scenario string) (*Stream, error) {
	t.Helper()
	mock, err := mockhost.Start(mockhost.Options{Scenario: scenario})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mock.Close() })
	nc, err := net.Dial("tcp", mock.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(10 * time.Second))
	mix := openloop.Mix{Host: "h", ChatModel: "m", MessagesModel: "m", Stream: true}
	if _, err := nc.Write(mix.Request(kind, "", 300)); err != nil {
		t.Fatal(err)
	}
	return Open(nc, LineBytesPour)
}

func TestStream(t *testing.T) {
	for _, tt := range []struct {
		name, scenario string
		kind           openloop.Kind
		events         int
		bytes          int64
		stamped        bool
	}{
		{"tick, chat", "instant,tick=10ms,events=12", openloop.Chat, 12, 384, true},
		{"tick, messages", "instant,tick=10ms,events=12,bytes=100", openloop.Messages, 12, 1200, true},
		{"pour", "instant,pour=3000000", openloop.Chat, 733, 733 * 4096, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := open(t, tt.kind, tt.scenario)
			if err != nil {
				t.Fatal(err)
			}
			for {
				stamp, err := s.Next()
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				if (stamp != 0) != tt.stamped {
					t.Fatalf("stamp %d", stamp)
				}
			}
			if s.Events != tt.events || s.Bytes != tt.bytes || !s.Done {
				t.Errorf("events %d bytes %d done %v, want %d, %d", s.Events, s.Bytes, s.Done, tt.events, tt.bytes)
			}
		})
	}
}

func TestWrongStreams(t *testing.T) {
	if s, err := open(t, openloop.Chat, "instant,status=503"); err == nil || s.Status != 503 {
		t.Errorf("a refusal: %+v, %v", s, err)
	}
	s, err := open(t, openloop.Chat, "instant") // ordinary words are not the pattern
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Next(); !errors.Is(err, ErrWrong) {
		t.Errorf("words: %v, want %v", err, ErrWrong)
	}
	s, err = open(t, openloop.Messages, "instant,error-frame")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Next(); err == nil || !strings.Contains(err.Error(), "overloaded_error") {
		t.Errorf("an error event: %v", err)
	}
}
