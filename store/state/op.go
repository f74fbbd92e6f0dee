package state

import "relay/store/catalog"

// An Op is one loop's business with one counter group. It is part of the
// loop's lease of the group and is used again and again: a store remembers in
// it how many slots the loop has, so an Op that has any must not be dropped.
type Op struct {
	Loop  int            // where the answer goes
	Owner any            // the lease; not touched here
	Group *catalog.Group // with at most RulesMax limits

	// What is asked, by rule of the group. All are ≥ 0. Of concurrency rules only
	// Want, Need and More are looked at; the greatest of a group's rules counts.
	Want   [RulesMax]int64  // units that requests wait for, all together
	Need   [RulesMax]int64  // of them, those of the request that waits first
	More   [RulesMax]int64  // units beyond Want that the loop could use soon
	Charge [RulesMax]int64  // used beyond what was granted: always counted
	Return [RulesMax]Return // granted and not used
	Bounds [RulesMax]Bounds // of calendar rules
	Slots  int64            // concurrency slots that the loop keeps of earlier grants

	// The answer.
	Lost    bool            // the store could not be asked: all below is zero; Charge, Return and Slots count as told
	Got     [RulesMax]int64 // of Want
	Extra   [RulesMax]int64 // lent beyond Want, for LeaseNs from when the Op was submitted
	Left    [RulesMax]int64 // what is available behind this Op
	RestNs  [RulesMax]int64 // until the rule is full again
	RetryNs [RulesMax]int64 // until Need fits where it did not; NeverNs: it never will; 0: it did
	Keep    int64           // slots without a use that the loop may keep
	NowNs   int64           // store time of the answer, Unix

	known int64 // slots that the store has lent to this Op, by its last answer
}

// A Return is units of an earlier grant that were not used. It never makes room
// in another window than that of the grant, nor for what a bucket has drained
// since. Returns of a bucket may be added up: to the earliest of their times.
type Return struct {
	Units   int64
	GrantNs int64 // store time of the grant
}

// Bounds are a period of a calendar, FromNs ≤ t < UntilNs, Unix.
type Bounds struct{ FromNs, UntilNs int64 }

// Clear makes o ask for nothing. Group, owner and slots stay.
func (o *Op) Clear() {
	o.Want, o.Need, o.More, o.Charge = [RulesMax]int64{}, [RulesMax]int64{}, [RulesMax]int64{}, [RulesMax]int64{}
	o.Return, o.Bounds = [RulesMax]Return{}, [RulesMax]Bounds{}
}

// Lose makes the answer say that the store could not be asked. Whoever does so
// has taken over what the Op had to say: Charge and Return are kept until the
// store can be told, or given up and counted as such. The loop must not send
// them again.
func (o *Op) Lose() {
	o.Begin()
	o.Lost = true
}

// Lent is how many slots the store has lent to this Op. An Op may be dropped
// when it is 0.
func (o *Op) Lent() int64 { return o.known }

// SetLent is for stores: it notes how many slots the Op has now.
func (o *Op) SetLent(n int64) { o.known = n }

// Begin is for stores: it takes away the answer of an earlier use.
func (o *Op) Begin() {
	o.Lost, o.Keep, o.NowNs = false, 0, 0
	o.Got, o.Extra, o.Left = [RulesMax]int64{}, [RulesMax]int64{}, [RulesMax]int64{}
	o.RestNs, o.RetryNs = [RulesMax]int64{}, [RulesMax]int64{}
}
