package openloop

import (
	"fmt"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// times is a histogram of microseconds.
type times struct{ *hdrhistogram.Histogram }

func newTimes() *times { return &times{hdrhistogram.New(latencyMinUs, latencyMaxUs, digits)} }

func (h *times) record(us int64) {
	h.RecordValue(min(max(us, latencyMinUs), latencyMaxUs))
}

// Quantiles of a histogram, in milliseconds. Histogram is the whole of it, in
// the compressed encoding of HdrHistogram, base64.
type Quantiles struct {
	P50, P90, P99, Max float64
	Count              int64
	Histogram          []byte `json:",omitempty"`
}

func (h *times) quantiles() Quantiles {
	ms := func(us int64) float64 { return float64(us) / 1000 }
	q := Quantiles{
		P50: ms(h.ValueAtQuantile(50)), P90: ms(h.ValueAtQuantile(90)), P99: ms(h.ValueAtQuantile(99)),
		Max: ms(h.Max()), Count: h.TotalCount(),
	}
	if q.Count > 0 {
		text, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
		if err != nil {
			panic("BUG: a histogram cannot be encoded: " + err.Error())
		}
		q.Histogram = text
	}
	return q
}

// merge adds what the quantiles were taken of.
func (h *times) merge(q Quantiles) error {
	if q.Count == 0 {
		return nil
	}
	other, err := hdrhistogram.Decode(q.Histogram)
	if err != nil {
		return fmt.Errorf("openloop: histogram of a result: %w", err)
	}
	if h.Merge(other) != 0 || other.TotalCount() != q.Count {
		return fmt.Errorf("openloop: histogram of a result: it does not hold the %d values that it should", q.Count)
	}
	return nil
}
