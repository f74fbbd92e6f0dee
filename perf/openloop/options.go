package openloop

import (
	"fmt"
	"time"
)

// Options say what is sent where and how fast.
type Options struct {
	Addr        string // host:port of the target
	Mix         Mix
	Rate        float64 // requests per second, all kinds together
	WarmUp      time.Duration
	Hold        time.Duration
	Drain       time.Duration // how long answers are awaited behind the hold; 10 s when 0
	Connections int           // opened before the start; 64 when 0
	// ConnectionsMax bounds the connections; a request that finds none free
	// waits, and its wait counts as latency. 4096 when 0. Mischief has at most
	// 1024 connections of its own beside them.
	ConnectionsMax int

	// Begin and Offset make one even schedule of several generators: all begin
	// at the same time, each with its own offset. Zero is now, without one.
	Begin  time.Time
	Offset time.Duration
	// Part of Parts makes this generator send only the requests Part, Part+Parts
	// and so on of the schedule. Zero of both is all of them.
	Part, Parts int

	// HoldBegin and HoldEnd are called on goroutines of their own when the
	// hold begins and ends, for readings of the target; nil is allowed.
	HoldBegin, HoldEnd func() `json:"-"`

	stall func(n int) // of tests: called before request n is sent
}

// check fills in what was left out and refuses what cannot be.
func (o *Options) check() error {
	if o.Connections == 0 {
		o.Connections = 64
	}
	if o.ConnectionsMax == 0 {
		o.ConnectionsMax = 4096
	}
	if o.Drain == 0 {
		o.Drain = 10 * time.Second
	}
	if o.Parts == 0 {
		o.Parts = 1
	}
	switch {
	case !(o.Rate > 0 && o.Rate <= rateMax):
		return fmt.Errorf("openloop: rate %v: want more than 0 and at most %d", o.Rate, rateMax)
	case o.WarmUp < 0 || o.Hold <= 0 || o.WarmUp+o.Hold > durationMax:
		return fmt.Errorf("openloop: warm-up %v and hold %v: want a hold, and at most %v together", o.WarmUp, o.Hold, durationMax)
	case o.Drain < 0 || o.Drain > durationMax:
		return fmt.Errorf("openloop: drain %v: want 0 to %v", o.Drain, durationMax)
	case o.ConnectionsMax > connectionsMax || o.Connections < 0 || o.Connections > o.ConnectionsMax:
		return fmt.Errorf("openloop: %d to %d connections: want at most %d", o.Connections, o.ConnectionsMax, connectionsMax)
	case o.Part < 0 || o.Part >= o.Parts:
		return fmt.Errorf("openloop: part %d of %d: want 0 to %d", o.Part, o.Parts, o.Parts-1)
	}
	return o.Mix.check()
}

// due is when request n is sent, from the beginning.
func (o *Options) due(n int) time.Duration {
	return o.Offset + time.Duration(float64(n)*float64(time.Second)/o.Rate)
}
