package redis

import "time"

const (
	// protocol is the version of keys and records. Relays of different versions
	// must not share a store.
	protocol = 1

	// opsMax is how many groups one call of the script works off: 64 take the
	// store about 0.2 ms, and larger calls save nothing.
	opsMax = 64

	// shapesMax is how many scripts one process loads; groups of further shapes
	// are worked off by the generic one.
	shapesMax = 32

	// specialRulesMax is the longest shape with a script of its own: Lua has
	// room for 200 variables.
	specialRulesMax = 5

	// tagsMax bounds the hash tags, and tagsCluster is how many a cluster has
	// unless told otherwise.
	tagsMax     = 1024
	tagsCluster = 64

	// lanesMax bounds the lanes per node.
	lanesMax = 16

	// leastLeft is the part of the deadline, one of so many, that must be left for
	// something new to be sent.
	leastLeft = 8

	// retries is how often a call is sent again within one Apply.
	retries = 3

	// accountsMax is how many groups a lane remembers something for that it
	// could not tell the store. Beyond it is forgotten, and counted.
	accountsMax = 1 << 16

	// owedMax is how many of them are told with one batch.
	owedMax = 4 * opsMax
)

// Times.
const (
	deadlineDefault = 250 * time.Millisecond // of one Apply
	dialTimeout     = 500 * time.Millisecond
	connTimeout     = time.Second            // of a connection that does not answer
	probeAfter      = 100 * time.Millisecond // between attempts to reach a store that is gone
	probeMax        = time.Second            // of one such attempt
	startPoll       = time.Millisecond       // between looks whether all nodes have answered
	retryPause      = 5 * time.Millisecond   // before a third attempt, and more before further ones
	openTimeout     = 5 * time.Second        // of everything that Open asks

	// gaugeLease is how long slots of a process count that is not heard of.
	gaugeLease = 30 * time.Second

	// guardTTL is how long the store remembers a batch. A batch is sent again
	// for keepMax at most, which is well within.
	guardTTL = 10 * time.Minute
	keepMax  = 5 * time.Minute

	// heartEvery is how often a relay says that it lives, and heartTTL how long
	// that is believed.
	heartEvery = time.Second
	heartTTL   = 5 * time.Second
)

// Buffers of a connection, in bytes, and its ring, as a power of two.
const (
	connBuffer = 64 << 10
	ringScale  = 8
)
