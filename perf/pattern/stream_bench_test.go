package pattern

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"relay/perf/mockhost"
	"relay/perf/openloop"
)

// BenchmarkNext reads and checks the events of a tick stream, out of memory.
func BenchmarkNext(b *testing.B) {
	const events = 50
	mock, err := mockhost.Start(mockhost.Options{Scenario: "instant,tick=10ms,events=50"})
	if err != nil {
		b.Fatal(err)
	}
	defer mock.Close()
	nc, err := net.Dial("tcp", mock.Addr())
	if err != nil {
		b.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(10 * time.Second))
	mix := openloop.Mix{Host: "h", ChatModel: "m", Stream: true}
	if _, err := nc.Write(mix.Request(openloop.Chat, "", 300)); err != nil {
		b.Fatal(err)
	}
	var kept bytes.Buffer
	first, err := Open(io.TeeReader(nc, &kept), LineBytesTick)
	for err == nil {
		_, err = first.Next()
	}
	if err != io.EOF || first.Events != events {
		b.Fatalf("%d events, %v", first.Events, err)
	}
	b.ReportAllocs()
	for b.Loop() {
		s, err := Open(bytes.NewReader(kept.Bytes()), LineBytesTick)
		for err == nil {
			_, err = s.Next()
		}
		if s.Events != events {
			b.Fatalf("%d events, %v", s.Events, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/events, "ns/event")
}
