package loop

import (
	"net/netip"
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
	BudgetBytes     int64         // all bodies and held bytes of this loop together
	IdlePerHostMax  int           // RELAY_UPSTREAM_MAX_IDLE_PER_HOST, this loop's share
	StreamIdle      time.Duration // RELAY_STREAM_IDLE: silence of an upstream body, silence of a reader
	KeepAlive       time.Duration // RELAY_KEEPALIVE: silence before a keep-alive comment
	TrustedProxies  []netip.Prefix
	Seed            uint64 // of this loop's random numbers
}

// Ports are the ways out of a loop. None of them blocks; false means full, and
// the request is refused as overloaded.
type Ports struct {
	Dial     func(*Dial) bool
	Submit   func(*state.Reservation) bool // to the lane; the answer comes by Post(r.Owner.(Message))
	Spool    Spool
	Inflight *admit.Inflight
}

// A Spool takes usage events; see usage/spool.Writer.
type Spool interface {
	Admitted(*usage.Event) bool
	Row(*usage.Event) bool
	Pending() bool
}

// A Message is something that another goroutine tells a loop.
type Message interface {
	// Deliver runs on the loop's goroutine.
	Deliver(*Loop)
}

// New makes a loop with its first catalog. wake is called from any goroutine
// when a message waits; the driver then calls RunMail soon.
func New(c Config, p Ports, t *catalog.Tables, wake func()) *Loop {
	panic("BUG: not built")
}

// A Loop is one shard of the gateway.
type Loop struct{}

// attempt is one try of an exchange at one host key.
type attempt struct{}

// Post tells the loop something, from any goroutine. It reports false when the
// mailbox is full.
func (l *Loop) Post(m Message) bool { panic("BUG: not built") }

// Begin starts a callback: every call of a Conn method, of Accept, Opened,
// Tick and RunMail stands between Begin and End. monoNs is a monotonic clock,
// wallNs the time of day, both in nanoseconds.
func (l *Loop) Begin(monoNs, wallNs int64) { panic("BUG: not built") }

// End sends what the callback gathered.
func (l *Loop) End() { panic("BUG: not built") }

// TickEvery is how often the driver calls Tick.
const TickEvery = 10 * time.Millisecond

// Tick fires the timers that are due.
func (l *Loop) Tick() { panic("BUG: not built") }

// RunMail delivers waiting messages, at most one batch, and reports whether
// more came meanwhile: the driver then calls it again after it has looked at
// its sockets.
func (l *Loop) RunMail() (more bool) { panic("BUG: not built") }

// Accept takes a new client connection.
func (l *Loop) Accept(s Socket, p Peer) Conn { panic("BUG: not built") }

// Opened takes the connection that d asked for.
func (l *Loop) Opened(s Socket, d *Dial) Conn { panic("BUG: not built") }

// Deliver takes a failed dial back; d.Fault and d.Text are set.
func (d *Dial) Deliver(l *Loop) { panic("BUG: not built") }

// Panicked is called by the driver's panic boundary after a callback of c
// panicked (c may be nil when it was not a connection's). The exchange of c is
// ended, its sockets are closed, everything else goes on.
func (l *Loop) Panicked(c Conn) { panic("BUG: not built") }
