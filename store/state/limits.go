package state

import (
	"math"
	"time"
)

const (
	// GroupsMax is how many counter groups one request may touch: policy, relay
	// key, account, host key.
	GroupsMax = 4

	// RulesMax is how many limits one group may have.
	RulesMax = 8

	// AmountMax is the largest amount of a limit, and of units at a time, that
	// every store counts exactly: 2^53 is where a store that counts in doubles
	// ends.
	AmountMax = 1 << 53

	// WindowMax is the longest window that every store counts exactly.
	WindowMax = 400 * 24 * time.Hour

	// ConcurrencyRetryNs is what a denied caller is told when all slots are in
	// use. It is a hint: nobody knows when a slot comes back.
	ConcurrencyRetryNs = int64(time.Second)

	// EbbNs is the span by which a bucket remembers how low it became: of a grant
	// of this span or the one before, what was not used comes back in full while
	// the bucket is busy. It is longer than most requests.
	EbbNs = int64(2 * time.Minute)

	// WaitMaxNs bounds the waits of debts: 73 years. Added to a time of today it
	// is a time.
	WaitMaxNs = 1 << 61

	// NeverNs is the wait for more units than the limit ever has.
	NeverNs = math.MaxInt64
)

// Leases. What is lent in advance is at most what the loop says it could use,
// LeaseShare of the amount, and an equal share of a quarter of what is
// available: so leases shrink near the limit, and its last part is counted
// one by one.
const (
	// LeaseNs is how long what was lent may be spent.
	LeaseNs = int64(time.Second)

	// LeaseShare is the part of the amount that one loop may be lent: one of so many.
	LeaseShare = 50

	// LeaseParts divides what is available, beside the number of loops.
	LeaseParts = 4

	// LeaseMin is the least that is worth a lease, in units.
	LeaseMin = 2
)

// Outages of a shared store.
const (
	// outageGroupsMax is how many groups of a lane have something that the store
	// has not been told of. Ops of further ones are lost.
	outageGroupsMax = 1 << 16

	// sharesMax is how many groups with their share of the limits are kept.
	sharesMax = 1 << 16

	// tellMax is how many groups the store is told of with one batch, beside
	// those that are in it. When missedMax were found out of reach, the others are
	// not looked at.
	tellMax   = 256
	missedMax = 4

	// outageRetryNs is what a caller is told who needs more than the share of
	// this relay and not more than the limit: to try when the store may be back.
	outageRetryNs = int64(time.Second)
)

const (
	// sweepSteps is how many places of the memory the sweep looks at per Op. An
	// Op creates at most one group, so the sweep is twice as fast as the growth,
	// and groups at rest are never more than about as many as the active ones.
	sweepSteps = 2

	// shardCount splits the memory so that growing or shrinking one part of it
	// stalls the lane for the time of one part only: a million groups are 4,000
	// per shard, about 0.2 ms. A power of two.
	shardCount = 256

	// indexMin is the smallest index of a shard, in places. A power of two.
	indexMin = 8
)
