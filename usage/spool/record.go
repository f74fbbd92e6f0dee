package spool

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"relay/usage"
)

// A Record is a decoded admitted or row frame, with where it stands.
type Record struct {
	Run           uuid.UUID
	Loop          int
	Kind          Kind
	Position, End int64  // of its frame, see Frame
	RowSeq        uint64 // rows: dense from 1 per (run, loop); 0 in admissions
	Instance      string // RELAY_INSTANCE_ID of the writer
	Event         usage.Event
}

// recordJSON is the form that people and scripts read. Costs are in nano-USD
// but for cost_usd, an exact decimal.
type recordJSON struct {
	Kind              string     `json:"kind"`
	RequestID         string     `json:"request_id"`
	CallerID          string     `json:"caller_id,omitempty"`
	Start             string     `json:"start"`
	End               string     `json:"end"`
	Outcome           string     `json:"outcome"`
	Error             string     `json:"error,omitempty"`
	Status            int        `json:"status"`
	UpstreamStatus    int        `json:"upstream_status"`
	Account           string     `json:"account"`
	Key               string     `json:"key"`
	Policy            string     `json:"policy"`
	Route             string     `json:"route"`
	ModelAsked        string     `json:"model_asked"`
	Model             string     `json:"model"`
	UpstreamModel     string     `json:"upstream_model"`
	Host              string     `json:"host"`
	HostKey           string     `json:"host_key"`
	UpstreamRequestID string     `json:"upstream_request_id,omitempty"`
	ShapeIn           string     `json:"shape_in"`
	ShapeOut          string     `json:"shape_out"`
	Stream            bool       `json:"stream"`
	HungUp            bool       `json:"hung_up"`
	Granted           string     `json:"granted,omitempty"`
	Attempts          int        `json:"attempts"`
	Source            string     `json:"source"`
	Tokens            tokensJSON `json:"tokens"`
	CostUSD           string     `json:"cost_usd"`
	Cost              costJSON   `json:"cost_nano_usd"`
	Price             priceJSON  `json:"price"`
	OverheadNs        int64      `json:"overhead_ns"`
	FirstTokenNs      int64      `json:"first_token_ns"`
	UpstreamNs        int64      `json:"upstream_ns"`
	BytesIn           int64      `json:"bytes_in"`
	BytesOut          int64      `json:"bytes_out"`
	Generation        uint64     `json:"generation"`
	Instance          string     `json:"instance"`
	Run               string     `json:"run"`
	Loop              int        `json:"loop"`
	Position          int64      `json:"position"`
	RowSeq            uint64     `json:"row_seq,omitempty"`
}

type tokensJSON struct {
	Input        int64 `json:"input"`
	CachedInput  int64 `json:"cached_input"`
	CacheWrite5m int64 `json:"cache_write_5m"`
	CacheWrite1h int64 `json:"cache_write_1h"`
	Output       int64 `json:"output"`
	Reasoning    int64 `json:"reasoning"`
	AudioInput   int64 `json:"audio_input"`
	AudioOutput  int64 `json:"audio_output"`
	WebSearches  int64 `json:"web_searches"`
}

type costJSON struct {
	Input        int64 `json:"input"`
	CachedInput  int64 `json:"cached_input"`
	CacheWrite5m int64 `json:"cache_write_5m"`
	CacheWrite1h int64 `json:"cache_write_1h"`
	Output       int64 `json:"output"`
	Audio        int64 `json:"audio"`
	WebSearch    int64 `json:"web_search"`
	Request      int64 `json:"request"`
	Total        int64 `json:"total"`
	Provider     int64 `json:"provider"`
}

type priceJSON struct {
	Input         int64 `json:"input_pico_usd"`
	CachedInput   int64 `json:"cached_input_pico_usd"`
	CacheWrite5m  int64 `json:"cache_write_5m_pico_usd"`
	CacheWrite1h  int64 `json:"cache_write_1h_pico_usd"`
	Output        int64 `json:"output_pico_usd"`
	Audio         int64 `json:"audio_pico_usd"`
	RequestNano   int64 `json:"request_nano_usd"`
	WebSearchNano int64 `json:"web_search_nano_usd"`
}

// MarshalJSON writes the record as one flat object with tokens, costs and
// prices inside.
func (r Record) MarshalJSON() ([]byte, error) {
	e := &r.Event
	return json.Marshal(recordJSON{
		Kind: r.Kind.String(), RequestID: uuid.UUID(e.RequestID).String(), CallerID: e.CallerID,
		Start: timeText(e.StartUnixNs), End: timeText(e.EndUnixNs),
		Outcome: e.Outcome.String(), Error: e.Error, Status: e.Status, UpstreamStatus: e.UpstreamStatus,
		Account: e.Account, Key: e.Key, Policy: e.Policy, Route: e.Route,
		ModelAsked: e.ModelAsked, Model: e.Model, UpstreamModel: e.UpstreamModel,
		Host: e.Host, HostKey: e.HostKey, UpstreamRequestID: e.UpstreamRequestID,
		ShapeIn: e.ShapeIn, ShapeOut: e.ShapeOut, Stream: e.Stream, HungUp: e.HungUp, Attempts: e.Attempts,
		Granted: grantText(e.GrantUnixNs),
		Source:  e.Source.String(),
		Tokens: tokensJSON{
			e.Tokens.Input, e.Tokens.CachedInput, e.Tokens.CacheWrite5m, e.Tokens.CacheWrite1h, e.Tokens.Output,
			e.Tokens.Reasoning, e.Tokens.AudioInput, e.Tokens.AudioOutput, e.Tokens.WebSearches,
		},
		CostUSD: usage.FormatUSD(e.Cost.Total),
		Cost: costJSON{
			e.Cost.Input, e.Cost.CachedInput, e.Cost.CacheWrite5m, e.Cost.CacheWrite1h, e.Cost.Output,
			e.Cost.Audio, e.Cost.WebSearch, e.Cost.Request, e.Cost.Total, e.ProviderCost,
		},
		Price: priceJSON{
			e.Price.Input, e.Price.CachedInput, e.Price.CacheWrite5m, e.Price.CacheWrite1h, e.Price.Output,
			e.Price.Audio, e.Price.RequestNano, e.Price.WebSearchNano,
		},
		OverheadNs: e.OverheadNs, FirstTokenNs: e.FirstTokenNs, UpstreamNs: e.UpstreamNs,
		BytesIn: e.BytesIn, BytesOut: e.BytesOut, Generation: e.Generation,
		Instance: r.Instance, Run: r.Run.String(), Loop: r.Loop, Position: r.Position, RowSeq: r.RowSeq,
	})
}

// timeText is RFC 3339 in UTC, to the nanosecond.
func timeText(unixNs int64) string {
	return time.Unix(0, unixNs).UTC().Format(time.RFC3339Nano)
}

// grantText is the time of a grant; "" when there was none.
func grantText(unixNs int64) string {
	if unixNs == 0 {
		return ""
	}
	return timeText(unixNs)
}
