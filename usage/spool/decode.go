package spool

import (
	"errors"
	"fmt"
	"math"

	"github.com/google/uuid"

	"relay/usage"
)

// fieldsMax is above the highest field number of the Event message.
const fieldsMax = 65

// textFields are the strings of the Event message by field number.
var textFields = [fieldsMax]func(*Record) *string{
	3:  func(r *Record) *string { return &r.Instance },
	4:  func(r *Record) *string { return &r.Event.CallerID },
	8:  func(r *Record) *string { return &r.Event.Key },
	9:  func(r *Record) *string { return &r.Event.Account },
	10: func(r *Record) *string { return &r.Event.Policy },
	11: func(r *Record) *string { return &r.Event.ModelAsked },
	12: func(r *Record) *string { return &r.Event.Model },
	13: func(r *Record) *string { return &r.Event.UpstreamModel },
	14: func(r *Record) *string { return &r.Event.Host },
	15: func(r *Record) *string { return &r.Event.HostKey },
	16: func(r *Record) *string { return &r.Event.UpstreamRequestID },
	17: func(r *Record) *string { return &r.Event.Route },
	18: func(r *Record) *string { return &r.Event.ShapeIn },
	19: func(r *Record) *string { return &r.Event.ShapeOut },
	23: func(r *Record) *string { return &r.Event.Error },
}

// countFields are the 64-bit numbers of the Event message by field number.
var countFields = [fieldsMax]func(*usage.Event) *int64{
	6:  func(e *usage.Event) *int64 { return &e.StartUnixNs },
	7:  func(e *usage.Event) *int64 { return &e.EndUnixNs },
	28: func(e *usage.Event) *int64 { return &e.GrantUnixNs },
	30: func(e *usage.Event) *int64 { return &e.Tokens.Input },
	31: func(e *usage.Event) *int64 { return &e.Tokens.CachedInput },
	32: func(e *usage.Event) *int64 { return &e.Tokens.CacheWrite5m },
	33: func(e *usage.Event) *int64 { return &e.Tokens.CacheWrite1h },
	34: func(e *usage.Event) *int64 { return &e.Tokens.Output },
	35: func(e *usage.Event) *int64 { return &e.Tokens.Reasoning },
	36: func(e *usage.Event) *int64 { return &e.Tokens.AudioInput },
	37: func(e *usage.Event) *int64 { return &e.Tokens.AudioOutput },
	38: func(e *usage.Event) *int64 { return &e.Tokens.WebSearches },
	40: func(e *usage.Event) *int64 { return &e.Price.Input },
	41: func(e *usage.Event) *int64 { return &e.Price.CachedInput },
	42: func(e *usage.Event) *int64 { return &e.Price.CacheWrite5m },
	43: func(e *usage.Event) *int64 { return &e.Price.CacheWrite1h },
	44: func(e *usage.Event) *int64 { return &e.Price.Output },
	45: func(e *usage.Event) *int64 { return &e.Price.Audio },
	46: func(e *usage.Event) *int64 { return &e.Price.RequestNano },
	47: func(e *usage.Event) *int64 { return &e.Price.WebSearchNano },
	50: func(e *usage.Event) *int64 { return &e.Cost.Input },
	51: func(e *usage.Event) *int64 { return &e.Cost.CachedInput },
	52: func(e *usage.Event) *int64 { return &e.Cost.CacheWrite5m },
	53: func(e *usage.Event) *int64 { return &e.Cost.CacheWrite1h },
	54: func(e *usage.Event) *int64 { return &e.Cost.Output },
	55: func(e *usage.Event) *int64 { return &e.Cost.Audio },
	56: func(e *usage.Event) *int64 { return &e.Cost.WebSearch },
	57: func(e *usage.Event) *int64 { return &e.Cost.Request },
	58: func(e *usage.Event) *int64 { return &e.Cost.Total },
	59: func(e *usage.Event) *int64 { return &e.ProviderCost },
	60: func(e *usage.Event) *int64 { return &e.OverheadNs },
	61: func(e *usage.Event) *int64 { return &e.FirstTokenNs },
	62: func(e *usage.Event) *int64 { return &e.UpstreamNs },
	63: func(e *usage.Event) *int64 { return &e.BytesIn },
	64: func(e *usage.Event) *int64 { return &e.BytesOut },
}

// intFields are the small numbers.
var intFields = [fieldsMax]func(*usage.Event) *int{
	20: func(e *usage.Event) *int { return &e.Status },
	21: func(e *usage.Event) *int { return &e.UpstreamStatus },
	25: func(e *usage.Event) *int { return &e.Attempts },
}

