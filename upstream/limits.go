package upstream

import "time"

const (
	// AttemptsMax is how many attempts one request may make, those apart that
	// ended with a refused credential: these are bounded by TriedMax.
	AttemptsMax = 3

	// TriedMax is how many pairs of binding and host key one request may try.
	TriedMax = 16

	// StaleReuseNsMax is how long after a request went out on a reused
	// connection its end still counts as that of an idle connection. It is more
	// than any round trip; a host that was silent longer may have worked.
	StaleReuseNsMax = int64(time.Second)

	// RetryAfterNsMax is the longest wait that is believed from a host. Longer
	// ones are cut to it.
	RetryAfterNsMax = int64(24 * time.Hour)

	// RetryAfterBytesMax is the longest Retry-After value that is read: a date
	// has 29 bytes, the longest obsolete form 33.
	RetryAfterBytesMax = 40

	// fieldNameBytesMax is how much of a field name is looked at. All names and
	// prefixes in the tables are shorter.
	fieldNameBytesMax = 48
)
