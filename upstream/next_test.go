package upstream

import (
	"testing"

	"relay/upstream/wire"
)

func TestFaultsAreComplete(t *testing.T) {
	labels := map[string]Fault{}
	for f := NoFault; f < faultsEnd; f++ {
		row := faults[f]
		if row.label == "" || f.String() != row.label {
			t.Errorf("fault %d has no label", f)
		}
		if other, found := labels[row.label]; found {
			t.Errorf("faults %d and %d are both %s", f, other, row.label)
		}
		labels[row.label] = f
		silent := f == NoFault || f == ClientGone
		if (row.open == wire.NoError) != silent || (row.cut == wire.NoError) != silent {
			t.Errorf("%s tells the caller %d, %d", row.label, row.open, row.cut)
		}
		if row.pass && row.again == Never {
			t.Errorf("%s passes an answer on and is not tried elsewhere", row.label)
		}
	}
}

func TestStatusFault(t *testing.T) {
	for _, tt := range []struct {
		from, to int
		want     Fault
	}{
		{100, 199, BadAnswer}, {200, 299, NoFault}, {300, 399, BadAnswer}, {400, 400, NoFault},
		{401, 403, CredentialRefused}, {404, 406, NoFault}, {407, 407, BadAnswer}, {408, 409, TryAgain},
		{410, 428, NoFault}, {429, 429, RateLimited}, {430, 499, NoFault}, {500, 502, ServerError},
		{503, 503, Unavailable}, {504, 504, HostTimeout}, {505, 528, ServerError}, {529, 529, Unavailable},
		{530, 599, ServerError},
	} {
		for status := tt.from; status <= tt.to; status++ {
			if got := StatusFault(status); got != tt.want {
				t.Errorf("status %d is %s, want %s", status, got, tt.want)
			}
		}
	}
}

