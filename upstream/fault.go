package upstream

import "relay/upstream/wire"

// A Fault is why one attempt failed. It is a value of a closed set, so failing
// allocates nothing.
type Fault uint8

// The faults.
const (
	NoFault Fault = iota

	// No byte of the request has left this process.
	Refused     // refused, unreachable, no address
	DialTimeout // no connection in time
	TLS         // handshake or certificate
	HostFull    // the host's max_connections are in use
	Exhausted   // our own descriptors or ports are used up; says nothing about the host

	// The request went out and no sound answer came back.
	StaleReuse        // a reused connection died before any byte of the answer
	ResetAfterSend    // a sound connection died before any byte of the answer: the host may have worked
	FirstByteTimeout  // no head in time
	FirstTokenTimeout // a head, but no output in time
	BadAnswer         // not HTTP, or not what was asked for

	// The host answered, but not with what was asked for.
	CredentialRefused // 401, 402, 403: our credential, not the caller's
	RateLimited       // 429
	TryAgain          // 408, 409
	ServerError       // 5xx but those below
	Unavailable       // 503, 529
	HostTimeout       // 504

	// The answer had begun.
	Truncated   // ended early
	IdleTimeout // silent for too long

	// It was not the host.
	ClientGone // the caller left
	Stopped    // this process ends

	faultsEnd
)

// FaultCount is how many faults there are, NoFault among them: the length of a
// table by Fault.
const FaultCount = int(faultsEnd)

// Again says where another attempt may be made.
type Again uint8

// The places for another attempt. The loop acts on Fresh; what could go
// elsewhere is told to the caller so far.
const (
	Never     Again = iota // the host may have worked, or it would be the same everywhere
	Fresh                  // the same binding and host key, on a new connection
	Elsewhere              // another pair, if Pick finds one
)

// faults is the only place that decides what the caller is told and whether
// another attempt may be made.
var faults = [FaultCount]struct {
	label string     // for metrics and rows
	open  wire.Error // told while the caller has nothing yet
	cut   wire.Error // told inside an answer that has begun
	again Again
	pass  bool // a caller of the same shape gets the host's own answer
}{
	NoFault:           {label: "none"},
	Refused:           {"refused", wire.BadGateway, wire.UpstreamCut, Elsewhere, false},
	DialTimeout:       {"dial_timeout", wire.UpstreamTimeout, wire.UpstreamCut, Elsewhere, false},
	TLS:               {"tls", wire.BadGateway, wire.UpstreamCut, Elsewhere, false},
	HostFull:          {"host_full", wire.NoHost, wire.UpstreamCut, Elsewhere, false},
	Exhausted:         {"exhausted", wire.Overloaded, wire.UpstreamCut, Never, false},
	StaleReuse:        {"stale_reuse", wire.BadGateway, wire.UpstreamCut, Fresh, false},
	ResetAfterSend:    {"reset_after_send", wire.BadGateway, wire.UpstreamCut, Never, false},
	FirstByteTimeout:  {"first_byte_timeout", wire.UpstreamTimeout, wire.StreamIdle, Never, false},
	FirstTokenTimeout: {"first_token_timeout", wire.UpstreamTimeout, wire.StreamIdle, Never, false},
	BadAnswer:         {"bad_answer", wire.BadGateway, wire.UpstreamCut, Never, false},
	CredentialRefused: {"credential_refused", wire.UpstreamCredential, wire.UpstreamCut, Elsewhere, false},
	RateLimited:       {"rate_limited", wire.RateLimited, wire.UpstreamCut, Elsewhere, true},
	TryAgain:          {"try_again", wire.BadGateway, wire.UpstreamCut, Elsewhere, true},
	ServerError:       {"server_error", wire.BadGateway, wire.UpstreamCut, Elsewhere, true},
	Unavailable:       {"unavailable", wire.Overloaded, wire.UpstreamCut, Elsewhere, true},
	HostTimeout:       {"host_timeout", wire.UpstreamTimeout, wire.UpstreamCut, Elsewhere, true},
	Truncated:         {"truncated", wire.BadGateway, wire.UpstreamCut, Never, false},
	IdleTimeout:       {"idle_timeout", wire.UpstreamTimeout, wire.StreamIdle, Never, false},
	ClientGone:        {"client_gone", wire.NoError, wire.NoError, Never, false},
	Stopped:           {"stopped", wire.Overloaded, wire.ShuttingDown, Never, false},
}

// String is the label in metrics and rows.
func (f Fault) String() string { return faults[f].label }

// StatusFault is what the status of a host's final answer means for the
// attempt. NoFault is an answer for the caller: success, or an error of the
// request. A redirect is none: it would send the caller, with its credential,
// past this gateway.
func StatusFault(status int) Fault {
	switch {
	case status < 200, status >= 300 && status < 400, status == 407:
		return BadAnswer
	case status >= 401 && status <= 403:
		return CredentialRefused
	case status == 408, status == 409:
		return TryAgain
	case status == 429:
		return RateLimited
	case status == 503, status == 529:
		return Unavailable
	case status == 504:
		return HostTimeout
	case status >= 500:
		return ServerError
	}
	return NoFault
}
