package admit

import "time"

const (
	// RequestBudgetBytes is the memory that one request in flight is taken to
	// need: its client and upstream connection with their buffers, a body of
	// usual size and the state between. It is a stated assumption until a
	// measurement of the whole process replaces it.
	RequestBudgetBytes = 64 << 10

	// InflightMin is the least hard cap that a memory limit gives, in requests:
	// below it a small machine would refuse what it can carry, since most
	// requests wait for a model and hold little.
	InflightMin = 2048
)

// Leases. How long what was lent may be spent is state.LeaseNs.
const (
	// LeasesMax is how many counter groups may be active on one loop, about 2 KB
	// each. Requests that would need more are refused as overload.
	LeasesMax = 1 << 16

	// leasesSpare is how many dropped leases are kept for reuse.
	leasesSpare = 1024

	// leasesNear is how many leases are found without a look at the map. A power
	// of two.
	leasesNear = 1024

	// spanNs is the span whose use tells what could be used soon. What was used
	// in one span is lent for spansLent of them, which is as long as it lasts.
	spanNs    = int64(100 * time.Millisecond)
	spansLent = 8

	// lookNs is how long at most a loop goes by what it knows of a limit that
	// reserves nothing.
	lookNs = int64(200 * time.Millisecond)

	// slotsAhead says how many slots a loop asks for beyond those in use: one of
	// so many.
	slotsAhead = 8

	// flushNs is how long near a limit something to send waits for an Op that it
	// could ride on, and how long until an Op that found no room is tried again.
	// Far from the limit it waits for rideNs, in which a busy lease has an Op
	// anyway.
	flushNs = int64(20 * time.Millisecond)
	rideNs  = spanNs

	// denialNs is how long at most a denial of the store stands on the loop.
	denialNs = int64(50 * time.Millisecond)

	// slotAgainNs is after how long those who found no slot are asked for a second
	// time, before they are denied: a slot that has just come free on another
	// loop may still be on its way to the store.
	slotAgainNs = int64(4 * time.Millisecond)

	// idleNs is how long a lease without use is kept.
	idleNs = int64(time.Second)

	// gaugeNs is how often the store is told of slots at least. It forgets them
	// three times as late. With some to spare it is told every spareNs, and says
	// how many may be kept.
	gaugeNs = int64(10 * time.Second)
	spareNs = int64(time.Second)

	// tickSteps is how many leases one Tick looks at.
	tickSteps = 256
)

// Estimates.
const (
	// estimatesMax is how many pairs of policy and model, and how many models, a
	// loop remembers.
	estimatesMax = 8192

	// bytesPerToken is what a model is taken to need before it is known.
	bytesPerToken = 4

	// outputTokensFirst is what an answer is taken to use before any was seen.
	outputTokensFirst = 256

	// outputTokensMost is reserved by a strict limit when neither the request nor
	// the catalog bounds the answer: what the largest models in wide use give.
	outputTokensMost = 128 << 10

	// tokensMax bounds an estimate, whatever a caller writes: no sum of two
	// overflows, and every store counts it exactly.
	tokensMax = 1 << 40

	// How fast estimates follow: tokens per byte move by one part of
	// ratioInertia, the output up by one of riseInertia and down by one of
	// fallInertia. Nine to one is what makes it a high estimate.
	ratioInertia = 16
	riseInertia  = 8
	fallInertia  = 9 * riseInertia
)

// periodsMax is how many pairs of period and time zone a Calendar remembers.
const periodsMax = 256
