package openloop

// A Result is what one run showed. Everything but ServedInHold, Dials, Unasked
// and what ends in All is about the requests that were scheduled within the
// hold. Mischief is in no figure but its own and those that end in All.
type Result struct {
	HoldSeconds  float64
	Offered      int64 // by the schedule
	Sent         int64 // of them, those that were begun to be written within the hold
	SentRate     float64
	Answered     int64
	ServedInHold int64            // good answers that were whole within the hold
	ServedRate   float64          // ServedInHold per second
	ByStatus     map[int]int64    // answers
	Failures     map[string]int64 // requests without a whole or a right answer, by cause
	Unanswered   int64            // had no answer when the run ended
	Unasked      int64            // answers that nobody had asked for
	Dials        int64
	ErrorShare   float64 // not 2xx, broken, failed or unanswered, of the worse kind
	RefusedShare float64 // 503 and 529
	Refusal      Quantiles
	// Lag is how late requests were sent, or began to wait for a connection.
	// ReadLag is how long the last bytes of answers lay in this host before they
	// were read. All times end when bytes arrive, as the kernel stamps them, so it
	// is in none of them; where the kernel does not, it is empty and in all.
	Lag, ReadLag Quantiles
	Late         bool // the generator was late: the run is void
	ByKind       map[string]KindResult
	// Overhead is that of the worse kind: time from the schedule to the last
	// byte, less what the mock reports for the request. Of streams it is known
	// when the mock stamps their events; else it ends with the first event.
	Overhead Quantiles

	// ByStatusAll are the whole answers of the warm-up, the hold and the drain;
	// LostAll are the requests of which no whole answer was seen, without those
	// of which nothing was ever written.
	ByStatusAll map[int]int64
	LostAll     int64

	Mischief map[string]Mischief `json:",omitempty"` // slow, leaving, faulty
	CPUUs    int64               // of the generator's thread within the hold
}

// A KindResult is the share of one kind. FirstEvent and Gap are of streams:
// from the schedule to the first content, and between two contents.
type KindResult struct {
	Sent, Bad                                   int64
	Total, Overhead, FirstByte, FirstEvent, Gap Quantiles
}

// Plain is the result without its histograms, for people.
func (r *Result) Plain() *Result {
	plain := *r
	for _, q := range []*Quantiles{&plain.Refusal, &plain.Lag, &plain.ReadLag, &plain.Overhead} {
		q.Histogram = nil
	}
	plain.ByKind = make(map[string]KindResult, len(r.ByKind))
	for name, k := range r.ByKind {
		for _, q := range []*Quantiles{&k.Total, &k.Overhead, &k.FirstByte, &k.FirstEvent, &k.Gap} {
			q.Histogram = nil
		}
		plain.ByKind[name] = k
	}
	return &plain
}
