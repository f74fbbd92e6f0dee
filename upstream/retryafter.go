package upstream

import "time"

// RetryAfterSeconds is the value of a Retry-After field for a wait: whole
// seconds, rounded up, at least 1, so that a caller who waits so long is not
// early.
func RetryAfterSeconds(ns int64) int64 {
	if ns <= 0 {
		return 1
	}
	return (ns-1)/int64(time.Second) + 1
}

// dateLayouts are the three forms of an HTTP date (RFC 9110 §5.6.7).
var dateLayouts = [...]string{
	"Mon, 02 Jan 2006 15:04:05 GMT",
	"Monday, 02-Jan-06 15:04:05 MST",
	time.ANSIC,
}

// RetryAfterNs reads a Retry-After field of a host (RFC 9110 §10.2.3): seconds
// or a date. A date that has passed is no wait; waits are cut to
// RetryAfterNsMax. ok is false for anything else, and the caller then takes
// its own default.
func RetryAfterNs(value []byte, nowUnixNs int64) (ns int64, ok bool) {
	if len(value) == 0 || len(value) > RetryAfterBytesMax {
		return 0, false
	}
	if digits(value) {
		const most = RetryAfterNsMax / int64(time.Second)
		var seconds int64
		for _, d := range value {
			seconds = min(seconds*10+int64(d-'0'), most)
		}
		return seconds * int64(time.Second), true
	}
	text := string(value)
	for _, layout := range dateLayouts {
		at, err := time.Parse(layout, text)
		if err != nil {
			continue
		}
		wait := at.Sub(time.Unix(0, nowUnixNs)) // saturates
		return min(max(int64(wait), 0), RetryAfterNsMax), true
	}
	return 0, false
}

func digits(value []byte) bool {
	for _, b := range value {
		if b < '0' || b > '9' {
			return false
		}
	}
	return true
}
