package report

import (
	"time"

	"relay/perf/machine"
)

// A Run is what one ladder measured: the content of its result file.
type Run struct {
	Taken     time.Time
	Ended     time.Time
	Host      machine.Facts
	Profile   string            // quick, local or full
	Settings  map[string]string // what the run was told, by flag name
	Systems   []string          // in the order of each round
	Scenarios []Scenario
	Missing   []string // systems and parts that were left out, each with its reason
	Failed    string   // why the run ended early; "" = it is whole
}

// A Scenario is what one named ladder showed.
type Scenario struct {
	Number      int
	Name        string
	Asks        string // the question that it answers
	CompletedBy string // what of it needs a part that Relay does not have yet; "" = it is whole
	Points      []Point
	Streams     []StreamPoint
	Idle        []IdlePoint
	Summaries   []Summary
	Notes       []string // what a reader must know, each a sentence
}

// A Point is one system under one offered rate, in one round.
type Point struct {
	System  string
	Variant string // of its settings within the scenario, e.g. "GOGC=100"; "" = the usual ones
	Round   int

	Offered    float64 // requests per second, by the schedule
	Sent       float64
	Served     float64 // good answers that were whole within the hold, per second
	ErrorShare float64 // of all answers, of the worse request type

	OverheadP50Ms, OverheadP99Ms float64 // of the worse request type
	FirstEventP99Ms, GapP99Ms    float64 // of streams; 0 = none were asked for
	RefusedShare                 float64 // 503 and 529, of all answers
	RefusalP99Ms                 float64
	LagP99Ms                     float64 // of the generator

	Cores           map[string]float64 // by process: gateway, mock, generator, store, proxy
	CPUPerRequestUs float64            // of the gateway
	RSSBytes        int64              // of the gateway: the most in the last half of the hold
	Goroutines      int                // -1 = unknown
	GCCycles        float64            // in the hold; -1 = unknown
	AllocsPerReq    float64            // heap objects; -1 = unknown
	DialsPerReq     float64            // to the mock; -1 = unknown

	Store *StoreUse // nil: nobody looked

	Money    *Money // nil: the system keeps no accounts
	Excluded string // why the point counts in no figure; "" = it counts
}

// A StoreUse is what the counting of limits took. Per request means per good
// answer.
type StoreUse struct {
	Program         string  // StoreMemory, or the program of the store
	Leases          bool    // limits so far off that units are lent in advance
	CPUPerRequestUs float64 // of the store, user and system
	EvalsPerReq     float64 // calls of scripts
	CommandsPerReq  float64 // those that scripts make among them
	AdmissionP50Ms  float64 // from the last byte of a request to its hand-over to a host; -1 = unknown
	AdmissionP99Ms  float64
}

// StoreMemory is the memory of the gateway itself, as a store.
const StoreMemory = "memory"

// Money is the comparison of answers and accounts behind a run.
type Money struct {
	Answered int64 // good answers that the generator has seen, warm-up included
	Lost     int64 // requests whose end the generator did not see
	Rows     int64 // of requests that ended with a good answer
	Problem  string
}

// A StreamPoint is one system with so many open streams, in one round.
type StreamPoint struct {
	System        string
	Variant       string
	Round         int
	Streams       int
	Completed     int
	EventsMissing int64
	KiBPerStream  float64 // over the base
	RSSBytes      int64
	CoresPer1000  float64
	AddedGapP99Ms float64
	Goroutines    int
	Money         *Money // nil: the system keeps no accounts
	Excluded      string
}

// An IdlePoint is one system with so many idle connections, in one round.
type IdlePoint struct {
	System            string
	Round             int
	Connections       int
	KiBPerConnection  float64
	RSSBytes          int64
	ProbeP99Ms        float64
	ConnectionsFailed int
	Excluded          string
}

// A Summary sums up one system and variant over the rounds that count.
type Summary struct {
	System  string
	Variant string
	// Knee is the highest step with a p99 overhead of at most KneeOverheadMs and at
	// most ErrorShareMax errors, all lower steps passing; 0 = none.
	Knee float64 // requests per second, as served
	// Capacity is the highest served rate at a step with at most ErrorShareMax errors.
	Capacity      float64
	CapacityP99Ms float64
	// Highest is the highest served rate, with its errors.
	Highest           float64
	HighestErrorShare float64
	PerCore           float64 // requests per second and gateway core at Capacity
}

const (
	// KneeOverheadMs is the p99 overhead up to which a step is within the knee.
	KneeOverheadMs = 15.0
	// ErrorShareMax is the share of errors up to which a step counts.
	ErrorShareMax = 0.001
	// StoreRatioMax is how many times the CPU of a request with limits in memory
	// one may take with limits in a store and leases.
	StoreRatioMax = 1.15
)

// Gateway is the name of the gateway among the processes of Cores.
const Gateway = "gateway"