func TestLost(t *testing.T) {
	for _, tt := range []struct {
		name string
		e    Evidence
		want Fault
	}{
		{"before it was used", Evidence{}, Refused},
		{"idle, at once", Evidence{Reused: true, Sent: true}, StaleReuse},
		{"idle, nothing sent", Evidence{Reused: true}, StaleReuse},
		{"idle, just in time", Evidence{Reused: true, Sent: true, WaitedNs: StaleReuseNsMax}, StaleReuse},
		{"idle, after work", Evidence{Reused: true, Sent: true, WaitedNs: StaleReuseNsMax + 1}, ResetAfterSend},
		{"new", Evidence{Sent: true}, ResetAfterSend},
		{"in the answer", Evidence{Reused: true, Sent: true, Answered: true}, Truncated},
		{"in the answer at the caller", Evidence{Sent: true, Answered: true, Begun: true}, Truncated},
	} {
		if got := Lost(tt.e); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestNext(t *testing.T) {
	idle := Evidence{Reused: true, Sent: true}
	sent := Evidence{Sent: true}
	answered := Evidence{Sent: true, Answered: true}
	begun := Evidence{Sent: true, Answered: true, Begun: true}
	for _, tt := range []struct {
		name     string
		f        Fault
		e        Evidence
		attempts int
		want     Verdict
	}{
		{"refused", Refused, Evidence{}, 1, Verdict{Again: Elsewhere, Error: wire.BadGateway}},
		{"refused, last", Refused, Evidence{}, AttemptsMax, Verdict{Error: wire.BadGateway}},
		{"dial timeout", DialTimeout, Evidence{}, 2, Verdict{Again: Elsewhere, Error: wire.UpstreamTimeout}},
		{"certificate", TLS, Evidence{}, 1, Verdict{Again: Elsewhere, Error: wire.BadGateway}},
		{"host full", HostFull, Evidence{}, 1, Verdict{Again: Elsewhere, Error: wire.NoHost}},
		{"out of descriptors", Exhausted, Evidence{}, 1, Verdict{Error: wire.Overloaded}},
		{"stale", StaleReuse, idle, 1, Verdict{Again: Fresh, Error: wire.BadGateway}},
		{"stale, last", StaleReuse, idle, 3, Verdict{Error: wire.BadGateway}},
		{"stale, says a new connection", StaleReuse, sent, 1, Verdict{Error: wire.BadGateway}},
		{"stale, says an answered one", StaleReuse, answered, 1, Verdict{Error: wire.BadGateway}},
		{"reset", ResetAfterSend, sent, 1, Verdict{Error: wire.BadGateway}},
		{"silence", FirstByteTimeout, sent, 1, Verdict{Error: wire.UpstreamTimeout}},
		{"no token, head unsent", FirstTokenTimeout, answered, 1, Verdict{Error: wire.UpstreamTimeout}},
		{"no token, head sent", FirstTokenTimeout, begun, 1, Verdict{Error: wire.StreamIdle, Cut: true}},
		{"nonsense", BadAnswer, answered, 1, Verdict{Error: wire.BadGateway}},
		{"dead key", CredentialRefused, answered, 1, Verdict{Again: Elsewhere, Error: wire.UpstreamCredential}},
		{"dead key, many attempts", CredentialRefused, answered, 9, Verdict{Again: Elsewhere, Error: wire.UpstreamCredential}},
		{"429", RateLimited, answered, 1, Verdict{Again: Elsewhere, Error: wire.RateLimited, Pass: true}},
		{"429, last", RateLimited, answered, 3, Verdict{Error: wire.RateLimited, Pass: true}},
		{"409", TryAgain, answered, 1, Verdict{Again: Elsewhere, Error: wire.BadGateway, Pass: true}},
		{"500", ServerError, answered, 1, Verdict{Again: Elsewhere, Error: wire.BadGateway, Pass: true}},
		{"529", Unavailable, answered, 1, Verdict{Again: Elsewhere, Error: wire.Overloaded, Pass: true}},
		{"504", HostTimeout, answered, 2, Verdict{Again: Elsewhere, Error: wire.UpstreamTimeout, Pass: true}},
		{"overloaded in a stream", Unavailable, begun, 1, Verdict{Error: wire.UpstreamCut, Cut: true}},
		{"cut before the caller has a byte", Truncated, answered, 1, Verdict{Error: wire.BadGateway}},
		{"cut", Truncated, begun, 1, Verdict{Error: wire.UpstreamCut, Cut: true}},
		{"idle", IdleTimeout, begun, 1, Verdict{Error: wire.StreamIdle, Cut: true}},
		{"bad chunk", BadAnswer, begun, 1, Verdict{Error: wire.UpstreamCut, Cut: true}},
		{"caller left", ClientGone, sent, 1, Verdict{}},
		{"stopped", Stopped, sent, 1, Verdict{Error: wire.Overloaded}},
		{"stopped in a stream", Stopped, begun, 1, Verdict{Error: wire.ShuttingDown, Cut: true}},
	} {
		if got := Next(tt.f, tt.e, tt.attempts); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

// Whatever fails, nothing is tried again once the caller has a part of an
// answer, and nothing but a dead key beyond the bound.
func TestNextNever(t *testing.T) {
	for f := NoFault + 1; f < faultsEnd; f++ {
		for bits := range 8 {
			e := Evidence{Reused: bits&1 != 0, Sent: bits&2 != 0, Answered: bits&4 != 0}
			if v := Next(f, e, AttemptsMax); v.Again != Never && f != CredentialRefused {
				t.Errorf("%s: tried again after %d attempts", f, AttemptsMax)
			}
			e.Begun = true
			if v := Next(f, e, 1); v.Again != Never || v.Pass || v.Cut != (f != ClientGone) && f != ClientGone {
				t.Errorf("%s: %+v after the answer began", f, v)
			}
		}
	}
}

func TestRetryAfterSeconds(t *testing.T) {
	for _, tt := range []struct{ ns, want int64 }{
		{-5, 1}, {0, 1}, {1, 1}, {1e9 - 1, 1}, {1e9, 1}, {1e9 + 1, 2}, {59.5e9, 60}, {1<<63 - 1, 9223372037},
	} {
		if got := RetryAfterSeconds(tt.ns); got != tt.want {
			t.Errorf("%d ns are %d s, want %d", tt.ns, got, tt.want)
		}
	}
}

func TestRetryAfterNs(t *testing.T) {
	const nowUnixNs = 784111777e9 // Sun, 06 Nov 1994 08:49:37 GMT
	for _, tt := range []struct {
		value string
		ns    int64
		ok    bool
	}{
		{"0", 0, true},
		{"7", 7e9, true},
		{"007", 7e9, true},
		{"86400", RetryAfterNsMax, true},
		{"99999999999999999999999", RetryAfterNsMax, true},
		{"Sun, 06 Nov 1994 08:51:37 GMT", 120e9, true},
		{"Sunday, 06-Nov-94 08:51:37 GMT", 120e9, true},
		{"Sun Nov  6 08:51:37 1994", 120e9, true},
		{"Sun, 06 Nov 1994 08:49:37 GMT", 0, true},
		{"Sun, 06 Nov 1994 08:47:37 GMT", 0, true},
		{"Thu, 01 Jan 9998 00:00:00 GMT", RetryAfterNsMax, true},
		{"", 0, false},
		{"1.5", 0, false},
		{"-1", 0, false},
		{"+1", 0, false},
		{" 1", 0, false},
		{"soon", 0, false},
		{"Sun, 36 Nov 1994 08:51:37 GMT", 0, false},
		{"0000000000000000000000000000000000000000000007", 0, false},
	} {
		ns, ok := RetryAfterNs([]byte(tt.value), nowUnixNs)
		if ns != tt.ns || ok != tt.ok {
			t.Errorf("%q: %d, %t, want %d, %t", tt.value, ns, ok, tt.ns, tt.ok)
		}
	}
}
