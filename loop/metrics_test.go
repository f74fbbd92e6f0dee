package loop

import (
	"math"
	"testing"
	"time"

	"relay/upstream/wire"
)

func TestHistogram(t *testing.T) {
	var h Histogram
	for _, tt := range []struct {
		ns int64
		at int
	}{
		{-5, 0}, {0, 0}, {1e5, 0}, {1e5 + 1, 1}, {6e11, len(HistogramBounds) - 1}, {6e11 + 1, len(HistogramBounds)}, {math.MaxInt64 / 4, len(HistogramBounds)},
	} {
		before := h.Counts[tt.at]
		h.observe(tt.ns)
		if h.Counts[tt.at] != before+1 {
			t.Errorf("%d ns is not in bucket %d", tt.ns, tt.at)
		}
	}
	sum := h
	sum.Add(&h)
	for i := range h.Counts {
		if sum.Counts[i] != 2*h.Counts[i] {
			t.Errorf("bucket %d has %d, want %d", i, sum.Counts[i], 2*h.Counts[i])
		}
	}
	if sum.SumNs != 2*h.SumNs {
		t.Errorf("sum %d, want %d", sum.SumNs, 2*h.SumNs)
	}
}

// TestScrape: a scrape is a copy, with the gauges that are kept elsewhere.
func TestScrape(t *testing.T) {
	r := newRig(t)
	defer r.end()
	c, u := r.exchange(post(chatPath, streamAsk))
	u.send(eventsHead + chunk(token))
	r.exchange(post(chatPath, chatAsk))
	hog := r.accept()
	hog.send(head("POST", chatPath, "Content-Length: 100000") + " ")
	unknown := r.accept()
	unknown.send(post("/v1/nothing", ""))
	var m Metrics
	scrape := &Scrape{Reply: func(s *Scrape) { m = s.Metrics }}
	r.post(scrape)
	if m.Clients != 4 || m.Accepted != 4 || m.Upstreams != 2 || m.IdleUpstreams != 0 || m.Exchanges != 3 || m.Streams != 1 || m.Dialed != 2 {
		t.Errorf("%d clients, %d upstreams, %d exchanges, %d streams", m.Clients, m.Upstreams, m.Exchanges, m.Streams)
	}
	if m.BudgetUsed < bodyStart || m.BudgetUsed != r.loop.buffers.used || m.Timers < 4 || m.BytesIn == 0 || scrape.Drained {
		t.Errorf("%d bytes of the budget, %d timers, drained: %t", m.BudgetUsed, m.Timers, scrape.Drained)
	}
	if m.Requests[fromRelay][404] != 1 || m.Errors[wire.UnknownPath] != 1 || ErrorLabel(int(wire.UnknownPath)) != "unknown_path" {
		t.Errorf("%d requests with 404, %d errors", m.Requests[fromRelay][404], m.Errors[wire.UnknownPath])
	}
	r.pass(time.Second)
	u.send(chunk(stopEvent+doneEvent) + lastChunk)
	if now := &r.loop.metrics; now.Requests[fromUpstream][200] != 1 || m.Requests[fromUpstream][200] != 0 {
		t.Error("a scrape is no copy")
	}
	want := len(c.reply().body) + len(unknown.reply().body)
	if got := r.loop.metrics.BytesOut; got != uint64(want) {
		t.Errorf("%d bytes out, the clients have %d", got, want)
	}
	hog.close(EOF)
	for _, s := range r.sockets {
		s.close(EOF)
	}
}
