package loop

import (
	"time"

	"relay/admit"
	"relay/store/catalog"
	"relay/store/state"
	"relay/usage"
)

// Config is what a loop is told at its start. It does not change.
type Config struct {
	Index int // of this loop
	Loops int // in the process

	RequestBytesMax int64         // RELAY_MAX_REQUEST_BYTES
	BudgetBytes     int64         // all bodies, held bytes and waiting output of this loop together
	IdlePerHostMax  int           // RELAY_UPSTREAM_MAX_IDLE_PER_HOST, this loop's share
	StreamIdle      time.Duration // RELAY_STREAM_IDLE: silence of an upstream body, and of a client that does not read
	KeepAlive       time.Duration // RELAY_KEEPALIVE: silence of a stream before a keep-alive is sent
	Seed            uint64        // of this loop's random numbers
}

// Ports are the ways out of a loop. None of them blocks; false means full, and
// the request is refused as overloaded.
type Ports struct {
	Dial     func(*Dial) bool
	Submit   func(*state.Op) bool // to the lane of its group; it comes back by Post(Answer{op}), in the order of each lane
	Spool    Spool
	Inflight *admit.Inflight
	// Inflate starts to decode an answer: encoding is gzip, x-gzip or deflate,
	// loop is where the pieces go, owner comes back in each. nil = none is free.
	Inflate func(encoding string, loop int, owner any) Inflater
}

// A Spool takes usage events; see usage/spool.Writer.
type Spool interface {
	Admitted(*usage.Event) bool
	Row(*usage.Event) bool
	Pending() bool   // the row just written must be synced before its answer may go out
	Position() int64 // end of the last record written
	SyncedTo() int64 // all records up to here are durable
}

// How often the driver calls Tick: TickEvery while output waits to be taken,
// which only a tick can tell, and TickQuiet else. So a timer may be late by
// TickQuiet; an idle process is not woken for nothing.
const (
	TickEvery = 10 * time.Millisecond
	TickQuiet = 100 * time.Millisecond
)

// Tables is a Message that gives a loop a new generation of the catalog.
type Tables struct{ Tables *catalog.Tables }

// Deliver switches new requests to the tables. Running exchanges keep theirs.
func (t Tables) Deliver(l *Loop) { l.tables = t.Tables }
