package admit

import (
	"fmt"
	"time"

	"relay/store/catalog"
	"relay/store/state"
)

// Bounds is the period of a calendar limit that holds a time. Hours, days,
// weeks (from Monday, ISO 8601) and months are those of the limit's time zone:
// where clocks are set forward or back a day has 23 or 25 hours, and an hour of
// the clock that comes twice is two hours here.
func Bounds(l *catalog.Limit, unixNs int64) state.Bounds {
	zone := l.Zone
	if zone == nil {
		zone = time.UTC
	}
	now := time.Unix(0, unixNs).In(zone)
	year, month, day := now.Date()
	var from, until time.Time
	switch l.Period {
	case catalog.Hour:
		return hourBounds(now)
	case catalog.Day:
		from, until = midnight(year, month, day, zone), midnight(year, month, day+1, zone)
	case catalog.Week:
		day -= (int(now.Weekday()) + 6) % 7
		from, until = midnight(year, month, day, zone), midnight(year, month, day+7, zone)
	case catalog.Month:
		from, until = midnight(year, month, 1, zone), midnight(year, month+1, 1, zone)
	default:
		panic(fmt.Sprintf("BUG: no calendar has period %d", l.Period))
	}
	return state.Bounds{FromNs: from.UnixNano(), UntilNs: until.UnixNano()}
}

// midnight is when a day of a zone begins: its first instant, which is not
// 00:00 where clocks are set forward over midnight, and the earlier of the two
// where they are set back to it.
func midnight(year int, month time.Month, day int, zone *time.Location) time.Time {
	t := time.Date(year, month, day, 0, 0, 0, 0, zone)
	want := time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	start, end := t.ZoneBounds()
	if !sameDay(t, want) { // the clock skips 00:00, and t reads as the day before
		return end
	}
	if start.IsZero() || t.Sub(start) >= 24*time.Hour {
		return t
	}
	switch before := start.Add(-1); {
	case sameDay(before, want): // the clock reads 00:00 twice
		_, was := before.Zone()
		_, is := start.Zone()
		return t.Add(time.Duration(is-was) * time.Second)
	case sameDay(start, want): // the clock skips 00:00
		return start
	}
	return t
}

func sameDay(a, b time.Time) bool {
	ay, am, ad := a.Date()
	by, bm, bd := b.Date()
	return ay == by && am == bm && ad == bd
}

// hourBounds is the hour of the clock, cut where the clock is set.
func hourBounds(now time.Time) state.Bounds {
	into := time.Duration(now.Minute())*time.Minute + time.Duration(now.Second())*time.Second + time.Duration(now.Nanosecond())
	from := now.Add(-into)
	until := from.Add(time.Hour)
	start, end := now.ZoneBounds()
	if !start.IsZero() && from.Before(start) && isSet(start) {
		from = start
	}
	if !end.IsZero() && until.After(end) && isSet(end) {
		until = end
	}
	return state.Bounds{FromNs: from.UnixNano(), UntilNs: until.UnixNano()}
}

// isSet reports whether the clock is set at a bound of a zone, which may also
// be where its name changes.
func isSet(at time.Time) bool {
	_, was := at.Add(-1).Zone()
	_, is := at.Zone()
	return was != is
}

// A Calendar remembers the periods that are now, so that few are computed.
// Owner: the loop.
type Calendar struct{ known map[period]state.Bounds }

type period struct {
	of   catalog.Period
	zone *time.Location
}

// NewCalendar makes one that remembers nothing yet.
func NewCalendar() *Calendar { return &Calendar{known: make(map[period]state.Bounds)} }

// Bounds is the function of the same name.
func (c *Calendar) Bounds(l *catalog.Limit, unixNs int64) state.Bounds {
	key := period{l.Period, l.Zone}
	b, found := c.known[key]
	if found && b.FromNs <= unixNs && unixNs < b.UntilNs {
		return b
	}
	if !found && len(c.known) >= periodsMax { // zones of catalogs that have gone
		clear(c.known)
	}
	b = Bounds(l, unixNs)
	c.known[key] = b
	return b
}
