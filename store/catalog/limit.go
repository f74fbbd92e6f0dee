package catalog

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"time"
)

// A Group is a counter group: the limits that are counted together. ID is a
// hash of the kind and name of its owner, stable over generations and
// processes; it is zero when there are no limits.
type Group struct {
	ID     uint64
	Name   string // "policy/default", for people
	Limits []Limit
}

// A Limit is one rule of a group.
type Limit struct {
	Meter    Meter
	Strategy Strategy
	Amount   int64
	Window   time.Duration // 0 for concurrency
}

// A Meter is what a limit counts.
type Meter uint8

// The meters.
const (
	Requests Meter = iota
	Tokens
	InputTokens
	OutputTokens
	Cost
	Concurrency
)

// String is the name in the catalog.
func (m Meter) String() string { return meters[m].name }

// meters are in the order of the constants.
var meters = []option{
	{"requests", true}, {"tokens", false}, {"tokens.input", false},
	{"tokens.output", false}, {"cost", false}, {"concurrency", true},
}

// A Strategy is how a limit counts over time.
type Strategy uint8

// TokenBucket is a bucket of Amount that refills evenly over Window.
const TokenBucket Strategy = 0

// strategies are in the order of the constants, as far as there are any.
var strategies = []option{
	{"token-bucket", true}, {"leaky-bucket", false}, {"fixed-window", false},
	{"sliding-window", false}, {"session-window", false},
}

// group compiles the limits of one owner. kind and name identify it for ever:
// counters in a shared store are found by them.
func (c *compiler) group(at *Place, kind, name string, list *List[LimitEntry]) Group {
	if len(list.Value) == 0 || !sized(c, at, "limits", 0, list, false, limitsMax) {
		return Group{}
	}
	limits := at.Field("limits")
	g := Group{Name: kind + "/" + name, Limits: make([]Limit, 0, len(list.Value))}
	for i := range list.Value {
		f := &list.Value[i]
		if f.State != Given {
			continue
		}
		item := limits.Item(i)
		limit, ok := c.limit(&item, f.Line, &f.Value)
		if !ok {
			continue
		}
		same := func(l Limit) bool { return l.Meter == limit.Meter && l.Window == limit.Window }
		if slices.ContainsFunc(g.Limits, same) {
			c.problems.Error(item, f.Line, "counts the same meter over the same window as another limit of this list")
		}
		g.Limits = append(g.Limits, limit)
	}
	g.ID = stableHash(g.Name)
	return g
}

// stableHash is the start of a SHA-256, and never zero.
func stableHash(text string) uint64 {
	sum := sha256.Sum256([]byte(text))
	return max(1, binary.BigEndian.Uint64(sum[:8]))
}

// limit compiles one rule. One that this version cannot enforce is an error:
// a limit that does not hold is worse than a file that is refused.
func (c *compiler) limit(at *Place, line int32, e *LimitEntry) (limit Limit, ok bool) {
	ok = true
	if !required(c, at, "meter", line, &e.Meter) || !c.enforced(at, "meter", &e.Meter, meters) {
		ok = false
	} else {
		limit.Meter = Meter(slices.IndexFunc(meters, func(o option) bool { return o.name == e.Meter.Value }))
	}
	if e.Strategy.State != Absent && !c.enforced(at, "strategy", &e.Strategy, strategies) {
		ok = false
	}
	if required(c, at, "amount", line, &e.Amount) {
		limit.Amount = c.number(at, "amount", &e.Amount, 0, 1, amountMax)
	}
	if e.Reserve.State == Given {
		c.problems.Error(at.Field("reserve"), e.Reserve.Line, "is for the meters of tokens and cost only, which this version does not enforce")
	}
	ok = ok && limit.Amount > 0
	if limit.Meter == Concurrency {
		if e.Window.State == Given {
			c.problems.Error(at.Field("window"), e.Window.Line, "is not for concurrency: it counts what runs at once")
		}
		if e.Strategy.State == Given {
			c.problems.Error(at.Field("strategy"), e.Strategy.Line, "is not for concurrency: it counts what runs at once")
		}
		return limit, ok
	}
	// The window is checked whatever the meter is, unless that is unknown.
	if e.Meter.State == Given && required(c, at, "window", line, &e.Window) {
		limit.Window = c.duration(at, "window", &e.Window, 0, windowMin, windowMax)
	}
	return limit, ok && limit.Window > 0
}

// enforced reports whether a choice is known and carried out.
func (c *compiler) enforced(at *Place, name string, f *Field[string], options []option) bool {
	if f.State != Given {
		return false
	}
	i := slices.IndexFunc(options, func(o option) bool { return o.name == f.Value })
	if i >= 0 && options[i].held {
		return true
	}
	var allowed []option
	for _, o := range options {
		if o.held {
			allowed = append(allowed, o)
		}
	}
	if i < 0 {
		c.problems.Error(at.Field(name), f.Line, "is none of: %s", optionNames(allowed))
	} else {
		c.problems.Error(at.Field(name), f.Line, "%s is not enforced by this version; allowed: %s", f.Value, optionNames(allowed))
	}
	return false
}
