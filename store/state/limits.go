package state

import "time"

const (
	// GroupsMax is how many counter groups one request may touch: policy, relay
	// key, account, host key.
	GroupsMax = 4

	// RulesMax is how many limits one group may have.
	RulesMax = 8

	// AmountMax is the largest amount of a limit that every store counts
	// exactly: 2^53 is where a store that counts in doubles ends.
	AmountMax = 1 << 53

	// WindowMax is the longest window that every store counts exactly.
	WindowMax = 400 * 24 * time.Hour

	// ConcurrencyRetryNs is what a denied caller is told when all slots are in
	// use. It is a hint: nobody knows when a slot comes back.
	ConcurrencyRetryNs = int64(time.Second)
)

const (
	// sweepSteps is how many places of the memory the sweep looks at per
	// reservation. A reservation creates at most GroupsMax groups, so the sweep
	// is twice as fast as the growth, and groups at rest are never more than
	// about as many as the active ones.
	sweepSteps = 2 * GroupsMax

	// shardCount splits the memory so that growing or shrinking one part of it
	// stalls the lane for the time of one part only: a million groups are 4,000
	// per shard, about 0.2 ms. A power of two.
	shardCount = 256

	// indexMin is the smallest index of a shard, in places. A power of two.
	indexMin = 8
)