// flagFields are the booleans.
var flagFields = [fieldsMax]func(*usage.Event) *bool{
	24: func(e *usage.Event) *bool { return &e.Stream },
	27: func(e *usage.Event) *bool { return &e.HungUp },
}

// Decode reads the payload of an admitted or a row frame. The record owns its
// strings. Fields that this program does not know are passed over.
func Decode(payload []byte) (Record, error) {
	var r Record
	var outcome, source uint64
	for len(payload) > 0 {
		f, rest, err := nextField(payload)
		if err != nil {
			return Record{}, fmt.Errorf("spool: event: %w", err)
		}
		payload = rest
		switch {
		case f.number >= fieldsMax:
		case f.number == 22:
			outcome, err = f.n, f.expect(wireVarint)
		case f.number == 26:
			source, err = f.n, f.expect(wireVarint)
		default:
			err = r.set(f)
		}
		if err != nil {
			return Record{}, fmt.Errorf("spool: event: field %d: %w", f.number, err)
		}
	}
	if outcome < 1 || outcome > uint64(usage.Outcomes) || source < 1 || source > uint64(usage.Sources) {
		return Record{}, errors.New("spool: event: outcome or source unknown")
	}
	r.Event.Outcome, r.Event.Source = usage.Outcome(outcome-1), usage.Source(source-1)
	return r, nil
}

// set stores one field of the Event message.
func (r *Record) set(f field) error {
	switch {
	case f.number == 1:
		if len(f.bytes) != len(r.Event.RequestID) {
			return errPayload
		}
		r.Event.RequestID = [16]byte(f.bytes)
	case f.number == 2:
		r.RowSeq = f.n
		return f.expect(wireVarint)
	case f.number == 5:
		r.Event.Generation = f.n
		return f.expect(wireVarint)
	case textFields[f.number] != nil:
		*textFields[f.number](r) = string(f.bytes)
		return f.expect(wireBytes)
	case countFields[f.number] != nil:
		*countFields[f.number](&r.Event) = int64(f.n)
		if f.number == 6 || f.number == 7 {
			return f.expect(wireFixed64)
		}
		return f.expect(wireVarint)
	case intFields[f.number] != nil:
		if f.n > math.MaxInt32 {
			return errPayload
		}
		*intFields[f.number](&r.Event) = int(f.n)
		return f.expect(wireVarint)
	case flagFields[f.number] != nil:
		*flagFields[f.number](&r.Event) = f.n != 0
		return f.expect(wireVarint)
	}
	return nil
}

// expect fails if the field has another wire type.
func (f *field) expect(wire int) error {
	if f.wire != wire {
		return errPayload
	}
	return nil
}

// A Seal is the payload of the sealed frame that ends a stream.
type Seal struct {
	Rows        uint64 // row_seq of the last row
	UnixNs      int64
	ClosedBy    uuid.UUID // the run that closed this one: itself, or a later one
	Interrupted uint64    // rows that the closing wrote
}

// DecodeSeal reads the payload of a sealed frame.
func DecodeSeal(payload []byte) (Seal, error) {
	var s Seal
	for len(payload) > 0 {
		f, rest, err := nextField(payload)
		if err != nil {
			return Seal{}, fmt.Errorf("spool: seal: %w", err)
		}
		payload = rest
		switch f.number {
		case 1:
			s.Rows, err = f.n, f.expect(wireVarint)
		case 2:
			s.UnixNs, err = int64(f.n), f.expect(wireFixed64)
		case 3:
			if len(f.bytes) != len(s.ClosedBy) {
				err = errPayload
				break
			}
			s.ClosedBy = uuid.UUID(f.bytes)
		case 4:
			s.Interrupted, err = f.n, f.expect(wireVarint)
		}
		if err != nil {
			return Seal{}, fmt.Errorf("spool: seal: field %d: %w", f.number, err)
		}
	}
	return s, nil
}

// A glance is what closing a run needs of every event.
type glance struct {
	id     [16]byte
	rowSeq uint64
	lastNs int64 // the later one of start and end
}

// glanceEvent reads the first fields of an Event message and stops behind them.
func glanceEvent(payload []byte) (glance, error) {
	var g glance
	for len(payload) > 0 {
		f, rest, err := nextField(payload)
		if err != nil {
			return glance{}, err
		}
		payload = rest
		switch {
		case f.number == 1 && len(f.bytes) == len(g.id):
			g.id = [16]byte(f.bytes)
		case f.number == 1:
			return glance{}, errPayload
		case f.number == 2:
			g.rowSeq = f.n
		case f.number == 6, f.number == 7:
			g.lastNs = max(g.lastNs, int64(f.n))
		case f.number > 7:
			return g, nil
		}
	}
	return g, nil
}
