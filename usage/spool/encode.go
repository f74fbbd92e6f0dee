package spool

import "relay/usage"

// appendEvent appends the Event message. rowSeq is 0 for an admission.
func appendEvent(b []byte, e *usage.Event, rowSeq uint64, instance string) []byte {
	b = putID(b, 1, e.RequestID)
	b = putInt(b, 2, int64(rowSeq))
	b = putString(b, 3, instance, instanceBytesMax)
	b = putString(b, 4, e.CallerID, callerIDBytesMax)
	b = putInt(b, 5, int64(e.Generation))
	b = putFixed(b, 6, e.StartUnixNs)
	b = putFixed(b, 7, e.EndUnixNs)
	b = putString(b, 8, e.Key, nameBytesMax)
	b = putString(b, 9, e.Account, nameBytesMax)
	b = putString(b, 10, e.Policy, nameBytesMax)
	b = putString(b, 11, e.ModelAsked, nameBytesMax)
	b = putString(b, 12, e.Model, nameBytesMax)
	b = putString(b, 13, e.UpstreamModel, nameBytesMax)
	b = putString(b, 14, e.Host, nameBytesMax)
	b = putString(b, 15, e.HostKey, nameBytesMax)
	b = putString(b, 16, e.UpstreamRequestID, callerIDBytesMax)
	b = putString(b, 17, e.Route, labelBytesMax)
	b = putString(b, 18, e.ShapeIn, labelBytesMax)
	b = putString(b, 19, e.ShapeOut, labelBytesMax)
	b = putInt(b, 20, int64(e.Status))
	b = putInt(b, 21, int64(e.UpstreamStatus))
	b = putInt(b, 22, int64(e.Outcome)+1) // 0 is unspecified
	b = putString(b, 23, e.Error, labelBytesMax)
	b = putBool(b, 24, e.Stream)
	b = putInt(b, 25, int64(e.Attempts))
	b = putInt(b, 26, int64(e.Source)+1)
	b = putBool(b, 27, e.HungUp)
	b = putInt(b, 28, e.GrantUnixNs)
	b = putMoney(b, e)
	b = putInt(b, 60, e.OverheadNs)
	b = putInt(b, 61, e.FirstTokenNs)
	b = putInt(b, 62, e.UpstreamNs)
	b = putInt(b, 63, e.BytesIn)
	return putInt(b, 64, e.BytesOut)
}

// putMoney appends tokens, prices and costs.
func putMoney(b []byte, e *usage.Event) []byte {
	b = putInt(b, 30, e.Tokens.Input)
	b = putInt(b, 31, e.Tokens.CachedInput)
	b = putInt(b, 32, e.Tokens.CacheWrite5m)
	b = putInt(b, 33, e.Tokens.CacheWrite1h)
	b = putInt(b, 34, e.Tokens.Output)
	b = putInt(b, 35, e.Tokens.Reasoning)
	b = putInt(b, 36, e.Tokens.AudioInput)
	b = putInt(b, 37, e.Tokens.AudioOutput)
	b = putInt(b, 38, e.Tokens.WebSearches)
	b = putInt(b, 40, e.Price.Input)
	b = putInt(b, 41, e.Price.CachedInput)
	b = putInt(b, 42, e.Price.CacheWrite5m)
	b = putInt(b, 43, e.Price.CacheWrite1h)
	b = putInt(b, 44, e.Price.Output)
	b = putInt(b, 45, e.Price.Audio)
	b = putInt(b, 46, e.Price.RequestNano)
	b = putInt(b, 47, e.Price.WebSearchNano)
	b = putInt(b, 50, e.Cost.Input)
	b = putInt(b, 51, e.Cost.CachedInput)
	b = putInt(b, 52, e.Cost.CacheWrite5m)
	b = putInt(b, 53, e.Cost.CacheWrite1h)
	b = putInt(b, 54, e.Cost.Output)
	b = putInt(b, 55, e.Cost.Audio)
	b = putInt(b, 56, e.Cost.WebSearch)
	b = putInt(b, 57, e.Cost.Request)
	b = putInt(b, 58, e.Cost.Total)
	return putInt(b, 59, e.ProviderCost)
}

// appendSeal appends the Seal message.
func appendSeal(b []byte, s *Seal) []byte {
	b = putInt(b, 1, int64(s.Rows))
	b = putFixed(b, 2, s.UnixNs)
	b = putID(b, 3, s.ClosedBy)
	return putInt(b, 4, int64(s.Interrupted))
}
