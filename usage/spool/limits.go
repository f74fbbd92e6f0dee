package spool

import "time"

// The limits of the format.
const (
	// SegmentBytesMax is where a segment ends and the next one starts. A
	// segment may grow past it while no next one can be made.
	SegmentBytesMax = 64 << 20
	// FrameBytesMax bounds type and payload of a frame. An event with every
	// string and number at its limit is smaller.
	FrameBytesMax = 4096
	// positionMax bounds the start of a segment: four exbibytes into a stream.
	positionMax = 1 << 62
	// LoopsMax bounds the writers of a run.
	LoopsMax = 1024
)

// The lengths, in bytes, at which strings of an event are cut.
const (
	nameBytesMax     = 256 // key, account, policy, host, host key, and the three models
	callerIDBytesMax = 128 // the caller's and the upstream's request id
	labelBytesMax    = 64  // route, shapes, error
	instanceBytesMax = 128
)

const (
	// ReserveBytesDefault is Options.ReserveBytes when unset: some 3,000 rows.
	ReserveBytesDefault = 1 << 20
	// ringBytes of written but not yet synced frames are kept per writer, to
	// be written again after a failed fsync. A power of two.
	ringBytes = 1 << 20
	// segmentBytesMin is the floor of segments that a small KeepBytes shrinks.
	segmentBytesMin = 1 << 20
	// keepShare is how many full segments per loop KeepBytes has room for, at
	// least.
	keepShare = 4
	// KeepBytesDefault is Options.KeepBytes when unset.
	KeepBytesDefault = 1 << 30

	readBytes     = 64 << 10 // read from a segment at once
	identityBytes = 64 << 10 // of run.json
)

// The periods of the goroutines.
const (
	idleRotate   = 60 * time.Second // without new frames, then the next one opens a segment
	retryEvery   = time.Second      // after a failure to make or sync a segment
	choreEvery   = time.Second      // the syncing goroutine's wakeups when it rests, or Options.Sync is 0
	restAfter    = time.Second      // without anything to sync it rests
	keepEvery    = 5 * time.Second  // between looks at the size of the spool
	recoverEvery = 30 * time.Second // between looks for runs whose owner has died
	tailPoll     = 200 * time.Millisecond
	staleFolder  = time.Minute // age at which a half-made run is removed
)
