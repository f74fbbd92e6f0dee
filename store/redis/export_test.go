package redis

import "time"

// WithClock has the store take the time from now, Unix ns.
func (o Options) WithClock(now func() int64) Options {
	o.clock = now
	return o
}

// WithSpecials bounds the shapes that get a script of their own; -1 = none.
func (o Options) WithSpecials(n int) Options {
	o.specials = n
	return o
}

// WithKeep bounds for how long a call is sent again.
func (o Options) WithKeep(d time.Duration) Options {
	o.keep = d
	return o
}
