package catalog

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strconv"
	"time"
)

// A Group is a counter group: the limits that are counted together. ID is a
// hash of the kind and name of its owner, stable over generations and
// processes; it is zero when there are no limits.
type Group struct {
	ID         uint64
	Name       string // "policy/default", for people
	Generation uint64 // of its tables: of two of the same ID the greater is the newer
	Limits     []Limit
}

// A Limit is one rule of a group.
type Limit struct {
	Meter    Meter
	Strategy Strategy
	Amount   int64          // requests, tokens, slots or nano-USD
	Window   time.Duration  // 0 for concurrency and calendars
	Reserve  Reserve        // of tokens and cost
	Period   Period         // of calendars
	Zone     *time.Location // of calendars
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
	{"requests", true}, {"tokens", true}, {"tokens.input", true},
	{"tokens.output", true}, {"cost", true}, {"concurrency", true},
}

// A Strategy is how a limit counts over time.
type Strategy uint8

// The strategies.
const (
	TokenBucket   Strategy = iota // a bucket of Amount that refills evenly over Window
	LeakyBucket                   // the same arithmetic, seen as a queue that drains
	FixedWindow                   // Amount in each window of a grid
	SlidingWindow                 // Amount in the window and the part of the one before that it still overlaps
	SessionWindow                 // Amount in a window that begins with its first use
	Calendar                      // Amount in an hour, day, week or month of a time zone
)

// A Reserve says how much of what a request may use is reserved up front.
type Reserve uint8

// The modes of reservation.
const (
	Expected Reserve = iota // what such requests usually use, at most what the request allows
	Strict                  // all that the request allows
	Posthoc                 // nothing: a full limit refuses, and use is charged behind
)

// A Period is one of a calendar.
type Period uint8

// The periods.
const (
	Hour Period = iota
	Day
	Week // from Monday (ISO 8601)
	Month
)

// String is the period as limits spell it.
func (p Period) String() string { return [...]string{"hour", "day", "week", "month"}[p] }

// strategies are in the order of the constants.
var strategies = []option{
	{"token-bucket", true}, {"leaky-bucket", true}, {"fixed-window", true},
	{"sliding-window", true}, {"session-window", true}, {"calendar", true},
}

// periods are in the order of the constants.
var periods = []option{{"hour", true}, {"day", true}, {"week", true}, {"month", true}}

// reserves are in the order of the constants.
var reserves = []option{{"expected", true}, {"strict", true}, {"posthoc", true}}

// group compiles the limits of one owner. kind and name identify it for ever:
// counters in a shared store are found by them. owner is the entry itself.
func (c *compiler) group(at *Place, kind, name string, list *List[LimitEntry], owner any) Group {
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
		same := func(l Limit) bool {
			return l.Meter == limit.Meter && l.Window == limit.Window && l.Strategy == limit.Strategy && l.Period == limit.Period
		}
		if slices.ContainsFunc(g.Limits, same) {
			c.problems.Error(item, f.Line, "counts the same meter over the same window as another limit of this list")
		}
		if limit.Meter == Cost {
			c.priced(item, f.Line, owner)
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

// limit compiles one rule.
func (c *compiler) limit(at *Place, line int32, e *LimitEntry) (limit Limit, ok bool) {
	ok = required(c, at, "meter", line, &e.Meter)
	meter := c.index(at, "meter", &e.Meter, meters)
	strategy := c.index(at, "strategy", &e.Strategy, strategies)
	reserve := c.index(at, "reserve", &e.Reserve, reserves)
	if meter < 0 {
		return Limit{}, false
	}
	limit = Limit{Meter: Meter(meter), Strategy: Strategy(max(strategy, 0)), Reserve: Reserve(max(reserve, 0))}
	ok = ok && strategy >= 0 && reserve >= 0
	if required(c, at, "amount", line, &e.Amount) {
		limit.Amount = c.amount(at, limit.Meter, &e.Amount)
	}
	ok = ok && limit.Amount > 0
	if e.Reserve.State == Given && (limit.Meter == Requests || limit.Meter == Concurrency) {
		c.problems.Error(at.Field("reserve"), e.Reserve.Line, "is for the meters of tokens and cost only: a request is one request")
	}
	return limit, c.span(at, line, e, &limit) && ok
}

// span reads over which time a limit counts.
func (c *compiler) span(at *Place, line int32, e *LimitEntry, limit *Limit) bool {
	slots, calendar := limit.Meter == Concurrency, limit.Strategy == Calendar
	for _, f := range []struct {
		name  string
		field *Field[string]
		wrong bool
		why   string
	}{
		{"window", &e.Window, slots, "is not for concurrency: it counts what runs at once"},
		{"strategy", &e.Strategy, slots, "is not for concurrency: it counts what runs at once"},
		{"window", &e.Window, !slots && calendar, "is not for calendars: they have a period"},
		{"period", &e.Period, !calendar, "is for the strategy calendar only"},
		{"timezone", &e.Timezone, !calendar, "is for the strategy calendar only"},
	} {
		if f.wrong && f.field.State == Given {
			c.problems.Error(at.Field(f.name), f.field.Line, "%s", f.why)
		}
	}
	switch {
	case slots:
		return true
	case calendar:
		return required(c, at, "period", line, &e.Period) && c.calendar(at, &e.Period, &e.Timezone, limit)
	case required(c, at, "window", line, &e.Window):
		limit.Window = c.duration(at, "window", &e.Window, 0, windowMin, windowMax)
	}
	return limit.Window > 0
}

// calendar reads the period of a limit and its time zone, which is UTC unless
// another is given.
func (c *compiler) calendar(at *Place, period, timezone *Field[string], limit *Limit) bool {
	i := c.index(at, "period", period, periods)
	limit.Period, limit.Zone = Period(max(i, 0)), time.UTC
	if timezone.State == Given {
		limit.Zone = c.zone(at, timezone)
	}
	return i >= 0 && limit.Zone != nil
}

// amount reads the amount of a limit: USD for cost, held in nano-USD, else a
// whole number. 0 is a wrong one.
func (c *compiler) amount(at *Place, m Meter, f *Field[string]) int64 {
	if m == Cost {
		n, wrong := parseDecimal(f.Value, nanoPlaces, budgetUSDMax)
		if n == 0 && wrong == "" {
			wrong = "must be above zero"
		}
		if wrong != "" {
			c.problems.Error(at.Field("amount"), f.Line, "%s", wrong)
			return 0
		}
		return n
	}
	n, err := strconv.ParseInt(f.Value, 10, 64)
	switch {
	case err != nil || strconv.FormatInt(n, 10) != f.Value:
		c.problems.Error(at.Field("amount"), f.Line, "must be a whole number in plain decimal digits")
	case n < 1 || n > amountMax:
		c.problems.Error(at.Field("amount"), f.Line, "is %d; allowed are %d to %d", n, 1, amountMax)
	default:
		return n
	}
	return 0
}

// index is the place of a choice in its closed set; the first one stands for
// an absent field, and -1 for one that is wrong.
func (c *compiler) index(at *Place, name string, f *Field[string], options []option) int {
	if f.State == Absent {
		return 0
	}
	if f.State != Given {
		return -1
	}
	i := slices.IndexFunc(options, func(o option) bool { return o.name == f.Value })
	if i < 0 {
		c.problems.Error(at.Field(name), f.Line, "is none of: %s", optionNames(options))
	}
	return i
}
