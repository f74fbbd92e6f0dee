package mockhost

import (
	"encoding/json"
	"maps"
	"sync/atomic"
	"syscall"
	"time"
)

// A Request is what the server received, byte for byte.
type Request struct {
	Method string `json:"method"`
	Path   string `json:"path"` // with the query
	Head   []byte `json:"-"`    // request line and fields, with the blank line
	Body   []byte `json:"-"`
}

// MarshalJSON writes head and body as text.
func (r Request) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Method string `json:"method"`
		Path   string `json:"path"`
		Head   string `json:"head"`
		Body   string `json:"body"`
	}{r.Method, r.Path, string(r.Head), string(r.Body)})
}

// Requests are the last requests, oldest first, at most 64. It is empty unless
// Options.Record is set.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.records...)
}

func (s *Server) record(r *request) {
	path := r.path
	if r.query != "" {
		path += "?" + r.query
	}
	kept := Request{r.method, path, append([]byte(nil), r.head...), append([]byte(nil), r.body...)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.records) == recordsMax {
		copy(s.records, s.records[1:])
		s.records = s.records[:recordsMax-1]
	}
	s.records = append(s.records, kept)
}

// tally counts; every connection's goroutine adds to it.
type tally struct {
	connections, requests, streams, streamsWhole, peersGone, malformed, chunked, events, bytesOut, ticks, ticksMissed atomic.Uint64
	open, openStreams                                                                                                 atomic.Int64
	status                                                                                                            [600]atomic.Uint64
}

// Stats are totals since the start of the server.
type Stats struct {
	Connections       uint64            `json:"connections"`
	OpenConnections   int64             `json:"open_connections"`
	Requests          uint64            `json:"requests"` // of the provider's API, whole heads and bodies
	ByStatus          map[int]uint64    `json:"by_status"`
	Streams           uint64            `json:"streams"`
	StreamsWhole      uint64            `json:"streams_whole"`
	OpenStreams       int64             `json:"open_streams"`
	PeersGone         uint64            `json:"peers_gone"` // connections that the peer left before its answer was whole
	MalformedRequests uint64            `json:"malformed_requests"`
	ChunkedRequests   uint64            `json:"chunked_requests"`
	Events            uint64            `json:"events"`
	BytesOut          uint64            `json:"bytes_out"`
	Ticks             uint64            `json:"ticks"`            // of the tickers of tick streams
	TicksMissed       uint64            `json:"ticks_missed"`     // that came too late to be told apart: streams were slower than asked for
	CPUSeconds        float64           `json:"cpu_seconds"`      // of the whole process
	Faults            map[string]uint64 `json:"faults,omitempty"` // of the menu, by name
	UnixMicros        int64             `json:"unix_us"`
}

// Stats reads the totals.
func (s *Server) Stats() Stats {
	t := &s.tally
	out := Stats{
		Connections: t.connections.Load(), OpenConnections: t.open.Load(), Requests: t.requests.Load(),
		ByStatus: make(map[int]uint64), Streams: t.streams.Load(), StreamsWhole: t.streamsWhole.Load(),
		OpenStreams: t.openStreams.Load(), PeersGone: t.peersGone.Load(), MalformedRequests: t.malformed.Load(),
		ChunkedRequests: t.chunked.Load(), Events: t.events.Load(), BytesOut: t.bytesOut.Load(),
		Ticks: t.ticks.Load(), TicksMissed: t.ticksMissed.Load(),
		UnixMicros: time.Now().UnixMicro(),
	}
	for status := range t.status {
		if n := t.status[status].Load(); n > 0 {
			out.ByStatus[status] = n
		}
	}
	s.mu.Lock()
	if len(s.dealt) > 0 {
		out.Faults = maps.Clone(s.dealt)
	}
	s.mu.Unlock()
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) == nil {
		out.CPUSeconds = float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
	}
	return out
}
